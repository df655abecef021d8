//! Permission: asks the person whether a call may run, in v2's words. What an answer means is the same in
//! both versions: only an option that was offered, and means yes, is one (V2-17).

use super::shown;
use crate::{
    peer::Peer,
    permission::from_wire,
    shown::{raw, title},
};
use agent_client_protocol_schema::v2::{
    PermissionOption, PermissionOptionKind, RequestPermissionRequest, RequestPermissionSubject,
    ToolCallStatus, ToolCallUpdate,
};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use turnery_agent::{Answer, Ask, Client, OptionKind};
use turnery_engine::CallKind;
use turnery_tools::visible_line;

/// The person at a v2 client.
pub(crate) struct Person(pub(crate) Arc<Peer>);

impl Client for Person {
    fn ask(&self, ask: Ask) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let question = to_wire(&ask);
            let reply = self
                .0
                .request("session/request_permission", &question)
                .await;
            from_wire(reply, &ask.options)
        })
    }
}

/// A question of its own, about a call that was announced before.
fn to_wire(ask: &Ask) -> RequestPermissionRequest {
    let options = ask
        .options
        .iter()
        .map(|option| {
            let kind = match option.kind {
                OptionKind::AllowOnce => PermissionOptionKind::AllowOnce,
                OptionKind::AllowAlways => PermissionOptionKind::AllowAlways,
                OptionKind::RejectOnce => PermissionOptionKind::RejectOnce,
                OptionKind::RejectAlways => PermissionOptionKind::RejectAlways,
            };
            PermissionOption::new(option.id.as_str(), visible_line(&option.name), kind)
        })
        .collect();
    let call = title(&ask.detail.title, &ask.tool_name);
    RequestPermissionRequest::new(ask.session_id.as_str(), question(ask.detail.kind), options)
        .description(call)
        .subject(RequestPermissionSubject::from(subject(ask)))
}

fn question(kind: CallKind) -> &'static str {
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

/// The call as it stands: the client takes it as an update.
fn subject(ask: &Ask) -> ToolCallUpdate {
    let mut call = ToolCallUpdate::new(ask.call_id.as_str())
        .name(ask.tool_name.clone())
        .kind(shown::kind(ask.detail.kind))
        .status(ToolCallStatus::Pending)
        .content(shown::artifacts(&ask.detail.artifacts))
        .locations(shown::locations(&ask.detail.locations));
    if !ask.detail.title.is_empty() {
        call = call.title(title(&ask.detail.title, &ask.tool_name));
    }
    match raw(&ask.args) {
        Some(args) => call.raw_input(args),
        None => call,
    }
}
