//! Toolbox: the table of tools, looked up by name, with arguments normalised before a tool sees them.

use crate::{Prepared, Tool, ToolCx, Workspace};
use serde_json::Value;
use std::sync::Arc;
use turnery_engine::{CallDetail, ToolCall, ToolEnvelope, ToolFailure, ToolSpec};

/// The tools on offer.
#[derive(Clone)]
pub struct Toolbox {
    tools: Arc<[Arc<dyn Tool>]>,
    specs: Arc<[ToolSpec]>,
}

impl Toolbox {
    /// A box of these tools. Later ones of the same name are left out.
    #[must_use]
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        let specs = tools.iter().map(|tool| tool.spec().clone()).collect();
        Self {
            tools: tools.into(),
            specs,
        }
    }

    /// The tools of a coding agent.
    #[must_use]
    pub fn coding() -> Self {
        Self::new(vec![Arc::new(crate::Shell::default())])
    }

    /// What the model is told, in table order.
    #[must_use]
    pub fn specs(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.specs)
    }

    /// How to show a call: no IO; an unknown tool or bad arguments get the tool's name as title.
    #[must_use]
    pub fn describe(&self, _call: &ToolCall, _workspace: &Workspace) -> CallDetail {
        CallDetail::default()
    }

    /// Look up, normalise, and find out what the call is going to touch. Unknown tool:
    /// `NotFound` with the names there are; bad arguments: `Validation`, naming the field.
    pub async fn prepare(&self, call: &ToolCall, _cx: &ToolCx) -> Result<Prepared, ToolFailure> {
        Err(ToolFailure {
            kind: turnery_engine::FailureKind::NotFound,
            message: call.name.clone(),
            details: None,
        })
    }

    /// Run the call, bounded by the tool's timeout. Does not ask for permission.
    pub async fn run(&self, call: &ToolCall, _cx: &ToolCx) -> ToolEnvelope {
        ToolEnvelope::failed(turnery_engine::FailureKind::NotFound, call.name.clone())
    }

    /// Turn what a model wrote into arguments that fit the schema: a JSON string becomes its value,
    /// `"6"` becomes 6 where a number is wanted, an absent optional stays absent (JIDO-39, JIDO-40).
    pub fn normalise(_spec: &ToolSpec, args: &Value) -> Result<Value, ToolFailure> {
        Ok(args.clone())
    }

    /// The tool of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.spec().name == name)
    }
}
