//! The text of an answer as part of an outcome.

use crate::{Content, LlmMessage, Message, message::joined_text};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{fmt, ops::Deref, sync::Arc};

/// Text of an answer. The text of a message that has one text block is not copied: both share the message.
#[derive(Clone)]
pub struct AnswerText(Source);

#[derive(Clone)]
enum Source {
    Own(Arc<str>),
    /// An assistant's message with one text block.
    Message(Arc<LlmMessage>),
}

impl AnswerText {
    /// The text blocks of an assistant's message, joined by newlines; empty if there are none.
    #[must_use]
    pub fn of(message: Arc<LlmMessage>) -> Self {
        let mut texts = content(&message).iter().filter_map(Content::as_text);
        Self(match (texts.next(), texts.next()) {
            (None, _) => Source::Own("".into()),
            (Some(_), None) => Source::Message(message),
            (Some(_), Some(_)) => Source::Own(joined_text(content(&message)).into()),
        })
    }
}

fn content(message: &LlmMessage) -> &[Content] {
    match &message.message {
        Message::Assistant { content, .. } => content,
        Message::System { .. } | Message::User { .. } | Message::ToolResult { .. } => &[],
    }
}

impl Deref for AnswerText {
    type Target = str;

    fn deref(&self) -> &str {
        match &self.0 {
            Source::Own(text) => text,
            Source::Message(message) => {
                let mut texts = content(message).iter().filter_map(Content::as_text);
                texts.next().unwrap_or_default()
            }
        }
    }
}

impl From<&str> for AnswerText {
    fn from(text: &str) -> Self {
        Self(Source::Own(text.into()))
    }
}

impl From<String> for AnswerText {
    fn from(text: String) -> Self {
        Self(Source::Own(text.into()))
    }
}

impl fmt::Display for AnswerText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for AnswerText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl PartialEq for AnswerText {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for AnswerText {}

impl Serialize for AnswerText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for AnswerText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Arc::deserialize(deserializer)?;
        Ok(Self(Source::Own(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MessageStop;

    fn message(texts: &[&str]) -> Arc<LlmMessage> {
        Arc::new(LlmMessage {
            message_id: "m".into(),
            turn_id: None,
            message: Message::Assistant {
                content: texts.iter().copied().map(Content::text).collect(),
                stop: MessageStop::Stop,
                model: "m".to_owned(),
                provider: "p".to_owned(),
                usage: None,
                error: None,
            },
        })
    }

    #[test]
    fn one_text_block_is_shared() {
        let long = message(&["long"]);
        let text = AnswerText::of(Arc::clone(&long));
        let Content::Text { text: held } = &content(&long)[0] else {
            unreachable!("a text");
        };
        assert!(std::ptr::eq(text.as_ptr(), held.as_ptr()));
        let json = serde_json::to_string(&text).unwrap();
        assert_eq!(json, "\"long\"");
        assert_eq!(serde_json::from_str::<AnswerText>(&json).unwrap(), text);
    }

    #[test]
    fn other_answers_are_joined() {
        assert_eq!(&*AnswerText::of(message(&[])), "");
        assert_eq!(&*AnswerText::of(message(&["a", "", "b"])), "a\n\nb");
    }
}
