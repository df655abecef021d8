//! Draft: the assistant's message while it streams. It is kept only if the answer never settles.

use crate::{Content, MessageId, ModelDelta};

/// What the client has been shown of an answer so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    /// The message, once something of it was shown.
    pub(super) message_id: Option<MessageId>,
    blocks: Vec<Block>,
}

#[derive(Clone, Debug)]
struct Block {
    number: u32,
    thinking: bool,
    text: String,
}

impl Draft {
    /// Fragments of a call's arguments leave no trace: an unfinished call is dropped (C-34).
    pub(super) fn add(&mut self, delta: &ModelDelta) {
        let (number, thinking, fragment) = match delta {
            ModelDelta::Text { block, text } => (*block, false, text),
            ModelDelta::Thinking { block, text } => (*block, true, text),
            ModelDelta::ToolCallArgs { .. } => return,
        };
        let known = self
            .blocks
            .iter_mut()
            .rev()
            .find(|block| block.number == number && block.thinking == thinking);
        match known {
            Some(block) => block.text.push_str(fragment),
            None => self.blocks.push(Block {
                number,
                thinking,
                text: fragment.clone(),
            }),
        }
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
