//! Runs one prompt on several models and reports the results.

use crate::{config, logs};
use clap::{Args as Group, ValueEnum};
use serde::Serialize;
use turnery_agent::{
    MAX_CANDIDATES, PromptHandle, PromptOptions, PromptResult, SelectionStrategy, Session,
    StartError,
};
use turnery_engine::{Content, LoopRecord, Outcome, Usage};
use turnery_models::ModelName;

/// Options of `--try`.
#[derive(Clone, Debug, Default, Group)]
pub(crate) struct TryArgs {
    /// Send the prompt to all of these models at once and use one answer. Each may read and search, but change
    /// nothing.
    #[arg(
        id = "try",
        long = "try",
        value_name = "MODEL,MODEL",
        value_delimiter = ',',
        value_parser = config::values::model
    )]
    models: Vec<ModelName>,
    /// Which answer to use.
    #[arg(long, value_enum, requires = "try")]
    pick: Option<PickStrategy>,
    /// Let this model choose, regardless of --pick; `--pick judge` alone uses the session's model.
    #[arg(long, value_name = "MODEL", requires = "try", value_parser = config::values::model)]
    judge: Option<ModelName>,
}

/// Strategy for choosing an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PickStrategy {
    /// The first model's answer, unless it failed.
    First,
    /// The answer that used the fewest tokens.
    FewestTokens,
    /// The answer that used the most tokens.
    MostTokens,
    /// The answer that another model judges best.
    Judge,
}

/// Result of one candidate of `--try`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct CandidateReport {
    /// `provider/model`, or `offline`.
    model: String,
    /// Tokens used by the candidate's turns.
    usage: Usage,
    /// Time from the candidate's start to its end. Unit: milliseconds.
    duration_ms: u64,
    /// Whether it gave an answer.
    finished: bool,
    /// Whether its answer was taken; never without `finished`.
    won: bool,
}

impl TryArgs {
    pub(super) fn is_empty(&self) -> bool {
        self.models.is_empty()
    }

    /// Returns the models that are called: the candidates and the judge, which is `own` unless named.
    pub(super) fn called_models<'a>(&'a self, own: &'a ModelName) -> Vec<&'a ModelName> {
        let default_judge = (self.pick == Some(PickStrategy::Judge)).then_some(own);
        let judge = self.judge.as_ref().or(default_judge);
        self.models.iter().chain(judge).collect()
    }

    /// Checks the number of models before a session is created.
    pub(super) fn check_count(&self) -> Result<(), StartError> {
        match self.models.len() {
            count if count > MAX_CANDIDATES => Err(StartError::Candidates(count)),
            _ => Ok(()),
        }
    }

    /// Starts the prompt.
    pub(super) fn start(
        self,
        session: &Session,
        input: Vec<Content>,
        options: PromptOptions,
    ) -> Result<PromptHandle, StartError> {
        let candidates = self.models.into_iter().map(Into::into).collect();
        let pick = match (&self.judge, self.pick) {
            (Some(_), _) | (None, Some(PickStrategy::Judge)) => {
                SelectionStrategy::Judge(self.judge)
            }
            (None, None | Some(PickStrategy::First)) => SelectionStrategy::First,
            (None, Some(PickStrategy::FewestTokens)) => SelectionStrategy::FewestTokens,
            (None, Some(PickStrategy::MostTokens)) => SelectionStrategy::MostTokens,
        };
        session.evaluate(input, candidates, pick, options)
    }
}

/// Returns a report for each candidate; empty for a prompt without candidates.
pub(super) fn candidate_reports(result: &PromptResult) -> Vec<CandidateReport> {
    let tried = |record: &LoopRecord| {
        let group = record.parallel_group.as_ref()?;
        let config = record.config.as_ref()?;
        let took = record.ended_at? - record.started_at;
        let finished = matches!(
            record.outcome,
            Some(Outcome::Finished(..) | Outcome::FrameSwitch { .. })
        );
        let model = ModelName {
            provider: config.provider.clone(),
            model: config.model.clone(),
        };
        Some(CandidateReport {
            model: model.to_string(),
            usage: record.usage,
            duration_ms: u64::try_from(took.num_milliseconds()).unwrap_or_default(),
            finished,
            won: finished && group.is_selected,
        })
    };
    result.loops.iter().filter_map(|it| tried(it)).collect()
}

/// Returns the model whose answer was chosen.
pub(super) fn winning_model(tried: &[CandidateReport]) -> Option<String> {
    let winner = tried.iter().find(|tried| tried.won)?;
    Some(winner.model.clone())
}

/// Prints one line for each candidate.
pub(super) fn report_candidates(tried: &[CandidateReport]) {
    for CandidateReport {
        model,
        usage,
        duration_ms,
        finished,
        won,
    } in tried
    {
        let end = match (finished, won) {
            (true, true) => ", its answer was taken",
            (true, false) => "",
            (false, _) => ", gave no answer",
        };
        let tokens = usage.total();
        logs::print_message(&format!(
            "tried {model}: {tokens} tokens, {}.{:03} s{end}",
            duration_ms / 1000,
            duration_ms % 1000
        ));
    }
}
