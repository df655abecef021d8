//! Limits the output of one call. Excess output is cut and a note says so, so that no tool can fill memory,
//! the records or the model's context.

mod envelope;
mod json_size;
mod prune;
#[cfg(test)]
mod tests;

pub(crate) use json_size::json_bytes;

use json_size::json_size;
use turnery_engine::ToolEnvelope;
use turnery_tools::Progress;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// Maximum output of a call, by kind. Unit: bytes; of JSON, except for text.
struct OutputLimits {
    /// Text printed while running.
    output: usize,
    /// Plans and details reported while running, in total.
    report_bytes: usize,
    /// Number of plans, details and progress messages reported while running.
    report_count: usize,
    /// Text of the result or error.
    result_text: usize,
    /// Images, recordings and other content that is not text. An item is kept whole or omitted.
    images: usize,
    artifacts: usize,
    locations: usize,
    effects: usize,
    value: usize,
    details: usize,
    /// Loop control of the result.
    control: usize,
}

/// Default limits: the largest image read from a file takes 7 MiB, and a diff contains a file twice.
const OUTPUT_LIMITS: OutputLimits = OutputLimits {
    output: 4 * MIB,
    report_bytes: 16 * MIB,
    report_count: 4096,
    result_text: 256 * KIB,
    images: 16 * MIB,
    artifacts: 16 * MIB,
    locations: 64 * KIB,
    effects: MIB,
    value: MIB,
    details: MIB,
    control: MIB,
};

/// Takes `bytes` from the remaining room; false if there is not enough.
fn take_bytes(room: &mut usize, bytes: usize) -> bool {
    let left = room.checked_sub(bytes);
    *room = left.unwrap_or(*room);
    left.is_some()
}

/// Omitted output of a call: each kind and its size.
#[derive(Default)]
struct Omissions(Vec<String>);

impl Omissions {
    fn add_items(&mut self, what: &str, count: usize, bytes: usize) {
        if count > 0 {
            self.0.push(format!("{count} {what} ({bytes} bytes)"));
        }
    }

    fn add_bytes(&mut self, what: &str, bytes: usize) {
        self.0.push(format!("{bytes} bytes of {what}"));
    }

    /// Returns the note for the model and the user; `None` if nothing is omitted.
    fn to_note(&self) -> Option<String> {
        let cuts = self.0.join(", ");
        (!cuts.is_empty()).then(|| format!("[more than a call may give; left out: {cuts}]"))
    }
}

/// Remaining output of a running call.
pub(super) struct OutputBudget {
    /// `None` once the user was told that text is omitted.
    text_left: Option<usize>,
    report_bytes_left: usize,
    reports_left: usize,
    dropped: usize,
    dropped_bytes: usize,
}

impl Default for OutputBudget {
    fn default() -> Self {
        Self::with_limits(&OUTPUT_LIMITS)
    }
}

impl OutputBudget {
    fn with_limits(most: &OutputLimits) -> Self {
        Self {
            text_left: Some(most.output),
            report_bytes_left: most.report_bytes,
            reports_left: most.report_count,
            dropped: 0,
            dropped_bytes: 0,
        }
    }

    /// Returns the part of a report to show. A report that is not text is shown whole or not at all; usage
    /// always passes.
    pub(super) fn admit(&mut self, mut report: Progress) -> Option<Progress> {
        let shown = match &mut report {
            Progress::Output(text) => self.admit_text(text),
            Progress::Message(text) => {
                self.admit_report(Some(0), text.len()) && self.admit_text(text)
            }
            Progress::Detail(detail) => self.admit_report(json_size(detail), 0),
            Progress::Plan(entries) => self.admit_report(json_size(entries), 0),
            Progress::ChildUsage(_) => true,
        };
        shown.then_some(report)
    }

    fn admit_text(&mut self, text: &mut String) -> bool {
        let Some(room) = self.text_left.filter(|_| !text.is_empty()) else {
            return false;
        };
        self.text_left = room.checked_sub(text.len());
        if self.text_left.is_none() {
            text.truncate(text.floor_char_boundary(room));
            text.push_str("\n[the call prints more than 4 MiB; the rest is left out]\n");
        }
        true
    }

    fn admit_report(&mut self, size: Option<usize>, text: usize) -> bool {
        let fits = size.is_some_and(|size| {
            self.reports_left > 0 && take_bytes(&mut self.report_bytes_left, size)
        });
        if fits {
            self.reports_left -= 1;
        } else {
            self.dropped += 1;
            self.dropped_bytes += size.unwrap_or_default() + text;
        }
        fits
    }

    /// Limits the result of a call after its reports.
    pub(super) fn limit_envelope(&self, envelope: ToolEnvelope) -> ToolEnvelope {
        let mut cuts = Omissions::default();
        cuts.add_items("reports", self.dropped, self.dropped_bytes);
        OUTPUT_LIMITS.limit_envelope(envelope, cuts)
    }
}

/// Limits the result of a call that never ran.
pub(super) fn limit_envelope(envelope: impl Into<ToolEnvelope>) -> ToolEnvelope {
    OUTPUT_LIMITS.limit_envelope(envelope.into(), Omissions::default())
}
