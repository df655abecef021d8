//! Tells the user and the model about damage to a session.

use std::fmt::Write;
use turnery_engine::{LlmMessage, Message, SessionId};
use turnery_store::{Damage, DamagedPart};

/// Maximum number of problems listed; the rest is counted.
const MAX_LISTED: usize = 20;

/// Builds the message at the end of a replay. Not part of the model's context.
pub(super) fn replay_message(id: &SessionId, damage: &[Damage]) -> LlmMessage {
    let mut text =
        "⚠ Part of this session is damaged. What can be read is shown above.\n".to_owned();
    for problem in damage.iter().take(MAX_LISTED) {
        let _ = write!(text, "\n- {problem}");
    }
    if damage.len() > MAX_LISTED {
        let _ = write!(text, "\n- and {} more", damage.len() - MAX_LISTED);
    }
    let _ = write!(
        text,
        "\n\n`turnery sessions check {id}` looks for more; `turnery sessions repair {id}` mends the \
         session and keeps a copy of it as it is."
    );
    LlmMessage {
        message_id: format!("{id}.damage").into(),
        turn_id: None,
        message: Message::from_agent(text),
    }
}

/// Adds a warning about damaged history to the system prompt; `None` if nothing that the model sees is
/// damaged.
pub(super) fn system_prompt_with_warning(system: &str, damage: &[Damage]) -> Option<String> {
    let is_note = |it: &&Damage| matches!(it.part, DamagedPart::Note { .. });
    let count = damage.len() - damage.iter().filter(is_note).count();
    if count == 0 {
        return None;
    }
    Some(format!(
        "{system}\n\nThe stored history of this session is damaged in {count} place(s). Messages, tool calls \
         and their results may be missing from it or changed. Before you rely on earlier work, check it \
         again in the files themselves, and tell the user what you are unsure of."
    ))
}
