//! Exit: what the end of a prompt is called, and which exit code it gets.

use turnery_agent::PromptResult;
use turnery_engine::{Detail, Outcome, TurnStop};

/// Anything went wrong.
pub(crate) const ERROR: u8 = 1;
/// The command line makes no sense.
pub(crate) const USAGE: u8 = 2;
/// The model refused.
const REFUSED: u8 = 3;
/// A limit was reached.
const LIMIT: u8 = 4;
/// Cancelled, as shells count a Ctrl-C.
pub(crate) const CANCELLED: u8 = 130;

/// How a prompt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    /// Our word for it.
    pub(crate) outcome: &'static str,
    /// The Agent Client Protocol's word for it; none for a failure.
    pub(crate) stop_reason: Option<&'static str>,
    /// The exit code.
    pub(crate) code: u8,
    /// What to tell a person, unless all is well.
    pub(crate) message: Option<String>,
}

/// What became of a prompt.
pub(crate) fn of(result: &PromptResult) -> Ending {
    let (outcome, stop_reason, code) = match &result.outcome {
        Outcome::Finished(_) => ("finished", Some("end_turn"), 0),
        Outcome::FrameSwitch { .. } => ("frame_switch", Some("end_turn"), 0),
        Outcome::Stopped(stop) => match stop {
            TurnStop::Cancelled => ("cancelled", Some("cancelled"), CANCELLED),
            TurnStop::InvalidInput if matches!(result.detail, Some(Detail::Rejection { .. })) => {
                ("rejected", Some("refusal"), REFUSED)
            }
            TurnStop::InvalidInput => ("invalid_input", None, ERROR),
            TurnStop::Incomplete => ("incomplete", Some("max_tokens"), LIMIT),
            TurnStop::ProviderError if result.detail == Some(Detail::Refusal) => {
                ("refusal", Some("refusal"), REFUSED)
            }
            TurnStop::ProviderError => ("provider_error", None, ERROR),
            TurnStop::MaxTurns => ("limit", Some("max_turn_requests"), LIMIT),
            TurnStop::ToolFailure => ("tool_failure", None, ERROR),
            TurnStop::PluginAbort => ("plugin_abort", None, ERROR),
            TurnStop::RuntimeError => ("runtime_error", None, ERROR),
            TurnStop::SubmittedError { .. } => ("submitted_error", None, ERROR),
            TurnStop::ToolError { .. } => ("tool_error", None, ERROR),
        },
    };
    Ending {
        outcome,
        stop_reason,
        code,
        message: (code != 0).then(|| message(outcome, result.detail.as_ref())),
    }
}

fn message(outcome: &str, detail: Option<&Detail>) -> String {
    match detail {
        Some(Detail::Limit { text, .. }) => text.clone(),
        Some(Detail::Provider { message, .. } | Detail::Runtime { message }) => message.clone(),
        Some(Detail::Refusal) => "the model refused to answer".to_owned(),
        Some(Detail::Rejection { reason }) => reason.clone(),
        Some(Detail::Continued { .. }) | None => match outcome {
            "cancelled" => "cancelled".to_owned(),
            "incomplete" => "the answer was cut off at the model's output limit".to_owned(),
            "refusal" => "the model refused to answer".to_owned(),
            _ => format!("the prompt ended early ({})", outcome.replace('_', " ")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnery_engine::{FaultKind, LimitKind, TurnFinish};

    fn ending(
        outcome: Outcome,
        detail: Option<Detail>,
    ) -> (Option<&'static str>, u8, Option<String>) {
        let ending = of(&PromptResult::new(outcome, detail));
        (ending.stop_reason, ending.code, ending.message)
    }

    #[test]
    fn every_sort_of_end_has_its_exit_code() {
        let text = "done".to_owned();
        assert_eq!(
            ending(
                Outcome::Finished(TurnFinish::AssistantMessage { text }),
                None
            ),
            (Some("end_turn"), 0, None)
        );
        let text = "Max turns reached (3/3)".to_owned();
        let limit = Detail::Limit {
            kind: LimitKind::Turns,
            text: text.clone(),
        };
        assert_eq!(
            ending(Outcome::Stopped(TurnStop::MaxTurns), Some(limit)),
            (Some("max_turn_requests"), 4, Some(text))
        );
        assert_eq!(
            ending(Outcome::Stopped(TurnStop::Cancelled), None),
            (Some("cancelled"), 130, Some("cancelled".to_owned()))
        );
        assert_eq!(
            ending(
                Outcome::Stopped(TurnStop::ProviderError),
                Some(Detail::Refusal)
            ),
            (
                Some("refusal"),
                3,
                Some("the model refused to answer".to_owned())
            )
        );
        let fault = Detail::Provider {
            kind: FaultKind::Auth,
            message: "the key is wrong".to_owned(),
        };
        assert_eq!(
            ending(Outcome::Stopped(TurnStop::ProviderError), Some(fault)),
            (None, 1, Some("the key is wrong".to_owned()))
        );
        assert_eq!(
            ending(Outcome::Stopped(TurnStop::Incomplete), None),
            (
                Some("max_tokens"),
                4,
                Some("the answer was cut off at the model's output limit".to_owned())
            )
        );
        assert_eq!(
            ending(Outcome::Stopped(TurnStop::RuntimeError), None),
            (
                None,
                1,
                Some("the prompt ended early (runtime error)".to_owned())
            )
        );
    }
}
