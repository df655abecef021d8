//! Asks the user, through the client, whether a tool call may run.

use crate::{
    client::{
        elicitation,
        key_page::{self, KeyPageOpener},
        peer::Peer,
        permission::parse_response,
    },
    v1::{artifacts::encode_artifacts, shared},
    view::tool_call,
};
use agent_client_protocol_schema::v1::{
    ElicitationSessionScope, RequestPermissionRequest, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields,
};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use turnery_agent::{Client, PermissionAnswer, PermissionRequest, UserQuestion};
use turnery_engine::SessionId;
use turnery_models::MissingKeyError;

/// Asks the user for permissions and answers through a v1 client.
pub(crate) struct PermissionClientV1 {
    pub(crate) peer: Arc<Peer>,
    /// True if the client shows forms (ELIC-1).
    pub(crate) forms: bool,
    /// Opens a page for a missing key, if the client can open URLs.
    pub(crate) key_page_opener: Option<KeyPageOpener>,
}

impl Client for PermissionClientV1 {
    fn request_permission(&self, ask: PermissionRequest) -> BoxFuture<'_, PermissionAnswer> {
        Box::pin(async move {
            let question = encode_request(&ask);
            let reply = self
                .peer
                .request("session/request_permission", &question)
                .await;
            parse_response(reply, &ask.options)
        })
    }

    fn can_answer_questions(&self) -> bool {
        self.forms
    }

    fn answer_question(&self, question: UserQuestion) -> BoxFuture<'_, turnery_agent::UserAnswer> {
        Box::pin(elicitation::ask_question(&self.peer, question))
    }

    fn request_key(&self, session: SessionId, missing: MissingKeyError) -> BoxFuture<'_, ()> {
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
        .title(tool_call::display_title(&ask.detail.title, &ask.tool_name))
        .name(ask.tool_name.clone())
        .kind(shared::encode_kind(ask.detail.kind))
        .status(ToolCallStatus::Pending)
        .content(encode_artifacts(&ask.detail.artifacts))
        .locations(shared::encode_locations(&ask.detail.locations))
        .raw_input(tool_call::raw_value(&ask.args));
    let options = shared::encode_choices(&ask.options);
    RequestPermissionRequest::new(
        ask.session_id.to_string(),
        ToolCallUpdate::new(ask.call_id.to_string(), fields),
        options,
    )
}
