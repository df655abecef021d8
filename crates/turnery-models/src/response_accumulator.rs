//! Accumulates the deltas of a streamed response, in the order of the model.

use crate::parallel_calls::PARALLEL_TOOL;
use serde_json::Value;
use std::borrow::Cow;
use turnery_engine::{CallId, Content, ModelDelta, ResponseSize, ToolCall, parse_call_args};

/// Longest tool name shown with argument deltas; providers allow at most 128. Unit: characters.
const MAX_TOOL_NAME_CHARS: usize = 256;

/// A growing block of a response.
#[derive(Debug)]
pub(crate) enum ResponseBlock {
    Text(String),
    Thinking {
        text: String,
        signature: Option<String>,
    },
    Call {
        id: CallId,
        name: String,
        args: String,
    },
    Opaque(Value),
}

/// Blocks of a response. Their indexes are the block numbers of the deltas.
#[derive(Debug, Default)]
pub(crate) struct ResponseAccumulator {
    blocks: Vec<ResponseBlock>,
    /// True if the next text starts a new block.
    is_text_sealed: bool,
    size: ResponseSize,
}

impl ResponseAccumulator {
    /// Adds a block and returns its index.
    pub(crate) fn push_block(&mut self, part: ResponseBlock) -> usize {
        self.size.add_bytes(ResponseSize::BLOCK_OVERHEAD_BYTES);
        if let ResponseBlock::Call { id, name, .. } = &part {
            self.size.add_call();
            self.size
                .add_bytes(id.as_str().len().saturating_add(name.len()));
        }
        self.blocks.push(part);
        self.blocks.len() - 1
    }

    /// Adds an opaque block and returns its index.
    pub(crate) fn push_opaque(&mut self, value: Value) -> usize {
        self.size.add_bytes(value_bytes(&value));
        self.push_block(ResponseBlock::Opaque(value))
    }

    /// Returns the size of all blocks so far.
    pub(crate) fn size(&self) -> ResponseSize {
        self.size
    }

    /// Counts bytes that are stored but not sent as deltas: signatures, opaque blocks.
    pub(crate) fn count_bytes(&mut self, bytes: usize) {
        self.size.add_bytes(bytes);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub(crate) fn block_mut(&mut self, at: usize) -> Option<&mut ResponseBlock> {
        self.blocks.get_mut(at)
    }

    pub(crate) fn last_block_mut(&mut self) -> Option<&mut ResponseBlock> {
        self.blocks.last_mut()
    }

    /// Makes the next text start a new block.
    pub(crate) fn seal_text(&mut self) {
        self.is_text_sealed = true;
    }

    /// Appends text to the last block, or to a new one.
    pub(crate) fn append_text(&mut self, text: &str, out: &mut Vec<ModelDelta>) {
        if text.is_empty() {
            return;
        }
        match self.blocks.last_mut() {
            Some(ResponseBlock::Text(so_far)) if !self.is_text_sealed => so_far.push_str(text),
            Some(
                ResponseBlock::Text(_)
                | ResponseBlock::Thinking { .. }
                | ResponseBlock::Call { .. }
                | ResponseBlock::Opaque(_),
            )
            | None => {
                self.push_block(ResponseBlock::Text(text.to_owned()));
            }
        }
        self.size.add_bytes(text.len());
        self.is_text_sealed = false;
        out.push(ModelDelta::Text {
            block: block_number(self.blocks.len() - 1),
            text: text.to_owned(),
        });
    }

    /// Appends reasoning to the last block, or to a new one.
    pub(crate) fn append_thinking(&mut self, text: &str, out: &mut Vec<ModelDelta>) {
        if text.is_empty() {
            return;
        }
        match self.blocks.last_mut() {
            Some(ResponseBlock::Thinking { text: so_far, .. }) => so_far.push_str(text),
            Some(
                ResponseBlock::Text(_) | ResponseBlock::Call { .. } | ResponseBlock::Opaque(_),
            )
            | None => {
                self.push_block(ResponseBlock::Thinking {
                    text: text.to_owned(),
                    signature: None,
                });
            }
        }
        self.size.add_bytes(text.len());
        out.push(ModelDelta::Thinking {
            block: block_number(self.blocks.len() - 1),
            text: text.to_owned(),
        });
    }

    /// Appends text to the block at `at`, which holds text or reasoning.
    pub(crate) fn append_at(&mut self, at: usize, text: &str, out: &mut Vec<ModelDelta>) {
        if text.is_empty() {
            return;
        }
        let block = block_number(at);
        let (so_far, delta) = match self.blocks.get_mut(at) {
            Some(ResponseBlock::Text(so_far)) => {
                let text = text.to_owned();
                (so_far, ModelDelta::Text { block, text })
            }
            Some(ResponseBlock::Thinking { text: so_far, .. }) => {
                let text = text.to_owned();
                (so_far, ModelDelta::Thinking { block, text })
            }
            Some(ResponseBlock::Call { .. } | ResponseBlock::Opaque(_)) | None => return,
        };
        so_far.push_str(text);
        self.size.add_bytes(text.len());
        out.push(delta);
    }

    /// Appends to the arguments of the call at `at`. Those of the made-up tool for parallel calls are not shown: the
    /// calls inside take its place at the end.
    pub(crate) fn append_args(&mut self, at: usize, fragment: &str, out: &mut Vec<ModelDelta>) {
        let Some(ResponseBlock::Call { name, args, .. }) = self.blocks.get_mut(at) else {
            return;
        };
        if fragment.is_empty() {
            return;
        }
        args.push_str(fragment);
        self.size.add_bytes(fragment.len());
        if name == PARALLEL_TOOL {
            return;
        }
        out.push(ModelDelta::ToolCallArgs {
            block: block_number(at),
            name: truncate_tool_name(name),
            fragment: fragment.to_owned(),
        });
    }

    /// Converts the blocks to content, with the arguments of calls parsed. `provider` is recorded as the
    /// author of opaque blocks.
    pub(crate) fn into_content(self, provider: &str) -> Vec<Content> {
        let settle = |part| match part {
            ResponseBlock::Text(text) => Content::Text { text },
            ResponseBlock::Thinking { text, signature } => Content::Thinking { text, signature },
            ResponseBlock::Call { id, name, args } => {
                Content::ToolCall(ToolCall::new(id, name, parse_call_args(&args)))
            }
            ResponseBlock::Opaque(value) => Content::Opaque {
                provider: provider.to_owned(),
                value,
            },
        };
        self.blocks.into_iter().map(settle).collect()
    }
}

/// Truncates the name of a tool for argument deltas, each of which repeats it.
fn truncate_tool_name(name: &str) -> String {
    match name.char_indices().nth(MAX_TOOL_NAME_CHARS) {
        Some((cut, _)) => name[..cut].to_owned(),
        None => name.to_owned(),
    }
}

/// Returns arguments as the object that the APIs require; any other value is wrapped in one.
pub(crate) fn args_as_object(args: &Value) -> Cow<'_, Value> {
    match args {
        Value::Object(_) => Cow::Borrowed(args),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Cow::Owned(serde_json::json!({ "not_an_object": args }))
        }
    }
}

/// Converts an index to a block number.
pub(crate) fn block_number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Returns the memory that a JSON value takes. Unit: bytes.
pub(crate) fn value_bytes(value: &Value) -> usize {
    let content = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(value_bytes).sum(),
        Value::Object(members) => {
            let size = |(name, value): (&String, &Value)| name.len() + value_bytes(value);
            members.iter().map(size).sum()
        }
    };
    size_of::<Value>() + content
}
