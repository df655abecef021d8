//! Encodes changes of the view as updates of the negotiated version.

use crate::{
    client::features::OptionalUpdates, server::acp_version::AcpVersion,
    transport::update_writer::UpdateWriter, v1::encoder::EncoderV1, v2::encoder::EncoderV2,
};
use turnery_agent::view::ViewChange;

/// Encoder of the negotiated version.
#[derive(Debug)]
pub(crate) enum Encoder {
    V1(EncoderV1),
    V2(EncoderV2),
}

impl Encoder {
    /// Creates an encoder; `optional_updates` are those that a v1 client supports.
    pub(crate) fn new(version: AcpVersion, optional_updates: OptionalUpdates) -> Self {
        match version {
            AcpVersion::V1 => Self::V1(EncoderV1::new(optional_updates)),
            AcpVersion::V2 => Self::V2(EncoderV2::default()),
        }
    }

    /// Returns true if an update reports the end of a prompt. In v1 the response to the request does.
    pub(crate) fn reports_prompt_end(&self) -> bool {
        match self {
            Self::V1(_) => false,
            Self::V2(_) => true,
        }
    }

    /// Writes the updates for a change.
    pub(crate) fn encode(&mut self, change: ViewChange<'_>, to: &mut UpdateWriter) {
        match self {
            Self::V1(v1) => v1.encode(change, to),
            Self::V2(v2) => v2.encode(change, to),
        }
    }
}
