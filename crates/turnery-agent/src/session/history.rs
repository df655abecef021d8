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
        // Never tried twice, so the work grows with the number of calls, not with its square.
        let mut n = self.calls.len();
        for item in &mut response.content {
            let Content::ToolCall(call) = item else {
                continue;
            };
            let given = call.call_id.clone();
            while self.calls.contains(&call.call_id) || taken.contains(&call.call_id) {
                n += 1;
                attempt();
                call.call_id = CallId::from(format!("{given}_{n}"));
            }
            taken.insert(call.call_id.clone());
        }
    }
}

#[cfg(test)]
thread_local! {
    static ATTEMPTS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts an id that is tried, for the test that bounds their number.
fn attempt() {
    #[cfg(test)]
    ATTEMPTS.with(|attempts| attempts.set(attempts.get() + 1));
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnery_engine::{ModelStop, ToolCall};

    /// Ids tried when an answer gives `count` calls the same id.
    fn attempts_of(count: usize) -> u64 {
        let call = |_| {
            Content::ToolCall(ToolCall {
                call_id: "c".into(),
                name: "tool".to_owned(),
                args: Arc::new(serde_json::Value::Null),
            })
        };
        let mut response = Response {
            content: (0..count).map(call).collect(),
            stop: ModelStop::ToolUse,
            raw_stop: None,
            usage: None,
            model: "m".to_owned(),
            provider: "p".to_owned(),
            tool_results: Vec::new(),
        };
        let before = ATTEMPTS.with(std::cell::Cell::get);
        History::default().distinguish_calls(&mut response);
        let ids: HashSet<&CallId> = response.calls().map(|call| &call.call_id).collect();
        assert_eq!(ids.len(), count);
        ATTEMPTS.with(std::cell::Cell::get) - before
    }

    #[test]
    fn distinguishing_many_calls_is_linear() {
        let (few, many) = (attempts_of(500), attempts_of(5_000));
        assert!(many <= few * 11, "{few} attempts became {many}");
    }
}
