//! Assigns deltas to tool calls. The API defines an index for this, which servers use inconsistently.

mod json_end;

use super::chunk::{FunctionDelta, ToolCallDelta};
use crate::{
    dialect::StreamError,
    json_str::JsonStr,
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
}

/// Tool calls of one response.
#[derive(Default)]
pub(super) struct ToolCallAssembler {
    calls: Vec<StreamedCall>,
    /// Last call of each index, as a position in `calls`.
    by_index: HashMap<u32, usize>,
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
        let name = function.name.as_deref().unwrap_or("");
        let place = match self.find(delta.index, id, name, parts) {
            Some(place) => place,
            None => self.begin_call(delta.index, id, name, parts),
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
            call.json.push(&fragment);
            parts.append_args(at, &fragment, out);
        }
        Ok(())
    }

    /// Starts a call, and returns its position in `calls`.
    fn begin_call(
        &mut self,
        index: Option<u32>,
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
        });
        place
    }

    /// Returns the call that a delta continues, as a position in `calls`; `None` if it starts one.
    fn find(
        &mut self,
        index: Option<u32>,
        id: &str,
        name: &str,
        parts: &mut ResponseAccumulator,
    ) -> Option<usize> {
        let Some(index) = index else {
            if let Some(place) = self.by_id.get(id) {
                return Some(*place);
            }
            // A name or an id starts a call; bare arguments belong to the last one.
            let is_bare = id.is_empty() && name.is_empty();
            return self.calls.len().checked_sub(1).filter(|_| is_bare);
        };
        let place = *self.by_index.get(&index)?;
        let call = self.calls.get_mut(place)?;
        if name.is_empty() || (!id.is_empty() && call.id == id) {
            return Some(place);
        }
        // Several complete calls under one index: a different id, or a new start after a complete call.
        let is_next = if id.is_empty() || call.id.is_empty() {
            matches!(parts.block_mut(call.at), Some(ResponseBlock::Call { args, .. })
                if call.json.is_complete(args))
        } else {
            true
        };
        (!is_next).then_some(place)
    }
}

/// Returns the text of an arguments delta.
fn arguments(raw: &RawValue) -> Result<Cow<'_, str>, StreamError> {
    let text = raw.get();
    if !text.starts_with('"') {
        return Ok(Cow::Borrowed(text));
    }
    let text: JsonStr<'_> = serde_json::from_str(text)?;
    Ok(text.into_cow())
}
