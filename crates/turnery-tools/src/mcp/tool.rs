//! Tool: one tool of a server, as one of ours.

use super::{call, link::Link, names, offer::ToolOffer, result};
use crate::{
    Access, Prepared, Tool, ToolCx, Workspace,
    tool::end,
    visible::{visible, visible_line},
};
use futures_util::future::BoxFuture;
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use turnery_engine::{
    Artifact, CallDetail, CallKind, Content, ToolEnvelope, ToolFailure, ToolSpec,
};

/// A tool of a server.
pub(super) struct ServerTool {
    spec: ToolSpec,
    /// What its server calls it.
    name: String,
    title: String,
    reads_only: bool,
    destroys: bool,
    link: Arc<Link>,
}

impl ServerTool {
    /// The tool, under this name.
    pub(super) fn new(name: String, offer: &ToolOffer, link: Arc<Link>) -> Self {
        let description = match offer.description.is_empty() {
            true => format!("{} of the MCP server {}", offer.title, link.name),
            false => offer.description.clone(),
        };
        Self {
            spec: ToolSpec {
                name,
                description,
                schema: offer.schema.clone(),
            },
            name: offer.name.clone(),
            title: offer.title.clone(),
            reads_only: offer.reads_only,
            destroys: offer.destroys,
            link,
        }
    }

    /// The names under which the call is made, then what the server says of the tool.
    fn headline(&self) -> String {
        let mut text = format!("MCP {}/{}", self.link.name, self.name);
        if self.destroys {
            text.push_str(" (destructive)");
        }
        if self.title != self.name {
            text.push_str(&format!(", titled \"{}\"", self.title));
        }
        text
    }
}

impl Tool for ServerTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn kind(&self) -> CallKind {
        match self.reads_only {
            true => CallKind::Fetch,
            false => CallKind::Other,
        }
    }

    fn describe(&self, _args: &Value, _workspace: &Workspace) -> CallDetail {
        CallDetail {
            title: self.headline(),
            kind: self.kind(),
            ..CallDetail::default()
        }
    }

    fn parallel(&self, _args: &Value) -> bool {
        self.reads_only
    }

    /// Whoever is asked sees the server, the tool and the arguments, whatever title the server gave it.
    fn prepare<'a>(
        &'a self,
        args: &'a Value,
        cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<Prepared, ToolFailure>> {
        let mut detail = self.describe(args, &cx.workspace);
        let text = asked(&self.link.name, &self.name, args);
        detail.artifacts = vec![Artifact::Content(Content::text(text))];
        let access = Access::Server {
            all: names::of_all(&self.link.slug),
            reads_only: self.reads_only,
            destroys: self.destroys,
        };
        Box::pin(std::future::ready(Ok(Prepared { access, detail })))
    }

    fn run<'a>(&'a self, args: &'a Value, cx: &'a ToolCx) -> BoxFuture<'a, ToolEnvelope> {
        Box::pin(async move {
            let mut params = CallToolRequestParams::new(self.name.clone());
            params.arguments = args.as_object().cloned();
            let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
            end(call::ask(&self.link, request, cx)
                .await
                .map(result::of_call))
        })
    }

    fn timeout(&self, _args: &Value) -> Duration {
        self.link.timeout
    }
}

/// What is about to be asked of a server, whole, for people.
pub(super) fn asked(server: &str, what: &str, args: &Value) -> String {
    let json = serde_json::to_string_pretty(args).unwrap_or_default();
    let json = visible(&json);
    // A fence that the arguments cannot close.
    let longest = json.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(3.max(longest + 1));
    let (server, what) = (visible_line(server), visible_line(what));
    format!("Server {server}, tool {what}:\n{fence}json\n{json}\n{fence}")
}
