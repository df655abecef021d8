//! Defines what a call of the sub-agent tool receives from its session.

use super::{SessionOptions, env::SessionEnv};
use tokio::sync::watch;
use turnery_engine::{LoopId, SessionId};

/// Maximum number of turns of a child, unless the prompt has fewer left.
pub(crate) const MAX_CHILD_TURNS: u32 = 30;

/// Session whose call opens a child session. Built for one call.
pub(crate) struct ParentSession {
    /// Environment of the child: the parent's, with the hooks, model and budget of the running prompt.
    pub(crate) env: SessionEnv,
    /// Options of the parent, whose mode may become stricter while the child runs.
    pub(crate) options: watch::Receiver<SessionOptions>,
    pub(crate) session_id: SessionId,
    pub(crate) loop_id: LoopId,
}
