//! Assigns deltas to tool calls. The API defines an index for this, which servers use inconsistently.

mod json_end;

use super::chunk::{FunctionDelta, ToolCallDelta};
use crate::{
    dialect::StreamError,
    json_str::{FragmentJoiner, JsonStr},
    parallel_calls::strip_tool_name,
    response_accumulator::{ResponseAccumulator, ResponseBlock},
};
use json_end::JsonEndDetector;
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::HashMap};
use turnery_engine::{CallIds, ModelDelta};

/// Tool call of the response, complete or still receiving arguments.
struct StreamedCall {
    /// Id from the server, which may be empty.
    id: String,
    /// Index of its block in the response.
    at: usize,
    json: JsonEndDetector,
    joiner: FragmentJoiner,
}

/// Tool calls of one response.
#[derive(Default)]
pub(super) struct ToolCallAssembler {
    calls: Vec<StreamedCall>,
    /// Last call of each index, as a position in `calls`.
    by_index: HashMap<u64, usize>,
    /// Last call of each non-empty id.
    by_id: HashMap<String, usize>,
    ids: CallIds,
}

impl ToolCallAssembler {
    pub(super) fn new(ids: CallIds) -> Self {
        Self {
            ids,
            ..Self::default()
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Reads one delta.
    pub(super) fn push_delta(
        &mut self,
        delta: &ToolCallDelta<'_>,
        parts: &mut ResponseAccumulator,
        out: &mut Vec<ModelDelta>,
    ) -> Result<(), StreamError> {
        let none = FunctionDelta::default();
        let function = delta.function.as_ref().unwrap_or(&none);
        let id = delta.id.as_deref().unwrap_or("");
        let name = strip_tool_name(function.name.as_deref().unwrap_or(""));
        let index = delta.index.and_then(call_index);
        let place = match self.find(index, id, name, parts) {
            Some(place) => place,
            None => self.begin_call(index, id, name, parts),
        };
        let Some(call) = self.calls.get_mut(place) else {
            return Ok(());
        };
        let at = call.at;
        if let Some(ResponseBlock::Call { name: known, .. }) = parts.block_mut(at)
            && known.is_empty()
        {
            name.clone_into(known);
            parts.count_bytes(name.len());
        }
        if let Some(raw) = function.arguments {
            let fragment = arguments(raw)?;
            let fragment = match &fragment {
                ArgsFragment::Object(text) => Cow::Borrowed(*text),
                ArgsFragment::Text(text) => call.joiner.join(text),
            };
            call.json.push(&fragment);
            parts.append_args(at, &fragment, out);
        }
        Ok(())
    }

    /// Returns the ids in use, those of this response included.
    pub(super) fn into_ids(self) -> CallIds {
        self.ids
    }

    /// Starts a call, and returns its position in `calls`.
    fn begin_call(
        &mut self,
        index: Option<u64>,
        id: &str,
        name: &str,
        parts: &mut ResponseAccumulator,
    ) -> usize {
        let at = parts.push_block(ResponseBlock::Call {
            id: self.ids.take(id),
            name: name.to_owned(),
            args: String::new(),
        });
        let place = self.calls.len();
        if let Some(index) = index {
            self.by_index.insert(index, place);
        }
        if !id.is_empty() {
            self.by_id.insert(id.to_owned(), place);
        }
        self.calls.push(StreamedCall {
            id: id.to_owned(),
            at,
            json: JsonEndDetector::default(),
            joiner: FragmentJoiner::default(),
        });
        place
    }

    /// Returns the call that a delta continues, as a position in `calls`; `None` if it starts one.
    fn find(
        &mut self,
        index: Option<u64>,
        id: &str,
        name: &str,
        parts: &mut ResponseAccumulator,
    ) -> Option<usize> {
        let Some(index) = index else {
            if let Some(place) = self.by_id.get(id) {
                return Some(*place);
            }
            // A name or an id starts a call, unless the last one still lacks its name; bare arguments belong to the
            // last one.
            let last = self.calls.len().checked_sub(1)?;
            let lacks_name = name_of(self.calls.get(last)?, parts).is_empty();
            let is_bare = id.is_empty() && (name.is_empty() || lacks_name);
            return is_bare.then_some(last);
        };
        let place = *self.by_index.get(&index)?;
        let call = self.calls.get_mut(place)?;
        let is_same_id = id.is_empty() || call.id.is_empty() || call.id == id;
        let lacks_name = name_of(call, parts).is_empty();
        if (!id.is_empty() && call.id == id) || (is_same_id && (name.is_empty() || lacks_name)) {
            return Some(place);
        }
        // Several complete calls under one index: a different id, or a new start after a complete call.
        let is_next = if id.is_empty() || call.id.is_empty() {
            matches!(parts.block_mut(call.at), Some(ResponseBlock::Call { args, .. })
                if call.json.is_complete(args))
        } else {
            !name.is_empty()
        };
        (!is_next).then_some(place)
    }
}

/// Returns the name of a call so far.
fn name_of<'a>(call: &StreamedCall, parts: &'a mut ResponseAccumulator) -> &'a str {
    match parts.block_mut(call.at) {
        Some(ResponseBlock::Call { name, .. }) => name,
        Some(
            ResponseBlock::Text(_) | ResponseBlock::Thinking { .. } | ResponseBlock::Opaque(_),
        )
        | None => "",
    }
}

/// Returns the index of a call; `None` if it is no whole number, like a missing one.
fn call_index(raw: &RawValue) -> Option<u64> {
    raw.get().trim_matches('"').trim().parse().ok()
}

/// Arguments of a delta.
enum ArgsFragment<'a> {
    /// Part of a text.
    Text(JsonStr<'a>),
    /// JSON of the whole arguments.
    Object(&'a str),
}

fn arguments(raw: &RawValue) -> Result<ArgsFragment<'_>, StreamError> {
    Ok(match raw.get() {
        text if text.starts_with('"') => ArgsFragment::Text(serde_json::from_str(text)?),
        text => ArgsFragment::Object(text),
    })
}
