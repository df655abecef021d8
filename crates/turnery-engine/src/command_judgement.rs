//! Results of a command that judges the candidates of a parallel group.

use crate::LoopId;
use serde::{Deserialize, Serialize};

/// Command that judged the candidates of a group, with its result for each of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandJudgement {
    /// The command line.
    pub command: String,
    /// Results for the candidates that finished, in their order.
    pub results: Vec<CandidateCheck>,
}

impl CommandJudgement {
    /// Returns the result for a candidate; `None` if it was not checked.
    #[must_use]
    pub fn check_of(&self, candidate: &LoopId) -> Option<&CandidateCheck> {
        self.results.iter().find(|it| it.loop_id == *candidate)
    }

    /// Returns true if the command succeeded for a candidate.
    #[must_use]
    pub fn has_passed(&self, candidate: &LoopId) -> bool {
        self.check_of(candidate)
            .is_some_and(CandidateCheck::is_passed)
    }
}

/// Result of the judging command for one candidate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CandidateCheck {
    /// Loop of the candidate.
    pub loop_id: LoopId,
    /// Exit code; absent if the command was killed, took too long or did not start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Output, shortened in the middle if it was long, or the reason why there is no exit code.
    pub output: String,
}

impl CandidateCheck {
    /// Returns true if the command succeeded.
    #[must_use]
    pub fn is_passed(&self) -> bool {
        self.exit_code == Some(0)
    }
}
