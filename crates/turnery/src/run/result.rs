//! The result of a run: the output of `--format json` and the last line of `--format stream-json`.

use super::exit::{self, PromptExit};
use crate::run::try_models::{self, CandidateReport, ChangesReport};
use crate::sessions::loop_table::model_name;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;
use turnery_agent::{
    CostReport, PromptResult, Session, finish::FinishTool, millionths_to_units, render_value,
};
use turnery_engine::{LoopId, Outcome, Price, SessionId, TurnFinish, TurnStop, Usage};
use turnery_tools::TypedTool as _;

/// What came of a run: the last line of `--format json` and `--format stream-json`.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct RunResult {
    /// Always `result`.
    #[cfg_attr(test, schemars(extend("const" = "result")))]
    r#type: &'static str,
    /// Id for `--session`; absent when the run failed without the result of a prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<SessionId>,
    /// The loops that ran, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    loop_ids: Vec<LoopId>,
    /// `finished`, `cancelled`, `refusal`, `limit`, `incomplete`, `provider_error`, `error`, ...
    outcome: &'static str,
    /// The Agent Client Protocol's word; `null` for a failure.
    stop_reason: Option<&'static str>,
    /// True if the prompt is stored in the session. False if the store of sessions did not answer in time, so that
    /// what was shown may be lost, or if no prompt came to its end.
    stored: bool,
    /// The model's last message.
    text: String,
    /// The value that the model submitted, with `--output-schema`.
    #[serde(rename = "value", skip_serializing_if = "Option::is_none")]
    pub(super) submitted_value: Option<Value>,
    /// Tokens of everything that the prompt spent: its turns, candidates, the judge, sub-agents and summaries; absent
    /// when no prompt ran, or the provider said nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    /// What they cost; absent unless the prices of all models that were called are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
    /// Turns as the limits count them, with those of candidates, the judge and sub-agents. The last reply that follows
    /// a limit of turns is not counted.
    turns: u32,
    /// `provider/model`, or `offline`.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// How commands were confined, or that they were not; absent when no prompt ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sandbox: Option<Arc<str>>,
    /// Result of each model's candidate, with `--try`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    candidates: Vec<CandidateReport>,
    /// Changes of the chosen candidate, applied or kept, with `--try`.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<ChangesReport>,
    /// From the start of the process.
    pub(super) duration_ms: u64,
    /// What went wrong, for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// The exit code of the process.
    pub(super) exit_code: u8,
}

impl RunResult {
    /// Returns the result of a run that failed without the result of a prompt, for example because the prompt
    /// could not be stored.
    pub(super) fn from_error(error: &anyhow::Error) -> Self {
        Self {
            r#type: "result",
            outcome: "error",
            error: Some(format!("{error:#}")),
            exit_code: exit::ERROR,
            ..Self::default()
        }
    }

    /// Returns the result of a usage error.
    pub(super) fn from_usage_error(error: &anyhow::Error) -> Self {
        Self {
            outcome: "usage",
            exit_code: exit::USAGE,
            ..Self::from_error(error)
        }
    }

    /// Returns the result of a prompt that was cancelled and has no result of its own.
    pub(super) fn from_cancel(session: &Session, error: &anyhow::Error) -> Self {
        Self {
            session_id: Some(session.id().clone()),
            outcome: "cancelled",
            stop_reason: Some("cancelled"),
            exit_code: exit::CANCELLED,
            ..Self::from_error(error)
        }
    }

    /// Takes the value that the prompt had to end with. Without one, the run has failed.
    pub(super) fn require_value(&mut self, result: &PromptResult) {
        match &result.outcome {
            Outcome::Finished(TurnFinish::FinalValue { value }, _) => {
                self.submitted_value = Some(value.clone());
                return;
            }
            Outcome::Stopped(TurnStop::SubmittedError { value }) => {
                self.error = Some(format!(
                    "the model submitted an error instead of a value: {}",
                    render_value(value)
                ));
            }
            Outcome::Finished(..) | Outcome::FrameSwitch { .. } | Outcome::Stopped(_) => {
                let message = self
                    .error
                    .get_or_insert("no value was submitted".to_owned());
                if let Some(rejection) = last_rejection(result) {
                    *message =
                        format!("{message}; the last submitted value was rejected: {rejection}");
                }
            }
        }
        self.exit_code = self.exit_code.max(exit::ERROR);
    }

