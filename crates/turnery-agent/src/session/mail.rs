//! Mail: all that can be asked of a session task.

use super::{OpenPrompt, PromptError, PromptResult, SetError};
use crate::{CancellationToken, sink::Listener};
use tokio::sync::oneshot;
use turnery_engine::Content;
use turnery_models::{ModelName, Thinking};
use turnery_tools::Mode;

/// Room in a mailbox: all waiting prompts, and some settings besides.
pub(crate) const MAILBOX: usize = super::PROMPTS_WAITING + 16;

/// What can be asked of a session task.
pub(crate) enum Mail {
    /// Run this, after those before it.
    Prompt(Prompt),
    /// Change a setting, now.
    Set {
        what: Set,
        reply: oneshot::Sender<Result<(), SetError>>,
    },
    /// End. What runs has been cancelled already.
    Close(oneshot::Sender<()>),
}

/// A setting.
pub(crate) enum Set {
    Mode(Mode),
    Model(ModelName),
    Thinking(Thinking),
}

/// A prompt on its way.
pub(crate) struct Prompt {
    pub(crate) input: Vec<Content>,
    /// The prompt's own token.
    pub(crate) cancel: CancellationToken,
    /// The token of all prompts that were started when it was.
    pub(crate) cancel_all: CancellationToken,
    pub(crate) listener: Listener,
    pub(crate) reply: oneshot::Sender<Result<PromptResult, PromptError>>,
    pub(crate) _open: OpenPrompt,
}
