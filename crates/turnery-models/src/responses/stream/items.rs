//! Assembles the output items of a response.

use crate::{
    dialect::StreamError,
    json_str::{FragmentJoiner, JsonStr},
    parallel_calls::{self, strip_tool_name},
    response_accumulator::{ResponseAccumulator, ResponseBlock},
    responses::event::{CallItem, ItemHead, ItemPart, MessageItem, ReasoningItem, arguments_text},
};
use serde_json::{Map, Value, json, value::RawValue};
use std::collections::HashMap;
use turnery_engine::{CallIds, Content, ModelDelta, ResponseSize};

/// Text between two parts of an item.
const PART_SEPARATOR: &str = "\n\n";

/// Kind of a part of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartKind {
    Text,
    Refusal,
    Summary,
    Reasoning,
}

/// Part of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartId {
    pub(super) kind: PartKind,
    pub(super) index: i64,
}

/// Output item that has begun.
enum OutputItem {
    Message(TextBlock),
    Reasoning(TextBlock),
    Call {
        /// Index of its block.
        at: usize,
        /// True once all arguments have arrived.
        is_complete: bool,
        joiner: FragmentJoiner,
    },
    /// An item of another type, which is read when it is done.
    Other,
    Done,
}

/// Text of an item.
#[derive(Default)]
struct TextBlock {
    /// Index of its block, which begins with the first text.
    at: Option<usize>,
    /// Part of the last fragment.
    part: Option<PartId>,
    joiner: FragmentJoiner,
}

/// Output items by their position, and the blocks that they consist of.
pub(super) struct OutputItems {
    items: HashMap<i64, OutputItem>,
    response: ResponseAccumulator,
    ids: CallIds,
    has_calls: bool,
    has_refused: bool,
}

impl OutputItems {
    pub(super) fn new(ids: CallIds) -> Self {
        Self {
            items: HashMap::new(),
            response: ResponseAccumulator::default(),
            ids,
            has_calls: false,
            has_refused: false,
        }
    }

    pub(super) fn size(&self) -> ResponseSize {
        self.response.size()
    }

    /// Returns true if no event was about an item.
    pub(super) fn is_unused(&self) -> bool {
        self.items.is_empty()
    }

    pub(super) fn has_calls(&self) -> bool {
        self.has_calls
    }

    pub(super) fn has_refused(&self) -> bool {
        self.has_refused
    }

    pub(super) fn into_content(mut self, provider: &str) -> Vec<Content> {
        let content = self.response.into_content(provider);
        parallel_calls::unpack(content, &mut self.ids)
    }

    /// Begins an item.
    pub(super) fn begin(&mut self, index: i64, raw: &RawValue) -> Result<(), StreamError> {
        if !matches!(self.items.get(&index), None | Some(OutputItem::Done)) {
            return Err(violation(index, "begins twice"));
        }
        let head: ItemHead<'_> = serde_json::from_str(raw.get())?;
        let item = match head.kind.as_deref().unwrap_or_default() {
            "message" => OutputItem::Message(TextBlock::default()),
            "reasoning" => OutputItem::Reasoning(TextBlock::default()),
            "function_call" => {
                let call = serde_json::from_str(raw.get())?;
                self.begin_call(&call)
            }
            _ => OutputItem::Other,
        };
        self.insert(index, item);
        Ok(())
    }

    /// Stores the state of an item. Items count even if they turn out to be empty, so that their number is limited.
    fn insert(&mut self, index: i64, item: OutputItem) {
        self.response
            .count_bytes(ResponseSize::BLOCK_OVERHEAD_BYTES);
        self.items.insert(index, item);
    }

    fn begin_call(&mut self, call: &CallItem<'_>) -> OutputItem {
        self.has_calls = true;
        let at = self.response.push_block(ResponseBlock::Call {
            id: self.ids.take(call.call_id.as_deref().unwrap_or_default()),
            name: strip_tool_name(call.name.as_deref().unwrap_or_default()).to_owned(),
            args: String::new(),
        });
        OutputItem::Call {
            at,
            is_complete: false,
            joiner: FragmentJoiner::default(),
        }
    }

