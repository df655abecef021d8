//! Prompts stored in a session until a process runs them.

use crate::PendingEffect;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use turnery_engine::{Content, LoopRecord, PromptId, SessionId};

/// Tool name that marks a queued prompt among the stored effects.
pub(crate) const PROMPT_TOOL: &str = "";

/// Prompt that waits in a session. The holder of the lane may run it, under its id: a loop with that id shows that the
/// prompt was run.
#[derive(Clone, Debug, PartialEq)]
pub struct QueuedPrompt {
    /// Id of the prompt, which no other prompt ever has.
    pub id: PromptId,
    /// Content of the prompt.
    pub content: Vec<Content>,
    /// Head version of the session when the prompt was queued.
    pub head_version: u64,
}

/// Reason for which a queued prompt is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptRemoval {
    /// Its author does not want it any more. Leaves a prompt that was started.
    Withdrawn,
    /// It was run.
    Run,
}

/// Stored form of a prompt, without its id.
#[derive(Serialize, Deserialize)]
struct PromptBody {
    content: Vec<Content>,
    head_version: u64,
}

impl QueuedPrompt {
    /// Returns true if this loop has run the prompt.
    #[must_use]
    pub fn was_run_by(&self, record: &LoopRecord) -> bool {
        record.prompt_id.as_ref() == Some(&self.id)
    }

    pub(crate) fn encode(self, session_id: &SessionId) -> Result<PendingEffect, serde_json::Error> {
        let effect = serde_json::to_value(PromptBody {
            content: self.content,
            head_version: self.head_version,
        })?;
        Ok(PendingEffect {
            session_id: session_id.clone(),
            key: self.id.to_string(),
            tool_name: PROMPT_TOOL.to_owned(),
            effect,
        })
    }

    /// Decodes a prompt; `None` if the effect is one of a tool, or a prompt of a newer version that this one cannot read.
    pub(crate) fn decode(pending: &PendingEffect) -> Option<Self> {
        if pending.tool_name != PROMPT_TOOL {
            return None;
        }
        match PromptBody::deserialize(&pending.effect as &Value) {
            Ok(body) => Some(Self {
                id: PromptId::from(pending.key.as_str()),
                content: body.content,
                head_version: body.head_version,
            }),
            Err(error) => {
                let session = &pending.session_id;
                tracing::warn!(%session, %error, "a queued prompt cannot be read; it keeps waiting");
                None
            }
        }
    }
}
