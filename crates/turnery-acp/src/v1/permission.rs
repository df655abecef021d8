//! Asks the user, through the client, whether a tool call may run.

use crate::{
    client::{
        elicitation,
        key_page::{self, KeyPageOpener},
        peer::{Peer, PeerError},
    },
    v1::tool_call_view,
};
use agent_client_protocol_schema::v1::{
    ElicitationSessionScope, PermissionOption, PermissionOptionKind, RequestPermissionRequest,
    ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use futures_util::future::BoxFuture;
use serde::Deserialize;
use std::sync::Arc;
use turnery_agent::{
    Client, PermissionAnswer, PermissionChoice, PermissionChoiceKind, PermissionRequest,
    UserQuestion,
};
use turnery_engine::SessionId;
use turnery_models::MissingKeyError;
use turnery_tools::visible_line;

/// Asks the user for permissions and answers through a v1 client.
pub(crate) struct PermissionClientV1 {
    pub(crate) peer: Arc<Peer>,
    /// True if the client shows forms (ELIC-1).
    pub(crate) forms: bool,
    /// Opens a page for a missing key, if the client can open URLs.
    pub(crate) key_page_opener: Option<KeyPageOpener>,
}

/// Response to `session/request_permission`. Not the schema's type: an unknown outcome must mean no (PERM-3).
#[derive(Deserialize)]
pub(crate) struct PermissionResponse {
    outcome: PermissionOutcome,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PermissionOutcome {
    outcome: String,
    #[serde(default)]
    option_id: Option<String>,
}

impl Client for PermissionClientV1 {
    fn ask(&self, ask: PermissionRequest) -> BoxFuture<'_, PermissionAnswer> {
        Box::pin(async move {
            let question = encode_request(&ask);
            let reply = self
                .peer
                .request("session/request_permission", &question)
                .await;
            parse_response(reply, &ask.options)
        })
    }

    fn takes_questions(&self) -> bool {
        self.forms
    }

    fn question(&self, question: UserQuestion) -> BoxFuture<'_, turnery_agent::UserAnswer> {
        Box::pin(elicitation::ask_question(&self.peer, question))
    }

    fn wants_key(&self, session: SessionId, missing: MissingKeyError) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Some(pages) = &self.key_page_opener {
                let scope = ElicitationSessionScope::new(session.to_string());
                key_page::request_key(&self.peer, pages, scope, &missing).await;
            }
        })
    }
}

fn encode_request(ask: &PermissionRequest) -> RequestPermissionRequest {
    let fields = ToolCallUpdateFields::new()
        .title(tool_call_view::display_title(
            &ask.detail.title,
            &ask.tool_name,
        ))
        .name(ask.tool_name.clone())
        .kind(tool_call_view::encode_kind(ask.detail.kind))
        .status(ToolCallStatus::Pending)
        .content(tool_call_view::encode_artifacts(&ask.detail.artifacts))
        .locations(tool_call_view::encode_locations(&ask.detail.locations))
        .raw_input(tool_call_view::raw_value(&ask.args));
    let options = ask
        .options
        .iter()
        .map(|option| {
            let kind = match option.kind {
                PermissionChoiceKind::AllowOnce => PermissionOptionKind::AllowOnce,
                PermissionChoiceKind::AllowAlways => PermissionOptionKind::AllowAlways,
                PermissionChoiceKind::RejectOnce => PermissionOptionKind::RejectOnce,
                PermissionChoiceKind::RejectAlways => PermissionOptionKind::RejectAlways,
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

/// Parses the response. Allowing requires the outcome `selected` with the id of an offered option (PERM-3);
/// the agent interprets the option.
pub(crate) fn parse_response(
    reply: Result<PermissionResponse, PeerError>,
    offered: &[PermissionChoice],
) -> PermissionAnswer {
    let outcome = match reply {
        Ok(reply) => reply.outcome,
        Err(error) if error.is_cancelled() => return PermissionAnswer::Cancelled,
        Err(error) => {
            return PermissionAnswer::NoAnswer(format!(
                "permission could not be asked for: {error}"
            ));
        }
    };
    match (outcome.outcome.as_str(), outcome.option_id) {
        ("cancelled", _) => PermissionAnswer::Cancelled,
        ("selected", Some(id)) if offered.iter().any(|option| option.id == id) => {
            PermissionAnswer::Chose(id)
        }
        ("selected", id) => PermissionAnswer::NoAnswer(format!(
            "the client chose {:?}, which was not offered",
            id.unwrap_or_default()
        )),
        (other, _) => PermissionAnswer::NoAnswer(format!("the client answered {other:?}")),
    }
}
