//! Asks the user, through a v2 client, whether a tool call may run. Answers are interpreted as in v1: only an
//! offered option that allows counts as allowing (V2-17).

use super::{artifacts::encode_artifacts, shared};
use crate::{
    client::{peer::Peer, permission::parse_response},
    view::tool_call::{display_title, raw_value},
};
use agent_client_protocol_schema::v2::{
    RequestPermissionRequest, RequestPermissionSubject, ToolCallStatus, ToolCallUpdate,
};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use turnery_agent::{Client, PermissionAnswer, PermissionRequest};
use turnery_engine::CallKind;

/// Asks the user for permissions through a v2 client.
pub(crate) struct PermissionClientV2(pub(crate) Arc<Peer>);

impl Client for PermissionClientV2 {
    fn request_permission(&self, ask: PermissionRequest) -> BoxFuture<'_, PermissionAnswer> {
        Box::pin(async move {
            let question = encode_request(&ask);
            let reply = self
                .0
                .request("session/request_permission", &question)
                .await;
            parse_response(reply, &ask.options)
        })
    }
}

/// Encodes a permission request for a call that was announced before.
fn encode_request(ask: &PermissionRequest) -> RequestPermissionRequest {
    let options = shared::encode_choices(&ask.options);
    let call = display_title(&ask.detail.title, &ask.tool_name);
    RequestPermissionRequest::new(
        ask.session_id.as_str(),
        question_title(ask.detail.kind),
        options,
    )
    .description(call)
    .subject(RequestPermissionSubject::from(encode_subject(ask)))
}

fn question_title(kind: CallKind) -> &'static str {
    match kind {
        CallKind::Read | CallKind::Search => "Allow to read this?",
        CallKind::Edit => "Allow this change?",
        CallKind::Delete => "Allow to delete this?",
        CallKind::Move => "Allow to move this?",
        CallKind::Execute => "Allow to run this?",
        CallKind::Fetch => "Allow to fetch this?",
        CallKind::Think | CallKind::Other => "Allow this?",
    }
}

/// Encodes the current state of the call, which the client applies as an update.
fn encode_subject(ask: &PermissionRequest) -> ToolCallUpdate {
    let mut call = ToolCallUpdate::new(ask.call_id.as_str())
        .name(ask.tool_name.clone())
        .kind(shared::encode_kind(ask.detail.kind))
        .status(ToolCallStatus::Pending)
        .content(encode_artifacts(&ask.detail.artifacts))
        .locations(shared::encode_locations(&ask.detail.locations));
    if !ask.detail.title.is_empty() {
        call = call.title(display_title(&ask.detail.title, &ask.tool_name));
    }
    match raw_value(&ask.args) {
        Some(args) => call.raw_input(args),
        None => call,
    }
}
