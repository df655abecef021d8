//! `wait_for_mcp_server`: waits for a server that is still starting. Offered as long as there is one, so that
//! no prompt has to wait for servers that it does not use.

use super::connection::{ServerConnection, find_connection, join_names};
use crate::{tool::ToolCx, typed_tool::TypedTool, workspace::Workspace};
use schemars::JsonSchema;
use serde::Deserialize;
use std::{borrow::Cow, sync::Arc};
use turnery_engine::{CallDetail, ToolEnvelope, ToolError, ToolErrorKind};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitForServerArgs {
    /// The server.
    server: String,
}

/// Waits for an MCP server that is starting.
pub(super) struct WaitForServerTool {
    connections: Vec<Arc<ServerConnection>>,
}

impl WaitForServerTool {
    /// Creates the tool for these servers, all of which are starting.
    pub(super) fn new(connections: Vec<Arc<ServerConnection>>) -> Self {
        Self { connections }
    }
}

impl TypedTool for WaitForServerTool {
    type Args = WaitForServerArgs;
    const NAME: &'static str = "wait_for_mcp_server";
    const IS_PARALLEL: bool = true;

    fn description(&self) -> Cow<'static, str> {
        format!(
            "Wait until an MCP server has started; its tools can be called after that. Only for a \
             task that needs this server. Still starting: {}.",
            join_names(&self.connections)
        )
        .into()
    }

    fn describe(&self, args: &WaitForServerArgs, _workspace: &Workspace) -> CallDetail {
        CallDetail {
            title: match find_connection(&self.connections, &args.server, "") {
                Ok(connection) => format!("Wait for the MCP server {}", connection.name),
                Err(_) => "Wait for an MCP server".to_owned(),
            },
            kind: Self::KIND,
            ..CallDetail::default()
        }
    }

    async fn run(&self, args: WaitForServerArgs, cx: &ToolCx) -> Result<ToolEnvelope, ToolError> {
        let state = "is starting; these are";
        let connection = find_connection(&self.connections, &args.server, state)?;
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => {
                let message = "waiting for the server was cancelled".to_owned();
                return Err(ToolError::new(ToolErrorKind::Cancelled, message));
            }
            () = connection.wait_until_settled() => {}
        }
        let seen = connection.state();
        if let Some(why) = seen.error {
            let message = format!("the MCP server {} does not work: {why}", connection.name);
            return Err(ToolError::new(ToolErrorKind::ExecutionError, message));
        }
        let tools = connection.tool_names(&seen.capabilities.unwrap_or_default());
        Ok(ToolEnvelope::text(match tools.is_empty() {
            true => format!("{} has started. It has no tools.", connection.name),
            false => format!(
                "{} has started. Its tools: {}",
                connection.name,
                tools.join(", ")
            ),
        }))
    }
}
