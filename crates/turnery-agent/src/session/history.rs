//! History: the messages that the next model call sees, and the ids that its calls may not have.

use std::{collections::HashSet, sync::Arc};
use turnery_engine::{CallId, Content, LlmMessage, LoopRecord, Response, context::View};

/// What is seen of a session, and all calls that were ever made in it.
#[derive(Clone, Default)]
pub(crate) struct History {
    /// What is seen. Blocks are laid and frames are entered here.
    pub(crate) view: View,
    calls: HashSet<CallId>,
}

impl History {
    /// What is seen after these loops.
    pub(crate) fn of(chain: &[Arc<LoopRecord>]) -> Self {
        let messages = chain.iter().flat_map(|record| &record.messages);
        let calls = messages.flat_map(|message| message.message.calls());
        Self {
            view: View::of(chain),
            calls: calls.map(|call| call.call_id.clone()).collect(),
        }
    }

    /// The calls of another view of the same session were made in it too.
    pub(crate) fn remember(&mut self, other: &Self) {
        self.calls.extend(other.calls.iter().cloned());
    }

    /// A loop begins here.
    pub(crate) fn mark(&mut self) {
        self.view.mark();
    }

    /// Forget all since the mark: the loop was refused or lost.
    pub(crate) fn rewind(&mut self) {
        self.view.rewind();
    }

    /// A message is settled. Copies nothing once the model has let go of the last request.
    pub(crate) fn push(&mut self, message: Arc<LlmMessage>) {
        for call in message.message.calls() {
            self.calls.insert(call.call_id.clone());
        }
        self.view.push(message);
    }

    /// All messages, shared.
    pub(crate) fn messages(&self) -> Arc<Vec<Arc<LlmMessage>>> {
        Arc::clone(self.view.messages())
    }

    /// Some servers number their calls anew in every answer, but a call's id is unique in the
    /// session (TOOL-2): one that was there before gets a suffix.
    pub(crate) fn distinguish_calls(&self, response: &mut Response) {
        let mut taken: HashSet<CallId> = HashSet::new();
        for item in &mut response.content {
            let Content::ToolCall(call) = item else {
                continue;
            };
            let mut n = self.calls.len();
            let given = call.call_id.clone();
            while self.calls.contains(&call.call_id) || taken.contains(&call.call_id) {
                n += 1;
                call.call_id = CallId::from(format!("{given}_{n}"));
            }
            taken.insert(call.call_id.clone());
        }
    }
}