    /// Returns the result of a prompt that ended, and prints a line for each of its candidates to stderr.
    pub(super) fn from_prompt(
        session_id: SessionId,
        model: String,
        result: &PromptResult,
        text: String,
        price: impl Fn(&str) -> Option<Price>,
    ) -> Self {
        let PromptExit {
            outcome,
            stop_reason,
            exit_code: code,
            message,
        } = exit::prompt_exit(result);
        let candidates = try_models::candidate_reports(result);
        try_models::report_candidates(&candidates);
        let winner = try_models::winning_model(&candidates);
        // Another model than the chosen one may have taken over.
        let answered = result.loops.last().map(|record| model_name(record));
        let answered = answered.filter(|name| !name.is_empty());
        let bill = CostReport::new(&result.usage_report(), price);
        // All zeros mean that no provider reported usage.
        let usage = Some(bill.total_usage()).filter(|usage| *usage != Usage::default());
        Self {
            r#type: "result",
            session_id: Some(session_id),
            loop_ids: result.loop_ids().cloned().collect(),
            outcome,
            stop_reason,
            stored: result.is_stored,
            // The answer, not what was said about its changes.
            text: match (&result.changes, &result.outcome) {
                (Some(_), Outcome::Finished(TurnFinish::AssistantMessage { text }, _)) => {
                    text.to_string()
                }
                (Some(_) | None, _) => text,
            },
            submitted_value: None,
            cost: usage
                .and_then(|_| bill.total_cost())
                .map(millionths_to_units),
            usage,
            turns: result.turns,
            model: winner.or(answered).or(Some(model)),
            sandbox: None,
            candidates,
            changes: result.changes.as_ref().map(ChangesReport::from),
            duration_ms: 0,
            error: message,
            exit_code: code,
        }
    }
}

/// Returns why the last value that the model submitted was rejected.
fn last_rejection(result: &PromptResult) -> Option<String> {
    let calls = result.executions();
    let last = calls
        .iter()
        .rev()
        .find(|ran| ran.call.name == FinishTool::NAME)?;
    last.envelope
        .result
        .as_ref()
        .err()
        .map(|error| error.message.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::schema::tests::assert_schema_file;
    use anyhow::anyhow;
    use schemars::{JsonSchema, generate::SchemaSettings};
    use serde_json::json;
    use turnery_engine::{Event, Outcome, TurnStop};

    /// A line of `turnery run --format stream-json`. `--format json` prints the last one alone.
    #[derive(JsonSchema)]
    #[schemars(untagged, title = "turnery run")]
    #[expect(dead_code, reason = "described, not made")]
    enum OutputLine {
        /// What happened.
        Event(EventLine),
        /// What came of it, at the end.
        Result(RunResult),
    }

    /// What happened.
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "described, not made")]
    struct EventLine {
        /// Always `event`.
        #[schemars(extend("const" = "event"))]
        r#type: &'static str,
        #[schemars(flatten)]
        event: Event,
    }

    #[test]
    fn run_schema_file_is_up_to_date() {
        let settings = SchemaSettings::draft2020_12().for_serialize();
        let schema = settings
            .into_generator()
            .into_root_schema_for::<OutputLine>();
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        assert_schema_file("run.json", &text);
    }

    #[test]
    fn result_states_whether_prompt_is_stored() {
        for is_stored in [true, false] {
            let prompt = PromptResult {
                is_stored,
                ..PromptResult::new(Outcome::Stopped(TurnStop::Cancelled))
            };
            let text = "partial".to_owned();
            let result =
                RunResult::from_prompt("s".into(), "p/m".to_owned(), &prompt, text, |_| None);
            assert_eq!(json!(result)["stored"], is_stored);
        }
        let failed = RunResult::from_error(&anyhow!("the disk is full"));
        assert_eq!(json!(failed)["stored"], false);
    }

    #[test]
    fn cost_is_given_in_currency_units() {
        let price = Price {
            input: 3_000_000,
            output: 15_000_000,
            ..Price::default()
        };
        let usage = Usage {
            input: 1_000_000,
            output: 100_000,
            ..Usage::default()
        };
        assert_eq!(millionths_to_units(price.cost_of(&usage)), 4.5);
    }
}
