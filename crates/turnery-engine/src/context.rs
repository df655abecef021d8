//! Builds the list of messages for the next model request, identically for live and reloaded sessions.
//!
//! Invariants: the view of a reloaded session equals the live view, and no view separates a call from its
//! results.

use crate::{
    CallId, CompactionBlock, ContextSize, ContinuationKind, LlmMessage, LoopId, LoopRecord,
    Message, MessageId,
};
use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
};

/// Returns the loops of the conversation that leads to `tip`, oldest first (UP-12): those for which
/// [`LoopRecord::is_in_conversation`] is true, without loops that were rerun.
#[must_use]
pub fn loop_chain(loops: &[Arc<LoopRecord>], tip: Option<&LoopId>) -> Vec<Arc<LoopRecord>> {
    let by_id = index_by_id(loops);
    let mut chain = Vec::new();
    let mut next = tip;
    // A damaged store may contain a cycle of parents; a chain is never longer than the list of loops.
    for _ in loops {
        let Some(record) = next.and_then(|id| by_id.get(id)) else {
            break;
        };
        if record.is_in_conversation() {
            chain.push(Arc::clone(record));
        }
        next = parent_in_chain(&by_id, record);
    }
    chain.reverse();
    chain
}

/// Returns the preceding loop in the conversation: the parent, or for a rerun the loop before its original
/// (LOOP-86).
#[must_use]
pub fn previous_loop<'l>(
    loops: &'l [Arc<LoopRecord>],
    record: &'l LoopRecord,
) -> Option<&'l LoopId> {
    parent_in_chain(&index_by_id(loops), record)
}

type LoopIndex<'l> = HashMap<&'l LoopId, &'l Arc<LoopRecord>>;

fn index_by_id(loops: &[Arc<LoopRecord>]) -> LoopIndex<'_> {
    loops
        .iter()
        .map(|record| (&record.loop_id, record))
        .collect()
}

fn parent_in_chain<'l>(by_id: &LoopIndex<'l>, record: &'l LoopRecord) -> Option<&'l LoopId> {
    let mut record = record;
    for _ in 0..by_id.len() {
        if record.continuation_kind != ContinuationKind::Rerun {
            break;
        }
        record = by_id.get(record.parent_loop_id.as_ref()?)?;
    }
    record.parent_loop_id.as_ref()
}

/// Messages of the current frame as the model sees them, with the oldest possibly replaced by a summary.
/// Shared, never copied.
#[derive(Clone, Debug, Default)]
pub struct ContextView {
    messages: Arc<Vec<Arc<LlmMessage>>>,
    size: ContextSize,
    measured: Option<MeasuredSize>,
    block: Option<Arc<CompactionBlock>>,
    rewind_point: RewindPoint,
}

/// Token count of the provider for the latest response that has one, and its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MeasuredSize {
    /// Counted tokens, including the system prompt and the tools.
    tokens: u64,
    /// Estimated tokens of the messages up to and including the response.
    estimate: u64,
}

/// State at the start of the current loop, for [`ContextView::rewind`].
#[derive(Clone, Debug, Default)]
struct RewindPoint {
    length: usize,
    size: ContextSize,
    measured: Option<MeasuredSize>,
    block: Option<Arc<CompactionBlock>>,
    /// Messages before a block was applied, if one was.
    messages_before_block: Option<Arc<Vec<Arc<LlmMessage>>>>,
}

impl ContextView {
    /// Builds the view after a chain of loops that ends at the tip; loops that were rerun may be included. A
    /// frame starts with its first loop, whose input is its task: earlier messages are not visible (LASH-12,
    /// C-14).
    #[must_use]
    pub fn from_chain(chain: &[Arc<LoopRecord>]) -> Self {
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
        // Use the newest valid block; without one the full messages are still there (LOOP-48).
        let _ = blocks.any(|block| view.apply_block(block));
        view.set_rewind_point();
        view
    }

    /// Returns the shared messages.
    #[must_use]
    pub fn messages(&self) -> &Arc<Vec<Arc<LlmMessage>>> {
        &self.messages
    }

    /// Returns the estimated size of the messages.
    #[must_use]
    pub fn size(&self) -> ContextSize {
        self.size
    }

