//! Aside: what a command said and was told, kept so that it is there again when the session is loaded
//! (LOAD-1). It lies beside the conversation: no model gets to see it.

use turnery_agent::Session;
use turnery_engine::{Content, LlmMessage, Message, MessageId};
use turnery_store::Remark;

/// A command that was typed, with what came with it.
pub(crate) struct Aside {
    asked: Remark,
}

impl Aside {
    /// Typed just now. `id` is that of its message.
    pub(crate) fn typed(id: &str, content: Vec<Content>) -> Self {
        Self {
            asked: remark(id, Message::User { content }),
        }
    }

    /// Answered just now, in a message of that id: both are kept. Nobody is told when that fails: they have
    /// their answer.
    pub(crate) async fn answered(self, id: &str, text: &str, session: &Session) {
        let said = vec![self.asked, remark(id, Message::of_agent(text))];
        if let Err(error) = session.remark(said).await {
            tracing::warn!("a command and its answer could not be kept: {error}");
        }
    }
}

/// The id of a message of a command: no other has it, on this connection or any other (MSG-2).
pub(crate) fn message_id(session: &Session) -> String {
    format!("{}.command.{}", session.id(), turnery_store::new_uuid())
}

fn remark(id: &str, message: Message) -> Remark {
    Remark {
        at: turnery_store::now(),
        message: LlmMessage {
            message_id: MessageId::from(id),
            turn_id: None,
            message,
        },
    }
}
