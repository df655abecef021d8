//! `wait_for_mcp_server`: waits for a server that is still starting. Offered as long as there is one, so that
//! no prompt has to wait for servers that it does not use.

use super::{connection::Link, tool_names};
use crate::{
    PreparedCall, Tool, ToolCx, Workspace, execute::failure, parse_args, spec_for, tool::end,
};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::{collections::HashSet, sync::Arc};
use turnery_engine::{CallDetail, CallKind, ToolEnvelope, ToolError, ToolErrorKind, ToolSpec};

/// Name of the tool.
pub(super) const NAME: &str = "wait_for_mcp_server";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The server.
    server: String,
}

/// Waits for an MCP server that is starting.
pub(super) struct WaitForServer {
    spec: ToolSpec,
    links: Vec<Arc<Link>>,
}

impl WaitForServer {
    /// Creates the tool for these servers, all of which are starting.
    pub(super) fn new(links: Vec<Arc<Link>>) -> Self {
        let about = format!(
            "Wait until an MCP server has started; its tools can be called after that. Only for a \
             task that needs this server. Still starting: {}.",
            join_names(&links)
        );
        Self {
            spec: spec_for::<Args>(NAME, &about),
            links,
        }
    }

    async fn wait(&self, args: &Value, cx: &ToolCx) -> Result<ToolEnvelope, ToolError> {
        let Args { server } = parse_args(args)?;
        let mut links = self.links.iter();
        let link = links.find(|link| *link.name == *server || link.slug == server);
        let link = link.ok_or_else(|| {
            let message = format!(
                "no MCP server {server:?} is starting; these are: {}",
                join_names(&self.links)
            );
            failure(ToolErrorKind::NotFound, message)
        })?;
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => {
                let message = "waiting for the server was cancelled".to_owned();
                return Err(failure(ToolErrorKind::Cancelled, message));
            }
            () = link.settled() => {}
        }
        let seen = link.seen();
        if let Some(why) = seen.trouble {
            let message = format!("the MCP server {} does not work: {why}", link.name);
            return Err(failure(ToolErrorKind::ExecutionError, message));
        }
        let offer = seen.offer.unwrap_or_default();
        let mut taken = HashSet::new();
        let tools = offer.tools.iter();
        let tools: Vec<String> = tools
            .map(|tool| tool_names::of_tool(&link.slug, &tool.name, &mut taken))
            .collect();
        Ok(ToolEnvelope::text(match tools.is_empty() {
            true => format!("{} has started. It has no tools.", link.name),
            false => format!("{} has started. Its tools: {}", link.name, tools.join(", ")),
        }))
    }
}

fn join_names(links: &[Arc<Link>]) -> String {
    let names: Vec<&str> = links.iter().map(|link| &*link.name).collect();
    names.join(", ")
}

impl Tool for WaitForServer {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn kind(&self) -> CallKind {
        CallKind::Other
    }

    fn describe(&self, args: &Value, _workspace: &Workspace) -> CallDetail {
        let server = args["server"].as_str();
        let link = server.and_then(|server| self.links.iter().find(|it| *it.name == *server));
        CallDetail {
            title: match link {
                Some(link) => format!("Wait for the MCP server {}", link.name),
                None => "Wait for an MCP server".to_owned(),
            },
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
        let prepared = PreparedCall {
            access: crate::Access::Nothing,
            detail: self.describe(args, &cx.workspace),
        };
        Box::pin(std::future::ready(Ok(prepared)))
    }

    fn run<'a>(&'a self, args: &'a Value, cx: &'a ToolCx) -> BoxFuture<'a, ToolEnvelope> {
        Box::pin(async move { end(self.wait(args, cx).await) })
    }
}
