//! A slash command, its invocation and its outcome.

use crate::server::{
    connection::{Connection, RequestScope},
    rpc_error::RpcError,
};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use turnery_agent::{PromptHandle, PromptResult, Session};
use turnery_engine::Content;

/// Slash command.
pub(crate) struct SlashCommand {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    /// Hint for the arguments.
    pub(crate) hint: Option<&'static str>,
    /// True if the command runs a prompt of its own, so it is rejected while a prompt is running.
    pub(crate) needs_idle: bool,
    pub(super) run: fn(CommandCall) -> BoxFuture<'static, Result<CommandOutcome, RpcError>>,
}

/// Invocation of a command.
pub(crate) struct CommandCall {
    /// Text after the name, trimmed.
    pub(crate) args: String,
    /// Other content of the same prompt.
    pub(crate) attachments: Vec<Content>,
    /// Content of the whole prompt.
    pub(crate) prompt: Vec<Content>,
    pub(crate) session: Session,
    pub(crate) connection: Arc<Connection>,
    pub(crate) scope: RequestScope,
}

/// Outcome of a command.
pub(crate) enum CommandOutcome {
    /// Markdown for the user.
    Text(String),
    /// Prompt started by the command, and a function that returns text to show after it has ended.
    Prompt(PromptHandle, fn(&PromptResult) -> Option<String>),
}

impl SlashCommand {
    /// Runs the command, or starts its prompt.
    pub(crate) async fn run(&self, call: CommandCall) -> Result<CommandOutcome, RpcError> {
        if self.needs_idle && call.session.is_busy() {
            return Err(RpcError::internal(
                "session_busy",
                "A prompt is running",
                format!(
                    "/{} needs an idle session: wait for the prompt to end, or cancel it.",
                    self.name
                ),
                true,
            ));
        }
        (self.run)(call).await
    }
}
