//! Shorten: the output of a tool, cut down to its beginning and its end.

use crate::{Content, LlmMessage, Message, message::joined_text};
use std::sync::Arc;

/// Stands where lines were left out.
const NOTE: &str =
    "[… left out here to make room; use the tool again if what is missing matters …]";
/// Stands where a picture was left out.
const NO_IMAGE: &str = "[a picture was left out here to make room]";
/// Stands where a recording was left out.
const NO_AUDIO: &str = "[a recording was left out here to make room]";
/// No kept line is longer. Unit: bytes.
const LINE: usize = 1_000;

/// How much of a tool's output stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    /// Lines, the note among them.
    pub(super) lines: usize,
    /// Whether pictures and recordings stay.
    pub(super) media: bool,
}

/// The shortened form of a tool's result; `None` for one that is short enough, and for other messages.
pub(super) fn shortened(message: &LlmMessage, extent: Extent) -> Option<Arc<LlmMessage>> {
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
            content: content_within(content, extent)?,
            is_error: *is_error,
        },
    }))
}

fn content_within(content: &[Content], extent: Extent) -> Option<Vec<Content>> {
    let is_image = |item: &&Content| matches!(item, Content::Image(_));
    let is_audio = |item: &&Content| matches!(item, Content::Audio(_));
    let media = content
        .iter()
        .filter(|item| is_image(item) || is_audio(item));
    let too_many = !extent.media && media.clone().next().is_some();
    let text = joined_text(content);
    let short = (!fits(&text, extent.lines)).then(|| ends(&text, extent.lines));
    // Of short lines, those left out may be less than the note that says so.
    let short = short.filter(|short| short.len() < text.len());
    if short.is_none() && !too_many {
        return None;
    }
    let mut kept = Vec::new();
    if !text.is_empty() {
        kept.push(Content::text(short.unwrap_or(text)));
    }
    if too_many {
        let has_image = media.clone().any(|item| is_image(&item));
        let has_audio = media.clone().any(|item| is_audio(&item));
        kept.extend(has_image.then(|| Content::text(NO_IMAGE)));
        kept.extend(has_audio.then(|| Content::text(NO_AUDIO)));
    } else {
        kept.extend(media.cloned());
    }
    Some(kept)
}

fn fits(text: &str, lines: usize) -> bool {
    text.lines().nth(lines).is_none() && text.lines().all(|line| line.len() <= LINE)
}

/// The first and the last lines of a text, `lines` in all with the note between them, each of them cut
/// if it is endless.
#[must_use]
pub fn ends(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    let mut kept = String::new();
    let mut keep = |line: &str| {
        if !kept.is_empty() {
            kept.push('\n');
        }
        let short = &line[..line.floor_char_boundary(LINE - "…".len())];
        match line.len() <= LINE {
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
    keep(NOTE);
    all[all.len() - tail..].iter().for_each(|line| keep(line));
    kept
}
