//! Judge: a model that chooses between answers. Its call is no loop: it is traced under its own purpose
//! and is in no turn's usage (I10).

use std::{fmt::Write as _, sync::Arc};
use turnery_engine::{Content, LlmMessage, LoopRecord, Message, Outcome, SessionId, render};
use turnery_models::{ModelRequest, Thinking};

/// What the judge is told to do.
const INSTRUCTIONS: &str = include_str!("instructions.md");
/// How much is shown of what was said before; the latest is. Unit: characters.
const EARLIER: usize = 16_000;

/// What a judge is shown, and nothing else: no tool call, no model's name (UP-17).
pub(crate) struct Case<'a> {
    pub(crate) session_id: SessionId,
    pub(crate) earlier: &'a [Arc<LlmMessage>],
    pub(crate) input: &'a [Content],
    pub(crate) answers: Vec<String>,
}

impl Case<'_> {
    pub(crate) fn request(&self) -> ModelRequest {
        let mut text = String::new();
        let earlier = earlier(self.earlier);
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
        ModelRequest::question(session_id, INSTRUCTIONS, "judge", text, Thinking::Default)
    }
}

/// The text of the conversation, as much of its end as there is room for.
fn earlier(messages: &[Arc<LlmMessage>]) -> String {
    let mut lines = Vec::new();
    let mut room = EARLIER;
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

/// The final answer of a loop: its value, if it ended with one, else the model's last words.
pub(crate) fn answer_of(record: &LoopRecord) -> String {
    if let Some(value) = record.outcome.as_ref().and_then(Outcome::value) {
        return render(value);
    }
    let answers = record.messages.iter().rev();
    let mut answers = answers.filter_map(|message| match &message.message {
        Message::Assistant { .. } => Some(message.message.text()),
        Message::System { .. } | Message::User { .. } | Message::ToolResult { .. } => None,
    });
    answers.next().unwrap_or_default()
}
