//! Common imports, for `use turnery_sdk::prelude::*`.

pub use crate::{
    ActivityEvent, ActivitySink, Agent, AgentBuilder, AgentExt, CancellationToken, Client,
    CommittedEffect, Content, EffectHandler, ImageBlob, Limits, OpenError, Outcome,
    OutcomeCategory, PermissionAnswer, PermissionRequest, PromptActivity, PromptError, PromptInput,
    PromptOptions, PromptOutput, Session, SessionExt, SessionId, Settings, block_on,
};
pub use schemars::JsonSchema;
pub use serde::Deserialize;
pub use serde_json::{Value, json};
pub use turnery_engine::{ToolEnvelope, ToolError, ToolErrorKind};
pub use turnery_tools::{FunctionTool, Mode, Tool, ToolCx, Toolbox};
