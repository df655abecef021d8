//! Records the events of a case in order, and the sent messages that are unanswered.

use crate::outcome::{TranscriptEntry, TranscriptSource};
use serde_json::Value;
use std::time::Instant;

/// Length of a line in the transcript. Unit: characters.
const MAX_SHOWN_CHARS: usize = 4000;
/// Method of the request that probes whether the agent has answered everything.
pub(super) const PROBE_METHOD: &str = "_acp_conformance/probe";

/// Shortens a line to a readable length and escapes characters that a terminal would not show.
pub(super) fn escape_text(text: &str) -> String {
    let (kept, rest) = match text.char_indices().nth(MAX_SHOWN_CHARS) {
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

/// Transcript of a case.
#[derive(Default)]
pub(super) struct TranscriptLog {
    pub(super) entries: Vec<TranscriptEntry>,
    started_at: Option<Instant>,
    sent_lines: Vec<SentLine>,
}

/// Line that was sent.
struct SentLine {
    entry: usize,
    /// Request id; `null` if the line is no request.
    id: Value,
    is_probe: bool,
    is_answered: bool,
}

impl TranscriptLog {
    pub(super) fn push(&mut self, by: TranscriptSource, text: &str) -> usize {
        let begun = *self.started_at.get_or_insert_with(Instant::now);
        self.entries.push(TranscriptEntry {
            at: begun.elapsed(),
            by,
            text: escape_text(text),
        });
        self.entries.len() - 1
    }

    /// Adds a sent line. `message` is the parsed text; `null` if the text is not JSON.
    pub(super) fn push_sent(&mut self, text: &str, message: &Value) {
        let sent = SentLine {
            entry: self.push(TranscriptSource::Case, text),
            is_probe: message["method"] == PROBE_METHOD,
            id: message["id"].clone(),
            is_answered: false,
        };
        self.sent_lines.push(sent);
    }

    pub(super) fn mark_answered(&mut self, id: &Value) {
        let mut sent = self.sent_lines.iter_mut().rev();
        if let Some(sent) = sent.find(|sent| !sent.id.is_null() && sent.id == *id) {
            sent.is_answered = true;
        }
    }

    pub(super) fn push_note(&mut self, text: impl AsRef<str>) {
        self.push(TranscriptSource::Process, text.as_ref());
    }

    pub(super) fn last_sent(&self) -> Option<String> {
        self.entry_text(self.sent_lines.last())
    }

    /// Returns the latest sent line that may be unanswered. Lines of the case take precedence over the runner's
    /// probe.
    pub(super) fn last_unanswered(&self) -> Option<String> {
        let answered = self.sent_lines.iter().rposition(|sent| sent.is_answered);
        let (before, since) = self
            .sent_lines
            .split_at(answered.map_or(0, |last| last + 1));
        let is_open = |sent: &&SentLine| !sent.is_answered && !sent.is_probe && !sent.id.is_null();
        let latest = since.iter().rev().find(|sent| !sent.is_probe);
        let open = || before.iter().rev().find(is_open);
        self.entry_text(latest.or_else(open).or(self.sent_lines.last()))
    }

    fn entry_text(&self, sent: Option<&SentLine>) -> Option<String> {
        Some(self.entries.get(sent?.entry)?.text.clone())
    }
}
