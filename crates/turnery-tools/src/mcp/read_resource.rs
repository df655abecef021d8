//! `read_mcp_resource`: reads one resource of a server.

use super::{connection::Link, content, list_resources::chosen, request, tool::asked, tool_names};
use crate::{
    Access, PreparedCall, Tool, ToolCx, Workspace, execute::failure, parse_args, spec_for,
    tool::end,
};
use futures_util::future::BoxFuture;
use rmcp::model::{ClientRequest, ReadResourceRequest, ReadResourceRequestParams, ServerResult};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use turnery_engine::{
    Artifact, CallDetail, CallKind, Content, ToolEnvelope, ToolError, ToolErrorKind, ToolSpec,
};

/// Name of the tool.
pub(super) const NAME: &str = "read_mcp_resource";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The server that has it.
    server: String,
    /// Its URI, as list_mcp_resources or a tool names it.
    uri: String,
}

/// Reads a resource of an MCP server.
pub(super) struct ReadResourceTool {
    spec: ToolSpec,
    links: Vec<Arc<Link>>,
}

impl ReadResourceTool {
    /// Creates the tool for these servers, all of which have resources.
    pub(super) fn new(links: Vec<Arc<Link>>) -> Self {
        let about = "Read a resource (a document or data) that an MCP server offers.";
        Self {
            spec: spec_for::<Args>(NAME, about),
            links,
        }
    }

    fn resolve_args(&self, args: &Value) -> Result<(Args, Arc<Link>), ToolError> {
        let args: Args = parse_args(args)?;
        let mut links = chosen(&self.links, Some(&args.server))?;
        let link = links.pop().map(Arc::clone);
        let gone = || failure(ToolErrorKind::NotFound, "no such MCP server".to_owned());
        Ok((args, link.ok_or_else(gone)?))
    }

    async fn read(&self, args: &Value, cx: &ToolCx) -> Result<ToolEnvelope, ToolError> {
        let (args, link) = self.resolve_args(args)?;
        let params = ReadResourceRequestParams::new(args.uri);
        let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
        match request::ask(&link, request, cx).await? {
            ServerResult::ReadResourceResult(read) => {
                let contents = read.contents.into_iter();
                let contents = contents.map(content::convert_resource).collect();
                Ok(ToolEnvelope::ok(contents))
            }
            _ => Err(failure(
                ToolErrorKind::ExecutionError,
                format!("the MCP server {} answered with no resource", link.name),
            )),
        }
    }
}

impl Tool for ReadResourceTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn kind(&self) -> CallKind {
        CallKind::Fetch
    }

    fn describe(&self, args: &Value, _workspace: &Workspace) -> CallDetail {
        let uri = args.get("uri").and_then(Value::as_str).unwrap_or_default();
        CallDetail {
            title: format!("Read {}", super::capabilities::short(uri)),
            kind: self.kind(),
            ..CallDetail::default()
        }
    }

    fn parallel(&self, _args: &Value) -> bool {
        true
    }

    fn prepare<'a>(
        &'a self,
        args: &'a Value,
        cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<PreparedCall, ToolError>> {
        let prepared = self.resolve_args(args).map(|(_, link)| {
            let mut detail = self.describe(args, &cx.workspace);
            let text = asked(&link.name, "resources/read", args);
            detail.artifacts = vec![Artifact::Content(Content::text(text))];
            let access = Access::Server {
                all: tool_names::tool_prefix(&link.slug),
                is_read_only: true,
                is_destructive: false,
            };
            PreparedCall { access, detail }
        });
        Box::pin(std::future::ready(prepared))
    }

    fn run<'a>(&'a self, args: &'a Value, cx: &'a ToolCx) -> BoxFuture<'a, ToolEnvelope> {
        Box::pin(async move { end(self.read(args, cx).await) })
    }
}
