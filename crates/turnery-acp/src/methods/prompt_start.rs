//! Checks a prompt before it starts, and converts the error of a prompt that the session rejected.

use crate::server::rpc_error::RpcError;
use turnery_agent::{Session, StartError};
use turnery_engine::Content;
use turnery_models::ModelInfo;

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
