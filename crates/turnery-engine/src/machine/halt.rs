//! Reasons for stopping a loop from outside.

use crate::{ToolEnvelope, ToolErrorKind};

/// Reason why a loop is stopped from outside, in ascending order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Halt {
    TimeUp,
    Cancelled,
    LaneLost,
}

impl Halt {
    pub(super) fn cause(self) -> &'static str {
        match self {
            Self::TimeUp => "the time limit was reached",
            Self::Cancelled => "the prompt was cancelled",
            Self::LaneLost => "another process took over the session",
        }
    }

    /// Returns the result, for the model, of a call cut short by this halt.
    pub(super) fn cancelled_envelope(self, ran: bool) -> ToolEnvelope {
        let cause = self.cause();
        let when = if ran {
            "while this call ran; part of its work may be done"
        } else {
            "before this call ran"
        };
        ToolEnvelope::failed(
            ToolErrorKind::Cancelled,
            format!("cancelled: {cause} {when}"),
        )
    }

    pub(super) fn is_time_up(self) -> bool {
        self == Self::TimeUp
    }
}
