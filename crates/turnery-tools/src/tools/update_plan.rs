//! `update_plan`: shows the user the model's list of tasks.

use crate::{
    tool::{Progress, ToolCx},
    typed_tool::TypedTool,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::borrow::Cow;
use turnery_engine::{CallKind, PlanEntry, PlanPriority, PlanStatus, ToolEnvelope, ToolError};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UpdatePlanArgs {
    entries: Vec<PlanEntryArgs>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlanEntryArgs {
    content: String,
    priority: Option<PlanPriorityArg>,
    status: Option<PlanStatusArg>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum PlanPriorityArg {
    High,
    Medium,
    Low,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum PlanStatusArg {
    Pending,
    InProgress,
    Completed,
}

/// Shows the plan.
#[derive(Debug, Default)]
pub(super) struct UpdatePlan;

impl TypedTool for UpdatePlan {
    type Args = UpdatePlanArgs;
    const NAME: &'static str = "update_plan";
    const TITLE: &'static str = "Update the plan";
    const KIND: CallKind = CallKind::Think;

    fn description(&self) -> Cow<'static, str> {
        "Show the user your plan for work of several steps. Give all entries each time; \
         keep one in_progress."
            .into()
    }

    async fn run(&self, args: UpdatePlanArgs, cx: &ToolCx) -> Result<ToolEnvelope, ToolError> {
        let entries: Vec<PlanEntry> = args
            .entries
            .into_iter()
            .map(PlanEntryArgs::into_plan_entry)
            .collect();
        let done = entries
            .iter()
            .filter(|entry| entry.status == PlanStatus::Completed)
            .count();
        let told = format!("Plan updated: {done} of {} done", entries.len());
        // The call succeeds even if progress is not displayed.
        let _ = cx.progress.send(Progress::Plan(entries)).await;
        Ok(ToolEnvelope::text(told))
    }
}

impl PlanEntryArgs {
    fn into_plan_entry(self) -> PlanEntry {
        PlanEntry {
            content: self.content,
            priority: self
                .priority
                .map_or_else(PlanPriority::default, |word| match word {
                    PlanPriorityArg::High => PlanPriority::High,
                    PlanPriorityArg::Medium => PlanPriority::Medium,
                    PlanPriorityArg::Low => PlanPriority::Low,
                }),
            status: self
                .status
                .map_or_else(PlanStatus::default, |word| match word {
                    PlanStatusArg::Pending => PlanStatus::Pending,
                    PlanStatusArg::InProgress => PlanStatus::InProgress,
                    PlanStatusArg::Completed => PlanStatus::Completed,
                }),
        }
    }
}
