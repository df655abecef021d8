//! Tells the user about damage to a session, and counts it for the model.

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

/// Returns the number of damaged places among what the model sees.
pub(super) fn count_damaged_places(damage: &[Damage]) -> usize {
    let is_note = |it: &&Damage| matches!(it.part, DamagedPart::Note { .. });
    damage.len() - damage.iter().filter(is_note).count()
}
