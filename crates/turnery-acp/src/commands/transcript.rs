//! Stores a command and its answer so that they reappear when the session is loaded (LOAD-1). They are not
//! part of the conversation: no model sees them.

use turnery_agent::Session;
use turnery_engine::{Content, LlmMessage, Message, MessageId};
use turnery_store::TranscriptNote;

/// User's message that contained a command, to be stored together with the answer.
pub(crate) struct CommandTranscript {
    prompt: TranscriptNote,
}

impl CommandTranscript {
    /// Creates the transcript of a command; `id` is the id of its message.
    pub(crate) fn new(id: &str, content: Vec<Content>) -> Self {
        Self {
            prompt: transcript_note(id, Message::User { content }),
        }
    }

    /// Stores the command and its answer, whose message id is `id`. Errors are not reported: the user has the
    /// answer.
    pub(crate) async fn record_answer(self, id: &str, text: &str, session: &Session) {
        let notes = vec![self.prompt, transcript_note(id, Message::from_agent(text))];
        if let Err(error) = session.add_notes(notes).await {
            tracing::warn!("a command and its answer could not be stored: {error}");
        }
    }
}

/// Returns an id for a message of a command, unique across connections (MSG-2).
pub(crate) fn new_message_id(session: &Session) -> String {
    format!("{}.command.{}", session.id(), turnery_store::new_uuid())
}

fn transcript_note(id: &str, message: Message) -> TranscriptNote {
    TranscriptNote {
        at: turnery_store::now(),
        message: LlmMessage {
            message_id: MessageId::from(id),
            turn_id: None,
            message,
        },
    }
}
