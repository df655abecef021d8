//! `update_plan`: the model's list of what is to be done, for people to see.

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
    CallDetail, CallKind, PlanEntry, PlanPriority, PlanStatus, ToolEnvelope, ToolFailure, ToolSpec,
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
    priority: Option<Priority>,
    status: Option<Status>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Priority {
    High,
    Medium,
    Low,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
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
    /// The name it is called by.
    pub const NAME: &'static str = "update_plan";

    /// The tool.
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

async fn run(args: &Value, cx: &ToolCx) -> Result<ToolEnvelope, ToolFailure> {
    let args: Args = parse_args(args)?;
    let entries: Vec<PlanEntry> = args.entries.into_iter().map(Entry::into_plan).collect();
    let done = entries
        .iter()
        .filter(|entry| entry.status == PlanStatus::Completed)
        .count();
    let told = format!("Plan updated: {done} of {} done", entries.len());
    // Nobody listening is no reason to fail.
    let _ = cx.progress.send(Progress::Planned(entries)).await;
    Ok(ToolEnvelope::text(told))
}

impl Entry {
    fn into_plan(self) -> PlanEntry {
        PlanEntry {
            content: self.content,
            priority: self
                .priority
                .map_or_else(PlanPriority::default, |word| match word {
                    Priority::High => PlanPriority::High,
                    Priority::Medium => PlanPriority::Medium,
                    Priority::Low => PlanPriority::Low,
                }),
            status: self
                .status
                .map_or_else(PlanStatus::default, |word| match word {
                    Status::Pending => PlanStatus::Pending,
                    Status::InProgress => PlanStatus::InProgress,
                    Status::Completed => PlanStatus::Completed,
                }),
        }
    }
}
