//! Adapts one tool of a server to the `Tool` trait.

use super::{
    capabilities::McpToolInfo, connection::ServerConnection, content, request, tool_names,
};
use crate::{
    Access, PreparedCall, Tool, ToolCx, Workspace,
    invisible_chars::{escape_invisible, escape_invisible_line},
    tool::into_envelope,
};
use futures_util::future::BoxFuture;
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use turnery_engine::{Artifact, CallDetail, CallKind, Content, ToolEnvelope, ToolError, ToolSpec};

/// A tool of a server.
pub(super) struct McpTool {
    spec: ToolSpec,
    /// Name that the server gives the tool.
    remote_name: String,
    title: String,
    is_read_only: bool,
    is_destructive: bool,
    connection: Arc<ServerConnection>,
}

impl McpTool {
    /// Creates the tool under the name that the model uses.
    pub(super) fn new(name: String, info: &McpToolInfo, connection: Arc<ServerConnection>) -> Self {
        let description = match info.description.is_empty() {
            true => format!("{} of the MCP server {}", info.title, connection.name),
            false => info.description.clone(),
        };
        Self {
            spec: ToolSpec {
                name,
                description,
                schema: info.schema.clone(),
            },
            remote_name: info.name.clone(),
            title: info.title.clone(),
            is_read_only: info.is_read_only,
            is_destructive: info.is_destructive,
            connection,
        }
    }

    /// Returns the server, the tool's name on the server, and its title.
    fn call_title(&self) -> String {
        let mut text = format!("MCP {}/{}", self.connection.name, self.remote_name);
        if self.is_destructive {
            text.push_str(" (destructive)");
        }
        if self.title != self.remote_name {
            text.push_str(&format!(", titled \"{}\"", self.title));
        }
        text
    }
}

impl Tool for McpTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn name(&self) -> String {
        self.spec.name.clone()
    }

    fn kind(&self) -> CallKind {
        match self.is_read_only {
            true => CallKind::Fetch,
            false => CallKind::Other,
        }
    }

    fn describe(&self, _args: &Value, _workspace: &Workspace) -> CallDetail {
        CallDetail {
            title: self.call_title(),
            kind: self.kind(),
            ..CallDetail::default()
        }
    }

    fn can_run_in_parallel(&self, _args: &Value) -> bool {
        self.is_read_only
    }

    /// Shows the user the server, the tool and the arguments, whatever title the server declares.
    fn prepare<'a>(
        &'a self,
        args: &'a Value,
        cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<PreparedCall, ToolError>> {
        let mut detail = self.describe(args, &cx.workspace);
        let text = render_request(&self.connection.name, &self.remote_name, args);
        detail.artifacts = vec![Artifact::Content(Content::text(text))];
        let access = Access::Server {
            all: tool_names::server_pattern(&self.connection.slug),
            is_read_only: self.is_read_only,
            is_destructive: self.is_destructive,
        };
        Box::pin(std::future::ready(Ok(PreparedCall { access, detail })))
    }

    fn run<'a>(&'a self, args: &'a Value, cx: &'a ToolCx) -> BoxFuture<'a, ToolEnvelope> {
        Box::pin(async move {
            let mut params = CallToolRequestParams::new(self.remote_name.clone());
            params.arguments = args.as_object().cloned();
            let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
            into_envelope(
                request::request_for_call(&self.connection, request, cx)
                    .await
                    .map(content::response_to_envelope),
            )
        })
    }

    fn timeout(&self, _args: &Value) -> Duration {
        self.connection.timeout
    }
}

/// Formats a request to a server in full, for display.
pub(super) fn render_request(server: &str, what: &str, args: &Value) -> String {
    let json = serde_json::to_string_pretty(args).unwrap_or_default();
    let json = escape_invisible(&json);
    // Longer than any run of backticks in the arguments, so that they cannot close the fence.
    let longest = json.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(3.max(longest + 1));
    let (server, what) = (escape_invisible_line(server), escape_invisible_line(what));
    format!("Server {server}, tool {what}:\n{fence}json\n{json}\n{fence}")
}
