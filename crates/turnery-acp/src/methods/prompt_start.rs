//! Checks a prompt before it starts, reads its options, and converts the error of a prompt that the session rejected.

use crate::server::rpc_error::RpcError;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use turnery_agent::{
    CancellationToken, FinishRule, PromptOptions, Session, StartError, ValueSchema,
};
use turnery_engine::Content;
use turnery_models::ModelInfo;
use turnery_tools::TraceContext;

/// Members of `_meta.turnery` in a prompt (EXT-1).
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptMeta {
    finish: Option<FinishWord>,
    output_schema: Option<Value>,
}

/// How a prompt may end.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FinishWord {
    /// With prose or a value.
    Allowed,
    /// With a value.
    Required,
}

/// Reads the options of a prompt from its `_meta`: the trace context (EXT-6), and how the prompt may end.
pub(crate) fn prompt_options(
    meta: Option<&Map<String, Value>>,
    cancel: CancellationToken,
) -> Result<PromptOptions, RpcError> {
    let trace = meta.map(TraceContext::from_meta);
    // Anything else in `_meta` is the client's (EXT-2).
    let own = meta
        .and_then(|meta| meta.get("turnery"))
        .filter(|own| own.is_object());
    Ok(PromptOptions {
        finish: own.map_or(Ok(FinishRule::Prose), finish_rule)?,
        trace: trace.unwrap_or_default(),
        ..PromptOptions::cancelled_by(cancel)
    })
}

fn finish_rule(members: &Value) -> Result<FinishRule, RpcError> {
    let refused = |reason: String| {
        RpcError::invalid_params(format!("_meta.turnery of the prompt: {reason}."))
    };
    let meta = PromptMeta::deserialize(members).map_err(|error| refused(error.to_string()))?;
    match (meta.output_schema, meta.finish) {
        (Some(_), Some(FinishWord::Allowed)) => Err(refused(
            "outputSchema requires a value, so finish cannot be \"allowed\"".to_owned(),
        )),
        (Some(schema), Some(FinishWord::Required) | None) => {
            let schema = ValueSchema::new(schema);
            let schema = schema.map_err(|error| refused(format!("outputSchema: {error}")))?;
            Ok(FinishRule::ValueOf(Arc::new(schema)))
        }
        (None, Some(FinishWord::Required)) => Ok(FinishRule::Value),
        (None, Some(FinishWord::Allowed)) => Ok(FinishRule::ProseOrValue),
        (None, None) => Ok(FinishRule::Prose),
    }
}

/// Rejects images and audio that the current model does not support (PROMPT-2). Checked per prompt because the
/// model can change; the capability only says that some model supports them.
pub(crate) fn check_media_support(session: &Session, input: &[Content]) -> Result<(), RpcError> {
    let options = session.options();
    let current = |model: &&ModelInfo| model.name.to_string() == options.model;
    let Some(model) = options.models.iter().find(current) else {
        return Ok(());
    };
    let is_image = |content: &Content| matches!(content, Content::Image(_));
    let is_audio = |content: &Content| matches!(content, Content::Audio(_));
    let name = &model.name;
    if !model.images && input.iter().any(is_image) {
        return Err(RpcError::invalid_params(format!(
            "{name} takes no images: choose another model, or set images = true for it in config.toml."
        )));
    }
    if !model.audio && input.iter().any(is_audio) {
        return Err(RpcError::invalid_params(format!(
            "{name} takes no audio: choose another model, or set audio = true in config.toml for one \
             of an OpenAI-compatible server that does."
        )));
    }
    Ok(())
}

/// Converts the error of a prompt that the session rejected.
pub(crate) fn start_error(session: &Session, error: StartError) -> RpcError {
    match error {
        StartError::Full(_) => queue_full_error(error.to_string()),
        StartError::Candidates(_) => RpcError::invalid_params(error.to_string()),
        StartError::Closed => RpcError::session_not_found(session.id().as_str(), error.to_string()),
    }
}

/// Returns the error for a full prompt queue.
pub(super) fn queue_full_error(details: String) -> RpcError {
    RpcError::internal("queue_full", "Too many prompts wait", details, true)
}
