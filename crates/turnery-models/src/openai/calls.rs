//! Calls: which tool call a fragment belongs to. The API says by its index; servers do as they like.

use super::chunk::{CallDelta, Function};
use crate::{
    answer::{CallIds, Part, Parts},
    remote::Broken,
    text::Text,
};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::borrow::Cow;
use turnery_engine::ModelDelta;

/// A call that may still grow.
struct Open {
    /// The index it came with.
    index: Option<u32>,
    /// The id it came with, which may be empty.
    id: String,
    /// Its place in the answer.
    at: usize,
}

/// The calls of one answer.
#[derive(Default)]
pub(super) struct Calls {
    open: Vec<Open>,
    ids: CallIds,
}

impl Calls {
    pub(super) fn new(ids: CallIds) -> Self {
        Self {
            open: Vec::new(),
            ids,
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
        let at = match self.find(delta.index, id, name, parts) {
            Some(at) => at,
            None => {
                let at = parts.open(Part::Call {
                    id: self.ids.take(id),
                    name: name.to_owned(),
                    args: String::new(),
                });
                self.open.push(Open {
                    index: delta.index,
                    id: id.to_owned(),
                    at,
                });
                at
            }
        };
        if let Some(Part::Call { name: known, .. }) = parts.get(at)
            && known.is_empty()
        {
            name.clone_into(known);
        }
        if let Some(raw) = function.arguments {
            parts.args(at, &arguments(raw)?, out);
        }
        Ok(())
    }

    /// The call that a fragment continues; `None` when it begins one.
    fn find(&self, index: Option<u32>, id: &str, name: &str, parts: &mut Parts) -> Option<usize> {
        let same_id = || {
            self.open
                .iter()
                .rev()
                .find(|open| !id.is_empty() && open.id == id)
        };
        let Some(index) = index else {
            if let Some(open) = same_id() {
                return Some(open.at);
            }
            // A name or an id of its own begins a call; bare arguments belong to the last one.
            let last = self
                .open
                .last()
                .filter(|_| id.is_empty() && name.is_empty());
            return last.map(|open| open.at);
        };
        let open = self
            .open
            .iter()
            .rev()
            .find(|open| open.index == Some(index))?;
        if name.is_empty() || (!id.is_empty() && open.id == id) {
            return Some(open.at);
        }
        // Several whole calls under one index: another id, or another beginning after a whole call.
        let is_next = if id.is_empty() || open.id.is_empty() {
            is_whole(parts.get(open.at))
        } else {
            true
        };
        (!is_next).then_some(open.at)
    }
}

/// Whether a call's arguments are a whole JSON text by now.
fn is_whole(part: Option<&mut Part>) -> bool {
    match part {
        Some(Part::Call { args, .. }) => serde_json::from_str::<IgnoredAny>(args).is_ok(),
        Some(Part::Text(_) | Part::Thinking { .. } | Part::Opaque(_)) | None => false,
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
