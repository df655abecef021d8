//! Log: what happened in a case, in order, and what of it the agent has not answered.

use crate::outcome::{Entry, Kind};
use serde_json::Value;
use std::time::Instant;

/// So much of a line is shown. Unit: characters.
const SHOWN: usize = 4000;
/// What the runner asks to hear whether all has been said.
pub(super) const PROBE: &str = "_acp_conformance/probe";

/// So much of a line as a person would read; what a terminal would not show stands as an escape.
pub(super) fn shown(text: &str) -> String {
    let (kept, rest) = match text.char_indices().nth(SHOWN) {
        Some((end, _)) => (&text[..end], format!("… ({} bytes)", text.len())),
        None => (text, String::new()),
    };
    let mut shown = String::with_capacity(kept.len());
    for letter in kept.chars() {
        match letter {
            '\n' | '\t' => shown.push(letter),
            control if control.is_control() => shown.extend(control.escape_default()),
            other => shown.push(other),
        }
    }
    shown + &rest
}

/// What happened, in order.
#[derive(Default)]
pub(super) struct Log {
    pub(super) entries: Vec<Entry>,
    begun: Option<Instant>,
    sent: Vec<Sent>,
}

/// A line that was sent.
struct Sent {
    entry: usize,
    /// The request that it is; `null` if it is none.
    id: Value,
    is_probe: bool,
    is_answered: bool,
}

impl Log {
    pub(super) fn add(&mut self, kind: Kind, text: &str) -> usize {
        let begun = *self.begun.get_or_insert_with(Instant::now);
        self.entries.push(Entry {
            at: begun.elapsed(),
            kind,
            text: shown(text),
        });
        self.entries.len() - 1
    }

    /// Adds a line that was sent. `message` is the parsed text; `null` if it is no JSON.
    pub(super) fn sent(&mut self, text: &str, message: &Value) {
        let sent = Sent {
            entry: self.add(Kind::Sent, text),
            is_probe: message["method"] == PROBE,
            id: message["id"].clone(),
            is_answered: false,
        };
        self.sent.push(sent);
    }

    pub(super) fn answered(&mut self, id: &Value) {
        let mut sent = self.sent.iter_mut().rev();
        if let Some(sent) = sent.find(|sent| !sent.id.is_null() && sent.id == *id) {
            sent.is_answered = true;
        }
    }

    pub(super) fn note(&mut self, text: impl AsRef<str>) {
        self.add(Kind::Note, text.as_ref());
    }

    pub(super) fn last_sent(&self) -> Option<String> {
        self.text(self.sent.last())
    }

    /// What was sent last of what may have gone without an answer. What the case sent comes before the runner's
    /// own question whether it is still there.
    pub(super) fn unanswered(&self) -> Option<String> {
        let answered = self.sent.iter().rposition(|sent| sent.is_answered);
        let (before, since) = self.sent.split_at(answered.map_or(0, |last| last + 1));
        let is_open = |sent: &&Sent| !sent.is_answered && !sent.is_probe && !sent.id.is_null();
        let latest = since.iter().rev().find(|sent| !sent.is_probe);
        let open = || before.iter().rev().find(is_open);
        self.text(latest.or_else(open).or(self.sent.last()))
    }

    fn text(&self, sent: Option<&Sent>) -> Option<String> {
        Some(self.entries.get(sent?.entry)?.text.clone())
    }
}
