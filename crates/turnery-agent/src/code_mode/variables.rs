//! Tracks the variables of the code that a session has run, along its history.

use super::code_block::CODE_TOOL;
use std::{sync::Arc, time::Duration};
use tokio::sync::Mutex;
use tokio_util::task::AbortOnDropHandle;
use turnery_code::{CodeLimits, CodeSession};
use turnery_engine::{CallId, EventKind, LoopRecord, ToolState};

/// Time after a block until the interpreter's process ends; the next block starts another one in a few milliseconds.
const MAX_IDLE_TIME: Duration = Duration::from_secs(60);

/// Variables after the last block of code in a history. They belong to the current frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CodeVariables {
    /// Call of the last block; `None` before the first.
    last_call: Option<CallId>,
    /// Snapshot of the variables; `None` if they are too large to store.
    snapshot: Option<Arc<str>>,
}

impl CodeVariables {
    /// Returns the variables after these loops.
    pub(crate) fn from_chain(chain: &[Arc<LoopRecord>]) -> Self {
        for record in chain.iter().rev() {
            if let Some(ToolState { call_id, state }) = record.tool_states.get(CODE_TOOL) {
                return Self::after_call(call_id, state);
            }
            if record.frame.is_some() {
                break;
            }
        }
        Self::default()
    }

    fn after_call(call_id: &CallId, state: &Arc<str>) -> Self {
        Self {
            last_call: Some(call_id.clone()),
            snapshot: Some(Arc::clone(state)).filter(|state| !state.is_empty()),
        }
    }

    /// Applies an event of a running loop.
    pub(crate) fn observe(&mut self, kind: &EventKind) {
        match kind {
            EventKind::LoopStart { frame: Some(_), .. } => *self = Self::default(),
            EventKind::ToolExecutionEnd {
                call_id,
                tool_name,
                envelope,
                ..
            } if tool_name == CODE_TOOL => {
                if let Some(state) = &envelope.state {
                    *self = Self::after_call(call_id, state);
                }
            }
            _ => {}
        }
    }
}

/// Interpreter of a session, which keeps variables that are too large to store.
#[derive(Default)]
pub(crate) struct SessionInterpreter {
    session: Option<CodeSession>,
    /// Call of the last block that it ran.
    last_call: Option<CallId>,
    /// Ends the interpreter's process once it has been idle for long.
    idle_timer: Option<AbortOnDropHandle<()>>,
}

impl SessionInterpreter {
    /// Returns the interpreter with these variables, and true if they are lost.
    pub(super) fn with_variables(&mut self, variables: &CodeVariables) -> (&mut CodeSession, bool) {
        self.idle_timer = None;
        if self.last_call != variables.last_call {
            self.session = None;
        }
        let mut is_lost = false;
        let session = self.session.get_or_insert_with(|| {
            let limits = CodeLimits::default();
            let snapshot = variables.snapshot.as_deref().and_then(decode_snapshot);
            is_lost = variables.last_call.is_some() && snapshot.is_none();
            match snapshot {
                Some(snapshot) => CodeSession::restore(limits, snapshot),
                None => CodeSession::new(limits),
            }
        });
        (session, is_lost)
    }

    /// Records the call that has run. `this` is the interpreter itself.
    pub(super) fn end_block(&mut self, call_id: &CallId, this: &Arc<Mutex<Self>>) {
        self.last_call = Some(call_id.clone());
        let this = Arc::downgrade(this);
        let suspend = async move {
            tokio::time::sleep(MAX_IDLE_TIME).await;
            if let Some(this) = this.upgrade()
                && let Some(session) = &mut this.lock().await.session
            {
                session.suspend();
            }
        };
        self.idle_timer = Some(AbortOnDropHandle::new(tokio::spawn(suspend)));
    }
}

fn decode_snapshot(text: &str) -> Option<Vec<u8>> {
    base64::Engine::decode(&base64::engine::general_purpose::STANDARD, text).ok()
}

/// Returns the stored form of a snapshot; empty if there is none, because the variables are too large.
pub(super) fn encode_snapshot(snapshot: &[u8]) -> Arc<str> {
    base64::Engine::encode(&base64::engine::general_purpose::STANDARD, snapshot).into()
}
