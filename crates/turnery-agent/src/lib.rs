//! Agent: drives a loop with a model, tools, a store and a client. The embedding API.
//!
//! One task owns each open session: its history, its loop, its lane and its queue of prompts.
//! Everything else talks to it through a bounded mailbox.

#[macro_use]
pub mod faults;

pub mod activity;
pub mod agent;
pub mod ask_user;
pub mod bill;
pub mod client;
pub mod compactor;
pub mod converse;
pub mod evaluate;
pub mod hooks;
pub mod observe;
pub mod session;
pub mod settings;
pub mod sink;
pub mod slash;
pub mod subagent;
pub mod trace_sink;
pub mod turn_builder;
pub mod turn_stream;
pub mod usage_report;

pub use activity::{ActivityId, CorrelationId, Projection, ToolOutput, TurnActivity, TurnEvent};
pub use agent::{Agent, Instructions, OpenError, OpenRequest};
pub use ask_user::{Question, Reply, Wanted};
pub use bill::{Bill, money};
pub use client::{Answer, Ask, AskOption, Client, Item, OptionKind, Outbox, Ports, Silent};
pub use compactor::{Compacted, Compaction, CompactionFault};
pub use converse::{ConverseError, ConverseOptions, Conversed, ask, converse, generate};
pub use evaluate::{Candidate, Pick};
pub use hooks::{HOOK_TIME, HookCx, Hooks};
pub use observe::{Cursor, Observed, Observer};
pub use session::{
    CANDIDATES, ContinueError, DeliveryReceipt, PROMPTS_WAITING, PromptError, PromptOptions,
    PromptResult, SayError, Session, SessionOptions, SetError, StartError, Ticket, ToolExecution,
    UnknownPrice, WORDS_WAITING, known_price,
};
pub use settings::{Projects, Settings, SettingsError};
pub use sink::{ActivitySink, ChannelSink};
pub use slash::Slash;
pub use subagent::SubAgents;
pub use tokio_util::sync::CancellationToken;
pub use trace_sink::{ModelCall, TraceSink};
pub use turn_builder::{
    ImageBlob, InputFault, InputItem, PromptOutput, TurnBuilder, TurnError, TurnInput,
};
pub use turn_stream::TurnStream;
pub use turnery_engine::{render, usage};
pub use usage_report::{UsageReport, UsageRow};
