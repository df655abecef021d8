//! `read_mcp_resource`: reads one resource of a server.

use super::{
    connection::{ServerConnection, find_connection},
    content,
    list_resources::HAVE_RESOURCES,
    request,
    tool::render_request,
    tool_names,
};
use crate::{
    access::Access,
    tool::{PreparedCall, ToolCx},
    typed_tool::TypedTool,
    workspace::Workspace,
};
use rmcp::model::{ClientRequest, ReadResourceRequest, ReadResourceRequestParams, ServerResult};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::{borrow::Cow, sync::Arc};
use turnery_engine::{
    Artifact, CallDetail, CallKind, Content, ToolEnvelope, ToolError, ToolErrorKind,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadResourceArgs {
    /// The server that has it.
    server: String,
    /// Its URI, as list_mcp_resources or a tool names it.
    uri: String,
}

/// Reads a resource of an MCP server.
pub(super) struct ReadResourceTool {
    connections: Vec<Arc<ServerConnection>>,
}

impl ReadResourceTool {
    /// Creates the tool for these servers, all of which have resources.
    pub(super) fn new(connections: Vec<Arc<ServerConnection>>) -> Self {
        Self { connections }
    }

    fn find_connection(&self, args: &ReadResourceArgs) -> Result<&ServerConnection, ToolError> {
        let found = find_connection(&self.connections, &args.server, HAVE_RESOURCES);
        found.map(|connection| &**connection)
    }
}

impl TypedTool for ReadResourceTool {
    type Args = ReadResourceArgs;
    const NAME: &'static str = "read_mcp_resource";
    const KIND: CallKind = CallKind::Fetch;
    const IS_PARALLEL: bool = true;

    fn description(&self) -> Cow<'static, str> {
        "Read a resource (a document or data) that an MCP server offers.".into()
    }

    fn describe(&self, args: &ReadResourceArgs, _workspace: &Workspace) -> CallDetail {
        CallDetail {
            title: format!("Read {}", super::capabilities::truncate_name(&args.uri)),
            kind: Self::KIND,
            ..CallDetail::default()
        }
    }

    async fn prepare(
        &self,
        args: ReadResourceArgs,
        cx: &ToolCx,
    ) -> Result<PreparedCall, ToolError> {
        let connection = self.find_connection(&args)?;
        let mut detail = TypedTool::describe(self, &args, &cx.workspace);
        let shown = json!({"server": args.server, "uri": args.uri});
        let text = render_request(&connection.name, "resources/read", &shown);
        detail.artifacts = vec![Artifact::Content(Content::text(text))];
        let access = Access::Server {
            all: tool_names::server_pattern(&connection.slug),
            is_read_only: true,
            is_destructive: false,
        };
        Ok(PreparedCall { access, detail })
    }

    async fn run(&self, args: ReadResourceArgs, cx: &ToolCx) -> Result<ToolEnvelope, ToolError> {
        let connection = self.find_connection(&args)?;
        let params = ReadResourceRequestParams::new(args.uri);
        let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
        match request::request_for_call(connection, request, cx).await? {
            ServerResult::ReadResourceResult(read) => {
                let contents = read.contents.into_iter();
                let contents = contents.map(content::convert_resource).collect();
                Ok(ToolEnvelope::ok(contents))
            }
            _ => Err(ToolError::new(
                ToolErrorKind::ExecutionError,
                format!(
                    "the MCP server {} answered with no resource",
                    connection.name
                ),
            )),
        }
    }
}
