//! Builds the request to a judge model. The call is no loop: it is traced under its own purpose and is in no
//! turn's usage (I10).

use std::{fmt::Write as _, sync::Arc};
use turnery_engine::{Content, LlmMessage, LoopRecord, Message, Outcome, SessionId, render_value};
use turnery_models::{ModelRequest, Thinking};

/// System prompt of the judge.
const INSTRUCTIONS: &str = include_str!("instructions.md");
/// Maximum length of the conversation shown, from its end. Unit: characters.
const MAX_EARLIER_CHARS: usize = 16_000;

/// Input of a judge. Excludes tool calls and model names (UP-17).
pub(crate) struct JudgeInput<'a> {
    pub(crate) session_id: SessionId,
    pub(crate) earlier: &'a [Arc<LlmMessage>],
    pub(crate) input: &'a [Content],
    pub(crate) answers: Vec<String>,
}

impl JudgeInput<'_> {
    pub(crate) fn to_request(&self) -> ModelRequest {
        let mut text = String::new();
        let earlier = render_earlier(self.earlier);
        if !earlier.is_empty() {
            let _ = write!(text, "<earlier>\n{earlier}</earlier>\n\n");
        }
        let input: Vec<&str> = self.input.iter().filter_map(Content::as_text).collect();
        let _ = write!(text, "<request>\n{}\n</request>\n", input.join("\n"));
        for (answer, number) in self.answers.iter().zip(1..) {
            let _ = write!(
                text,
                "\n<answer number=\"{number}\">\n{answer}\n</answer>\n"
            );
        }
        let count = self.answers.len();
        let _ = write!(text, "\nWhich answer is best? Reply with 1 to {count}.");
        let session_id = self.session_id.clone();
        ModelRequest::single_question(session_id, INSTRUCTIONS, "judge", text, Thinking::Default)
    }
}

/// Renders the end of the conversation, up to the limit.
fn render_earlier(messages: &[Arc<LlmMessage>]) -> String {
    let mut lines = Vec::new();
    let mut room = MAX_EARLIER_CHARS;
    for message in messages.iter().rev() {
        let who = match &message.message {
            Message::User { .. } => "user",
            Message::Assistant { .. } => "assistant",
            Message::System { .. } | Message::ToolResult { .. } => continue,
        };
        let text = message.message.text();
        let length = text.chars().count();
        if length > room {
            break;
        }
        room -= length;
        if !text.is_empty() {
            lines.push(format!("{who}: {text}\n"));
        }
    }
    lines.reverse();
    lines.concat()
}

/// Returns the final answer of a loop: its final value, or else the text of the last model message.
pub(crate) fn final_answer(record: &LoopRecord) -> String {
    if let Some(value) = record.outcome.as_ref().and_then(Outcome::value) {
        return render_value(value);
    }
    let answers = record.messages.iter().rev();
    let mut answers = answers.filter_map(|message| match &message.message {
        Message::Assistant { .. } => Some(message.message.text()),
        Message::System { .. } | Message::User { .. } | Message::ToolResult { .. } => None,
    });
    answers.next().unwrap_or_default()
}
