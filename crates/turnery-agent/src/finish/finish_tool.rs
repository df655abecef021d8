//! `finish`: ends the task with a value.

use super::{FinalAnswerFormat, ValueSchema};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{borrow::Cow, sync::Arc};
use turnery_engine::{ToolControl, ToolEnvelope, ToolError, ToolErrorKind};
use turnery_tools::{ToolCx, TypedTool};

const REQUIRED: &str = "End the task with its result. Call it once, when the work is done; a reply in prose does not \
    end the task.";

const OPTIONAL: &str = "End the task with a value as its result, instead of a reply in prose.";

const BY_SCHEMA: &str =
    " The value must fit its schema; if it does not, you are told why and can call again.";

const MARKDOWN: &str = " The user reads the value: give a string of Markdown.";

const RAW_VALUE: &str = " A program reads the value: give plain data, such as a string, a number or an object, \
    without prose around it.";

/// Arguments of `finish`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FinishArgs {
    value: Value,
}

/// Ends the loop with a value of the model, after checking it (LASH-6).
#[derive(Debug)]
pub struct FinishTool {
    description: Cow<'static, str>,
    schema: Option<Arc<ValueSchema>>,
}

impl FinishTool {
    pub(super) fn optional(format: FinalAnswerFormat) -> Self {
        Self::with_guidance(OPTIONAL, format)
    }

    pub(super) fn required(format: FinalAnswerFormat) -> Self {
        Self::with_guidance(REQUIRED, format)
    }

    /// Creates the tool for values of a schema, whatever the usual form of final values is (LASH-124).
    pub(super) fn for_schema(schema: Arc<ValueSchema>) -> Self {
        Self {
            description: format!("{REQUIRED}{BY_SCHEMA}").into(),
            schema: Some(schema),
        }
    }

    fn with_guidance(purpose: &str, format: FinalAnswerFormat) -> Self {
        let guidance = match format {
            FinalAnswerFormat::Markdown => MARKDOWN,
            FinalAnswerFormat::RawValue => RAW_VALUE,
        };
        Self {
            description: format!("{purpose}{guidance}").into(),
            schema: None,
        }
    }
}

impl TypedTool for FinishTool {
    type Args = FinishArgs;
    const NAME: &'static str = "finish";
    const TITLE: &'static str = "Finish with a value";

    fn description(&self) -> Cow<'static, str> {
        self.description.clone()
    }

    fn schema(&self) -> Value {
        let value = match &self.schema {
            Some(schema) => schema.as_value_property(),
            None => json!({"description": "The result"}),
        };
        json!({
            "type": "object",
            "properties": {"value": value},
            "required": ["value"],
            "additionalProperties": false
        })
    }

    fn enforces_schema(&self) -> bool {
        self.schema.is_some()
    }

    async fn run(&self, args: FinishArgs, _cx: &ToolCx) -> Result<ToolEnvelope, ToolError> {
        if let Some(schema) = &self.schema {
            schema.check(&args.value).map_err(|reasons| {
                let message = format!("the value does not fit its schema:\n{reasons}");
                ToolError::new(ToolErrorKind::Validation, message)
            })?;
        }
        Ok(ToolEnvelope {
            control: Some(Box::new(ToolControl::Submit(args.value))),
            ..ToolEnvelope::text("finished")
        })
    }
}
