//! Turn engine: runs an agent loop (model calls, tool calls, hooks, limits) as a pure state machine.
//!
//! This crate does no IO: no runtime, no clock, no randomness, no file system, no network. It parses responses of
//! model vendors, but sends and stores nothing. A host feeds [`Input`]s to a [`Loop`], carries out the
//! [`Effect`]s that the loop returns, and feeds back their results.
//! An **effect** is a request to the host, an **event** reports something that happened, and a **record** is
//! the stored history of a loop.

#[macro_use]
mod seeded_fault;

pub mod call;
pub mod category;
mod command_judgement;
pub mod compaction;
mod config_snapshot;
pub mod context;
mod continuation;
pub mod event;
pub mod hook;
pub mod ids;
pub mod machine;
pub mod message;
#[cfg(any(test, feature = "oracle"))]
pub mod oracle;
pub mod outcome;
pub mod parallel_group;
pub mod record;
pub mod recorder;
pub mod response;
mod response_text;
mod session_title;
#[cfg(test)]
mod tests;
mod timestamp;
mod tool_choice;
pub mod usage;
mod visits;

pub use call::{
    Artifact, CallDetail, CallKind, Disposition, Location, PlanEntry, PlanPriority, PlanStatus,
    ToolCall, ToolControl, ToolEnvelope, ToolError, ToolErrorKind, ToolSchema, ToolSpec, Verdict,
};
pub use category::{OutcomeCategory, RetryHint};
pub use command_judgement::{CandidateCheck, CommandJudgement};
pub use compaction::{CompactionBlock, CompactionSettings, ContextSize, RetainedMessage};
pub use config_snapshot::ConfigSnapshot;
pub use continuation::{ContinuationKind, Frame, TurnTrigger};
pub use event::{Event, EventKind};
pub use hook::{HookRequest, HookSet, HookVerdict};
pub use ids::{CallId, FrameId, LoopId, MessageId, PromptId, SessionId, TurnId};
pub use machine::{
    CallAnnouncement, CommitError, ContextBudget, Effect, Input, Limits, Loop, LoopFinish,
    LoopSpec, Price, PriceTier, QueueMode, Spending, Termination, TextValue,
};
pub use message::{
    AudioData, AudioFormat, Content, DocumentData, ImageData, LlmMessage, Message, MessageStop,
    RequestFingerprint, Role,
};
pub use outcome::{
    EndKind, LimitKind, Outcome, OutcomeReport, ProviderFailure, ReachedLimit, StopClass,
    TurnFinish, TurnStop, render_value,
};
pub use record::{
    ChildLoopRef, FailedAttempt, LoopRecord, LoopStatus, ParallelGroup, RequestedEffect, ToolState,
    TurnRecord,
};
pub use recorder::{Recorder, recover_interrupted_loops};
pub use response::{
    Response, ResponseKind,
    call_parts::{CallIds, parse_call_args},
    extract_text::{extract_from_content, extract_text},
    model_delta::ModelDelta,
    model_error::{ModelError, ModelErrorKind},
    model_stop::ModelStop,
    response_error::ResponseError,
    response_limits::{ResponseLimitError, ResponseLimits, ResponseSize},
    source::{ResponseOverrides, ResponseSource},
    tool_result::{ToolResult, tool_message},
};
pub use response_text::ResponseText;
pub use timestamp::Timestamp;
pub use tool_choice::ToolChoice;
pub use usage::{ChildUsage, Usage};
