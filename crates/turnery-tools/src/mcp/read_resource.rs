//! `read_mcp_resource`: reads one resource of a server.

use super::{call, link::Link, list_resources::chosen, names, result, tool::asked};
use crate::{
    Access, Prepared, Tool, ToolCx, Workspace, execute::failure, parse_args, spec_for, tool::end,
};
use futures_util::future::BoxFuture;
use rmcp::model::{ClientRequest, ReadResourceRequest, ReadResourceRequestParams, ServerResult};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use turnery_engine::{
    Artifact, CallDetail, CallKind, Content, FailureKind, ToolEnvelope, ToolFailure, ToolSpec,
};

/// How the model calls it.
pub(super) const NAME: &str = "read_mcp_resource";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The server that has it.
    server: String,
    /// Its URI, as list_mcp_resources or a tool names it.
    uri: String,
}

/// The tool.
pub(super) struct ReadResource {
    spec: ToolSpec,
    links: Vec<Arc<Link>>,
}

impl ReadResource {
    /// Over these servers, all of which have resources.
    pub(super) fn new(links: Vec<Arc<Link>>) -> Self {
        let about = "Read a resource (a document or data) that an MCP server offers.";
        Self {
            spec: spec_for::<Args>(NAME, about),
            links,
        }
    }

    fn look_up(&self, args: &Value) -> Result<(Args, Arc<Link>), ToolFailure> {
        let args: Args = parse_args(args)?;
        let mut links = chosen(&self.links, Some(&args.server))?;
        let link = links.pop().map(Arc::clone);
        let gone = || failure(FailureKind::NotFound, "no such MCP server".to_owned());
        Ok((args, link.ok_or_else(gone)?))
    }

    async fn read(&self, args: &Value, cx: &ToolCx) -> Result<ToolEnvelope, ToolFailure> {
        let (args, link) = self.look_up(args)?;
        let params = ReadResourceRequestParams::new(args.uri);
        let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
        match call::ask(&link, request, cx).await? {
            ServerResult::ReadResourceResult(read) => {
                let contents = read.contents.into_iter();
                let contents = contents.map(result::resource_contents).collect();
                Ok(ToolEnvelope::ok(contents))
            }
            _ => Err(failure(
                FailureKind::ExecutionError,
                format!("the MCP server {} answered with no resource", link.name),
            )),
        }
    }
}

impl Tool for ReadResource {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn kind(&self) -> CallKind {
        CallKind::Fetch
    }

    fn describe(&self, args: &Value, _workspace: &Workspace) -> CallDetail {
        let uri = args.get("uri").and_then(Value::as_str).unwrap_or_default();
        CallDetail {
            title: format!("Read {}", super::offer::short(uri)),
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
    ) -> BoxFuture<'a, Result<Prepared, ToolFailure>> {
        let prepared = self.look_up(args).map(|(_, link)| {
            let mut detail = self.describe(args, &cx.workspace);
            let text = asked(&link.name, "resources/read", args);
            detail.artifacts = vec![Artifact::Content(Content::text(text))];
            let access = Access::Server {
                all: names::of_all(&link.slug),
                reads_only: true,
                destroys: false,
            };
            Prepared { access, detail }
        });
        Box::pin(std::future::ready(prepared))
    }

    fn run<'a>(&'a self, args: &'a Value, cx: &'a ToolCx) -> BoxFuture<'a, ToolEnvelope> {
        Box::pin(async move { end(self.read(args, cx).await) })
    }
}
