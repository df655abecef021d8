//! Encodes the events of a session as updates of the negotiated version.

use crate::{
    client::features::OptionalUpdates,
    server::acp_version::AcpVersion,
    transport::update_writer::UpdateWriter,
    v1::{encoder::EncoderV1, session_info},
    v2::{encoder::EncoderV2, notices},
    view::session_cost::SessionCost,
};
use turnery_agent::OutboxItem;

/// Encodes the events of a session as updates.
#[derive(Debug)]
pub(crate) enum Encoder {
    V1(Box<EncoderV1>),
    V2(Box<EncoderV2>),
}

impl Encoder {
    /// Creates an encoder; `session_cost` is the cost of the session so far.
    pub(crate) fn new(
        version: AcpVersion,
        takes: OptionalUpdates,
        session_cost: SessionCost,
    ) -> Self {
        match version {
            AcpVersion::V1 => Self::V1(Box::new(EncoderV1::new(takes, session_cost))),
            AcpVersion::V2 => Self::V2(Box::new(EncoderV2::new(session_cost))),
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
                    to.write_update(&session_info::encode_session_info(title, updated_at))
                }
                OutboxItem::Ended(_) => {}
            },
            Self::V2(v2) => match item {
                OutboxItem::Live(event) => v2.encode_live(event, to),
                OutboxItem::Replay(event) => v2.encode_replay(event, to),
                OutboxItem::Info { title, updated_at } => {
                    to.write_update(&notices::encode_session_info(title, updated_at))
                }
                OutboxItem::Ended(end) => v2.encode_prompt_end(end, to),
            },
        }
    }
}
