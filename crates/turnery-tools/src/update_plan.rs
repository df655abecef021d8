//! `update_plan`: shows the user the model's list of tasks.

use crate::{
    Progress, Tool, ToolCx, Workspace,
    arguments::{parse_args, spec_for},
    tool::end,
};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use turnery_engine::{
    CallDetail, CallKind, PlanEntry, PlanPriority, PlanStatus, ToolEnvelope, ToolError, ToolSpec,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    entries: Vec<Entry>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Entry {
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
#[derive(Debug)]
pub struct UpdatePlan {
    spec: ToolSpec,
}

impl UpdatePlan {
    /// Name of the tool.
    pub const NAME: &'static str = "update_plan";

    /// Creates the tool.
    #[must_use]
    pub fn new() -> Self {
        Self {
            spec: spec_for::<Args>(
                Self::NAME,
                "Show the user your plan for work of several steps. Give all entries each time; \
                 keep one in_progress.",
            ),
        }
    }
}

impl Default for UpdatePlan {
    fn default() -> Self {
        Self::new()
    }
}

impl Tool for UpdatePlan {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn kind(&self) -> CallKind {
        CallKind::Think
    }

    fn describe(&self, _args: &Value, _workspace: &Workspace) -> CallDetail {
        CallDetail {
            title: "Update the plan".to_owned(),
            kind: self.kind(),
            ..CallDetail::default()
        }
    }

    fn run<'a>(&'a self, args: &'a Value, cx: &'a ToolCx) -> BoxFuture<'a, ToolEnvelope> {
        Box::pin(async move { end(run(args, cx).await) })
    }
}

async fn run(args: &Value, cx: &ToolCx) -> Result<ToolEnvelope, ToolError> {
    let args: Args = parse_args(args)?;
    let entries: Vec<PlanEntry> = args
        .entries
        .into_iter()
        .map(Entry::into_plan_entry)
        .collect();
    let done = entries
        .iter()
        .filter(|entry| entry.status == PlanStatus::Completed)
        .count();
    let told = format!("Plan updated: {done} of {} done", entries.len());
    // The call succeeds even if progress is not displayed.
    let _ = cx.progress.send(Progress::Planned(entries)).await;
    Ok(ToolEnvelope::text(told))
}

impl Entry {
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
