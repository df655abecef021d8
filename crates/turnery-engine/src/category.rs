//! Category: what an outcome means to a host that does not care for its details, and what to do next.

use crate::{Outcome, StopClass, TurnStop};
use serde::{Deserialize, Serialize};

/// The sort of an outcome: enough to branch on (LASH-1, LASH-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// The loop came to its own end.
    Finished,
    /// It goes on in a fresh frame of the same session.
    FrameSwitch,
    /// It ended before a terminal value.
    Stopped,
}

/// What a host can do after a stop (LASH-29 to 32).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryHint {
    /// Nothing is wrong: the next request is fine.
    NextRequest,
    /// Ask another model, or say less.
    OtherModel,
    /// Change a limit, a tool or a hook first.
    Configuration,
    /// The same again is unlikely to help: something is broken.
    NotTheSame,
    /// The host knows best: the stop carries a value for it.
    Payload,
}

impl Outcome {
    /// Its sort.
    #[must_use]
    pub fn category(&self) -> Category {
        match self {
            Self::Finished(_) => Category::Finished,
            Self::FrameSwitch { .. } => Category::FrameSwitch,
            Self::Stopped(_) => Category::Stopped,
        }
    }

    /// What to do next; nothing has to be done unless it was stopped.
    #[must_use]
    pub fn hint(&self) -> Option<RetryHint> {
        match self {
            Self::Finished(_) | Self::FrameSwitch { .. } => None,
            Self::Stopped(stop) => Some(stop.hint()),
        }
    }
}

impl TurnStop {
    /// What to do next: a host that offers the same input again does so unless this is
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
    /// Whether the same input may do better the next time (LASH-32).
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
    use crate::TurnFinish;
    use serde_json::json;

    // proves: LASH-14, LASH-28, LASH-29, LASH-30, LASH-31, LASH-32
    #[test]
    fn each_of_the_ten_stops_has_its_class_and_its_hint() {
        let value = json!({"why": "no"});
        let tool_name = "t".to_owned();
        let stops = [
            (TurnStop::Cancelled, "host", "next_request", true),
            (TurnStop::InvalidInput, "host", "next_request", true),
            (TurnStop::Incomplete, "provider", "other_model", true),
            (TurnStop::ProviderError, "provider", "other_model", true),
            (TurnStop::MaxTurns, "runtime", "configuration", true),
            (TurnStop::ToolFailure, "runtime", "configuration", true),
            (TurnStop::PluginAbort, "runtime", "configuration", true),
            (TurnStop::RuntimeError, "fatal", "not_the_same", false),
            (
                TurnStop::SubmittedError {
                    value: value.clone(),
                },
                "rlm",
                "payload",
                true,
            ),
            (
                TurnStop::ToolError { tool_name, value },
                "rlm",
                "payload",
                true,
            ),
        ];
        for (stop, class, hint, same) in stops {
            assert_eq!(json!(stop.class()), class, "{stop:?}");
            assert_eq!(json!(stop.hint()), hint, "{stop:?}");
            assert_eq!(stop.hint().same_input_may_help(), same, "{stop:?}");
            let outcome = Outcome::Stopped(stop);
            assert_eq!(outcome.category(), Category::Stopped);
            assert_eq!(json!(outcome.hint()), hint);
        }
    }

    // proves: LASH-1, LASH-2, LASH-36
    #[test]
    fn the_category_is_enough_to_branch_on() {
        let finished = Outcome::Finished(TurnFinish::AssistantMessage { text: "".into() });
        assert_eq!(finished.category(), Category::Finished);
        assert_eq!(finished.hint(), None);
        let switched = Outcome::FrameSwitch {
            frame_id: "f".to_owned(),
            task: "go on".to_owned(),
        };
        assert_eq!(switched.category(), Category::FrameSwitch);
        assert_eq!(switched.hint(), None);
    }
}
