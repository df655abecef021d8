//! Text of a model response, shared with its message where possible.

use crate::{Content, LlmMessage, Message, message::join_text};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{fmt, ops::Deref, sync::Arc};

/// Text of a model response. If the message has exactly one text block, the text is shared with it, not
/// copied.
#[derive(Clone)]
pub struct ResponseText(ResponseTextRepr);

#[derive(Clone)]
enum ResponseTextRepr {
    Owned(Arc<str>),
    /// Assistant message with one text block.
    Message(Arc<LlmMessage>),
}

impl ResponseText {
    /// Joins the text blocks of an assistant message with newlines; empty if there are none.
    #[must_use]
    pub fn from_message(message: Arc<LlmMessage>) -> Self {
        let mut texts = assistant_content(&message)
            .iter()
            .filter_map(Content::as_text);
        Self(match (texts.next(), texts.next()) {
            (None, _) => ResponseTextRepr::Owned("".into()),
            (Some(_), None) => ResponseTextRepr::Message(message),
            (Some(_), Some(_)) => {
                ResponseTextRepr::Owned(join_text(assistant_content(&message)).into())
            }
        })
    }
}

fn assistant_content(message: &LlmMessage) -> &[Content] {
    match &message.message {
        Message::Assistant { content, .. } => content,
        Message::System { .. } | Message::User { .. } | Message::ToolResult { .. } => &[],
    }
}

impl Deref for ResponseText {
    type Target = str;

    fn deref(&self) -> &str {
        match &self.0 {
            ResponseTextRepr::Owned(text) => text,
            ResponseTextRepr::Message(message) => {
                let mut texts = assistant_content(message)
                    .iter()
                    .filter_map(Content::as_text);
                texts.next().unwrap_or_default()
            }
        }
    }
}

impl From<&str> for ResponseText {
    fn from(text: &str) -> Self {
        Self(ResponseTextRepr::Owned(text.into()))
    }
}

impl From<String> for ResponseText {
    fn from(text: String) -> Self {
        Self(ResponseTextRepr::Owned(text.into()))
    }
}

impl fmt::Display for ResponseText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for ResponseText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl PartialEq for ResponseText {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for ResponseText {}

impl Serialize for ResponseText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for ResponseText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Arc::deserialize(deserializer)?;
        Ok(Self(ResponseTextRepr::Owned(text)))
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
                request: None,
            },
        })
    }

    #[test]
    fn one_text_block_is_shared() {
        let long = message(&["long"]);
        let text = ResponseText::from_message(Arc::clone(&long));
        let Content::Text { text: held } = &assistant_content(&long)[0] else {
            unreachable!("a text");
        };
        assert!(std::ptr::eq(text.as_ptr(), held.as_ptr()));
        let json = serde_json::to_string(&text).unwrap();
        assert_eq!(json, "\"long\"");
        assert_eq!(serde_json::from_str::<ResponseText>(&json).unwrap(), text);
    }

    #[test]
    fn multiple_text_blocks_are_joined() {
        assert_eq!(&*ResponseText::from_message(message(&[])), "");
        assert_eq!(
            &*ResponseText::from_message(message(&["a", "", "b"])),
            "a\n\nb"
        );
    }
}
