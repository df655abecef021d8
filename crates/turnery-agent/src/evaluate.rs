//! Defines the candidates of an evaluated prompt and how the winner is selected (LOOP-70, LOOP-75, UP-17).

mod judge;

pub(crate) use judge::{JudgeInput, final_answer};

use crate::code_mode::Protocol;
use std::{sync::Arc, time::Duration};
use turnery_engine::parallel_group::SelectionRule;
use turnery_models::{ModelName, Thinking};
use turnery_tools::Mode;

/// Maximum number of candidates that one prompt runs concurrently (LOOP-70).
pub const MAX_CANDIDATES: usize = 8;

/// Default time limit of a judging command.
const DEFAULT_JUDGE_TIMEOUT: Duration = Duration::from_secs(600);

/// Configuration under which a prompt runs as a candidate. What is `None` is as in the prompt or its session.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The model.
    pub model: ModelName,
    /// Thinking level.
    pub thinking: Option<Thinking>,
    /// Sampling temperature.
    pub temperature: Option<f32>,
    /// System prompt, in place of the session's.
    pub system: Option<Arc<str>>,
    /// Names of the session's tools that the candidate may use; it has no others.
    pub tools: Option<Vec<String>>,
    /// Permission mode, no more permissive than the session's. `None` is [`Mode::Plan`]. If any candidate has another
    /// mode, each works in a folder of its own.
    pub mode: Option<Mode>,
    /// How the model acts.
    pub protocol: Option<Protocol>,
}

impl From<ModelName> for Candidate {
    fn from(model: ModelName) -> Self {
        Self {
            model,
            thinking: None,
            temperature: None,
            system: None,
            tools: None,
            mode: None,
            protocol: None,
        }
    }
}

/// Rule that selects the winner among the candidates that finished by themselves. A sole finisher wins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SelectionStrategy {
    /// The first candidate, in the given order.
    #[default]
    First,
    /// The candidate with the fewest tokens.
    FewestTokens,
    /// The candidate with the most tokens.
    MostTokens,
    /// The candidate chosen by a judge model, which sees the prompt, the conversation before it and the
    /// answers; `None` uses the session's own model. Falls back to the first candidate if the judge fails or
    /// makes no choice.
    Judge(Option<ModelName>),
    /// The first candidate for which a command succeeds, or else the first. Each candidate works in a folder of its
    /// own then.
    Command(JudgeCommand),
}

/// Command that judges candidates: the tests of a project, for example. It comes from the user or the host, never from
/// a model or a project, and runs without asking. It is confined like the session's commands, because it may run
/// code that a model has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgeCommand {
    /// Command line for the shell, run in the folder of each candidate that finished.
    pub line: String,
    /// Time limit for each candidate.
    pub timeout: Duration,
}

impl JudgeCommand {
    /// Creates a command with a time limit of ten minutes for each candidate.
    #[must_use]
    pub fn new(line: impl Into<String>) -> Self {
        Self {
            line: line.into(),
            timeout: DEFAULT_JUDGE_TIMEOUT,
        }
    }
}

impl SelectionStrategy {
    /// Returns the rule that applies without a judge or when the judge fails.
    pub(crate) fn selection_rule(&self) -> SelectionRule {
        match self {
            Self::First | Self::Judge(_) | Self::Command(_) => SelectionRule::First,
            Self::FewestTokens => SelectionRule::FewestTokens,
            Self::MostTokens => SelectionRule::MostTokens,
        }
    }
}
