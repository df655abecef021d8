//! Accumulates a streaming response: its size is checked against the limits, and its content is kept if the
//! response never completes.

use crate::{Content, MessageId, ModelDelta, ResponseSize};
use std::collections::{BTreeMap, BTreeSet};

/// Content of a response shown to the client so far.
#[derive(Clone, Debug, Default)]
pub(super) struct ResponseDraft {
    /// Message id, once a fragment was shown.
    pub(super) message_id: Option<MessageId>,
    blocks: Vec<DraftBlock>,
    /// Block indices, by block number and whether the block is reasoning.
    index_by_block: BTreeMap<(u32, bool), usize>,
    /// Numbers of the blocks that are tool calls.
    call_blocks: BTreeSet<u32>,
    /// Size including calls, whose arguments are not kept.
    size: ResponseSize,
}

#[derive(Clone, Debug)]
struct DraftBlock {
    number: u32,
    is_thinking: bool,
    text: String,
}

impl ResponseDraft {
    /// Adds a fragment. Call arguments count only towards the size, because unfinished calls are dropped
    /// (C-34).
    pub(super) fn add(&mut self, delta: &ModelDelta) {
        let (number, thinking, fragment) = match delta {
            ModelDelta::Text { block, text } => (*block, false, text),
            ModelDelta::Thinking { block, text } => (*block, true, text),
            ModelDelta::ToolCallArgs {
                block, fragment, ..
            } => {
                if self.call_blocks.insert(*block) {
                    self.size.add_call();
                    self.size.add_bytes(ResponseSize::BLOCK_OVERHEAD_BYTES);
                }
                return self.size.add_bytes(fragment.len());
            }
        };
        self.size.add_bytes(fragment.len());
        let place = match self.blocks.last() {
            Some(last) if last.number == number && last.is_thinking == thinking => {
                Some(self.blocks.len() - 1)
            }
            Some(_) | None => self.index_by_block.get(&(number, thinking)).copied(),
        };
        match place.and_then(|place| self.blocks.get_mut(place)) {
            Some(block) => block.text.push_str(fragment),
            None => {
                self.size.add_bytes(ResponseSize::BLOCK_OVERHEAD_BYTES);
                self.index_by_block
                    .insert((number, thinking), self.blocks.len());
                self.blocks.push(DraftBlock {
                    number,
                    is_thinking: thinking,
                    text: fragment.clone(),
                });
            }
        }
    }

    /// Returns the draft without its content, for a seeded fault.
    pub(super) fn without_content(self) -> Self {
        Self {
            message_id: self.message_id,
            ..Self::default()
        }
    }

    /// Returns the size of all fragments so far.
    pub(super) fn size(&self) -> ResponseSize {
        self.size
    }

    /// Returns the content so far, in the order in which its blocks started.
    pub(super) fn into_content(self) -> Vec<Content> {
        self.blocks
            .into_iter()
            .map(|block| match block.is_thinking {
                true => Content::Thinking {
                    text: block.text,
                    signature: None,
                },
                false => Content::Text { text: block.text },
            })
            .collect()
    }
}
