//! Evaluate: what a prompt is tried under when it is tried several times, and how the winner is found
//! (LOOP-70, LOOP-75, UP-17).

mod judge;

pub(crate) use judge::{Case, answer_of};

use turnery_engine::group::Preference;
use turnery_models::{ModelName, Thinking};

/// One configuration that a prompt is tried under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The model.
    pub model: ModelName,
    /// How much it is to think; as the session says if none.
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

/// How the winner is found, among the candidates that came to an end of their own. One that did so
/// alone wins without further ado.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Pick {
    /// The first, in the order in which they were given.
    #[default]
    First,
    /// The one that spent the fewest tokens.
    FewestTokens,
    /// The one that spent the most.
    MostTokens,
    /// The one that a model takes, who is shown the prompt, what was said before it, and the answers;
    /// the session's own model if none. The first, if it fails or makes no choice.
    Judge(Option<ModelName>),
}

impl Pick {
    /// What decides when nobody is asked, or nobody answers.
    pub(crate) fn preference(&self) -> Preference {
        match self {
            Self::First | Self::Judge(_) => Preference::First,
            Self::FewestTokens => Preference::FewestTokens,
            Self::MostTokens => Preference::MostTokens,
        }
    }
}
