//! Checks a prompt before it starts, reads its options, and converts the error of a prompt that the session rejected.

use crate::server::rpc_error::RpcError;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use turnery_agent::{
    CancellationToken, FinishRule, PromptOptions, Protocol, Session, StartError, ValueSchema,
};
use turnery_engine::Content;
use turnery_models::{ModelName, Thinking, UnknownModelError};
use turnery_tools::TraceContext;

/// Members of `_meta.turnery` in a prompt (EXT-1).
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptMeta {
    finish: Option<FinishWord>,
    output_schema: Option<Value>,
    /// `provider/model` for this prompt alone (LOOP-44).
    model: Option<String>,
    thinking: Option<Thinking>,
    /// How the model acts in this prompt (LASH-5).
    protocol: Option<Protocol>,
    /// Sampling temperature (LOOP-43).
    temperature: Option<f32>,
    /// Data of the client, stored with each loop of the prompt (LOOP-28).
    metadata: Option<Value>,
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

/// Reads the options of a prompt from its `_meta`: the trace context (EXT-6), and the members of `turnery`.
pub(crate) fn prompt_options(
    meta: Option<&Map<String, Value>>,
    cancel: CancellationToken,
) -> Result<PromptOptions, RpcError> {
    let trace = meta.map(TraceContext::from_meta);
    // Anything else in `_meta` is the client's (EXT-2).
    let own = meta.and_then(|meta| meta.get("turnery"));
    let own = own.filter(|own| own.is_object());
    let refused = |reason: String| {
        RpcError::invalid_params(format!("_meta.turnery of the prompt: {reason}."))
    };
    let own = own.map(PromptMeta::deserialize).transpose();
    let own = own
        .map_err(|error| refused(error.to_string()))?
        .unwrap_or_default();
    if own.temperature.is_some_and(|it| !(0.0..=2.0).contains(&it)) {
        return Err(refused("temperature must be from 0 to 2".to_owned()));
    }
    let model = own.model.map(|name| name.parse()).transpose();
    Ok(PromptOptions {
        model: model.map_err(|error: UnknownModelError| refused(error.to_string()))?,
        thinking: own.thinking,
        protocol: own.protocol,
        temperature: own.temperature,
        metadata: own.metadata,
        finish: finish_rule(own.finish, own.output_schema).map_err(refused)?,
        trace: trace.unwrap_or_default(),
        ..PromptOptions::cancelled_by(cancel)
    })
}

fn finish_rule(finish: Option<FinishWord>, schema: Option<Value>) -> Result<FinishRule, String> {
    match (schema, finish) {
        (Some(_), Some(FinishWord::Allowed)) => {
            Err("outputSchema requires a value, so finish cannot be \"allowed\"".to_owned())
        }
        (Some(schema), Some(FinishWord::Required) | None) => match ValueSchema::new(schema) {
            Ok(schema) => Ok(FinishRule::ValueOf(Arc::new(schema))),
            Err(error) => Err(format!("outputSchema: {error}")),
        },
        (None, Some(FinishWord::Required)) => Ok(FinishRule::Value),
        (None, Some(FinishWord::Allowed)) => Ok(FinishRule::ProseOrValue),
        (None, None) => Ok(FinishRule::Prose),
    }
}

/// Rejects images and audio that the prompt's model does not support (PROMPT-2): `model`, or else the session's.
/// Checked per prompt because the model can change; the capability only says that some model supports them.
pub(crate) fn check_media_support(
    session: &Session,
    input: &[Content],
    model: Option<&ModelName>,
) -> Result<(), RpcError> {
    let has_images = input.iter().any(|it| matches!(it, Content::Image(_)));
    let has_audio = input.iter().any(|it| matches!(it, Content::Audio(_)));
    if !has_images && !has_audio {
        return Ok(());
    }
    let model = match model {
        None => Some(Arc::clone(&session.options().model)),
        Some(name) => session
            .models()
            .into_iter()
            .find(|it| it.name == *name)
            .map(Arc::new),
    };
    let Some(model) = model else {
        return Ok(());
    };
    let name = &model.name;
    if !model.images && has_images {
        return Err(RpcError::invalid_params(format!(
            "{name} takes no images: choose another model, or set images = true for it in config.toml."
        )));
    }
    if !model.audio && has_audio {
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    // proves: LOOP-28, LOOP-43, LOOP-44, LASH-118
    #[test]
    fn members_of_meta_are_options_of_the_prompt() {
        let meta = json!({"turnery": {
            "model": "offline",
            "thinking": "high",
            "protocol": "code",
            "temperature": 0.25,
            "metadata": {"ticket": 7},
            "finish": "required",
            "later": [],
        }, "other": 1});
        let options = prompt_options(meta.as_object(), CancellationToken::new()).unwrap();
        assert_eq!(options.model, Some("offline".parse().unwrap()));
        assert_eq!(options.thinking, Some(Thinking::High));
        assert_eq!(options.protocol, Some(Protocol::Code));
        assert_eq!(options.temperature, Some(0.25));
        assert_eq!(options.metadata, Some(json!({"ticket": 7})));
        assert!(matches!(options.finish, FinishRule::Value));
        let meta = json!({"turnery": {"finish": "allowed"}});
        let options = prompt_options(meta.as_object(), CancellationToken::new()).unwrap();
        assert!(matches!(options.finish, FinishRule::ProseOrValue));
        for foreign in [json!({}), json!({"turnery": null}), json!({"turnery": [1]})] {
            let options = prompt_options(foreign.as_object(), CancellationToken::new()).unwrap();
            assert!(matches!(options.finish, FinishRule::Prose));
            assert_eq!(options.model, None);
        }
    }
}