    /// Returns the size of the next request: the provider's token count for the latest response and everything before
    /// it, and an estimate of the rest. Without a count all is estimated, with `overhead_tokens` for the system prompt
    /// and the tools.
    #[must_use]
    pub fn request_size(&self, overhead_tokens: u64) -> ContextSize {
        let tokens = match self.measured {
            Some(measured) => {
                let rest = self.size.tokens.saturating_sub(measured.estimate);
                measured.tokens.saturating_add(rest)
            }
            None => self.size.tokens.saturating_add(overhead_tokens),
        };
        ContextSize {
            tokens,
            ..self.size
        }
    }

    /// Returns the block that replaces the older messages.
    #[must_use]
    pub fn block(&self) -> Option<&CompactionBlock> {
        self.block.as_deref()
    }

    /// Appends a complete message. Does not copy unless the messages of the last request are still shared.
    pub fn push(&mut self, message: Arc<LlmMessage>) {
        self.count(&message.message);
        Arc::make_mut(&mut self.messages).push(message);
    }

    /// Adds the size of the next message, which a usage report replaces.
    fn count(&mut self, message: &Message) {
        self.size += ContextSize::of_message(message);
        let tokens = message.usage().map_or(0, |usage| usage.context_tokens());
        if tokens > 0 {
            self.measured = Some(MeasuredSize {
                tokens,
                estimate: self.size.tokens,
            });
        }
    }

    /// Applies a block to the messages that it replaces, in time linear in their number (LOOP-47). Returns
    /// false and changes nothing if the block is invalid: it names a missing message, has no summary, or
    /// separates a call from its results.
    pub fn apply_block(&mut self, block: &CompactionBlock) -> bool {
        let Some((messages, kept)) = overlay_block(&self.messages, block) else {
            return false;
        };
        self.size = ContextSize::default();
        for (at, message) in messages.iter().enumerate() {
            self.count(&message.message);
            if at < kept {
                // The counts of kept responses include messages that are gone.
                self.measured = None;
            }
        }
        let covered = std::mem::replace(&mut self.messages, Arc::new(messages));
        self.rewind_point
            .messages_before_block
            .get_or_insert(covered);
        self.block = Some(Arc::new(block.clone()));
        true
    }

    /// Marks the start of a loop.
    pub fn set_rewind_point(&mut self) {
        self.rewind_point = RewindPoint {
            length: self.messages.len(),
            size: self.size,
            measured: self.measured,
            block: self.block.clone(),
            messages_before_block: None,
        };
    }

    /// Drops all messages since the last rewind point, for a loop that was rejected or lost.
    pub fn rewind(&mut self) {
        if let Some(covered) = self.rewind_point.messages_before_block.take() {
            self.messages = covered;
        }
        Arc::make_mut(&mut self.messages).truncate(self.rewind_point.length);
        self.size = self.rewind_point.size;
        self.measured = self.rewind_point.measured;
        self.block.clone_from(&self.rewind_point.block);
    }
}

/// Returns the messages with a block applied: those that the block keeps around its summary, then those after
/// `through`; and the number of the former.
fn overlay_block(
    messages: &[Arc<LlmMessage>],
    block: &CompactionBlock,
) -> Option<(Vec<Arc<LlmMessage>>, usize)> {
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
    has_all_results(&seen).then_some((seen, kept))
}

/// Checks that each call is followed by its results, in call order, before any other message (D-16).
pub(crate) fn has_all_results(messages: &[Arc<LlmMessage>]) -> bool {
    let mut due = VecDeque::new();
    messages
        .iter()
        .all(|message| accept_next(&mut due, message))
        && due.is_empty()
}

/// Processes the next message; `due` holds the calls that still need a result. Returns false if the message
/// is out of order.
fn accept_next<'a>(due: &mut VecDeque<&'a CallId>, message: &'a LlmMessage) -> bool {
    match &message.message {
        Message::ToolResult { call_id, .. } => due.pop_front() == Some(call_id),
        Message::System { .. } | Message::User { .. } | Message::Assistant { .. } => {
            let in_turn = due.is_empty();
            due.extend(message.message.calls().map(|call| &call.call_id));
            in_turn
        }
    }
}
