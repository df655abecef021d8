//! Envelope: what a call came to, cut to what it may give.

use super::{
    Cuts, Most,
    prune::prune,
    size::{DEEPEST, size},
    take,
};
use serde::Serialize;
use serde_json::Value;
use turnery_engine::{Content, FailureKind, ToolControl, ToolEnvelope, ToolFailure};

/// What a block of text counts for beside its text. Unit: bytes.
const BLOCK: usize = 32;
/// The longest id of a loop. Unit: bytes.
const LONGEST_ID: usize = 1024;

impl Most {
    /// What is kept of an envelope. A note at the end of its result says what is not, on top of `cuts`.
    /// Text and structured values are cut; whatever would be false or no longer itself if it were cut
    /// (a diff, an image, an effect) is there or is left out.
    pub(super) fn bounded(&self, mut envelope: ToolEnvelope, mut cuts: Cuts) -> ToolEnvelope {
        self.decide(&mut envelope, &mut cuts);
        match &mut envelope.result {
            Ok(content) => self.answer(content, &mut cuts),
            Err(failure) => {
                fit(&mut failure.message, &mut Some(self.answered));
                shorten(&mut failure.details, self.details, "details", &mut cuts);
            }
        }
        shorten(&mut envelope.value, self.value, "the value", &mut cuts);
        keep(
            &mut envelope.artifacts,
            self.artifacts,
            "artifacts",
            &mut cuts,
        );
        keep(
            &mut envelope.locations,
            self.locations,
            "locations",
            &mut cuts,
        );
        keep(&mut envelope.effects, self.effects, "effects", &mut cuts);
        envelope
            .child_loop_id
            .take_if(|id| id.as_str().len() > LONGEST_ID);
        if let Some(note) = cuts.note() {
            match &mut envelope.result {
                Ok(content) => content.push(Content::text(note)),
                Err(failure) => {
                    failure.message.push('\n');
                    failure.message.push_str(&note);
                }
            }
        }
        envelope
    }

    /// Half of a final value is another value: too large a one makes the call a failed one.
    fn decide(&self, envelope: &mut ToolEnvelope, cuts: &mut Cuts) {
        let Some(control) = &mut envelope.control else {
            return;
        };
        let bytes = size(control);
        if bytes.is_some_and(|bytes| bytes <= self.control) {
            return;
        }
        match **control {
            // Then the loop stops all the same, as the tool wants.
            ToolControl::FailWith(_) => **control = ToolControl::Fail,
            ToolControl::Fail
            | ToolControl::Finish(_)
            | ToolControl::Submit(_)
            | ToolControl::SubmitError(_)
            | ToolControl::SwitchFrame { .. } => envelope.control = None,
        }
        match &envelope.result {
            Ok(_) => {
                let found = match bytes {
                    Some(bytes) => format!("takes {bytes} bytes"),
                    None => "nests too deep".to_owned(),
                };
                let message = format!(
                    "what this call ends the loop with {found}, so the loop goes on: give at most {} bytes \
                     that nest {DEEPEST} deep",
                    self.control
                );
                envelope.result = Err(ToolFailure {
                    kind: FailureKind::ExecutionError,
                    message,
                    details: None,
                });
            }
            Err(_) => cuts.items("final value", 1, bytes.unwrap_or_default()),
        }
    }

    fn answer(&self, content: &mut Vec<Content>, cuts: &mut Cuts) {
        let mut text_room = Some(self.answered);
        let mut room = self.images;
        let mut texts = Left::default();
        let mut others = Left::default();
        content.retain_mut(|item| match item {
            Content::Text { text } => {
                let fits = fit(text, &mut text_room);
                texts.note(fits, Some(text.len()))
            }
            Content::Image(_)
            | Content::Audio(_)
            | Content::Thinking { .. }
            | Content::ToolCall(_)
            | Content::Opaque { .. } => others.admit(item, &mut room),
        });
        content.shrink_to_fit();
        cuts.items("texts", texts.count, texts.bytes);
        cuts.items("images and recordings", others.count, others.bytes);
    }
}

/// What is left out of a list.
#[derive(Default)]
struct Left {
    count: usize,
    bytes: usize,
}

impl Left {
    fn admit(&mut self, item: &impl Serialize, room: &mut usize) -> bool {
        let size = size(item);
        let fits = size.is_some_and(|size| take(room, size + ",".len()));
        self.note(fits, size)
    }

    fn note(&mut self, fits: bool, size: Option<usize>) -> bool {
        if !fits {
            self.count += 1;
            self.bytes += size.unwrap_or_default();
        }
        fits
    }
}

/// Leave out of a list what does not fit.
fn keep<T: Serialize>(items: &mut Vec<T>, mut room: usize, what: &str, cuts: &mut Cuts) {
    let mut left = Left::default();
    items.retain(|item| left.admit(item, &mut room));
    items.shrink_to_fit();
    cuts.items(what, left.count, left.bytes);
}

/// Cut a structured value to a size.
fn shorten(value: &mut Option<Value>, most: usize, what: &str, cuts: &mut Cuts) {
    let Some(value) = value else { return };
    let before = size(value);
    if before.is_some_and(|before| before <= most) {
        return;
    }
    prune(value, most);
    match (before, size(value)) {
        (Some(before), Some(after)) => cuts.bytes(what, before - after),
        (..) => cuts
            .0
            .push(format!("what nests too deep or has no room in {what}")),
    }
}

/// Cut a text in the middle to what room is left. False if nothing of it fits.
fn fit(text: &mut String, room: &mut Option<usize>) -> bool {
    let Some(left) = *room else {
        return false;
    };
    *room = left.checked_sub(text.len() + BLOCK);
    if room.is_none() {
        let half = left.saturating_sub(BLOCK) / 2;
        let head = text.floor_char_boundary(half);
        let tail = text.ceil_char_boundary(text.len() - half);
        *text = format!(
            "{}\n[{} bytes are left out here]\n{}",
            &text[..head],
            tail - head,
            &text[tail..]
        );
    }
    true
}
