//! `_turnery/session/steer` and `_turnery/session/follow_up`: send a message while a prompt runs (C-29).
//! Extensions, declared in the `_meta` of the agent's capabilities (EXT-3, EXT-5).

use crate::{
    methods::prompt_start::{check_media_support, queue_full_error},
    server::{method_call::MethodCall, params::parse_params, rpc_error::RpcError},
    v1::prompt_content,
};
use agent_client_protocol_schema::v1::ContentBlock;
use serde::{Deserialize, Serialize};
use turnery_agent::{DeliveryReceipt, InterjectError, Session};
use turnery_engine::Content;

/// Method that delivers a message as soon as the running call is done (UP-5).
pub(super) const STEER: &str = "_turnery/session/steer";
/// Method that delivers a message when the prompt would end (UP-6).
pub(super) const FOLLOW_UP: &str = "_turnery/session/follow_up";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InterjectionParams {
    session_id: String,
    prompt: Vec<ContentBlock>,
}

/// Confirms delivery; failures are error responses.
#[derive(Clone, Serialize)]
pub(super) struct InterjectionResponse {
    taken: bool,
}

pub(super) async fn handle_steer(call: MethodCall) -> Result<InterjectionResponse, RpcError> {
    interject(&call, Session::try_steer).await
}

pub(super) async fn handle_follow_up(call: MethodCall) -> Result<InterjectionResponse, RpcError> {
    interject(&call, Session::try_follow_up).await
}

/// Queues the message at the first poll and responds once it was delivered. A late message is rejected: nobody
/// would wait for the prompt it would become.
async fn interject(
    call: &MethodCall,
    deliver: fn(&Session, Vec<Content>) -> Result<DeliveryReceipt, InterjectError>,
) -> Result<InterjectionResponse, RpcError> {
    let request: InterjectionParams = parse_params(&call.params)?;
    let session = call.connection.session(&request.session_id)?;
    let content = prompt_content::parse_prompt(request.prompt)?.content;
    check_media_support(&session, &content, None)?;
    let heard = match deliver(&session, content) {
        Ok(receipt) => receipt.result().await,
        Err(error) => Err(error),
    };
    match heard {
        Ok(()) => Ok(InterjectionResponse { taken: true }),
        Err(error) => Err(delivery_error(&session, error)),
    }
}

fn delivery_error(session: &Session, error: InterjectError) -> RpcError {
    let details = format!("{error}.");
    match error {
        InterjectError::Idle => {
            RpcError::internal("not_running", "No prompt is running", details, false)
        }
        InterjectError::Full(_) => queue_full_error(details),
        InterjectError::Empty => RpcError::invalid_params(details),
        InterjectError::Closed => RpcError::session_not_found(session.id().as_str(), details),
    }
}
