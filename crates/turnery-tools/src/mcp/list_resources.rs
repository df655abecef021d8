//! `list_mcp_resources`: which resources the servers of the session have.

use super::{fault, link::Link, offer};
use crate::{Prepared, Tool, ToolCx, Workspace, execute::failure, parse_args, spec_for, tool::end};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::{fmt::Write as _, sync::Arc};
use turnery_engine::{CallDetail, CallKind, FailureKind, ToolEnvelope, ToolFailure, ToolSpec};

/// How the model calls it.
pub(super) const NAME: &str = "list_mcp_resources";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// Only those of this server; of all servers if absent.
    server: Option<String>,
}

/// The tool.
pub(super) struct ListResources {
    spec: ToolSpec,
    links: Vec<Arc<Link>>,
}

impl ListResources {
    /// Over these servers, all of which have resources.
    pub(super) fn new(links: Vec<Arc<Link>>) -> Self {
        let names: Vec<&str> = links.iter().map(|link| &*link.name).collect();
        let about = format!(
            "List the resources (documents and data) that MCP servers offer, with the URI to read \
             each by with read_mcp_resource. Servers: {}.",
            names.join(", ")
        );
        Self {
            spec: spec_for::<Args>(NAME, &about),
            links,
        }
    }

    async fn list(&self, args: &Value, cx: &ToolCx) -> Result<ToolEnvelope, ToolFailure> {
        let args: Args = parse_args(args)?;
        let mut text = String::new();
        for link in chosen(&self.links, args.server.as_deref())? {
            let listed = tokio::select! {
                biased;
                () = cx.cancel.cancelled() => {
                    let message = "listing the resources was cancelled".to_owned();
                    return Err(failure(FailureKind::Cancelled, message));
                }
                listed = of(link) => listed,
            };
            let listed = listed
                .unwrap_or_else(|why| format!("  cannot be listed: {}\n", link.secrets.hide(&why)));
            let _ = write!(text, "{}:\n{listed}", link.name);
        }
        Ok(ToolEnvelope::text(text))
    }
}

/// The servers to look at.
pub(super) fn chosen<'l>(
    links: &'l [Arc<Link>],
    name: Option<&str>,
) -> Result<Vec<&'l Arc<Link>>, ToolFailure> {
    let Some(name) = name else {
        return Ok(links.iter().collect());
    };
    match links
        .iter()
        .find(|link| &*link.name == name || link.slug == name)
    {
        Some(link) => Ok(vec![link]),
        None => {
            let names: Vec<&str> = links.iter().map(|link| &*link.name).collect();
            let message = format!(
                "no MCP server {name:?} has resources; these have: {}",
                names.join(", ")
            );
            Err(failure(FailureKind::NotFound, message))
        }
    }
}

async fn of(link: &Link) -> Result<String, String> {
    let peer = link.peer().await?;
    let peer = &peer;
    let why = |error: rmcp::ServiceError| fault::of_request(&error).1;
    let resources = offer::pages(|page| async move {
        let list = peer.list_resources(page).await?;
        Ok((list.resources, list.next_cursor))
    });
    let resources = resources.await.map_err(why)?;
    // Not every server knows of templates.
    let templates = offer::pages(|page| async move {
        let list = peer.list_resource_templates(page).await?;
        Ok((list.resource_templates, list.next_cursor))
    });
    let templates = templates.await.unwrap_or_default();
    let mut text = String::new();
    for it in resources.iter().take(offer::MOST) {
        let about = it.description.as_deref().or(it.title.as_deref());
        let _ = writeln!(
            text,
            "  {} {}",
            it.uri,
            offer::line(about.unwrap_or(&it.name))
        );
    }
    if let Some(more) = resources.len().checked_sub(offer::MOST + 1) {
        let _ = writeln!(text, "  … and {} more", more + 1);
    }
    for it in templates.iter().take(offer::MOST) {
        let about = it.description.as_deref().or(it.title.as_deref());
        let about = offer::line(about.unwrap_or(&it.name));
        let _ = writeln!(text, "  {} (fill in the braces) {about}", it.uri_template);
    }
    if text.is_empty() {
        text.push_str("  none\n");
    }
    Ok(text)
}

impl Tool for ListResources {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn kind(&self) -> CallKind {
        CallKind::Search
    }

    fn describe(&self, _args: &Value, _workspace: &Workspace) -> CallDetail {
        CallDetail {
            title: "List MCP resources".to_owned(),
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
        // The servers tell what they have; nothing is told to them.
        let prepared = Prepared {
            access: crate::Access::Nothing,
            detail: self.describe(args, &cx.workspace),
        };
        Box::pin(std::future::ready(Ok(prepared)))
    }

    fn run<'a>(&'a self, args: &'a Value, cx: &'a ToolCx) -> BoxFuture<'a, ToolEnvelope> {
        Box::pin(async move { end(self.list(args, cx).await) })
    }
}
