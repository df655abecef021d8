//! Runs one prompt on several models and reports the results.

use crate::{config, logs};
use clap::{Args as Group, ValueEnum};
use serde::Serialize;
use std::path::PathBuf;
use turnery_agent::{
    Candidate, JudgeCommand, MAX_CANDIDATES, PromptHandle, PromptOptions, PromptResult,
    SelectionStrategy, Session, StartError, WinnerChanges,
};
use turnery_engine::{Content, LoopRecord, Outcome, Usage};
use turnery_models::ModelName;
use turnery_tools::Mode;

/// Options of `--try`.
#[derive(Clone, Debug, Default, Group)]
pub(crate) struct TryArgs {
    /// Send the prompt to all of these models at once and use one answer. Each may read and search, but change
    /// nothing; with `=MODE` (such as `=edit`), each works in a copy of the folder, in that mode, and the changes of the
    /// chosen one are applied.
    #[arg(
        id = "try",
        long = "try",
        value_name = "MODEL[=MODE],...",
        value_delimiter = ',',
        value_parser = parse_candidate
    )]
    candidates: Vec<TriedModel>,
    /// Which answer to use.
    #[arg(long, value_enum, requires = "try")]
    pick: Option<PickStrategy>,
    /// Let this model choose, regardless of --pick; `--pick judge` alone uses the session's model.
    #[arg(long, value_name = "MODEL", requires = "try", value_parser = config::values::model)]
    judge: Option<ModelName>,
    /// Run this command in each candidate's copy of the folder, and use the first for which it succeeds: its tests, for
    /// example.
    #[arg(long, value_name = "LINE", requires = "try", conflicts_with_all = ["pick", "judge"])]
    judge_command: Option<String>,
}

/// Candidate of `--try`.
#[derive(Clone, Debug)]
struct TriedModel {
    model: ModelName,
    mode: Option<Mode>,
}

/// Parses `MODEL` or `MODEL=MODE`. A `=` in the name of a model is part of it unless a mode follows the last one.
fn parse_candidate(text: &str) -> Result<TriedModel, String> {
    let with_mode = text
        .rsplit_once('=')
        .and_then(|(name, mode)| Some((name, Mode::parse(mode)?)));
    let (name, mode) = match with_mode {
        Some((name, mode)) => (name, Some(mode)),
        None => (text, None),
    };
    let model = config::values::model(name)?;
    Ok(TriedModel { model, mode })
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
    /// Exit code of the command that judged, with `--judge-command`; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    judge_exit_code: Option<i32>,
    /// Output of the command that judged, shortened.
    #[serde(skip_serializing_if = "Option::is_none")]
    judge_output: Option<String>,
}

/// Changes of the winner of `--try`, and whether they were applied.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ChangesReport {
    /// Whether they were applied to the folder.
    applied: bool,
    /// The changed files, relative to the folder.
    files: Vec<PathBuf>,
    /// Why they were not applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The folder in which they are kept if they were not applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<PathBuf>,
}

impl From<&WinnerChanges> for ChangesReport {
    fn from(changes: &WinnerChanges) -> Self {
        match changes {
            WinnerChanges::Applied { files } => Self {
                applied: true,
                files: files.clone(),
                reason: None,
                kept: None,
            },
            WinnerChanges::NotApplied {
                files,
                reason,
                kept,
            } => Self {
                applied: false,
                files: files.clone(),
                reason: Some(reason.clone()),
                kept: kept.clone(),
            },
        }
    }
}

impl TryArgs {
    pub(super) fn is_empty(&self) -> bool {
        self.candidates.is_empty()
    }

    /// Returns the models that are called: the candidates and the judge, which is `own` unless named.
    pub(super) fn called_models<'a>(&'a self, own: &'a ModelName) -> Vec<&'a ModelName> {
        let default_judge = (self.pick == Some(PickStrategy::Judge)).then_some(own);
        let judge = self.judge.as_ref().or(default_judge);
        let candidates = self.candidates.iter().map(|it| &it.model);
        candidates.chain(judge).collect()
    }

    /// Checks the number of models before a session is created.
    pub(super) fn check_count(&self) -> Result<(), StartError> {
        match self.candidates.len() {
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
        let candidates = self.candidates.into_iter().map(|tried| Candidate {
            mode: tried.mode,
            ..Candidate::from(tried.model)
        });
        let candidates = candidates.collect();
        if let Some(line) = self.judge_command {
            let strategy = SelectionStrategy::Command(JudgeCommand::new(line));
            return session.evaluate(input, candidates, strategy, options);
        }
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
        let judged = group.command.as_deref();
        let check = judged.and_then(|judged| judged.check_of(&record.loop_id));
        let took = record.ended_at? - record.started_at;
        let finished = record.outcome.as_ref().is_some_and(Outcome::is_finished);
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
            judge_exit_code: check.and_then(|it| it.exit_code),
            judge_output: check.map(|it| it.output.clone()),
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
        judge_exit_code,
        judge_output,
    } in tried
    {
        let end = match (finished, won) {
            (true, true) => ", its answer was taken",
            (true, false) => "",
            (false, _) => ", gave no answer",
        };
        let check = match (judge_exit_code, judge_output) {
            (Some(code), _) => format!(", exit code {code}"),
            (None, Some(_)) => ", no exit code".to_owned(),
            (None, None) => String::new(),
        };
        let tokens = usage.total();
        logs::print_message(&format!(
            "tried {model}: {tokens} tokens, {}.{:03} s{check}{end}",
            duration_ms / 1000,
            duration_ms % 1000
        ));
    }
}
