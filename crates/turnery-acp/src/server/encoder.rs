//! Encodes changes of the view as updates of the negotiated version.

use crate::{
    client::features::OptionalUpdates, server::acp_version::AcpVersion,
    transport::update_writer::UpdateWriter, v1::encoder::EncoderV1, v2::encoder::EncoderV2,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

    /// Returns true if the last reported state is idle. v1 reports no states.
    pub(crate) fn is_idle(&self) -> bool {
        match self {
            Self::V1(_) => false,
            Self::V2(v2) => v2.is_idle(),
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

/// Encoder of a session, shared by its outbox and the commands that write outside of a prompt. Locked from the
/// encoding of lines until they are in the write queue, so that their order is that of the reported states.
#[derive(Clone, Debug)]
pub(crate) struct SharedEncoder(Arc<Mutex<Encoder>>);

impl SharedEncoder {
    pub(crate) fn new(version: AcpVersion, optional_updates: OptionalUpdates) -> Self {
        let encoder = Encoder::new(version, optional_updates);
        Self(Arc::new(Mutex::new(encoder)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Encoder> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
