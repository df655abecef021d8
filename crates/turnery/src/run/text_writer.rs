//! Writes the model's text to stdout as it streams, and the value that a prompt may end with. Every message
//! ends with a newline.

use crate::terminal_text::replace_control_chars;
use std::io::{self, Write};
use turnery_agent::view::{ChunkAuthor, ViewChange};
use turnery_engine::MessageId;

/// Writes the model's text.
#[derive(Debug)]
pub(crate) struct TextWriter {
    is_terminal: bool,
    open_message: Option<OpenMessage>,
}

/// Message being streamed.
#[derive(Debug)]
struct OpenMessage {
    id: MessageId,
    /// Block of the last fragment.
    block: u32,
    /// True if the last fragment ended with a newline.
    ends_with_newline: bool,
}

impl TextWriter {
    /// Creates a writer. For a terminal, control characters are replaced with U+FFFD; a file or pipe gets the
    /// text unchanged.
    pub(crate) fn new(is_terminal: bool) -> Self {
        Self {
            is_terminal,
            open_message: None,
        }
    }

    /// Writes the text of a change.
    pub(crate) fn write_change(
        &mut self,
        change: &ViewChange<'_>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        match change {
            ViewChange::Text {
                author: ChunkAuthor::Agent,
                message_id,
                block,
                text,
            } => {
                match &self.open_message {
                    Some(open) if open.id == **message_id => {
                        // Blocks are separated by a newline, as in the complete message.
                        if open.block != *block && !open.ends_with_newline {
                            out.write_all(b"\n")?;
                        }
                    }
                    _ => self.end_line(out)?,
                }
                self.write_text(text, out)?;
                self.open_message = Some(OpenMessage {
                    id: (*message_id).clone(),
                    block: *block,
                    ends_with_newline: text.ends_with('\n'),
                });
                Ok(())
            }
            ViewChange::Message { message, .. } => {
                let open = self.open_message.as_ref();
                let streamed = open.is_some_and(|open| open.id == message.message_id);
                if let (false, Some(text)) =
                    (streamed, super::output_thread::assistant_text(message))
                {
                    self.end_line(out)?;
                    self.write_text(&text, out)?;
                    self.open_message = Some(OpenMessage {
                        id: message.message_id.clone(),
                        block: 0,
                        ends_with_newline: text.ends_with('\n'),
                    });
                }
                self.end_line(out)
            }
            // The value that ends a loop (LASH-68).
            ViewChange::Value { text, .. } => {
                self.end_line(out)?;
                self.write_text(text, out)?;
                match text.ends_with('\n') {
                    true => Ok(()),
                    false => out.write_all(b"\n"),
                }
            }
            ViewChange::LoopEnded(_) => self.end_line(out),
            ViewChange::LoopStarted
            | ViewChange::Lineage(_)
            | ViewChange::Text {
                author: ChunkAuthor::User | ChunkAuthor::Thought,
                ..
            }
            | ViewChange::CallRequested(_)
            | ViewChange::CallChanged { .. }
            | ViewChange::CallStarted(_)
            | ViewChange::CallPrinted { .. }
            | ViewChange::CallProgressed(_)
            | ViewChange::CallDelegated { .. }
            | ViewChange::CallEnded { .. }
            | ViewChange::CallStored { .. }
            | ViewChange::QuestionAsked
            | ViewChange::QuestionAnswered
            | ViewChange::Plan { .. }
            | ViewChange::Usage(_)
            | ViewChange::CompactionStarted { .. }
            | ViewChange::CompactionEnded { .. }
            | ViewChange::Notice(_)
            | ViewChange::SessionInfo { .. }
            | ViewChange::PromptEnded(_) => Ok(()),
        }
    }

    fn write_text(&self, text: &str, out: &mut impl Write) -> io::Result<()> {
        match self.is_terminal {
            true => out.write_all(replace_control_chars(text).as_bytes()),
            false => out.write_all(text.as_bytes()),
        }
    }

    fn end_line(&mut self, out: &mut impl Write) -> io::Result<()> {
        match self.open_message.take() {
            Some(open) if !open.ends_with_newline => out.write_all(b"\n"),
            Some(_) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::output_thread::show_events;
    use serde_json::Value;
    use std::sync::Arc;
    use turnery_engine::{
        Content, EventKind, LlmMessage, Message, MessageStop, ModelDelta, Outcome, TurnFinish,
        TurnStop, Usage,
    };

    fn delta(message: &str, block: u32, text: &str) -> EventKind {
        EventKind::Delta {
            message_id: message.into(),
            delta: ModelDelta::Text {
                block,
                text: text.to_owned(),
            },
        }
    }

    fn end(message: &str, text: &str) -> EventKind {
        EventKind::MessageEnd {
            message: Arc::new(LlmMessage {
                message_id: message.into(),
                turn_id: None,
                message: Message::Assistant {
                    content: vec![Content::text(text)],
                    stop: MessageStop::Stop,
                    model: String::new(),
                    provider: String::new(),
                    usage: None,
                    error: None,
                    request: None,
                },
            }),
        }
    }

    fn written(events: &[EventKind], is_terminal: bool) -> String {
        let mut text = TextWriter::new(is_terminal);
        let mut out = Vec::new();
        show_events(events.to_vec(), |change| {
            text.write_change(change, &mut out).unwrap();
        });
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_message_ends_with_one_newline() {
        assert_eq!(
            written(
                &[
                    delta("m1", 0, "Hel"),
                    delta("m1", 0, "lo"),
                    delta("m1", 2, "again"),
                    end("m1", "Hello\nagain"),
                    delta("m2", 0, "bye\n"),
                    end("m2", "bye\n"),
                    end("m3", "never streamed"),
                ],
                false
            ),
            "Hello\nagain\nbye\nnever streamed\n"
        );
    }

    // proves: LASH-68
    #[test]
    fn final_value_is_written_once() {
        let value = || serde_json::json!({"n": 1});
        let ended = |outcome| EventKind::LoopEnd {
            outcome,
            usage: Usage::default(),
            rejection: None,
        };
        let told = EventKind::FinalValue { value: value() };
        let finish = ended(Outcome::Finished(
            TurnFinish::FinalValue { value: value() },
            None,
        ));
        let text = "{\n  \"n\": 1\n}\n";
        assert_eq!(written(&[told, finish.clone()], false), text);
        assert_eq!(written(&[finish], false), text);
        let error = |value| ended(Outcome::Stopped(TurnStop::SubmittedError { value }));
        assert_eq!(written(&[error("no\n".into())], false), "no\n");
        assert_eq!(written(&[error(Value::Null)], false), "");
    }

    #[test]
    fn control_characters_are_replaced_on_terminal_only() {
        let events = [delta("m1", 0, "\x1b[2Jx"), end("m1", "\x1b[2Jx")];
        assert_eq!(written(&events, true), "\u{fffd}[2Jx\n");
        assert_eq!(written(&events, false), "\x1b[2Jx\n");
    }
}
