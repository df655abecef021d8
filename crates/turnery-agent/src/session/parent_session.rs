//! Defines what a call of a tool that uses its session receives from it.

use super::{SessionOptions, env::SessionEnv};
use std::sync::Arc;
use tokio::sync::watch;
use turnery_engine::{LoopId, SessionId};
use turnery_tools::ToolCx;

/// Maximum number of turns of a child, unless the prompt has fewer left.
pub(crate) const MAX_CHILD_TURNS: u32 = 30;

/// Session whose call opens a child session, or uses the session otherwise. Built for one call.
pub(crate) struct ParentSession {
    /// Environment of the child: the parent's, with the hooks, model and budget of the running prompt.
    pub(crate) env: SessionEnv,
    /// Options of the parent, whose mode may become stricter while the child runs.
    pub(crate) options: watch::Receiver<SessionOptions>,
    pub(crate) session_id: SessionId,
    pub(crate) loop_id: LoopId,
}

impl ParentSession {
    /// Returns the session of a call; `None` outside of sessions.
    pub(crate) fn of(cx: &ToolCx) -> Option<Arc<Self>> {
        Arc::clone(cx.host.as_ref()?).downcast().ok()
    }
}
