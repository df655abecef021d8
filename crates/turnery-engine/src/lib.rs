//! The turn engine: Session, Loop and Turn as pure state machines.
//!
//! This crate does no IO. It has no runtime, no clock, no randomness and no file
//! system, and it knows no wire word. It is fed [`Input`]s and answers with
//! [`Effect`]s; whoever drives it carries the effects out and feeds back what
//! happened. Three words, three layers: an **effect** is to be done, an **event**
//! has happened, a **record** is kept.

mod answer_text;
pub mod call;
pub mod category;
pub mod compaction;
pub mod context;
pub mod event;
pub mod group;
pub mod hook;
pub mod ids;
pub mod machine;
pub mod message;
#[cfg(any(test, feature = "oracle"))]
pub mod oracle;
pub mod outcome;
pub mod record;
pub mod recorder;
pub mod response;
#[cfg(test)]
mod tests;
mod title;
pub mod usage;

pub use answer_text::AnswerText;
pub use call::{
    Artifact, CallDetail, CallKind, Disposition, FailureKind, Location, PlanEntry, PlanPriority,
    PlanStatus, Schema, ToolCall, ToolControl, ToolEnvelope, ToolFailure, ToolSpec, Verdict,
};
pub use category::{Category, RetryHint};
pub use compaction::{CompactionBlock, CompactionSettings, ContextSize, Kept};
pub use event::{Event, EventKind, StreamDelta};
pub use hook::{Hook, HookSet, HookVerdict};
pub use ids::{CallId, FrameId, LoopId, MessageId, PromptId, SessionId, TurnId};
pub use machine::{
    Announced, CommitFault, Context, Effect, Finish, Input, Limits, Loop, LoopSpec, Price,
    QueueMode, Spending,
};
pub use message::{
    AudioData, AudioFormat, Content, ImageData, LlmMessage, Message, MessageStop, Role,
};
pub use outcome::{Detail, LimitKind, Outcome, StopClass, TurnFinish, TurnStop, render};
pub use record::{
    Attempt, ChildLoopRef, ChildUsage, ConfigSnapshot, ContinuationKind, Frame, LoopRecord,
    LoopStatus, ParallelGroup, Turn, TurnTrigger,
};
pub use recorder::{Recorder, interrupted, interrupted_loops};
pub use response::{
    AnswerLimits, AnswerOverrun, AnswerSize, FaultKind, ModelDelta, ModelFault, ModelStop, Named,
    Response, ResponseError, ResponseKind, Source, ToolResult, extract_from_content, extract_text,
    tool_message,
};
pub use usage::Usage;

/// A moment on the wall clock, UTC. The engine never reads a clock: every input brings its time.
pub type Timestamp = chrono::DateTime<chrono::Utc>;
