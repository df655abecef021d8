//! Calls: which tool call a fragment belongs to. The API says by its index; servers do as they like.

mod json_end;

use super::chunk::{CallDelta, Function};
use crate::{
    answer::{CallIds, Part, Parts},
    remote::Broken,
    text::Text,
};
use json_end::JsonEnd;
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::HashMap};
use turnery_engine::ModelDelta;

/// A call that may still grow.
struct Open {
    /// The id it came with, which may be empty.
    id: String,
    /// Its place in the answer.
    at: usize,
    json: JsonEnd,
}

/// The calls of one answer.
#[derive(Default)]
pub(super) struct Calls {
    open: Vec<Open>,
    /// The last call of each index, as a place in `open`.
    by_index: HashMap<u32, usize>,
    /// The last call of each id that is not empty.
    by_id: HashMap<String, usize>,
    ids: CallIds,
}

impl Calls {
    pub(super) fn new(ids: CallIds) -> Self {
        Self {
            ids,
            ..Self::default()
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Take in one fragment.
    pub(super) fn on(
        &mut self,
        delta: &CallDelta<'_>,
        parts: &mut Parts,
        out: &mut Vec<ModelDelta>,
    ) -> Result<(), Broken> {
        let none = Function::default();
        let function = delta.function.as_ref().unwrap_or(&none);
        let id = delta.id.as_deref().unwrap_or("");
        let name = function.name.as_deref().unwrap_or("");
        let place = match self.find(delta.index, id, name, parts) {
            Some(place) => place,
            None => self.begin(delta.index, id, name, parts),
        };
        let Some(open) = self.open.get_mut(place) else {
            return Ok(());
        };
        let at = open.at;
        if let Some(Part::Call { name: known, .. }) = parts.get(at)
            && known.is_empty()
        {
            name.clone_into(known);
            parts.count(name.len());
        }
        if let Some(raw) = function.arguments {
            let fragment = arguments(raw)?;
            open.json.read(&fragment);
            parts.args(at, &fragment, out);
        }
        Ok(())
    }

    /// Begins a call, and gives its place in `open`.
    fn begin(&mut self, index: Option<u32>, id: &str, name: &str, parts: &mut Parts) -> usize {
        let at = parts.open(Part::Call {
            id: self.ids.take(id),
            name: name.to_owned(),
            args: String::new(),
        });
        let place = self.open.len();
        if let Some(index) = index {
            self.by_index.insert(index, place);
        }
        if !id.is_empty() {
            self.by_id.insert(id.to_owned(), place);
        }
        self.open.push(Open {
            id: id.to_owned(),
            at,
            json: JsonEnd::default(),
        });
        place
    }

    /// The call that a fragment continues, as a place in `open`; `None` when it begins one.
    fn find(
        &mut self,
        index: Option<u32>,
        id: &str,
        name: &str,
        parts: &mut Parts,
    ) -> Option<usize> {
        let Some(index) = index else {
            if let Some(place) = self.by_id.get(id) {
                return Some(*place);
            }
            // A name or an id of its own begins a call; bare arguments belong to the last one.
            let is_bare = id.is_empty() && name.is_empty();
            return self.open.len().checked_sub(1).filter(|_| is_bare);
        };
        let place = *self.by_index.get(&index)?;
        let open = self.open.get_mut(place)?;
        if name.is_empty() || (!id.is_empty() && open.id == id) {
            return Some(place);
        }
        // Several whole calls under one index: another id, or another beginning after a whole call.
        let is_next = if id.is_empty() || open.id.is_empty() {
            open.json.is_whole(parts.get(open.at))
        } else {
            true
        };
        (!is_next).then_some(place)
    }
}

/// The text of a fragment of arguments.
fn arguments(raw: &RawValue) -> Result<Cow<'_, str>, Broken> {
    let text = raw.get();
    if !text.starts_with('"') {
        return Ok(Cow::Borrowed(text));
    }
    let text: Text<'_> = serde_json::from_str(text)?;
    Ok(text.into_cow())
}
