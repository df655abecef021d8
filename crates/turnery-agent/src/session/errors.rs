//! Defines the errors of sessions and prompts.

use super::price::UnknownPriceError;
use crate::evaluate::MAX_CANDIDATES;
use turnery_engine::{CommitError, LoopId};
use turnery_models::UnknownModelError;
use turnery_store::StoreError;
use turnery_tools::CandidateFoldersError;

/// Error of starting a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The prompt queue is full.
    #[error("this session already has {0} prompts waiting; wait for one to end, or cancel")]
    Full(usize),
    /// Too many candidates.
    #[error("{0} candidates are too many for one prompt; name at most {MAX_CANDIDATES}")]
    Candidates(usize),
    /// The session is closed.
    #[error("the session is closed; open it again")]
    Closed,
}

/// Error of steering a running prompt or adding a follow-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InterjectError {
    /// No prompt is running or waiting.
    #[error("no prompt is running in this session; start one")]
    Idle,
    /// Too many interjections are pending.
    #[error("the running prompt already has {0} messages pending; wait for it to end")]
    Full(usize),
    /// The content is empty.
    #[error("the message is empty; add some content")]
    Empty,
    /// The session is closed.
    #[error("the session is closed; open it again")]
    Closed,
}

/// Error of changing a session option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetOptionError {
    /// There is no such model.
    #[error(transparent)]
    Model(#[from] UnknownModelError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The session is closed.
    #[error("the session is closed; open it again")]
    Closed,
}

/// Error of a prompt that has no result: a failure of the host, never an outcome (S8, LASH-33).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// Another process or handle is running a prompt in the session; this prompt did not begin.
    #[error("the session is busy: {holder} is at work in it; try again when it is done")]
    Busy {
        /// Description of the lane's owner.
        holder: String,
    },
    /// The last loop could not be stored and left no trace.
    #[error(transparent)]
    Lost(#[from] CommitError),
    /// The model does not exist; the prompt did not begin.
    #[error(transparent)]
    Model(#[from] UnknownModelError),
    /// The cost is limited and a model's price is unknown; the prompt did not begin.
    #[error(transparent)]
    Price(#[from] UnknownPriceError),
    /// The session cannot be continued as requested; the prompt did not begin.
    #[error(transparent)]
    Continue(#[from] ContinueError),
    /// The prompt was to act by code, and the program has no interpreter; the prompt did not begin.
    #[error(
        "code mode is not available in this program: its `main` has to begin with `turnery_sdk::code::init()`"
    )]
    NoInterpreter,
    /// A candidate's configuration is not possible in this session; the prompt did not begin.
    #[error("candidate {number}: {reason}")]
    Candidate {
        /// Number of the candidate, from 1.
        number: usize,
        /// Reason, with what is possible instead.
        reason: String,
    },
    /// The command that was to judge the candidates is empty; the prompt did not begin.
    #[error("the command that judges the candidates is empty")]
    EmptyJudgeCommand,
    /// The folders of the candidates could not be made; the prompt did not begin.
    #[error(transparent)]
    Folders(#[from] CandidateFoldersError),
    /// The prompt was withdrawn before it began.
    #[error("the prompt was withdrawn before it began")]
    Withdrawn,
    /// The queued prompt was run or withdrawn by another host.
    #[error("the queued prompt was run or withdrawn already")]
    AlreadyRun,
    /// The MCP server that should have generated the prompt failed; the prompt did not begin.
    #[error("the prompt could not be written: {0}")]
    Server(String),
}

/// Error of continuing, rerunning or branching a session (UP-15).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContinueError {
    /// The session has no such loop.
    #[error("this session has no loop {0}; take one of its own")]
    NoSuchLoop(LoopId),
    /// The session has no loop to rerun.
    #[error("nothing has run in this session yet; prompt it first")]
    NothingToRerun,
    /// The context is empty.
    #[error("the conversation is empty, so there is nothing to go on from; prompt it first")]
    ContextEmpty,
    /// The last message is the model's.
    #[error("the model has already answered; say something new, or rerun the loop")]
    Answered,
}
