//! Most: how much one call may say. What is beyond that is cut, and said to be, so that no tool can fill
//! memory, the records or the model's context.

use turnery_engine::{Content, ToolEnvelope};
use turnery_tools::Progress;

/// What a call may print and report while it runs. Unit: bytes.
const SHOWN: usize = 4 * 1024 * 1024;
/// What it may answer. Unit: bytes of text.
const ANSWERED: usize = 256 * 1024;

/// How much more a running call may say; none once a person has been told that something is left out.
pub(super) struct Room(Option<usize>);

impl Default for Room {
    fn default() -> Self {
        Self(Some(SHOWN))
    }
}

impl Room {
    /// What is shown of a report.
    pub(super) fn admit(&mut self, mut report: Progress) -> Option<Progress> {
        let text = match &mut report {
            Progress::Printed(text) | Progress::Says(text) => text,
            Progress::Shows(_) | Progress::Planned(_) | Progress::Spent(_) => return Some(report),
        };
        let room = self.0?;
        self.0 = room.checked_sub(text.len());
        if self.0.is_none() {
            text.truncate(text.floor_char_boundary(room));
            text.push_str("\n[the call prints more than 4 MiB; the rest is left out]\n");
        }
        Some(report)
    }
}

/// What a call came to, with its text cut in the middle if there is too much of it.
pub(super) fn bounded(mut envelope: ToolEnvelope) -> ToolEnvelope {
    let mut room = Some(ANSWERED);
    match &mut envelope.result {
        Ok(content) => content.retain_mut(|item| match item {
            Content::Text { text } => fit(text, &mut room),
            Content::Image(_)
            | Content::Thinking { .. }
            | Content::ToolCall(_)
            | Content::Opaque { .. } => true,
        }),
        Err(failure) => {
            fit(&mut failure.message, &mut room);
        }
    }
    envelope
}

/// Fit a text into what room is left. False if nothing of it fits, which has been said before.
fn fit(text: &mut String, room: &mut Option<usize>) -> bool {
    let Some(left) = *room else {
        return false;
    };
    *room = left.checked_sub(text.len());
    if room.is_none() {
        let head = text.floor_char_boundary(left / 2);
        let tail = text.ceil_char_boundary(text.len() - left / 2);
        let cut = tail - head;
        *text = format!(
            "{}\n[{cut} bytes are left out here, and whatever comes after this text]\n{}",
            &text[..head],
            &text[tail..]
        );
    }
    true
}
