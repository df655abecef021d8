//! Most: how much one call may say. What is beyond that is cut, and said to be, so that no tool can fill
//! memory, the records or the model's context.

mod envelope;
mod prune;
mod size;
#[cfg(test)]
mod tests;

use size::size;
use turnery_engine::ToolEnvelope;
use turnery_tools::Progress;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// How much of each kind a call may give. Unit: bytes; of JSON, but for text.
struct Most {
    /// Printed while it runs: text.
    printed: usize,
    /// Plans and details shown while it runs, all together.
    reported: usize,
    /// How many plans, details and sentences it may report while it runs.
    reports: usize,
    /// Its answer, or why it failed: text.
    answered: usize,
    /// Images, recordings, and whatever else is neither text nor cut.
    images: usize,
    artifacts: usize,
    locations: usize,
    effects: usize,
    value: usize,
    details: usize,
    /// What it decides about the loop.
    control: usize,
}

/// The largest image that a file is read as takes 7 MiB, and a diff holds a file twice.
const MOST: Most = Most {
    printed: 4 * MIB,
    reported: 16 * MIB,
    reports: 4096,
    answered: 256 * KIB,
    images: 16 * MIB,
    artifacts: 16 * MIB,
    locations: 64 * KIB,
    effects: MIB,
    value: MIB,
    details: MIB,
    control: MIB,
};

/// Take some of the room that is left, if there is that much.
fn take(room: &mut usize, bytes: usize) -> bool {
    let left = room.checked_sub(bytes);
    *room = left.unwrap_or(*room);
    left.is_some()
}

/// What is left out of what a call gives: each kind, and how much of it.
#[derive(Default)]
struct Cuts(Vec<String>);

impl Cuts {
    fn items(&mut self, what: &str, count: usize, bytes: usize) {
        if count > 0 {
            self.0.push(format!("{count} {what} ({bytes} bytes)"));
        }
    }

    fn bytes(&mut self, what: &str, bytes: usize) {
        self.0.push(format!("{bytes} bytes of {what}"));
    }

    /// The note for the model and for people; none if all is there.
    fn note(&self) -> Option<String> {
        let cuts = self.0.join(", ");
        (!cuts.is_empty()).then(|| format!("[more than a call may give; left out: {cuts}]"))
    }
}

/// How much more a running call may say.
pub(super) struct Room {
    /// None once a person has been told that something is left out.
    text: Option<usize>,
    bytes: usize,
    reports: usize,
    dropped: usize,
    dropped_bytes: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self::within(&MOST)
    }
}

impl Room {
    fn within(most: &Most) -> Self {
        Self {
            text: Some(most.printed),
            bytes: most.reported,
            reports: most.reports,
            dropped: 0,
            dropped_bytes: 0,
        }
    }

    /// What is shown of a report. One that is not text is shown whole or not at all; what was spent
    /// always counts.
    pub(super) fn admit(&mut self, mut report: Progress) -> Option<Progress> {
        let shown = match &mut report {
            Progress::Printed(text) => self.print(text),
            Progress::Says(text) => self.report(Some(0), text.len()) && self.print(text),
            Progress::Shows(detail) => self.report(size(detail), 0),
            Progress::Planned(entries) => self.report(size(entries), 0),
            Progress::Spent(_) => true,
        };
        shown.then_some(report)
    }

    fn print(&mut self, text: &mut String) -> bool {
        let Some(room) = self.text.filter(|_| !text.is_empty()) else {
            return false;
        };
        self.text = room.checked_sub(text.len());
        if self.text.is_none() {
            text.truncate(text.floor_char_boundary(room));
            text.push_str("\n[the call prints more than 4 MiB; the rest is left out]\n");
        }
        true
    }

    fn report(&mut self, size: Option<usize>, text: usize) -> bool {
        let fits = size.is_some_and(|size| self.reports > 0 && take(&mut self.bytes, size));
        if fits {
            self.reports -= 1;
        } else {
            self.dropped += 1;
            self.dropped_bytes += size.unwrap_or_default() + text;
        }
        fits
    }

    /// What a call came to, after all that it reported.
    pub(super) fn close(&self, envelope: ToolEnvelope) -> ToolEnvelope {
        let mut cuts = Cuts::default();
        cuts.items("reports", self.dropped, self.dropped_bytes);
        MOST.bounded(envelope, cuts)
    }
}

/// What a call came to that never ran.
pub(super) fn bounded(envelope: impl Into<ToolEnvelope>) -> ToolEnvelope {
    MOST.bounded(envelope.into(), Cuts::default())
}
