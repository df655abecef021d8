//! Selects the protocol version of a connection, negotiated once by `initialize`.
//!
//! Differences between the versions are matched here or live in the version's own method table. Neither
//! version is derived from the other: both encode the agent's events directly.

use crate::{
    client::{key_page::KeyPageOpener, peer::Peer},
    commands,
    server::outbox::encode_session_info,
    transport::update_writer::{self, UpdateWriter},
    v1::{config_options, encoder, notices::OptionalUpdates, permission},
    v2,
    view::session_cost::SessionCost,
};
use agent_client_protocol_schema::v1::NoticeSeverity;
use std::sync::Arc;
use turnery_agent::{Client, OutboxItem, Session};
use turnery_tools::mcp::McpPrompt;

/// Version of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AcpVersion {
    /// Stable version.
    #[default]
    V1,
    /// Draft of the second version, available if enabled.
    V2,
}

impl AcpVersion {
    /// Returns the client port that asks for permissions. `forms` enables questions of the model, `pages`
    /// missing keys; v2 supports neither.
    pub(crate) fn permission_client(
        self,
        peer: &Arc<Peer>,
        forms: bool,
        pages: Option<KeyPageOpener>,
    ) -> Arc<dyn Client> {
        let peer = Arc::clone(peer);
        match self {
            Self::V1 => Arc::new(permission::PermissionClientV1 {
                peer,
                forms,
                key_page_opener: pages,
            }),
            Self::V2 => Arc::new(v2::PermissionClientV2(peer)),
        }
    }

    /// Encodes the commands to send after the response that opened a session. Empty in v2, where the response
    /// itself lists them.
    pub(crate) fn encode_initial_commands(self, session: &Session) -> Vec<u8> {
        match self {
            Self::V1 => commands::encode_available_commands(session, &[]),
            Self::V2 => Vec::new(),
        }
    }

    /// Encodes the update that lists the commands, including prompts of MCP servers.
    pub(crate) fn encode_commands(self, session: &Session, prompts: &[McpPrompt]) -> Vec<u8> {
        match self {
            Self::V1 => commands::encode_available_commands(session, prompts),
            Self::V2 => v2::encode_available_commands(session, prompts),
        }
    }

    /// Encodes a warning about the session.
    pub(crate) fn encode_warning(
        self,
        id: &str,
        takes: OptionalUpdates,
        title: &str,
        text: &str,
    ) -> Vec<u8> {
        match self {
            Self::V1 => update_writer::update_line(
                id,
                &takes.encode_notice(NoticeSeverity::Warning, title, text),
            ),
            Self::V2 => v2::encode_warning_line(id, title, text),
        }
    }

    /// Encodes a mode change that the client did not request, in every form the version has.
    pub(crate) fn encode_mode_change(self, session: &Session) -> Vec<u8> {
        match self {
            Self::V1 => {
                let id = session.id().as_str();
                let mut lines =
                    update_writer::update_line(id, &config_options::encode_mode_update(session));
                lines.extend(update_writer::update_line(
                    id,
                    &config_options::encode_config_update(session),
                ));
                lines
            }
            Self::V2 => v2::options_changed(session),
        }
    }

    /// Encodes a model change that the client did not request.
    pub(crate) fn encode_model_change(self, session: &Session) -> Vec<u8> {
        match self {
            Self::V1 => update_writer::update_line(
                session.id().as_str(),
                &config_options::encode_config_update(session),
            ),
            Self::V2 => v2::options_changed(session),
        }
    }
}

/// Encodes the events of a session as updates.
#[derive(Debug)]
pub(crate) enum Encoder {
    V1(Box<encoder::EncoderV1>),
    V2(Box<v2::EncoderV2>),
}

impl Encoder {
    /// Creates an encoder; `session_cost` is the cost of the session so far.
    pub(crate) fn new(
        version: AcpVersion,
        takes: OptionalUpdates,
        session_cost: SessionCost,
    ) -> Self {
        match version {
            AcpVersion::V1 => Self::V1(Box::new(encoder::EncoderV1::new(takes, session_cost))),
            AcpVersion::V2 => Self::V2(Box::new(v2::EncoderV2::new(session_cost))),
        }
    }

    /// Returns true if an update reports the end of a prompt. In v1 the response to the request does.
    pub(crate) fn reports_prompt_end(&self) -> bool {
        match self {
            Self::V1(_) => false,
            Self::V2(_) => true,
        }
    }

    pub(crate) fn encode(&mut self, item: OutboxItem<'_>, to: &mut UpdateWriter) {
        match self {
            Self::V1(v1) => match item {
                OutboxItem::Live(event) => v1.encode_live(event, to),
                OutboxItem::Replay(event) => v1.encode_replay(event, to),
                OutboxItem::Info { title, updated_at } => {
                    to.write_update(&encode_session_info(title, updated_at))
                }
                OutboxItem::Ended(_) => {}
            },
            Self::V2(v2) => match item {
                OutboxItem::Live(event) => v2.encode_live(event, to),
                OutboxItem::Replay(event) => v2.encode_replay(event, to),
                OutboxItem::Info { title, updated_at } => {
                    to.write_update(&v2::encode_session_info(title, updated_at))
                }
                OutboxItem::Ended(end) => v2.encode_prompt_end(end, to),
            },
        }
    }
}
