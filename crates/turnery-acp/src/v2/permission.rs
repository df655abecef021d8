//! Permission: asks the person whether a call may run, in v2's words. What an answer means is the same in
//! both versions: only an option that was offered, and means yes, is one (V2-17).

use super::shown;
use crate::{peer::Peer, permission::from_wire, shown::raw};
use agent_client_protocol_schema::v2::{
    PermissionOption, PermissionOptionKind, RequestPermissionRequest, RequestPermissionSubject,
    ToolCallStatus, ToolCallUpdate,
};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use turnery_agent::{Answer, Ask, Client, OptionKind};
use turnery_engine::CallKind;

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
            PermissionOption::new(option.id.as_str(), option.name.clone(), kind)
        })
        .collect();
    let call = match ask.detail.title.as_str() {
        "" => ask.tool_name.as_str(),
        title => title,
    };
    RequestPermissionRequest::new(ask.session_id.as_str(), title(ask.detail.kind), options)
        .description(call.to_owned())
        .subject(RequestPermissionSubject::from(subject(ask)))
}

fn title(kind: CallKind) -> &'static str {
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
        call = call.title(ask.detail.title.clone());
    }
    match raw(&ask.args) {
        Some(args) => call.raw_input(args),
        None => call,
    }
}