    /// Appends text to an item; begins the item if the server did not.
    pub(super) fn append(
        &mut self,
        index: i64,
        part: PartId,
        text: &JsonStr<'_>,
        out: &mut Vec<ModelDelta>,
    ) -> Result<(), StreamError> {
        if text.is_unset() {
            return Ok(());
        }
        let is_reasoning = match part.kind {
            PartKind::Text | PartKind::Refusal => false,
            PartKind::Summary | PartKind::Reasoning => true,
        };
        if !self.items.contains_key(&index) {
            let block = TextBlock::default();
            self.insert(
                index,
                match is_reasoning {
                    true => OutputItem::Reasoning(block),
                    false => OutputItem::Message(block),
                },
            );
        }
        let block = match (self.items.get_mut(&index), is_reasoning) {
            (Some(OutputItem::Message(block)), false)
            | (Some(OutputItem::Reasoning(block)), true) => block,
            (
                Some(
                    OutputItem::Message(_)
                    | OutputItem::Reasoning(_)
                    | OutputItem::Call { .. }
                    | OutputItem::Other
                    | OutputItem::Done,
                )
                | None,
                _,
            ) => return Err(violation(index, "receives text that is not its own")),
        };
        let is_next_part = block.part.replace(part).is_some_and(|last| last != part);
        let text = block.joiner.join(text);
        let at = *block
            .at
            .get_or_insert_with(|| self.response.push_block(empty_block(is_reasoning)));
        if is_next_part {
            self.response.append_at(at, PART_SEPARATOR, out);
        }
        self.response.append_at(at, &text, out);
        self.has_refused |= part.kind == PartKind::Refusal;
        Ok(())
    }

    /// Appends to the arguments of a call. Those of a call that has not begun come again when it is done.
    pub(super) fn append_arguments(
        &mut self,
        index: i64,
        text: &JsonStr<'_>,
        out: &mut Vec<ModelDelta>,
    ) -> Result<(), StreamError> {
        match self.items.get_mut(&index) {
            Some(OutputItem::Call {
                at,
                is_complete: false,
                joiner,
            }) => {
                self.response.append_args(*at, &joiner.join(text), out);
                Ok(())
            }
            None => Ok(()),
            Some(
                OutputItem::Call { .. }
                | OutputItem::Message(_)
                | OutputItem::Reasoning(_)
                | OutputItem::Other
                | OutputItem::Done,
            ) => Err(violation(index, "receives arguments that are not its own")),
        }
    }

    /// Completes a call with all of its arguments, of which fragments may be missing.
    pub(super) fn complete_arguments(
        &mut self,
        index: i64,
        text: &str,
        out: &mut Vec<ModelDelta>,
    ) -> Result<(), StreamError> {
        let Some(OutputItem::Call {
            at, is_complete, ..
        }) = self.items.get_mut(&index)
        else {
            return Ok(());
        };
        *is_complete = true;
        let Some(ResponseBlock::Call { args, .. }) = self.response.block_mut(*at) else {
            return Ok(());
        };
        // Some servers do not repeat what the fragments contained.
        if text.trim_ascii().is_empty() {
            return Ok(());
        }
        match text.strip_prefix(args.as_str()) {
            Some(rest) => self.response.append_args(*at, rest, out),
            // Only their spelling may differ: what was shown must be what is run.
            None if !is_same_json(args, text) => {
                return Err(violation(index, "ends with other arguments than its own"));
            }
            None => {}
        }
        Ok(())
    }

    /// Reads a complete item. What its fragments did not contain is added.
    pub(super) fn finish(
        &mut self,
        index: i64,
        raw: &RawValue,
        out: &mut Vec<ModelDelta>,
    ) -> Result<(), StreamError> {
        if matches!(self.items.get(&index), Some(OutputItem::Done)) {
            return Ok(());
        }
        let head: ItemHead<'_> = serde_json::from_str(raw.get())?;
        match head.kind.as_deref().unwrap_or_default() {
            "message" => {
                let item: MessageItem<'_> = serde_json::from_str(raw.get())?;
                self.finish_message(index, item, out)?;
            }
            "reasoning" => {
                let item: ReasoningItem<'_> = serde_json::from_str(raw.get())?;
                self.finish_reasoning(index, item, out)?;
            }
            "function_call" => {
                let item: CallItem<'_> = serde_json::from_str(raw.get())?;
                self.finish_call(index, item, out)?;
            }
            "" => {}
            _ => {
                let mut item: Map<String, Value> = serde_json::from_str(raw.get())?;
                // Without state on the server, ids refer to nothing (quirk 30).
                item.remove("id");
                self.response.push_opaque(Value::Object(item));
            }
        }
        self.insert(index, OutputItem::Done);
        Ok(())
    }

    fn finish_message(
        &mut self,
        index: i64,
        item: MessageItem<'_>,
        out: &mut Vec<ModelDelta>,
    ) -> Result<(), StreamError> {
        let parts = item.content.unwrap_or_default();
        if self.block_of(index).is_none() {
            self.append_parts(index, PartKind::Text, &parts, out)?;
        }
        let phase = item.phase.filter(|phase| !phase.is_empty());
        if let Some(phase) = phase.filter(|_| self.block_of(index).is_some()) {
            // A block of text has no place for it.
            self.response
                .push_opaque(json!({"type": "message", "phase": &*phase}));
        }
        Ok(())
    }

