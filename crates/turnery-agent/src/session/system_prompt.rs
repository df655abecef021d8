//! Keeps the beginning of a session's requests the same, so that the provider's cache stays valid: what changes is told
//! in the conversation instead.

use std::sync::Arc;
use turnery_engine::{LlmMessage, LoopRecord, Message};

/// Beginning of the notice about changed instructions.
const CHANGED: &str = "The instructions with which this conversation began have changed. \
    Follow these instead from now on:";
/// Beginning of the notice about a damaged history.
const DAMAGED: &str = "The stored history of this session is damaged";

/// System prompt of a conversation, and what the model must know that differs from it.
#[derive(Clone)]
pub(crate) struct SystemPrompt {
    /// System prompt as configured when the session was opened.
    configured: Arc<str>,
    /// System prompt of the requests since the last summary, once a loop has recorded it.
    recorded: Option<Arc<str>>,
    /// Number of damaged places among what the model sees.
    damaged_places: usize,
}

impl SystemPrompt {
    /// Creates the system prompt of a session without loops.
    pub(crate) fn new(configured: Arc<str>, damaged_places: usize) -> Self {
        Self {
            configured,
            recorded: None,
            damaged_places,
        }
    }

    /// Applies the system prompt with which these loops, the conversation so far, were requested.
    pub(super) fn continue_from(&mut self, chain: &[Arc<LoopRecord>]) {
        let mut recorded = None;
        for record in chain {
            let system = record
                .config
                .as_ref()
                .and_then(|config| config.system.as_deref());
            recorded = system.or(recorded);
            // A summary replaces the beginning in any case, so the configured prompt applies from there.
            if record.compaction_block.is_some() {
                recorded = None;
            }
        }
        self.recorded = recorded.map(Arc::from);
    }

    /// Returns the system prompt of the next request.
    pub(super) fn current(&self) -> &Arc<str> {
        self.recorded.as_ref().unwrap_or(&self.configured)
    }

    /// Returns the system prompt as configured, for conversations that begin now.
    pub(super) fn configured(&self) -> &Arc<str> {
        &self.configured
    }

    /// Returns true if the next loop must record the current system prompt.
    pub(super) fn is_unrecorded(&self) -> bool {
        self.recorded.is_none()
    }

    /// Notes that this loop is stored.
    pub(super) fn advance(&mut self, record: &LoopRecord) {
        let system = record
            .config
            .as_ref()
            .and_then(|config| config.system.as_deref());
        if let Some(system) = system
            && record.compaction_block.is_none()
        {
            self.recorded = Some(Arc::from(system));
        }
    }

    /// Applies the configured system prompt: a summary has replaced the beginning of the conversation.
    pub(super) fn renew(&mut self) {
        self.recorded = None;
    }

    /// Returns the notices that the model needs and that the last of their kind in `messages` does not give.
    pub(super) fn due_notices(&self, messages: &[Arc<LlmMessage>]) -> Vec<String> {
        let mut due = Vec::new();
        let changed = format!("{CHANGED}\n\n{}", self.configured);
        let is_due = match last_notice(messages, CHANGED) {
            Some(last) => last != changed,
            None => self.current() != &self.configured,
        };
        if is_due {
            due.push(changed);
        }
        if self.damaged_places > 0 {
            let damaged = format!(
                "{DAMAGED} in {} place(s). Messages, tool calls and their results may be missing from it or changed. \
                 Before you rely on earlier work, check it again in the files themselves, and tell the user what you \
                 are unsure of.",
                self.damaged_places
            );
            if last_notice(messages, DAMAGED) != Some(&damaged) {
                due.push(damaged);
            }
        }
        due
    }
}

/// Returns the last notice that begins with `heading`.
fn last_notice<'a>(messages: &'a [Arc<LlmMessage>], heading: &str) -> Option<&'a str> {
    messages
        .iter()
        .rev()
        .find_map(|message| match &message.message {
            Message::System { text } => text.starts_with(heading).then_some(text.as_str()),
            Message::User { .. } | Message::Assistant { .. } | Message::ToolResult { .. } => None,
        })
}
