//! Notices for the user: facts about the running prompt that are no part of the conversation.

use std::borrow::Cow;
use turnery_engine::ModelError;

/// Notice for the user.
#[derive(Clone, Copy, Debug)]
pub enum Notice<'a> {
    /// A model call failed and is retried.
    Retry {
        /// Number of the failed attempt, from 1.
        attempt: u32,
        /// Error of the attempt.
        error: &'a ModelError,
        /// Delay before the next attempt. Unit: milliseconds.
        wait_ms: u64,
    },
    /// The model sends nothing while the call goes on.
    Silence {
        /// Duration of the silence. Unit: milliseconds.
        silent_ms: u64,
        /// True if the connection shows signs of life.
        is_connected: bool,
    },
    /// Something failed that does not affect the loop.
    Issue(&'a str),
    /// The input was rejected.
    InputRejected(&'a str),
    /// The prompt reached a limit.
    LimitReached(&'a str),
}

impl<'a> Notice<'a> {
    /// Returns true if the notice is a warning, false if it is only information.
    #[must_use]
    pub fn is_warning(&self) -> bool {
        match self {
            Self::Retry { .. } | Self::Silence { .. } => false,
            Self::Issue(_) | Self::InputRejected(_) | Self::LimitReached(_) => true,
        }
    }

    /// Returns the title.
    #[must_use]
    pub fn title(&self) -> &'static str {
        match self {
            Self::Retry { .. } => "Retrying the model call",
            Self::Silence { .. } => "The model is silent",
            Self::Issue(_) => "Something went wrong",
            Self::InputRejected(_) => "The input was refused",
            Self::LimitReached(_) => "The prompt reached a limit",
        }
    }

    /// Returns the text below the title.
    #[must_use]
    pub fn description(&self) -> Cow<'a, str> {
        match self {
            Self::Retry {
                attempt,
                error,
                wait_ms,
            } => Cow::Owned(format!(
                "Attempt {attempt}: {}. The next one is in {}.{} s.",
                error.message.trim_end_matches('.'),
                wait_ms / 1000,
                wait_ms % 1000 / 100,
            )),
            Self::Silence {
                silent_ms,
                is_connected,
            } => {
                let seconds = silent_ms / 1000;
                let but = match is_connected {
                    true => ", but its connection is alive",
                    false => "",
                };
                Cow::Owned(format!(
                    "The model has sent nothing for {seconds} s{but}. Cancel the prompt if you do not want to wait."
                ))
            }
            Self::Issue(text) | Self::InputRejected(text) | Self::LimitReached(text) => {
                Cow::Borrowed(text)
            }
        }
    }
}