    fn finish_reasoning(
        &mut self,
        index: i64,
        item: ReasoningItem<'_>,
        out: &mut Vec<ModelDelta>,
    ) -> Result<(), StreamError> {
        let summary = item.summary.map_or("null", RawValue::get);
        if self.block_of(index).is_none() {
            let parts: Option<Vec<ItemPart<'_>>> = serde_json::from_str(summary)?;
            self.append_parts(index, PartKind::Summary, &parts.unwrap_or_default(), out)?;
        }
        if self.block_of(index).is_none() {
            let parts = item.content.unwrap_or_default();
            self.append_parts(index, PartKind::Reasoning, &parts, out)?;
        }
        // Without it the server knows nothing of the item (quirk 29).
        let encrypted = item.encrypted_content.filter(|text| !text.is_empty());
        if let Some(encrypted) = encrypted {
            let summary: Option<Value> = serde_json::from_str(summary)?;
            self.response.push_opaque(json!({
                "type": "reasoning",
                "summary": summary.unwrap_or_else(|| json!([])),
                "encrypted_content": JsonStr::into_owned(encrypted),
            }));
        }
        Ok(())
    }

    fn finish_call(
        &mut self,
        index: i64,
        item: CallItem<'_>,
        out: &mut Vec<ModelDelta>,
    ) -> Result<(), StreamError> {
        if !self.items.contains_key(&index) {
            let call = self.begin_call(&item);
            self.insert(index, call);
        }
        let at = match self.items.get(&index) {
            Some(OutputItem::Call { at, .. }) => *at,
            Some(
                OutputItem::Message(_)
                | OutputItem::Reasoning(_)
                | OutputItem::Other
                | OutputItem::Done,
            )
            | None => return Err(violation(index, "ends as another item than it began")),
        };
        let name = strip_tool_name(item.name.as_deref().unwrap_or_default());
        if let Some(ResponseBlock::Call { name: known, .. }) = self.response.block_mut(at)
            && known.is_empty()
        {
            name.clone_into(known);
            self.response.count_bytes(name.len());
        }
        match item.arguments {
            Some(raw) => self.complete_arguments(index, &arguments_text(raw)?, out),
            None => Ok(()),
        }
    }

    /// Returns the block of an item with text, if it has any text.
    fn block_of(&self, index: i64) -> Option<usize> {
        match self.items.get(&index) {
            Some(OutputItem::Message(block) | OutputItem::Reasoning(block)) => block.at,
            Some(OutputItem::Call { .. } | OutputItem::Other | OutputItem::Done) | None => None,
        }
    }

    fn append_parts(
        &mut self,
        index: i64,
        kind: PartKind,
        parts: &[ItemPart<'_>],
        out: &mut Vec<ModelDelta>,
    ) -> Result<(), StreamError> {
        for (at, part) in (0_i64..).zip(parts) {
            let id = |kind| PartId { kind, index: at };
            if let Some(text) = &part.text {
                self.append(index, id(kind), text, out)?;
            }
            if let Some(refusal) = &part.refusal {
                self.append(index, id(PartKind::Refusal), refusal, out)?;
            }
        }
        Ok(())
    }

    /// Checks that all arguments of all calls have arrived: the first ones may be valid by themselves, and must not be
    /// run (quirk 40).
    pub(super) fn check_calls(&self) -> Result<(), StreamError> {
        let is_open = |item: &OutputItem| match item {
            OutputItem::Call { is_complete, .. } => !is_complete,
            OutputItem::Message(_)
            | OutputItem::Reasoning(_)
            | OutputItem::Other
            | OutputItem::Done => false,
        };
        match self.items.iter().find(|(_, item)| is_open(item)) {
            Some((index, _)) => Err(violation(*index, "is a call without end")),
            None => Ok(()),
        }
    }
}

fn empty_block(is_reasoning: bool) -> ResponseBlock {
    let text = String::new();
    match is_reasoning {
        true => ResponseBlock::Thinking {
            text,
            signature: None,
        },
        false => ResponseBlock::Text(text),
    }
}

/// Returns true if two texts are the same JSON, written differently.
fn is_same_json(one: &str, other: &str) -> bool {
    let parse = |text| serde_json::from_str::<Value>(text).ok();
    parse(one).is_some_and(|value| Some(value) == parse(other))
}

fn violation(index: i64, why: &str) -> StreamError {
    StreamError::Violation(format!("output item {index} {why}"))
}
