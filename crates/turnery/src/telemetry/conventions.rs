//! Names and values of the OpenTelemetry conventions for generative AI, version 1.41.0.
//!
//! Source: `docs/gen-ai` of the repository `open-telemetry/semantic-conventions`.

use opentelemetry::KeyValue;
use serde::Serialize;
use serde_json::Value;
use turnery_engine::{LoopId, ModelStop, Outcome, ProviderFailure, TurnStop, Usage};

/// Schema of the attributes.
pub(super) const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.41.0";

pub(super) const AGENT_NAME: &str = "gen_ai.agent.name";
pub(super) const AGENT_VERSION: &str = "gen_ai.agent.version";
pub(super) const CONVERSATION_ID: &str = "gen_ai.conversation.id";
pub(super) const ERROR_TYPE: &str = "error.type";
pub(super) const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
pub(super) const INPUT_MESSAGES: &str = "gen_ai.input.messages";
pub(super) const OPERATION_NAME: &str = "gen_ai.operation.name";
pub(super) const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
pub(super) const PROVIDER_NAME: &str = "gen_ai.provider.name";
pub(super) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(super) const REQUEST_STREAM: &str = "gen_ai.request.stream";
pub(super) const RESPONSE_MODEL: &str = "gen_ai.response.model";
pub(super) const SERVER_ADDRESS: &str = "server.address";
pub(super) const SERVER_PORT: &str = "server.port";
pub(super) const TOKEN_TYPE: &str = "gen_ai.token.type";
pub(super) const TOOL_CALL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(super) const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
pub(super) const TOOL_CALL_RESULT: &str = "gen_ai.tool.call.result";
pub(super) const TOOL_NAME: &str = "gen_ai.tool.name";
pub(super) const TOOL_TYPE: &str = "gen_ai.tool.type";

/// Attributes and events of turnery's own, which the conventions lack.
pub(super) mod own {
    /// Number of a failed attempt, from 1.
    pub(crate) const ATTEMPT: &str = "turnery.retry.attempt";
    /// Purpose of a model call: `turn`, `compaction` or `evaluation`.
    pub(crate) const CALL_SOURCE: &str = "turnery.call.source";
    /// Number of the loop of a model or tool call, which is unique in its session.
    pub(crate) const LOOP_NUMBER: &str = "turnery.loop.number";
    /// Outcome of a prompt.
    pub(crate) const OUTCOME: &str = "turnery.outcome";
    /// Event: an attempt of a model call failed, and another one follows.
    pub(crate) const RETRY: &str = "turnery.retry";
    /// Wait before the next attempt. Unit: milliseconds.
    pub(crate) const RETRY_WAIT: &str = "turnery.retry.wait_ms";
}

/// Value of `gen_ai.operation.name`.
#[derive(Clone, Copy)]
pub(super) enum Operation {
    Chat,
    ExecuteTool,
    InvokeAgent,
}

impl Operation {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::ExecuteTool => "execute_tool",
            Self::InvokeAgent => "invoke_agent",
        }
    }

    /// Returns the name of a span of this operation on `object`.
    pub(super) fn span_name(self, object: &str) -> String {
        format!("{} {object}", self.as_str()).trim_end().to_owned()
    }

    pub(super) fn attribute(self) -> KeyValue {
        KeyValue::new(OPERATION_NAME, self.as_str())
    }
}

/// Splits `provider/model`. The model is empty if the provider has only one, or if it is the path of a scenario.
pub(super) fn split_model(name: &str) -> (&str, &str) {
    match name.split_once('/') {
        Some(("scripted", _)) => ("scripted", ""),
        Some(parts) => parts,
        None => (name, ""),
    }
}

/// Returns the attribute `key` with the name of a model; `None` for an empty one.
pub(super) fn model_attribute(key: &'static str, model: &str) -> Option<KeyValue> {
    (!model.is_empty()).then(|| KeyValue::new(key, model.to_owned()))
}

/// Returns the number of a loop as an attribute. Its id names the model, which may be a path.
pub(super) fn loop_attribute(loop_id: &LoopId) -> Option<KeyValue> {
    let number = i64::try_from(loop_id.number()?).ok()?;
    Some(KeyValue::new(own::LOOP_NUMBER, number))
}

/// Returns the convention's name of a provider; others keep the name that the user gave them.
pub(super) fn provider_name(name: &str) -> &str {
    match name {
        "azure" => "azure.ai.openai",
        "bedrock" => "aws.bedrock",
        "gemini" | "google" => "gcp.gemini",
        "mistral" => "mistral_ai",
        "moonshot" => "moonshot_ai",
        "vertex" => "gcp.vertex_ai",
        "xai" => "x_ai",
        name => name,
    }
}

/// Returns the convention's name of the reason why a response ended.
pub(super) fn finish_reason(stop: ModelStop) -> &'static str {
    match stop {
        ModelStop::EndTurn => "stop",
        ModelStop::ToolUse => "tool_call",
        ModelStop::Length => "length",
        ModelStop::Refusal => "content_filter",
    }
}

/// Returns the tokens of a call. Input includes cached input, as the conventions ask.
pub(super) fn usage_attributes(usage: &Usage) -> impl Iterator<Item = KeyValue> + use<> {
    [
        ("gen_ai.usage.input_tokens", input_tokens(usage)),
        ("gen_ai.usage.output_tokens", usage.output),
        ("gen_ai.usage.cache_read.input_tokens", usage.cache_read),
        (
            "gen_ai.usage.cache_creation.input_tokens",
            usage.cache_write,
        ),
        ("gen_ai.usage.reasoning.output_tokens", usage.reasoning),
    ]
    .into_iter()
    .map(|(name, count)| KeyValue::new(name, i64::try_from(count).unwrap_or(i64::MAX)))
}

/// Returns all input of a call, cached or not. Unit: tokens.
pub(super) fn input_tokens(usage: &Usage) -> u64 {
    usage.total().saturating_sub(usage.output)
}

/// Returns the value of `error.type` for a kind of error: its name in records.
pub(super) fn error_type(kind: impl Serialize) -> String {
    match serde_json::to_value(kind) {
        Ok(Value::String(name)) => name,
        Ok(_) | Err(_) => "_OTHER".to_owned(),
    }
}

/// Returns the name of an outcome, and the type of its error if it is one.
pub(super) fn describe_outcome(outcome: &Outcome) -> (&'static str, Option<String>) {
    let stop = match outcome {
        Outcome::Finished(..) => return ("finished", None),
        Outcome::FrameSwitch { .. } => return ("frame_switch", None),
        Outcome::Stopped(stop) => stop,
    };
    let name = match stop {
        TurnStop::Cancelled => return ("cancelled", None),
        TurnStop::InvalidInput { .. } => "invalid_input",
        TurnStop::Incomplete => "incomplete",
        TurnStop::ProviderError(ProviderFailure::Failed { kind, .. }) => {
            return ("provider_error", Some(error_type(kind)));
        }
        TurnStop::ProviderError(ProviderFailure::Refused) => "refused",
        TurnStop::MaxTurns(_) => "limit_reached",
        TurnStop::ToolFailure { .. } => "tool_failure",
        TurnStop::PluginAbort { .. } => "plugin_abort",
        TurnStop::RuntimeError { .. } => "runtime_error",
        TurnStop::SubmittedError { .. } => "submitted_error",
        TurnStop::ToolError { .. } => "tool_error",
    };
    (name, Some(name.to_owned()))
}
