//! History: the messages that the next model call sees, shared and never copied.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};
use turnery_engine::{CallId, Content, LlmMessage, LoopId, LoopRecord, Message, Response};

/// The messages of a session, in order.
#[derive(Default)]
pub(crate) struct History {
    messages: Arc<Vec<Arc<LlmMessage>>>,
    calls: HashSet<CallId>,
    /// Where the running loop began.
    mark: usize,
}

/// The loops that lead to `tip`, oldest first (UP-12).
pub(crate) fn chain(loops: &[Arc<LoopRecord>], tip: Option<&LoopId>) -> Vec<Arc<LoopRecord>> {
    let by_id: HashMap<&LoopId, &Arc<LoopRecord>> = loops
        .iter()
        .map(|record| (&record.loop_id, record))
        .collect();
    let mut chain = Vec::new();
    let mut next = tip;
    while let Some(record) = next.and_then(|id| by_id.get(id)) {
        // A damaged store may hold a circle of parents; a chain is never longer than all loops.
        if chain.len() >= loops.len() {
            break;
        }
        if record.on_chain {
            chain.push(Arc::clone(record));
        }
        next = record.parent_loop_id.as_ref();
    }
    chain.reverse();
    chain
}

impl History {
    /// The messages of these loops.
    pub(crate) fn of(chain: &[Arc<LoopRecord>]) -> Self {
        let mut history = Self::default();
        for message in chain.iter().flat_map(|record| &record.messages) {
            history.push(Arc::clone(message));
        }
        history.mark();
        history
    }

    /// A loop begins here.
    pub(crate) fn mark(&mut self) {
        self.mark = self.messages.len();
    }

    /// Forget all since the mark: the loop was refused or lost.
    pub(crate) fn rewind(&mut self) {
        Arc::make_mut(&mut self.messages).truncate(self.mark);
    }

    /// A message is settled. Copies nothing once the model has let go of the last request.
    pub(crate) fn push(&mut self, message: Arc<LlmMessage>) {
        for call in message.message.calls() {
            self.calls.insert(call.call_id.clone());
        }
        Arc::make_mut(&mut self.messages).push(message);
    }

    /// All messages, shared.
    pub(crate) fn messages(&self) -> Arc<Vec<Arc<LlmMessage>>> {
        Arc::clone(&self.messages)
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

/// The longest title made from a prompt. Unit: characters.
const TITLE: usize = 80;

/// A title from the first line of the first prompt.
pub(crate) fn title(messages: &[Arc<LlmMessage>]) -> Option<String> {
    let text = messages.iter().find_map(|message| match &message.message {
        Message::User { .. } => Some(message.message.text()),
        Message::System { .. } | Message::Assistant { .. } | Message::ToolResult { .. } => None,
    })?;
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let mut title: String = line.chars().take(TITLE).collect();
    if line.chars().nth(TITLE).is_some() {
        title.push('…');
    }
    Some(title)
}
