//! `submit_error`: ends the task with an error in place of a value.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;
use turnery_engine::{ToolControl, ToolEnvelope, ToolError};
use turnery_tools::{ToolCx, TypedTool};

/// Arguments of `submit_error`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmitErrorArgs {
    /// Why there is no result: a sentence, or data for a program
    error: Value,
}

/// Ends the loop with an error of the model (LASH-26).
#[derive(Debug)]
pub struct SubmitErrorTool;

impl TypedTool for SubmitErrorTool {
    type Args = SubmitErrorArgs;
    const NAME: &'static str = "submit_error";
    const TITLE: &'static str = "Finish with an error";

    fn description(&self) -> Cow<'static, str> {
        "End the task without a result, because there can be none. Say what is in the way.".into()
    }

    async fn run(&self, args: SubmitErrorArgs, _cx: &ToolCx) -> Result<ToolEnvelope, ToolError> {
        Ok(ToolEnvelope {
            control: Some(Box::new(ToolControl::SubmitError(args.error))),
            ..ToolEnvelope::text("finished with an error")
        })
    }
}
