//! `list_mcp_resources`: lists the resources of the session's servers.

use super::{
    capabilities,
    connection::{ServerConnection, find_connection, join_names},
    errors,
};
use crate::{tool::ToolCx, typed_tool::TypedTool};
use schemars::JsonSchema;
use serde::Deserialize;
use std::{borrow::Cow, fmt::Write as _, slice, sync::Arc};
use turnery_engine::{CallKind, ToolEnvelope, ToolError, ToolErrorKind};

/// Property of the servers to choose from, for an error.
pub(super) const HAVE_RESOURCES: &str = "has resources; these have";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListResourcesArgs {
    /// Only those of this server; of all servers if absent.
    server: Option<String>,
}

/// Lists resources of MCP servers.
pub(super) struct ListResourcesTool {
    connections: Vec<Arc<ServerConnection>>,
}

impl ListResourcesTool {
    /// Creates the tool for these servers, all of which have resources.
    pub(super) fn new(connections: Vec<Arc<ServerConnection>>) -> Self {
        Self { connections }
    }
}

async fn render_resources(connection: &ServerConnection) -> Result<String, String> {
    let peer = connection.peer().await?;
    let peer = &peer;
    let why = |error: rmcp::ServiceError| errors::describe_request_error(&error).1;
    let resources = capabilities::fetch_all_pages(|page| async move {
        let list = peer.list_resources(page).await?;
        Ok((list.resources, list.next_cursor))
    });
    let resources = resources.await.map_err(why)?;
    // Not every server supports templates.
    let templates = capabilities::fetch_all_pages(|page| async move {
        let list = peer.list_resource_templates(page).await?;
        Ok((list.resource_templates, list.next_cursor))
    });
    let templates = templates.await.unwrap_or_default();
    let mut text = String::new();
    for it in resources.iter().take(capabilities::MAX_LISTED) {
        let about = it.description.as_deref().or(it.title.as_deref());
        let _ = writeln!(
            text,
            "  {} {}",
            it.uri,
            capabilities::single_line(about.unwrap_or(&it.name))
        );
    }
    if let Some(more) = resources.len().checked_sub(capabilities::MAX_LISTED + 1) {
        let _ = writeln!(text, "  … and {} more", more + 1);
    }
    for it in templates.iter().take(capabilities::MAX_LISTED) {
        let about = it.description.as_deref().or(it.title.as_deref());
        let about = capabilities::single_line(about.unwrap_or(&it.name));
        let _ = writeln!(text, "  {} (fill in the braces) {about}", it.uri_template);
    }
    if text.is_empty() {
        text.push_str("  none\n");
    }
    Ok(text)
}

impl TypedTool for ListResourcesTool {
    type Args = ListResourcesArgs;
    const NAME: &'static str = "list_mcp_resources";
    const TITLE: &'static str = "List MCP resources";
    const KIND: CallKind = CallKind::Search;
    const IS_PARALLEL: bool = true;

    fn description(&self) -> Cow<'static, str> {
        format!(
            "List the resources (documents and data) that MCP servers offer, with the URI to read \
             each by with read_mcp_resource. Servers: {}.",
            join_names(&self.connections)
        )
        .into()
    }

    /// Needs no permission: listing sends no arguments to the servers.
    async fn run(&self, args: ListResourcesArgs, cx: &ToolCx) -> Result<ToolEnvelope, ToolError> {
        let connections = match &args.server {
            Some(name) => {
                slice::from_ref(find_connection(&self.connections, name, HAVE_RESOURCES)?)
            }
            None => &self.connections,
        };
        let mut text = String::new();
        for connection in connections {
            let listed = tokio::select! {
                biased;
                () = cx.cancel.cancelled() => {
                    let message = "listing the resources was cancelled".to_owned();
                    return Err(ToolError::new(ToolErrorKind::Cancelled, message));
                }
                listed = render_resources(connection) => listed,
            };
            let listed = listed.unwrap_or_else(|why| {
                format!("  cannot be listed: {}\n", connection.secrets.redact(&why))
            });
            let _ = write!(text, "{}:\n{listed}", connection.name);
        }
        Ok(ToolEnvelope::text(text))
    }
}
