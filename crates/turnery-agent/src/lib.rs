//! Runs an agent's loop against a model, tools, a store and a client. Programs that embed it use `turnery-sdk`.
//!
//! One task owns each open session: its history, its running loop, its lane in the store and its prompt
//! queue. Handles talk to that task through a bounded mailbox.

#[macro_use]
pub mod faults;

pub mod activity;
pub mod agent;
pub mod ask_user;
pub(crate) mod cancels;
pub mod client;
pub mod code_mode;
pub mod compactor;
pub mod cost_report;
pub mod custom_command;
pub mod effect_handler;
pub mod evaluate;
pub mod finish;
pub mod hooks;
pub mod notify;
pub mod observe;
pub mod session;
pub mod settings;
pub mod sink;
pub mod sub_agent;
pub mod trace_sink;
pub mod usage_report;
pub mod view;

pub use activity::{
    ActivityEvent, ActivityId, CorrelationId, Projection, PromptActivity, ToolOutput,
};
pub use agent::{Agent, Instructions, OpenError, OpenRequest};
pub use ask_user::{AnswerKind, UserAnswer, UserQuestion};
pub use client::{
    Client, ClientPorts, Outbox, OutboxItem, PermissionAnswer, PermissionChoice,
    PermissionChoiceKind, PermissionRequest, SilentClient,
};
pub use code_mode::{CODE_TOOL, Protocol};
pub use compactor::{Compaction, CompactionError, CompactionOutput};
pub use cost_report::{CostReport, millionths_to_units};
pub use custom_command::CustomCommand;
pub use effect_handler::{CommittedEffect, EffectHandler};
pub use evaluate::{Candidate, JudgeCommand, MAX_CANDIDATES, SelectionStrategy};
pub use finish::{FinalAnswerFormat, FinishRule, ValueSchema, ValueSchemaError};
pub use hooks::{DEFAULT_HOOK_TIMEOUT, HookCx, Hooks};
pub use notify::{NOTIFICATION_TYPE, NotifyTool, notification_policy};
pub use observe::{ObservedEvent, Observer, ObserverCursor};
pub use session::{
    ContinueError, DeliveryReceipt, InterjectError, MAX_PENDING_INTERJECTIONS, MAX_QUEUED_PROMPTS,
    PromptError, PromptHandle, PromptOptions, PromptResult, QueuedReceipt, Session, SessionOptions,
    SetOptionError, StartError, ToolExecution, UnknownPriceError, WinnerChanges, known_price,
};
pub use settings::{Settings, SettingsError, SettingsResolver};
pub use sink::{ActivityLog, ActivitySink, PromptSinks};
pub use sub_agent::SubAgentTool;
pub use tokio_util::sync::CancellationToken;
pub use trace_sink::{ModelCallAttempt, PromptStart, TraceSink};
pub use turnery_engine::{render_value, usage};
pub use usage_report::{UsageReport, UsageRow};

use turnery_tools::TypedTool as _;

/// Names of the tools that this crate defines.
pub const TOOL_NAMES: &[&str] = &[
    SubAgentTool::NAME,
    ask_user::AskUserTool::NAME,
    NotifyTool::NAME,
];
