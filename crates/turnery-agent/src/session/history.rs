//! Tracks the messages that the next model call sees, and the call ids already in use.

use crate::code_mode::CodeVariables;
use std::{collections::HashSet, sync::Arc};
use turnery_engine::{CallId, Content, LlmMessage, LoopRecord, Response, context::ContextView};

/// Messages of a session that the next model call sees, and the ids of all its calls.
#[derive(Clone, Default)]
pub(crate) struct SessionHistory {
    /// Messages that the model sees, with summaries and frames applied.
    pub(crate) view: ContextView,
    call_ids: HashSet<CallId>,
    /// Variables of code mode.
    pub(crate) variables: CodeVariables,
    /// Variables at the mark.
    marked_variables: CodeVariables,
}

impl SessionHistory {
    /// Creates the history after these loops.
    pub(crate) fn from_chain(chain: &[Arc<LoopRecord>]) -> Self {
        let messages = chain.iter().flat_map(|record| &record.messages);
        let calls = messages.flat_map(|message| message.message.calls());
        Self {
            view: ContextView::from_chain(chain),
            call_ids: calls.map(|call| call.call_id.clone()).collect(),
            variables: CodeVariables::from_chain(chain),
            marked_variables: CodeVariables::default(),
        }
    }

    /// Adds the call ids of another view of the same session.
    pub(crate) fn remember_calls(&mut self, other: &Self) {
        self.call_ids.extend(other.call_ids.iter().cloned());
    }

    /// Marks the start of a loop.
    pub(crate) fn mark(&mut self) {
        self.view.set_rewind_point();
        self.marked_variables = self.variables.clone();
    }

    /// Removes everything since the mark: the loop was rejected or lost.
    pub(crate) fn rewind(&mut self) {
        self.view.rewind();
        self.variables = self.marked_variables.clone();
    }

    /// Appends a message. Copies nothing if the model has dropped its last request.
    pub(crate) fn push(&mut self, message: Arc<LlmMessage>) {
        for call in message.message.calls() {
            self.call_ids.insert(call.call_id.clone());
        }
        self.view.push(message);
    }

    /// Returns the messages that the model sees, shared.
    pub(crate) fn messages(&self) -> Arc<Vec<Arc<LlmMessage>>> {
        Arc::clone(self.view.messages())
    }

    /// Makes call ids unique in the session (TOOL-2) by adding suffixes: some servers restart their numbering
    /// in every response.
    pub(crate) fn distinguish_calls(&self, response: &mut Response) {
        let mut taken: HashSet<CallId> = HashSet::new();
        // No number is tried twice, so the work is linear in the number of calls.
        let mut n = self.call_ids.len();
        for item in &mut response.content {
            let Content::ToolCall(call) = item else {
                continue;
            };
            let mut given = call.call_id.clone();
            if self.is_like_nested(&given) {
                given = CallId::from(given.as_str().replace('.', "_"));
                call.call_id = given.clone();
            }
            while self.call_ids.contains(&call.call_id) || taken.contains(&call.call_id) {
                n += 1;
                count_attempt();
                call.call_id = CallId::from(format!("{given}_{n}"));
            }
            taken.insert(call.call_id.clone());
        }
    }

    /// Returns an unused id for a call that `parent` requests: the parent's with the next number.
    pub(crate) fn nested_call_id(&self, parent: &CallId, count: &mut usize) -> CallId {
        loop {
            let call_id = CallId::from(format!("{parent}.{count}"));
            *count += 1;
            if !self.call_ids.contains(&call_id) {
                return call_id;
            }
        }
    }

    /// Returns true if this may be the id of a nested call. Those are not among the messages.
    fn is_like_nested(&self, call_id: &CallId) -> bool {
        let dots = call_id.as_str().match_indices('.');
        let mut parents = dots.filter_map(|(at, _)| call_id.as_str().get(..at));
        parents.any(|parent| self.call_ids.contains(&CallId::from(parent)))
    }
}

#[cfg(test)]
thread_local! {
    static ATTEMPTS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts an attempted id, for the test that bounds their number.
fn count_attempt() {
    #[cfg(test)]
    ATTEMPTS.with(|attempts| attempts.set(attempts.get() + 1));
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnery_engine::{ModelStop, ToolCall};

    /// Returns the attempts when a response gives `count` calls the same id.
    fn attempts_for(count: usize) -> u64 {
        let call = |_| Content::ToolCall(ToolCall::new("c", "tool", serde_json::Value::Null));
        let mut response = Response {
            content: (0..count).map(call).collect(),
            stop: ModelStop::ToolUse,
            raw_stop: None,
            usage: None,
            model: "m".to_owned(),
            provider: "p".to_owned(),
            tool_results: Vec::new(),
            request: None,
        };
        let before = ATTEMPTS.with(std::cell::Cell::get);
        SessionHistory::default().distinguish_calls(&mut response);
        let ids: HashSet<&CallId> = response.calls().map(|call| &call.call_id).collect();
        assert_eq!(ids.len(), count);
        ATTEMPTS.with(std::cell::Cell::get) - before
    }

    // proves: ACP-24
    #[test]
    fn distinguishing_many_calls_is_linear() {
        let (few, many) = (attempts_for(500), attempts_for(5_000));
        assert!(many <= few * 11, "{few} attempts became {many}");
    }
}
