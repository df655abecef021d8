//! Permission: asks the person at the client whether a call may run.

use crate::{
    elicitation,
    key_page::{self, KeyPages},
    peer::{Peer, PeerError},
    shown,
};
use agent_client_protocol_schema::v1::{
    ElicitationSessionScope, PermissionOption, PermissionOptionKind, RequestPermissionRequest,
    ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use futures_util::future::BoxFuture;
use serde::Deserialize;
use std::sync::Arc;
use turnery_agent::{Answer, Ask, AskOption, Client, OptionKind, Question};
use turnery_engine::SessionId;
use turnery_models::MissingKey;
use turnery_tools::visible_line;

/// The person at the client.
pub(crate) struct Person {
    pub(crate) peer: Arc<Peer>,
    /// Whether it shows forms (ELIC-1).
    pub(crate) forms: bool,
    /// Where to send it for a missing key, if it can be sent somewhere.
    pub(crate) pages: Option<KeyPages>,
}

/// Read by hand, so that an outcome nobody knows is told apart and means no (PERM-3).
#[derive(Deserialize)]
pub(crate) struct Reply {
    outcome: ReplyOutcome,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReplyOutcome {
    outcome: String,
    #[serde(default)]
    option_id: Option<String>,
}

impl Client for Person {
    fn ask(&self, ask: Ask) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let question = to_wire(&ask);
            let reply = self
                .peer
                .request("session/request_permission", &question)
                .await;
            from_wire(reply, &ask.options)
        })
    }

    fn takes_questions(&self) -> bool {
        self.forms
    }

    fn question(&self, question: Question) -> BoxFuture<'_, turnery_agent::Reply> {
        Box::pin(elicitation::ask(&self.peer, question))
    }

    fn wants_key(&self, session: SessionId, missing: MissingKey) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Some(pages) = &self.pages {
                let scope = ElicitationSessionScope::new(session.to_string());
                key_page::ask(&self.peer, pages, scope, &missing).await;
            }
        })
    }
}

fn to_wire(ask: &Ask) -> RequestPermissionRequest {
    let fields = ToolCallUpdateFields::new()
        .title(shown::title(&ask.detail.title, &ask.tool_name))
        .name(ask.tool_name.clone())
        .kind(shown::kind(ask.detail.kind))
        .status(ToolCallStatus::Pending)
        .content(shown::artifacts(&ask.detail.artifacts))
        .locations(shown::locations(&ask.detail.locations))
        .raw_input(shown::raw(&ask.args));
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
            PermissionOption::new(option.id.clone(), visible_line(&option.name), kind)
        })
        .collect();
    RequestPermissionRequest::new(
        ask.session_id.to_string(),
        ToolCallUpdate::new(ask.call_id.to_string(), fields),
        options,
    )
}

/// Yes needs all of: `selected`, an id, and the id was offered (PERM-3). What the option means is
/// the agent's to know.
pub(crate) fn from_wire(reply: Result<Reply, PeerError>, offered: &[AskOption]) -> Answer {
    let outcome = match reply {
        Ok(reply) => reply.outcome,
        Err(error) if error.is_cancelled() => return Answer::Cancelled,
        Err(error) => {
            return Answer::NoAnswer(format!("permission could not be asked for: {error}"));
        }
    };
    match (outcome.outcome.as_str(), outcome.option_id) {
        ("cancelled", _) => Answer::Cancelled,
        ("selected", Some(id)) if offered.iter().any(|option| option.id == id) => Answer::Chose(id),
        ("selected", id) => Answer::NoAnswer(format!(
            "the client chose {:?}, which was not offered",
            id.unwrap_or_default()
        )),
        (other, _) => Answer::NoAnswer(format!("the client answered {other:?}")),
    }
}
