//! Tries: one prompt put to several models, and what is told of each of them afterwards.

use crate::{config, logs};
use clap::{Args as Group, ValueEnum};
use serde::Serialize;
use turnery_agent::{CANDIDATES, Pick, PromptOptions, PromptResult, Session, StartError, Ticket};
use turnery_engine::{Content, LoopRecord, Outcome, Usage};
use turnery_models::ModelName;

/// Which models to try, and which answer to take.
#[derive(Clone, Debug, Default, Group)]
pub(crate) struct TryArgs {
    /// Put the prompt to all of these models at once and take one answer. Each may read and search,
    /// and changes nothing.
    #[arg(
        id = "try",
        long = "try",
        value_name = "MODEL,MODEL",
        value_delimiter = ',',
        value_parser = config::choice::model
    )]
    models: Vec<ModelName>,
    /// Which answer to take.
    #[arg(long, value_enum, requires = "try")]
    pick: Option<PickBy>,
    /// Let this model pick, whatever --pick says; `--pick judge` asks the one in use.
    #[arg(long, value_name = "MODEL", requires = "try", value_parser = config::choice::model)]
    judge: Option<ModelName>,
}

/// How an answer is picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PickBy {
    /// The first model's, unless it failed.
    First,
    /// The one that took the fewest tokens.
    FewestTokens,
    /// The one that took the most tokens.
    MostTokens,
    /// The one that another model finds best.
    Judge,
}

/// What became of one model's try.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Tried {
    /// `provider/model`, or `offline`.
    model: String,
    /// Of its turns.
    usage: Usage,
    /// From its start to its end.
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

    /// The models that are called: those that are tried, and the judge, who is `own` unless named.
    pub(super) fn called<'a>(&'a self, own: &'a ModelName) -> Vec<&'a ModelName> {
        let judge = match (&self.judge, self.pick) {
            (Some(judge), _) => Some(judge),
            (None, Some(PickBy::Judge)) => Some(own),
            (None, Some(PickBy::First | PickBy::FewestTokens | PickBy::MostTokens) | None) => None,
        };
        self.models.iter().chain(judge).collect()
    }

    /// Refused before a session is begun for it.
    pub(super) fn check(&self) -> Result<(), StartError> {
        match self.models.len() {
            count if count > CANDIDATES => Err(StartError::Candidates(count)),
            _ => Ok(()),
        }
    }

    /// Queue the prompt.
    pub(super) fn start(
        self,
        session: &Session,
        input: Vec<Content>,
        options: PromptOptions,
    ) -> Result<Ticket, StartError> {
        let candidates = self.models.into_iter().map(Into::into).collect();
        let pick = match (&self.judge, self.pick) {
            (Some(_), _) | (None, Some(PickBy::Judge)) => Pick::Judge(self.judge),
            (None, None | Some(PickBy::First)) => Pick::First,
            (None, Some(PickBy::FewestTokens)) => Pick::FewestTokens,
            (None, Some(PickBy::MostTokens)) => Pick::MostTokens,
        };
        session.evaluate(input, candidates, pick, options)
    }
}

/// What is told of each try; nothing of a prompt that was not tried.
pub(super) fn of(result: &PromptResult) -> Vec<Tried> {
    let tried = |record: &LoopRecord| {
        let group = record.parallel_group.as_ref()?;
        let config = record.config.as_ref()?;
        let took = record.ended_at? - record.started_at;
        let finished = matches!(
            record.outcome,
            Some(Outcome::Finished(_) | Outcome::FrameSwitch { .. })
        );
        let model = ModelName {
            provider: config.provider.clone(),
            model: config.model.clone(),
        };
        Some(Tried {
            model: model.to_string(),
            usage: record.usage,
            duration_ms: u64::try_from(took.num_milliseconds()).unwrap_or_default(),
            finished,
            won: finished && group.is_selected,
        })
    };
    result.loops.iter().filter_map(|it| tried(it)).collect()
}

/// The model whose answer was taken.
pub(super) fn winner(tried: &[Tried]) -> Option<String> {
    let winner = tried.iter().find(|tried| tried.won)?;
    Some(winner.model.clone())
}

/// One line for each.
pub(super) fn tell(tried: &[Tried]) {
    for Tried {
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
        logs::say(&format!(
            "tried {model}: {tokens} tokens, {}.{:03} s{end}",
            duration_ms / 1000,
            duration_ms % 1000
        ));
    }
}
