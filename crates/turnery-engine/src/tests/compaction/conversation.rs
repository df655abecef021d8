//! Builds conversations for tests of compaction and context.

use crate::{CallId, Content, LlmMessage, Message, MessageStop, ToolCall, TurnId};
use serde_json::json;
use std::sync::Arc;

fn message(loop_id: &str, turn: u32, n: usize, message: Message) -> Arc<LlmMessage> {
    Arc::new(LlmMessage {
        message_id: format!("{loop_id}.m{n}").into(),
        turn_id: Some(TurnId {
            loop_id: loop_id.into(),
            turn_index: turn,
        }),
        message,
    })
}

/// Builder of the conversation of one loop.
pub(crate) struct ConversationBuilder {
    loop_id: String,
    turn: u32,
    pub(crate) messages: Vec<Arc<LlmMessage>>,
}

impl ConversationBuilder {
    pub(crate) fn new(loop_id: impl Into<String>) -> Self {
        Self {
            loop_id: loop_id.into(),
            turn: 0,
            messages: Vec::new(),
        }
    }

    fn add(&mut self, content: Message) {
        let n = self.messages.len();
        self.messages
            .push(message(&self.loop_id, self.turn, n, content));
    }

    /// Adds a user message, which starts a turn.
    pub(crate) fn user(mut self, text: impl Into<String>) -> Self {
        self.add(Message::user(text));
        self
    }

    /// Adds a response that calls a tool for each of `outputs`, and the results; ends the turn.
    pub(crate) fn answer(mut self, text: &str, outputs: &[&str]) -> Self {
        let ids: Vec<CallId> = (0..outputs.len())
            .map(|place| format!("{}.{}.{place}", self.loop_id, self.turn).into())
            .collect();
        let mut content = vec![Content::text(text)];
        content.extend(
            ids.iter().map(|call_id| {
                Content::ToolCall(ToolCall::new(call_id.clone(), "look", json!({})))
            }),
        );
        self.add(Message::Assistant {
            content,
            stop: MessageStop::Stop,
            model: "m".to_owned(),
            provider: "p".to_owned(),
            usage: None,
            error: None,
            request: None,
        });
        for (call_id, output) in ids.into_iter().zip(outputs) {
            self.add(Message::ToolResult {
                call_id,
                tool_name: "look".to_owned(),
                content: vec![Content::text(*output)],
                is_error: false,
            });
        }
        self.turn += 1;
        self
    }
}

/// Returns the first word of each message.
pub(crate) fn first_words(messages: &[Arc<LlmMessage>]) -> Vec<String> {
    let first = |message: &Arc<LlmMessage>| {
        let text = message.message.text();
        text.split_whitespace().next().unwrap_or("").to_owned()
    };
    messages.iter().map(first).collect()
}

/// Returns a text of `words` words, the first of which is `word`.
pub(crate) fn long_text(word: &str, words: usize) -> String {
    format!("{word}{}", " more".repeat(words))
}

/// Returns `count` lines: `word 1`, `word 2` and so on.
pub(crate) fn numbered_lines(word: &str, count: usize) -> String {
    let all: Vec<String> = (1..=count).map(|n| format!("{word} {n}")).collect();
    all.join("\n")
}
