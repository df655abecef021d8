//! Context: which messages the next request holds. One way, for a session that goes on and for one that is loaded.
//!
//! What must hold: the view of a reloaded session equals the live one, and no view parts a call from
//! its results.

use crate::{
    CallId, CompactionBlock, ContextSize, ContinuationKind, LlmMessage, LoopId, LoopRecord,
    Message, MessageId,
};
use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
};

/// The loops that lead to `tip`, oldest first (UP-12): branches that were not chosen, loops that were run
/// again, refused and aborted ones are none of them.
#[must_use]
pub fn chain(loops: &[Arc<LoopRecord>], tip: Option<&LoopId>) -> Vec<Arc<LoopRecord>> {
    let by_id = by_id(loops);
    let mut chain = Vec::new();
    let mut next = tip;
    // A damaged store may hold a circle of parents; a chain has no more links than there are loops.
    for _ in loops {
        let Some(record) = next.and_then(|id| by_id.get(id)) else {
            break;
        };
        if record.stands() {
            chain.push(Arc::clone(record));
        }
        next = followed(&by_id, record);
    }
    chain.reverse();
    chain
}

/// The loop before this one in the conversation: its parent, or if it runs a loop again, what came
/// before that (LOOP-86).
#[must_use]
pub fn before<'l>(loops: &'l [Arc<LoopRecord>], record: &'l LoopRecord) -> Option<&'l LoopId> {
    followed(&by_id(loops), record)
}

type ById<'l> = HashMap<&'l LoopId, &'l Arc<LoopRecord>>;

fn by_id(loops: &[Arc<LoopRecord>]) -> ById<'_> {
    loops
        .iter()
        .map(|record| (&record.loop_id, record))
        .collect()
}

fn followed<'l>(by_id: &ById<'l>, record: &'l LoopRecord) -> Option<&'l LoopId> {
    let mut record = record;
    for _ in 0..by_id.len() {
        if record.continuation_kind != ContinuationKind::Rerun {
            break;
        }
        record = by_id.get(record.parent_loop_id.as_ref()?)?;
    }
    record.parent_loop_id.as_ref()
}

/// The messages that the model sees, shared and never copied: those of the current frame, the oldest
/// of them perhaps behind a summary.
#[derive(Clone, Debug, Default)]
pub struct View {
    messages: Arc<Vec<Arc<LlmMessage>>>,
    size: ContextSize,
    block: Option<Arc<CompactionBlock>>,
    mark: Mark,
}

/// Where a loop began, should it turn out to be none of the conversation.
#[derive(Clone, Debug, Default)]
struct Mark {
    length: usize,
    size: ContextSize,
    block: Option<Arc<CompactionBlock>>,
    /// The messages, if a block has been laid over them since.
    covered: Option<Arc<Vec<Arc<LlmMessage>>>>,
}

impl View {
    /// What is seen after these loops, which lead to the tip; those that were run again may be among
    /// them. A frame begins with its first loop, whose input is its task: what was said before is not
    /// seen in it (LASH-12, C-14).
    #[must_use]
    pub fn of(chain: &[Arc<LoopRecord>]) -> Self {
        let frame = chain.last().and_then(|record| record.frame_id.as_ref());
        let outside = |record: &Arc<LoopRecord>| record.frame_id.as_ref() != frame;
        let first = chain.iter().rposition(outside).map_or(0, |at| at + 1);
        let is_rerun =
            |record: &&Arc<LoopRecord>| record.continuation_kind == ContinuationKind::Rerun;
        let reruns = chain.iter().filter(is_rerun);
        let replaced: HashSet<_> = reruns.filter_map(|it| it.parent_loop_id.as_ref()).collect();
        let stands = |record: &&Arc<LoopRecord>| !replaced.contains(&record.loop_id);
        let loops = chain[first..].iter().filter(stands);
        let mut view = Self::default();
        for message in loops.clone().flat_map(|record| &record.messages) {
            view.push(Arc::clone(message));
        }
        let mut blocks = loops
            .rev()
            .filter_map(|record| record.compaction_block.as_ref());
        // The newest that fits; if none does, the messages are still there (LOOP-48).
        let _ = blocks.any(|block| view.lay(block));
        view.mark();
        view
    }

