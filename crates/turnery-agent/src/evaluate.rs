//! Defines the candidates of an evaluated prompt and how the winner is selected (LOOP-70, LOOP-75, UP-17).

mod judge;

pub(crate) use judge::{JudgeInput, final_answer};

use turnery_engine::parallel_group::SelectionRule;
use turnery_models::{ModelName, Thinking};

/// Maximum number of candidates that one prompt runs concurrently (LOOP-70).
pub const MAX_CANDIDATES: usize = 8;

/// Configuration under which a prompt runs as a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The model.
    pub model: ModelName,
    /// Thinking level; `None` uses the session's.
    pub thinking: Option<Thinking>,
}

impl From<ModelName> for Candidate {
    fn from(model: ModelName) -> Self {
        Self {
            model,
            thinking: None,
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
}

impl SelectionStrategy {
    /// Returns the rule that applies without a judge or when the judge fails.
    pub(crate) fn selection_rule(&self) -> SelectionRule {
        match self {
            Self::First | Self::Judge(_) => SelectionRule::First,
            Self::FewestTokens => SelectionRule::FewestTokens,
            Self::MostTokens => SelectionRule::MostTokens,
        }
    }
}
