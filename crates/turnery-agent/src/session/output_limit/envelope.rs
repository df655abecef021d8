//! Limits the result envelope of a call.

use super::{
    Omissions, OutputLimits,
    json_size::{MAX_DEPTH, json_size},
    prune::prune,
    take_bytes,
};
use serde::Serialize;
use serde_json::Value;
use turnery_engine::{Content, ToolControl, ToolEnvelope, ToolError, ToolErrorKind};

/// Size counted for each text block in addition to its text. Unit: bytes.
const BLOCK_OVERHEAD: usize = 32;
/// Maximum length of a loop id. Unit: bytes.
const MAX_ID_BYTES: usize = 1024;

impl OutputLimits {
    /// Limits an envelope. A note at the end of its result lists what is omitted, in addition to `cuts`. Text
    /// and structured values are truncated; items that would be wrong if truncated (a diff, an image, an
    /// effect) are kept whole or omitted.
    pub(super) fn limit_envelope(
        &self,
        mut envelope: ToolEnvelope,
        mut cuts: Omissions,
    ) -> ToolEnvelope {
        self.limit_control(&mut envelope, &mut cuts);
        match &mut envelope.result {
            Ok(content) => self.limit_content(content, &mut cuts),
            Err(failure) => {
                truncate_middle(&mut failure.message, &mut Some(self.result_text));
                limit_value(&mut failure.details, self.details, "details", &mut cuts);
            }
        }
        limit_value(&mut envelope.value, self.value, "the value", &mut cuts);
        limit_list(
            &mut envelope.artifacts,
            self.artifacts,
            "artifacts",
            &mut cuts,
        );
        limit_list(
            &mut envelope.locations,
            self.locations,
            "locations",
            &mut cuts,
        );
        limit_list(&mut envelope.effects, self.effects, "effects", &mut cuts);
        envelope
            .child_loop_id
            .take_if(|id| id.as_str().len() > MAX_ID_BYTES);
        if let Some(note) = cuts.to_note() {
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

    /// Limits the loop control. A truncated final value would be a different value, so an oversized one fails
    /// the call.
    fn limit_control(&self, envelope: &mut ToolEnvelope, cuts: &mut Omissions) {
        let Some(control) = &mut envelope.control else {
            return;
        };
        let bytes = json_size(control);
        if bytes.is_some_and(|bytes| bytes <= self.control) {
            return;
        }
        match **control {
            // The loop still stops, as the tool requested.
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
                     that nest {MAX_DEPTH} deep",
                    self.control
                );
                envelope.result = Err(ToolError::new(ToolErrorKind::ExecutionError, message));
            }
            Err(_) => cuts.add_items("final value", 1, bytes.unwrap_or_default()),
        }
    }

    fn limit_content(&self, content: &mut Vec<Content>, cuts: &mut Omissions) {
        let mut text_room = Some(self.result_text);
        let mut room = self.images;
        let mut texts = OmittedItems::default();
        let mut others = OmittedItems::default();
        content.retain_mut(|item| match item {
            Content::Text { text } => {
                let fits = truncate_middle(text, &mut text_room);
                texts.record(fits, Some(text.len()))
            }
            Content::Image(_)
            | Content::Audio(_)
            | Content::Document(_)
            | Content::Thinking { .. }
            | Content::ToolCall(_)
            | Content::Opaque { .. } => others.admit(item, &mut room),
        });
        content.shrink_to_fit();
        cuts.add_items("texts", texts.count, texts.bytes);
        cuts.add_items(
            "images, recordings and documents",
            others.count,
            others.bytes,
        );
    }
}

/// Omitted items of a list.
#[derive(Default)]
struct OmittedItems {
    count: usize,
    bytes: usize,
}

impl OmittedItems {
    fn admit(&mut self, item: &impl Serialize, room: &mut usize) -> bool {
        let size = json_size(item);
        let fits = size.is_some_and(|size| take_bytes(room, size + ",".len()));
        self.record(fits, size)
    }

    fn record(&mut self, fits: bool, size: Option<usize>) -> bool {
        if !fits {
            self.count += 1;
            self.bytes += size.unwrap_or_default();
        }
        fits
    }
}

/// Omits the items of a list that do not fit.
fn limit_list<T: Serialize>(items: &mut Vec<T>, mut room: usize, what: &str, cuts: &mut Omissions) {
    let mut left = OmittedItems::default();
    items.retain(|item| left.admit(item, &mut room));
    items.shrink_to_fit();
    cuts.add_items(what, left.count, left.bytes);
}

/// Truncates a structured value to a size.
fn limit_value(value: &mut Option<Value>, most: usize, what: &str, cuts: &mut Omissions) {
    let Some(value) = value else { return };
    let before = json_size(value);
    if before.is_some_and(|before| before <= most) {
        return;
    }
    prune(value, most);
    match (before, json_size(value)) {
        (Some(before), Some(after)) => cuts.add_bytes(what, before - after),
        (..) => cuts
            .0
            .push(format!("what nests too deep or has no room in {what}")),
    }
}

/// Truncates a text in the middle to the remaining room. Returns false if nothing fits.
fn truncate_middle(text: &mut String, room: &mut Option<usize>) -> bool {
    let Some(left) = *room else {
        return false;
    };
    *room = left.checked_sub(text.len() + BLOCK_OVERHEAD);
    if room.is_none() {
        let half = left.saturating_sub(BLOCK_OVERHEAD) / 2;
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
