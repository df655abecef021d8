//! Collects `reasoning_details`, the structured reasoning of OpenRouter, which goes back unchanged:
//! <https://openrouter.ai/docs/guides/best-practices/reasoning-tokens>.

use crate::json_str::{FragmentJoiner, JsonStr};
use serde_json::{Map, Value, value::RawValue};
use std::collections::{BTreeMap, HashMap};

/// Fields that hold the text of an entry and arrive in fragments.
const TEXT_FIELDS: [&str; 2] = ["text", "summary"];

/// Fields without one of which an entry holds nothing.
const CONTENT_FIELDS: [&str; 4] = ["text", "summary", "data", "signature"];

/// Identity of an entry, as JSON: type, index and, for encrypted reasoning, id.
#[derive(Clone, PartialEq, Eq, Hash)]
struct EntryKey([String; 3]);

struct Entry {
    key: EntryKey,
    fields: Map<String, Value>,
    /// Field and fragments of the text.
    text: Option<(&'static str, String)>,
    joiner: FragmentJoiner,
}

/// Entries of one response, in the order of their first pieces.
#[derive(Default)]
pub(super) struct ReasoningDetails {
    entries: Vec<Entry>,
    by_key: HashMap<EntryKey, usize>,
}

impl ReasoningDetails {
    /// Reads the list of a delta, and appends its readable text to `readable`. Pieces with the same type and index
    /// belong together. A malformed list is ignored. Returns the number of entries that are new.
    pub(super) fn read(&mut self, raw: &RawValue, mut readable: Option<&mut String>) -> usize {
        let before = self.entries.len();
        let pieces = serde_json::from_str::<Vec<BTreeMap<&str, &RawValue>>>(raw.get());
        for piece in pieces.iter().flatten() {
            let Some(entry) = self.entry_of(piece) else {
                continue;
            };
            for (&name, raw) in piece {
                let text_field = TEXT_FIELDS.into_iter().find(|field| *field == name);
                let (Some(field), Some(fragment)) = (text_field, JsonStr::parse(raw.get())) else {
                    entry.set_field(name, raw);
                    continue;
                };
                let added = entry.joiner.join(&fragment);
                if let Some(readable) = &mut readable {
                    readable.push_str(&added);
                }
                let (_, text) = entry.text.get_or_insert((field, String::new()));
                text.push_str(&added);
            }
        }
        self.entries.len() - before
    }

    /// Returns the entry that a piece belongs to.
    fn entry_of(&mut self, piece: &BTreeMap<&str, &RawValue>) -> Option<&mut Entry> {
        let part = |name: &str| piece.get(name).map_or("", |raw| raw.get());
        let kind = part("type");
        let id = match kind.contains("encrypted") {
            true => part("id"),
            false => "",
        };
        let key = [kind, part("index"), id];
        let last = self.entries.len().wrapping_sub(1);
        let place = match self.entries.last() {
            Some(entry) if entry.key.0 == key => last,
            Some(_) | None => {
                let key = EntryKey(key.map(str::to_owned));
                let next = self.entries.len();
                let place = *self.by_key.entry(key.clone()).or_insert(next);
                if place == next {
                    self.entries.push(Entry::new(key));
                }
                place
            }
        };
        self.entries.get_mut(place)
    }

    /// Returns the entries; `None` if there are none.
    pub(super) fn into_value(self) -> Option<Value> {
        let entries: Vec<Value> = self
            .entries
            .into_iter()
            .filter_map(Entry::into_value)
            .collect();
        (!entries.is_empty()).then_some(Value::Array(entries))
    }
}

impl Entry {
    fn new(key: EntryKey) -> Self {
        Self {
            key,
            fields: Map::new(),
            text: None,
            joiner: FragmentJoiner::default(),
        }
    }

    /// Sets a field. A signature comes with the last piece, so later values replace earlier ones; what repeats in each
    /// piece is parsed once.
    fn set_field(&mut self, name: &str, raw: &RawValue) {
        let is_known = self.fields.get(name).is_some_and(|value| !value.is_null());
        if is_known && (!CONTENT_FIELDS.contains(&name) || raw.get() == "null") {
            return;
        }
        if let Ok(value) = serde_json::from_str(raw.get()) {
            self.fields.insert(name.to_owned(), value);
        }
    }

    fn into_value(mut self) -> Option<Value> {
        if let Some((field, text)) = self.text {
            self.fields.insert(field.to_owned(), Value::String(text));
        }
        let is_content = |name: &str| self.fields.get(name).is_some_and(|it| !it.is_null());
        CONTENT_FIELDS
            .iter()
            .any(|name| is_content(name))
            .then_some(Value::Object(self.fields))
    }
}