    /// The messages, shared.
    #[must_use]
    pub fn messages(&self) -> &Arc<Vec<Arc<LlmMessage>>> {
        &self.messages
    }

    /// How much they are.
    #[must_use]
    pub fn size(&self) -> ContextSize {
        self.size
    }

    /// The block that stands for the older ones.
    #[must_use]
    pub fn block(&self) -> Option<&CompactionBlock> {
        self.block.as_deref()
    }

    /// A message is settled. Copies nothing once nobody holds the messages of the last request.
    pub fn push(&mut self, message: Arc<LlmMessage>) {
        self.size += ContextSize::of(&message.message);
        Arc::make_mut(&mut self.messages).push(message);
    }

    /// Lay a block over the messages that it stands for (LOOP-47). Costs as much as there are
    /// messages. False, and nothing is changed, if it does not fit: it names a message that is not
    /// there, it has no summary, or it parts a call from its results.
    pub fn lay(&mut self, block: &CompactionBlock) -> bool {
        let Some(messages) = overlaid(&self.messages, block) else {
            return false;
        };
        self.size = messages.iter().sum();
        let covered = std::mem::replace(&mut self.messages, Arc::new(messages));
        self.mark.covered.get_or_insert(covered);
        self.block = Some(Arc::new(block.clone()));
        true
    }

    /// A loop begins here.
    pub fn mark(&mut self) {
        self.mark = Mark {
            length: self.messages.len(),
            size: self.size,
            block: self.block.clone(),
            covered: None,
        };
    }

    /// Forget all since the mark: the loop was refused or lost.
    pub fn rewind(&mut self) {
        if let Some(covered) = self.mark.covered.take() {
            self.messages = covered;
        }
        Arc::make_mut(&mut self.messages).truncate(self.mark.length);
        self.size = self.mark.size;
        self.block.clone_from(&self.mark.block);
    }
}

/// What a block makes of messages: those it keeps, with the summary between them, and then those
/// that it does not stand for.
fn overlaid(messages: &[Arc<LlmMessage>], block: &CompactionBlock) -> Option<Vec<Arc<LlmMessage>>> {
    let is_last = |message: &Arc<LlmMessage>| message.message_id == block.through;
    let (covered, after) = messages.split_at(messages.iter().rposition(is_last)? + 1);
    if block.keep_compacted.is_empty() {
        return None;
    }
    let by_id: HashMap<&MessageId, &Arc<LlmMessage>> = covered
        .iter()
        .map(|message| (&message.message_id, message))
        .collect();
    let kept = block.keep_first.len() + block.keep_compacted.len() + block.keep_recent.len();
    let mut seen = Vec::with_capacity(kept + after.len());
    for id in &block.keep_first {
        seen.push(Arc::clone(by_id.get(id)?));
    }
    seen.extend(block.keep_compacted.iter().cloned());
    for kept in &block.keep_recent {
        let message = match &kept.shortened {
            Some(shortened) => shortened,
            None => by_id.get(&kept.message_id)?,
        };
        seen.push(Arc::clone(message));
    }
    seen.extend(after.iter().cloned());
    is_whole(&seen).then_some(seen)
}

/// Whether each call has its results, in call order, before anything else is said (D-16).
pub(crate) fn is_whole(messages: &[Arc<LlmMessage>]) -> bool {
    let mut due = VecDeque::new();
    messages.iter().all(|message| take(&mut due, message)) && due.is_empty()
}

/// Take in the next message; `due` are the calls that wait for a result. False if it is not its turn.
fn take<'a>(due: &mut VecDeque<&'a CallId>, message: &'a LlmMessage) -> bool {
    match &message.message {
        Message::ToolResult { call_id, .. } => due.pop_front() == Some(call_id),
        Message::System { .. } | Message::User { .. } | Message::Assistant { .. } => {
            let in_turn = due.is_empty();
            due.extend(message.message.calls().map(|call| &call.call_id));
            in_turn
        }
    }
}
