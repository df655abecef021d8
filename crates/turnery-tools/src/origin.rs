//! The origin of a call.

use std::sync::Arc;
use turnery_engine::{LoopId, SessionId};

/// Run, agent and session of a call, reported to telemetry (JIDO-57, JIDO-59). Any of them may be unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Id of the run; in a session, of the loop.
    pub run_id: Option<LoopId>,
    /// Id of the agent.
    pub agent_id: Option<Arc<str>>,
    /// Id of the conversation; in a session, of the session.
    pub thread_id: Option<SessionId>,
    /// Number of earlier model calls; in a session, the turn's index.
    pub iteration: Option<u32>,
}
