//! Draft: the assistant's message while it streams. It is kept only if the answer never settles.

use crate::{AnswerSize, Content, MessageId, ModelDelta};
use std::collections::{BTreeMap, BTreeSet};

/// What the client has been shown of an answer so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    /// The message, once something of it was shown.
    pub(super) message_id: Option<MessageId>,
    blocks: Vec<Block>,
    /// Places of the blocks, by number and whether they are reasoning.
    places: BTreeMap<(u32, bool), usize>,
    /// Numbers of the blocks that are calls.
    calls: BTreeSet<u32>,
    /// Calls included, although their arguments are not kept.
    size: AnswerSize,
}

#[derive(Clone, Debug)]
struct Block {
    number: u32,
    thinking: bool,
    text: String,
}

impl Draft {
    /// Fragments of a call's arguments leave no trace but in the size: an unfinished call is dropped
    /// (C-34).
    pub(super) fn add(&mut self, delta: &ModelDelta) {
        let (number, thinking, fragment) = match delta {
            ModelDelta::Text { block, text } => (*block, false, text),
            ModelDelta::Thinking { block, text } => (*block, true, text),
            ModelDelta::ToolCallArgs {
                block, fragment, ..
            } => {
                if self.calls.insert(*block) {
                    self.size.add_call();
                    self.size.add(AnswerSize::BLOCK);
                }
                return self.size.add(fragment.len());
            }
        };
        self.size.add(fragment.len());
        let place = match self.blocks.last() {
            Some(last) if last.number == number && last.thinking == thinking => {
                Some(self.blocks.len() - 1)
            }
            Some(_) | None => self.places.get(&(number, thinking)).copied(),
        };
        match place.and_then(|place| self.blocks.get_mut(place)) {
            Some(block) => block.text.push_str(fragment),
            None => {
                self.size.add(AnswerSize::BLOCK);
                self.places.insert((number, thinking), self.blocks.len());
                self.blocks.push(Block {
                    number,
                    thinking,
                    text: fragment.clone(),
                });
            }
        }
    }

    /// The message of the draft with nothing in it, for a seeded fault.
    pub(super) fn without_content(self) -> Self {
        Self {
            message_id: self.message_id,
            ..Self::default()
        }
    }

    /// The size of all fragments so far.
    pub(super) fn size(&self) -> AnswerSize {
        self.size
    }

    /// The content seen so far, in the order in which its blocks began.
    pub(super) fn into_content(self) -> Vec<Content> {
        self.blocks
            .into_iter()
            .map(|Block { thinking, text, .. }| {
                if thinking {
                    Content::Thinking {
                        text,
                        signature: None,
                    }
                } else {
                    Content::Text { text }
                }
            })
            .collect()
    }
}
