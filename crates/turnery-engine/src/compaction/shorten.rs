//! Shortens tool output to its beginning and end.

use crate::{Content, LlmMessage, Message, message::join_text};
use std::sync::Arc;

/// Note in place of omitted lines.
const OMITTED_LINES_NOTE: &str =
    "[… left out here to make room; use the tool again if what is missing matters …]";
/// Note in place of an omitted image.
const OMITTED_IMAGE_NOTE: &str = "[a picture was left out here to make room]";
/// Note in place of an omitted audio block.
const OMITTED_AUDIO_NOTE: &str = "[a recording was left out here to make room]";
/// Note in place of an omitted document.
const OMITTED_DOCUMENT_NOTE: &str = "[a document was left out here to make room]";
/// Maximum length of a kept line. Unit: bytes.
const MAX_LINE_BYTES: usize = 1_000;

/// Limit of tool output to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OutputLimit {
    /// Number of lines, including the note.
    pub(super) lines: usize,
    /// True if images, audio and documents are kept.
    pub(super) media: bool,
}

/// Returns the shortened form of a tool result; `None` for short results and other messages.
pub(super) fn shorten_tool_result(
    message: &LlmMessage,
    limit: OutputLimit,
) -> Option<Arc<LlmMessage>> {
    let Message::ToolResult {
        call_id,
        tool_name,
        content,
        is_error,
    } = &message.message
    else {
        return None;
    };
    Some(Arc::new(LlmMessage {
        message_id: message.message_id.clone(),
        turn_id: message.turn_id.clone(),
        message: Message::ToolResult {
            call_id: call_id.clone(),
            tool_name: tool_name.clone(),
            content: shorten_content(content, limit)?,
            is_error: *is_error,
        },
    }))
}

fn shorten_content(content: &[Content], limit: OutputLimit) -> Option<Vec<Content>> {
    let is_image = |item: &&Content| matches!(item, Content::Image(_));
    let is_audio = |item: &&Content| matches!(item, Content::Audio(_));
    let is_document = |item: &&Content| matches!(item, Content::Document(_));
    let media = content
        .iter()
        .filter(|item| is_image(item) || is_audio(item) || is_document(item));
    let omits_media = !limit.media && media.clone().next().is_some();
    let text = join_text(content);
    let short = (!is_within_lines(&text, limit.lines)).then(|| truncate_middle(&text, limit.lines));
    // Omitted short lines may be smaller than the note that replaces them.
    let short = short.filter(|short| short.len() < text.len());
    if short.is_none() && !omits_media {
        return None;
    }
    let mut kept = Vec::new();
    if !text.is_empty() {
        kept.push(Content::text(short.unwrap_or(text)));
    }
    if omits_media {
        let has_image = media.clone().any(|item| is_image(&item));
        let has_audio = media.clone().any(|item| is_audio(&item));
        let has_document = media.clone().any(|item| is_document(&item));
        kept.extend(has_image.then(|| Content::text(OMITTED_IMAGE_NOTE)));
        kept.extend(has_audio.then(|| Content::text(OMITTED_AUDIO_NOTE)));
        kept.extend(has_document.then(|| Content::text(OMITTED_DOCUMENT_NOTE)));
    } else {
        kept.extend(media.cloned());
    }
    Some(kept)
}

fn is_within_lines(text: &str, lines: usize) -> bool {
    text.lines().nth(lines).is_none() && text.lines().all(|line| line.len() <= MAX_LINE_BYTES)
}

/// Returns the first and last lines of a text, `lines` in total including the note between them. Overlong
/// lines are truncated.
#[must_use]
pub fn truncate_middle(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    let mut kept = String::new();
    let mut keep = |line: &str| {
        if !kept.is_empty() {
            kept.push('\n');
        }
        let short = &line[..line.floor_char_boundary(MAX_LINE_BYTES - "…".len())];
        match line.len() <= MAX_LINE_BYTES {
            true => kept.push_str(line),
            false => kept.extend([short, "…"]),
        }
    };
    if all.len() <= lines {
        all.into_iter().for_each(keep);
        return kept;
    }
    let tail = lines.saturating_sub(1) / 2;
    let head = lines.saturating_sub(1) - tail;
    all[..head].iter().for_each(|line| keep(line));
    keep(OMITTED_LINES_NOTE);
    all[all.len() - tail..].iter().for_each(|line| keep(line));
    kept
}
