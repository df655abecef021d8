//! Maps the outcome of a prompt to its name, stop reason, exit code and message.

use turnery_acp::stop_reason_name;
use turnery_agent::{PromptResult, WinnerChanges};
use turnery_engine::EndKind;

/// Exit code for an error without an exit code of its own.
pub(crate) const ERROR: u8 = EndKind::Error.exit_code();
/// Usage error.
pub(crate) const USAGE: u8 = 2;
/// The process was stuck during shutdown and was ended by [`crate::watchdog`].
pub(crate) const STUCK: u8 = 75;
/// The reader of stdout is gone; as shells report SIGPIPE.
pub(crate) const BROKEN_PIPE: u8 = 141;
/// The prompt was cancelled; as shells report Ctrl-C.
pub(crate) const CANCELLED: u8 = EndKind::Cancelled.exit_code();

/// How a prompt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PromptExit {
    /// Name of the outcome in results.
    pub(crate) outcome: &'static str,
    /// Stop reason of the Agent Client Protocol; `None` for a failure.
    pub(crate) stop_reason: Option<&'static str>,
    /// Exit code of the process.
    pub(crate) exit_code: u8,
    /// Message for the user; `None` for a normal end.
    pub(crate) message: Option<String>,
}

/// Returns how a prompt ended, with the stop reason that an editor would receive.
pub(crate) fn prompt_exit(result: &PromptResult) -> PromptExit {
    let report = result.outcome.report();
    // A script that checks only the exit code must not take an unsaved prompt for saved.
    let code = match report.end.exit_code() {
        0 if !result.is_stored => ERROR,
        code => code,
    };
    if let (0, Some(WinnerChanges::NotApplied { reason, kept, .. })) = (code, &result.changes) {
        let kept = kept
            .iter()
            .map(|it| format!("; they are kept in {}", it.display()));
        return PromptExit {
            outcome: report.name,
            stop_reason: stop_reason_name(report.end),
            exit_code: ERROR,
            message: Some(format!(
                "the changes were not applied: {reason}{}",
                kept.collect::<String>()
            )),
        };
    }
    let mut message = None;
    if code != 0 || !result.is_stored {
        let known = report.message.unwrap_or("cancelled too late".into());
        let hint = match result.is_stored {
            true => "",
            false => {
                "; the store of sessions did not answer in time, so the answer may not be stored"
            }
        };
        message = Some(format!("{known}{hint}"));
    }
    PromptExit {
        outcome: report.name,
        stop_reason: stop_reason_name(report.end),
        exit_code: code,
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::result::RunResult;
    use serde_json::json;
    use turnery_agent::PromptError;
    use turnery_engine::{
        CommitError, LimitKind, ModelErrorKind, Outcome, ProviderFailure, ReachedLimit, TurnFinish,
        TurnStop,
    };

    type OutcomeRow = (
        &'static str,
        Outcome,
        Option<&'static str>,
        u8,
        Option<&'static str>,
    );

    fn limit(kind: LimitKind) -> ReachedLimit {
        let text = "Max reached (3/3)".to_owned();
        ReachedLimit { kind, text }
    }

    fn failed(kind: ModelErrorKind) -> TurnStop {
        let message = "the provider's words".to_owned();
        TurnStop::ProviderError(ProviderFailure::Failed { kind, message })
    }

    /// Returns for each outcome: its row in the table of outcomes, the outcome, the stop reason, the exit
    /// code and the message.
    #[rustfmt::skip]
    fn outcome_rows() -> Vec<OutcomeRow> {
        use Outcome::{Finished, Stopped};
        use TurnStop as S;
        const END: Option<&str> = Some("end_turn");
        const TOKENS: Option<&str> = Some("max_tokens");
        const TURNS: Option<&str> = Some("max_turn_requests");
        const REFUSAL: Option<&str> = Some("refusal");
        const TOLD: Option<&str> = Some("the provider's words");
        let (value, tool) = (|| json!("no"), || "t".to_owned());
        let message = || "it broke".to_owned();
        let reason = || "not that".to_owned();
        let switch = Outcome::FrameSwitch { frame_id: "f".to_owned(), task: "t".to_owned() };
        vec![
            ("1", Finished(TurnFinish::AssistantMessage { text: "done".into() }, None), END, 0, None),
            ("1, 9a", Finished(TurnFinish::AssistantMessage { text: "so far".into() }, Some(limit(LimitKind::Turns))), TURNS, 4, Some("Max reached (3/3)")),
            ("1, 9b", Finished(TurnFinish::AssistantMessage { text: "of one".into() }, Some(limit(LimitKind::Tokens))), TOKENS, 4, Some("Max reached (3/3)")),
            ("2", Finished(TurnFinish::FinalValue { value: value() }, None), END, 0, None),
            ("3", Finished(TurnFinish::ToolValue { tool_name: tool(), value: value() }, None), END, 0, None),
            ("4", switch, None, 1, Some("the prompt ended early (frame switch)")),
            ("5", Stopped(S::Cancelled), Some("cancelled"), 130, Some("cancelled")),
            ("6a", Stopped(S::InvalidInput { reason: reason() }), REFUSAL, 3, Some("not that")),
            ("7", Stopped(S::Incomplete), TOKENS, 4, Some("the answer was cut off at the model's output limit")),
            ("8a", Stopped(failed(ModelErrorKind::ContextOverflow)), TOKENS, 4, TOLD),
            ("8b", Stopped(S::ProviderError(ProviderFailure::Refused)), REFUSAL, 3, Some("the model refused to answer")),
            ("8c", Stopped(failed(ModelErrorKind::Auth)), None, 1, TOLD),
            ("8c", Stopped(failed(ModelErrorKind::Network)), None, 1, TOLD),
            ("9a", Stopped(S::MaxTurns(limit(LimitKind::Turns))), TURNS, 4, Some("Max reached (3/3)")),
            ("9a", Stopped(S::MaxTurns(limit(LimitKind::Duration))), TURNS, 4, Some("Max reached (3/3)")),
            ("9a", Stopped(S::MaxTurns(limit(LimitKind::Cost))), TURNS, 4, Some("Max reached (3/3)")),
            ("9b", Stopped(S::MaxTurns(limit(LimitKind::Tokens))), TOKENS, 4, Some("Max reached (3/3)")),
            ("9c", Stopped(S::MaxTurns(limit(LimitKind::Answer))), TOKENS, 4, Some("Max reached (3/3)")),
            ("10", Stopped(S::ToolFailure { message: message() }), None, 1, Some("it broke")),
            ("11, 12", Stopped(S::PluginAbort { reason: reason() }), REFUSAL, 3, Some("not that")),
            ("13", Stopped(S::RuntimeError { message: message() }), None, 1, Some("it broke")),
            ("14", Stopped(S::SubmittedError { value: value() }), END, 0, None),
            ("15", Stopped(S::ToolError { tool_name: tool(), value: value() }), END, 0, None),
        ]
    }

    // proves: ACP-41, ACP-42, ACP-43, ACP-44, ACP-45
    #[test]
    fn outcome_maps_to_exit_code() {
        for (row, outcome, reason, code, message) in outcome_rows() {
            let ending = prompt_exit(&PromptResult::new(outcome));
            assert_eq!(ending.stop_reason, reason, "row {row}");
            assert_eq!(ending.exit_code, code, "row {row}");
            assert_eq!(ending.message.as_deref(), message, "row {row}");
        }
    }

    #[test]
    fn unstored_prompt_is_reported() {
        let mut result = PromptResult::new(Outcome::Stopped(TurnStop::Cancelled));
        result.is_stored = false;
        let ending = prompt_exit(&result);
        assert_eq!(ending.exit_code, CANCELLED);
        assert!(ending.message.unwrap().contains("may not be stored"));
    }

    /// Row 16: nothing was stored, so there is no outcome.
    #[test]
    fn lost_prompt_is_an_error() {
        let busy = PromptError::Busy {
            holder: "pid 1".to_owned(),
        };
        let lost = [CommitError::LaneLost, CommitError::HeadConflict];
        for error in lost.map(PromptError::Lost).into_iter().chain([busy]) {
            let sentence = error.to_string();
            let told = json!(RunResult::from_error(&error.into()));
            assert_eq!(told["exit_code"], 1, "{sentence}");
            assert_eq!(told["stop_reason"], json!(null), "{sentence}");
            assert_eq!(told["error"], sentence);
        }
    }
}
