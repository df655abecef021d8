//! `wait_for_mcp_server`: waits for a server that is still starting. Offered as long as there is one, so that
//! no prompt has to wait for servers that it does not use.

use super::{connection::Link, tool_names};
use crate::{tool::ToolCx, typed_tool::TypedTool, workspace::Workspace};
use schemars::JsonSchema;
use serde::Deserialize;
use std::{borrow::Cow, collections::HashSet, sync::Arc};
use turnery_engine::{CallDetail, ToolEnvelope, ToolError, ToolErrorKind};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The server.
    server: String,
}

/// Waits for an MCP server that is starting.
pub(super) struct WaitForServer {
    links: Vec<Arc<Link>>,
}

impl WaitForServer {
    /// Creates the tool for these servers, all of which are starting.
    pub(super) fn new(links: Vec<Arc<Link>>) -> Self {
        Self { links }
    }

    async fn wait(&self, server: &str, cx: &ToolCx) -> Result<ToolEnvelope, ToolError> {
        let mut links = self.links.iter();
        let link = links.find(|link| &*link.name == server || link.slug == server);
        let link = link.ok_or_else(|| {
            let message = format!(
                "no MCP server {server:?} is starting; these are: {}",
                join_names(&self.links)
            );
            ToolError::new(ToolErrorKind::NotFound, message)
        })?;
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => {
                let message = "waiting for the server was cancelled".to_owned();
                return Err(ToolError::new(ToolErrorKind::Cancelled, message));
            }
            () = link.settled() => {}
        }
        let seen = link.seen();
        if let Some(why) = seen.trouble {
            let message = format!("the MCP server {} does not work: {why}", link.name);
            return Err(ToolError::new(ToolErrorKind::ExecutionError, message));
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

impl TypedTool for WaitForServer {
    type Args = Args;
    const NAME: &'static str = "wait_for_mcp_server";
    const IS_PARALLEL: bool = true;

    fn description(&self) -> Cow<'static, str> {
        format!(
            "Wait until an MCP server has started; its tools can be called after that. Only for a \
             task that needs this server. Still starting: {}.",
            join_names(&self.links)
        )
        .into()
    }

    fn describe(&self, args: &Args, _workspace: &Workspace) -> CallDetail {
        let link = self.links.iter().find(|it| *it.name == *args.server);
        CallDetail {
            title: match link {
                Some(link) => format!("Wait for the MCP server {}", link.name),
                None => "Wait for an MCP server".to_owned(),
            },
            kind: Self::KIND,
            ..CallDetail::default()
        }
    }

    async fn run(&self, args: Args, cx: &ToolCx) -> Result<ToolEnvelope, ToolError> {
        self.wait(&args.server, cx).await
    }
}
