//! Classifies outcomes for hosts that ignore the details, and suggests how to proceed.

use crate::{Outcome, StopClass, TurnStop};
use serde::{Deserialize, Serialize};

/// Category of an outcome, detailed enough to branch on (LASH-1, LASH-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeCategory {
    /// The loop finished normally.
    Finished,
    /// The session continues in a new frame.
    FrameSwitch,
    /// The loop stopped before producing a terminal value.
    Stopped,
}

/// Suggested reaction of the host to a stop (LASH-29 to LASH-32).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryHint {
    /// Nothing is wrong; send the next request.
    NextRequest,
    /// Use another model or a shorter context.
    OtherModel,
    /// Change a limit, a tool or a hook before retrying.
    Configuration,
    /// Do not retry the same input: something is broken.
    NotTheSame,
    /// Inspect the value that the stop carries.
    Payload,
}

impl Outcome {
    /// Returns the category of the outcome.
    #[must_use]
    pub fn category(&self) -> OutcomeCategory {
        match self {
            Self::Finished(..) => OutcomeCategory::Finished,
            Self::FrameSwitch { .. } => OutcomeCategory::FrameSwitch,
            Self::Stopped(_) => OutcomeCategory::Stopped,
        }
    }

    /// Returns how to proceed; `None` unless the loop was stopped.
    #[must_use]
    pub fn hint(&self) -> Option<RetryHint> {
        match self {
            Self::Finished(..) | Self::FrameSwitch { .. } => None,
            Self::Stopped(stop) => Some(stop.hint()),
        }
    }
}

impl TurnStop {
    /// Returns how to proceed. Hosts may offer a retry with the same input unless this is
    /// [`RetryHint::NotTheSame`].
    #[must_use]
    pub fn hint(&self) -> RetryHint {
        match self.class() {
            StopClass::Host => RetryHint::NextRequest,
            StopClass::Provider => RetryHint::OtherModel,
            StopClass::Runtime => RetryHint::Configuration,
            StopClass::Fatal => RetryHint::NotTheSame,
            StopClass::Rlm => RetryHint::Payload,
        }
    }
}

impl RetryHint {
    /// Returns true if retrying the same input may succeed (LASH-32).
    #[must_use]
    pub fn same_input_may_help(self) -> bool {
        match self {
            Self::NextRequest | Self::OtherModel | Self::Configuration | Self::Payload => true,
            Self::NotTheSame => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TurnFinish, tests::fixtures::stops};
    use serde_json::json;

    // proves: LASH-2, LASH-14, LASH-28, LASH-29, LASH-30, LASH-31, LASH-32
    #[test]
    fn every_stop_has_class_and_hint() {
        for (stop, class) in stops() {
            let (name, hint) = match class {
                StopClass::Host => ("host", "next_request"),
                StopClass::Provider => ("provider", "other_model"),
                StopClass::Runtime => ("runtime", "configuration"),
                StopClass::Fatal => ("fatal", "not_the_same"),
                StopClass::Rlm => ("rlm", "payload"),
            };
            assert_eq!(json!(stop.class()), name, "{stop:?}");
            assert_eq!(json!(stop.hint()), hint, "{stop:?}");
            let may_help = class != StopClass::Fatal;
            assert_eq!(stop.hint().same_input_may_help(), may_help, "{stop:?}");
            let outcome = Outcome::Stopped(stop);
            assert_eq!(outcome.category(), OutcomeCategory::Stopped);
            assert_eq!(json!(outcome.hint()), hint);
        }
    }

    // proves: LASH-1, LASH-2, LASH-36
    #[test]
    fn outcome_category_and_hint() {
        let finished = Outcome::Finished(TurnFinish::AssistantMessage { text: "".into() }, None);
        assert_eq!(finished.category(), OutcomeCategory::Finished);
        assert_eq!(finished.hint(), None);
        let switched = Outcome::FrameSwitch {
            frame_id: "f".to_owned(),
            task: "go on".to_owned(),
        };
        assert_eq!(switched.category(), OutcomeCategory::FrameSwitch);
        assert_eq!(switched.hint(), None);
    }
}
