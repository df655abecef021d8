//! `_turnery/session/queue`: stores a prompt to be run as soon as the session is free, by the process that holds it or
//! by this one. An extension of v2 alone, declared in the `_meta` of the agent's capabilities (EXT-3, EXT-5): in v1 every
//! turn answers a request.

use crate::{
    methods::prompt_start::check_media_support,
    server::{method_call::MethodCall, params::parse_params, rpc_error::RpcError},
    v2::prompt_content,
};
use agent_client_protocol_schema::v2::ContentBlock;
use serde::{Deserialize, Serialize};
use turnery_agent::QueuedReceipt;
use turnery_engine::PromptId;

/// Name of the method.
pub(super) const QUEUE: &str = "_turnery/session/queue";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct QueueParams {
    session_id: String,
    prompt: Vec<ContentBlock>,
}

/// Confirms that the prompt is stored. Its turn is reported by updates of the session in which it is run.
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct QueueResponse {
    prompt_id: PromptId,
    /// Process that runs a prompt of the session; `null` if there is none: then the prompt is run here, at once.
    held_by: Option<String>,
}

pub(super) async fn handle(call: MethodCall) -> Result<QueueResponse, RpcError> {
    let request: QueueParams = parse_params(&call.params)?;
    let session = call.connection.session(&request.session_id)?;
    let content = prompt_content::parse_prompt(request.prompt)?.content;
    if content.is_empty() {
        return Err(RpcError::invalid_params("The prompt is empty.".to_owned()));
    }
    check_media_support(&session, &content, None)?;
    let queued = session.queue_prompt(content).await;
    let QueuedReceipt { prompt, holder } = queued.map_err(|error| RpcError::from_store(&error))?;
    Ok(QueueResponse {
        prompt_id: prompt.id,
        held_by: holder,
    })
}
