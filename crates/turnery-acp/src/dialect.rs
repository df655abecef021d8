//! Dialect: the version of the protocol that a connection speaks. Chosen once, at `initialize`.
//!
//! Every place where the versions differ matches here or in a method table of its own. Neither version
//! is made of the other: both are made of what happened.

use crate::{
    commands,
    key_page::KeyPages,
    news::Takes,
    options,
    outbox::info,
    peer::Peer,
    permission,
    till::Till,
    translate,
    update::{self, UpdateWriter},
    v2,
};
use agent_client_protocol_schema::v1::NoticeSeverity;
use std::sync::Arc;
use turnery_agent::{Client, Item, Session};
use turnery_tools::mcp::McpPrompt;

/// A version of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// The stable one.
    #[default]
    V1,
    /// The draft, if it was switched on.
    V2,
}

impl Dialect {
    /// Whoever answers questions. `forms`: those of the model too. `pages`: and gives keys.
    pub(crate) fn person(
        self,
        peer: &Arc<Peer>,
        forms: bool,
        pages: Option<KeyPages>,
    ) -> Arc<dyn Client> {
        let peer = Arc::clone(peer);
        match self {
            Self::V1 => Arc::new(permission::Person { peer, forms, pages }),
            Self::V2 => Arc::new(v2::Person(peer)),
        }
    }

    /// The commands, behind the answer that opened a session. In v2 they are in that answer.
    pub(crate) fn offer(self, session: &Session) -> Vec<u8> {
        match self {
            Self::V1 => commands::offer(session, &[]),
            Self::V2 => Vec::new(),
        }
    }

    /// The commands, with the prompts of MCP servers among them.
    pub(crate) fn offer_with(self, session: &Session, prompts: &[McpPrompt]) -> Vec<u8> {
        match self {
            Self::V1 => commands::offer(session, prompts),
            Self::V2 => v2::offer(session, prompts),
        }
    }

    /// A warning that concerns the session.
    pub(crate) fn warning(self, id: &str, takes: Takes, title: &str, text: &str) -> Vec<u8> {
        match self {
            Self::V1 => update::line(id, &takes.notice(NoticeSeverity::Warning, title, text)),
            Self::V2 => v2::warning(id, title, text),
        }
    }

    /// The mode was changed by other means than the client's: said in every form there is.
    pub(crate) fn mode_changed(self, session: &Session) -> Vec<u8> {
        match self {
            Self::V1 => {
                let id = session.id().as_str();
                let mut lines = update::line(id, &options::mode_update(session));
                lines.extend(update::line(id, &options::config_update(session)));
                lines
            }
            Self::V2 => v2::options_changed(session),
        }
    }

    /// The same for the model.
    pub(crate) fn model_changed(self, session: &Session) -> Vec<u8> {
        match self {
            Self::V1 => update::line(session.id().as_str(), &options::config_update(session)),
            Self::V2 => v2::options_changed(session),
        }
    }
}

/// Encodes what happens in a session.
#[derive(Debug)]
pub(crate) enum Encoder {
    V1(Box<translate::Translator>),
    V2(Box<v2::Translator>),
}

impl Encoder {
    /// `till`: what the session has cost so far.
    pub(crate) fn new(dialect: Dialect, takes: Takes, till: Till) -> Self {
        match dialect {
            Dialect::V1 => Self::V1(Box::new(translate::Translator::new(takes, till))),
            Dialect::V2 => Self::V2(Box::new(v2::Translator::new(till))),
        }
    }

    /// Whether the end of a prompt is told by an update. In v1 it is the answer to the request.
    pub(crate) fn follows(&self) -> bool {
        match self {
            Self::V1(_) => false,
            Self::V2(_) => true,
        }
    }

    pub(crate) fn push(&mut self, item: Item<'_>, to: &mut UpdateWriter) {
        match self {
            Self::V1(v1) => match item {
                Item::Live(event) => v1.live(event, to),
                Item::Replay(event) => v1.replay(event, to),
                Item::Info { title, updated_at } => to.update(&info(title, updated_at)),
                Item::Ended(_) => {}
            },
            Self::V2(v2) => match item {
                Item::Live(event) => v2.live(event, to),
                Item::Replay(event) => v2.replay(event, to),
                Item::Info { title, updated_at } => to.update(&v2::info(title, updated_at)),
                Item::Ended(end) => v2.ended(end, to),
            },
        }
    }
}
