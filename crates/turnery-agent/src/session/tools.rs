//! Combines a session's own tools with those of its MCP servers.

use super::{env::SessionEnv, request_prefix::RequestPrefix};
use crate::{ask_user, client::Client};
use std::sync::{Arc, OnceLock};
use tokio::sync::watch;
use turnery_tools::{McpServers, Toolbox};

/// Sources of a session's toolbox.
pub(crate) struct SessionTools {
    /// Tools without any server's.
    base: Toolbox,
    /// Names of the only tools of a candidate; `None` for all.
    allowed: Option<Arc<[String]>>,
    servers: Option<Arc<McpServers>>,
    changes: Option<watch::Receiver<u64>>,
    /// Fixed part of every request, set when it is first needed.
    prefix: OnceLock<RequestPrefix>,
}

impl SessionTools {
    /// Creates the sources of a session.
    pub(crate) fn new(base: Toolbox, servers: Option<Arc<McpServers>>) -> Self {
        Self {
            prefix: OnceLock::new(),
            base,
            allowed: None,
            changes: servers.as_ref().map(watch_changes),
            servers,
        }
    }

    /// Returns the tools for a candidate, without `ask_user`: those named in `allowed` if that is given, with those of
    /// the servers if `has_servers`.
    pub(super) fn for_candidate(
        &self,
        client: &dyn Client,
        allowed: Option<&[String]>,
        has_servers: bool,
    ) -> Self {
        let base = ask_user::without_ask_user(&self.base, client);
        let servers = self.servers.clone().filter(|_| has_servers);
        Self {
            prefix: OnceLock::new(),
            base,
            allowed: allowed.map(Arc::from),
            changes: servers.as_ref().map(watch_changes),
            servers,
        }
    }

    /// Returns all tools that can be called now.
    pub(super) fn current(&self) -> Toolbox {
        combine(
            self.base.clone(),
            self.servers.as_deref(),
            self.allowed.as_deref(),
        )
    }

    /// Returns true if the session itself has this tool.
    pub(super) fn has_own(&self, name: &str) -> bool {
        self.base.get(name).is_some()
    }

    /// Returns true if a server has this tool, or may have it once it is connected.
    pub(super) fn may_have_server_tool(&self, name: &str, toolbox: &Toolbox) -> bool {
        let mut servers = self.servers.iter();
        toolbox.get(name).is_some() || servers.any(|servers| servers.may_have_tool(name))
    }

    /// Starts to connect to the servers in the background.
    pub(super) fn connect_servers(&self) {
        if let Some(servers) = &self.servers {
            servers.start();
        }
    }

    pub(super) fn mcp_servers(&self) -> Option<Arc<McpServers>> {
        self.servers.clone()
    }

    /// Returns the toolbox for a call. If it lacks the tool but a connecting server may have it, waits for
    /// that server, for a bounded time.
    pub(super) fn toolbox_for_call(
        &self,
        toolbox: &Toolbox,
        name: &str,
    ) -> impl Future<Output = Toolbox> + Send + use<> {
        let servers = self.servers.clone();
        let coming = servers.filter(|it| toolbox.get(name).is_none() && it.may_have_tool(name));
        let (base, toolbox, name) = (self.base.clone(), toolbox.clone(), name.to_owned());
        let allowed = self.allowed.clone();
        async move {
            match coming {
                Some(servers) => {
                    servers.wait_for_server_of_tool(&name).await;
                    combine(base, Some(&servers), allowed.as_deref())
                }
                None => toolbox,
            }
        }
    }

    /// Returns the fixed part of every request with the tools and the system prompt of `env`.
    pub(super) fn prefix(&self, env: &SessionEnv) -> &RequestPrefix {
        let measure = || RequestPrefix::new(&env.toolbox, &env.settings.system);
        self.prefix.get_or_init(measure)
    }

    /// Forgets the fixed part of the requests, because the tools or the system prompt are replaced.
    pub(super) fn forget_prefix(&mut self) {
        self.prefix.take();
    }

    /// Returns the toolbox if it has changed since the last call.
    pub(super) fn take_changed(&mut self) -> Option<Toolbox> {
        let changes = self.changes.as_mut()?;
        // An error means that the servers are gone: nothing changes any more.
        if !changes.has_changed().unwrap_or(false) {
            return None;
        }
        changes.mark_unchanged();
        self.forget_prefix();
        Some(self.current())
    }
}

/// Returns a receiver of the changes of the servers' tools, the first of them at once: the tool that waits for starting
/// servers is needed from the first call.
fn watch_changes(servers: &Arc<McpServers>) -> watch::Receiver<u64> {
    let mut changes = servers.changes();
    changes.mark_changed();
    changes
}

/// Returns the tools of `base` and the servers; if `allowed` is given, only those that it names.
fn combine(base: Toolbox, servers: Option<&McpServers>, allowed: Option<&[String]>) -> Toolbox {
    let toolbox = base.with_extra_tools(servers.map_or_else(Vec::new, McpServers::tools));
    match allowed {
        Some(allowed) => toolbox.with_only(allowed),
        None => toolbox,
    }
}
