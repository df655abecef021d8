//! `wait_for_mcp_server`: waits for a server that is still starting. Offered as long as there is one, so that no prompt
//! has to wait for servers that it does not use.

use super::{link::Link, names};
use crate::{Prepared, Tool, ToolCx, Workspace, execute::failure, parse_args, spec_for, tool::end};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::{collections::HashSet, sync::Arc};
use turnery_engine::{CallDetail, CallKind, FailureKind, ToolEnvelope, ToolFailure, ToolSpec};

/// How the model calls it.
pub(super) const NAME: &str = "wait_for_mcp_server";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The server.
    server: String,
}

/// The tool.
pub(super) struct WaitForServer {
    spec: ToolSpec,
    links: Vec<Arc<Link>>,
}

impl WaitForServer {
    /// Over these servers, all of which are starting.
    pub(super) fn new(links: Vec<Arc<Link>>) -> Self {
        let about = format!(
            "Wait until an MCP server has started; its tools can be called after that. Only for a \
             task that needs this server. Still starting: {}.",
            names_of(&links)
        );
        Self {
            spec: spec_for::<Args>(NAME, &about),
            links,
        }
    }

    async fn wait(&self, args: &Value, cx: &ToolCx) -> Result<ToolEnvelope, ToolFailure> {
        let Args { server } = parse_args(args)?;
        let mut links = self.links.iter();
        let link = links.find(|link| *link.name == *server || link.slug == server);
        let link = link.ok_or_else(|| {
            let message = format!(
                "no MCP server {server:?} is starting; these are: {}",
                names_of(&self.links)
            );
            failure(FailureKind::NotFound, message)
        })?;
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => {
                let message = "waiting for the server was cancelled".to_owned();
                return Err(failure(FailureKind::Cancelled, message));
            }
            () = link.settled() => {}
        }
        let seen = link.seen();
        if let Some(why) = seen.trouble {
            let message = format!("the MCP server {} does not work: {why}", link.name);
            return Err(failure(FailureKind::ExecutionError, message));
        }
        let offer = seen.offer.unwrap_or_default();
        let mut taken = HashSet::new();
        let tools = offer.tools.iter();
        let tools: Vec<String> = tools
            .map(|tool| names::of_tool(&link.slug, &tool.name, &mut taken))
            .collect();
        Ok(ToolEnvelope::text(match tools.is_empty() {
            true => format!("{} has started. It has no tools.", link.name),
            false => format!("{} has started. Its tools: {}", link.name, tools.join(", ")),
        }))
    }
}

fn names_of(links: &[Arc<Link>]) -> String {
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
    ) -> BoxFuture<'a, Result<Prepared, ToolFailure>> {
        let prepared = Prepared {
            access: crate::Access::Nothing,
            detail: self.describe(args, &cx.workspace),
        };
        Box::pin(std::future::ready(Ok(prepared)))
    }

    fn run<'a>(&'a self, args: &'a Value, cx: &'a ToolCx) -> BoxFuture<'a, ToolEnvelope> {
        Box::pin(async move { end(self.wait(args, cx).await) })
    }
}
