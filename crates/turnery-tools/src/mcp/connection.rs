//! Task of one server, and the handle that others use.
//!
//! Only the task holds the connection. It connects when it starts, lists the server's capabilities, and lists
//! them again when the server reports a change. To use the server, callers request it from the task, which
//! restarts a server that has died: once for each use, and only a limited number of times in a row.

use super::{
    capabilities::{self, McpServerCapabilities, McpToolInfo},
    client_handler::{McpClientHandler, ProgressListeners},
    secrets::ServerSecrets,
    stdio::ServerProcess,
    tool_names,
    transport::Transport,
};
use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use rmcp::{
    RoleClient,
    service::{Peer, RunningServiceCancellationToken},
};
use std::{collections::HashSet, sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;
use turnery_engine::{ToolError, ToolErrorKind};

/// Number of requests for the server that may be pending at once.
const MAX_PENDING_REQUESTS: usize = 64;
/// A server that ends sooner counts as an early exit.
const MIN_UPTIME: Duration = Duration::from_secs(60);
/// Maximum time for a connection to close once its server is gone or was told to stop.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);
/// After this many early exits in a row the server is not restarted.
const MAX_EARLY_EXITS: u32 = 3;

/// Request to use the server.
type PeerRequest = oneshot::Sender<Result<Peer<RoleClient>, String>>;

/// State of a server.
#[derive(Clone, Default)]
pub(super) struct ServerState {
    /// The first attempt to connect is over, successful or not.
    pub(super) is_settled: bool,
    /// Capabilities, as last listed.
    pub(super) capabilities: Option<Arc<McpServerCapabilities>>,
    /// Current error.
    pub(super) error: Option<Arc<str>>,
}

/// Handle of a server.
pub(super) struct ServerConnection {
    /// Name for display.
    pub(super) name: Arc<str>,
    /// Name within tool names.
    pub(super) slug: String,
    /// Time limit of a call.
    pub(super) timeout: Duration,
    pub(super) secrets: ServerSecrets,
    pub(super) listeners: ProgressListeners,
    state: watch::Receiver<ServerState>,
    requests: mpsc::Sender<PeerRequest>,
}

/// Task of a server.
pub(super) struct ConnectionTask {
    transport: Box<dyn Transport>,
    handler: McpClientHandler,
    secrets: ServerSecrets,
    /// Maximum time to connect.
    connect_timeout: Duration,
    state: watch::Sender<ServerState>,
    /// Counts changes of all servers of the session.
    changes: watch::Sender<u64>,
    requests: mpsc::Receiver<PeerRequest>,
    list_changes: mpsc::Receiver<()>,
    early_exits: u32,
    /// Errors are also logged.
    logs_errors: bool,
}

/// Settings of a connection.
pub(super) struct ConnectionConfig {
    pub(super) name: Arc<str>,
    pub(super) slug: String,
    pub(super) timeout: Duration,
    pub(super) connect_timeout: Duration,
    pub(super) secrets: ServerSecrets,
    pub(super) transport: Box<dyn Transport>,
    pub(super) roots: Arc<[std::path::PathBuf]>,
    pub(super) changes: watch::Sender<u64>,
}

/// An open connection.
struct LiveConnection {
    peer: Peer<RoleClient>,
    /// Polled through clones only, because several places wait for it.
    closed: Shared<BoxFuture<'static, ()>>,
    stop: RunningServiceCancellationToken,
    process: Option<ServerProcess>,
    connected_at: Instant,
}

impl ServerConnection {
    /// Creates the handle of a server and its task, which is not running yet.
    pub(super) fn new(config: ConnectionConfig) -> (Self, ConnectionTask) {
        let (requests, ordered) = mpsc::channel(MAX_PENDING_REQUESTS);
        let (changing, list_changes) = mpsc::channel(1);
        let (seen, see) = watch::channel(ServerState::default());
        let listeners = ProgressListeners::default();
        let connection = Self {
            name: Arc::clone(&config.name),
            slug: config.slug,
            timeout: config.timeout,
            secrets: config.secrets.clone(),
            listeners: listeners.clone(),
            state: see,
            requests,
        };
        let task = ConnectionTask {
            transport: config.transport,
            handler: McpClientHandler {
                server: config.name,
                listeners,
                list_changes: changing,
                roots: config.roots,
            },
            secrets: config.secrets,
            connect_timeout: config.connect_timeout,
            state: seen,
            changes: config.changes,
            requests: ordered,
            list_changes,
            early_exits: 0,
            logs_errors: true,
        };
        (connection, task)
    }

    /// Returns the current state of the server.
    pub(super) fn state(&self) -> ServerState {
        self.state.borrow().clone()
    }

    /// Returns the names by which the model calls the tools of the server.
    pub(super) fn tool_names(&self, capabilities: &McpServerCapabilities) -> Vec<String> {
        let mut taken = HashSet::new();
        let tools = capabilities.tools.iter();
        let name = |tool: &McpToolInfo| tool_names::tool_name(&self.slug, &tool.name, &mut taken);
        tools.map(name).collect()
    }

    /// Waits until the first attempt to connect is over.
    pub(super) async fn wait_until_settled(&self) {
        // An error means that the task has ended, so no attempt follows.
        let _ = self.state.clone().wait_for(|seen| seen.is_settled).await;
    }

    /// Returns the server, restarting it if it has died.
    pub(super) async fn peer(&self) -> Result<Peer<RoleClient>, String> {
        let gone = |_| "its session is over".to_owned();
        let (reply, answer) = oneshot::channel();
        self.requests.send(reply).await.map_err(|_| gone(()))?;
        answer.await.map_err(|_| gone(()))?
    }
}

impl ConnectionTask {
    /// Reports errors through the handle only.
    pub(super) fn disable_logging(&mut self) {
        self.logs_errors = false;
    }

    /// Serves the connection until `stop` fires, then ends the server.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        let mut live = self.connect(&stop).await;
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = wait_until_closed(&mut live) => {
                    if let Some(dead) = live.take() {
                        self.handle_exit(dead).await;
                    }
                }
                order = self.requests.recv() => match order {
                    Some(reply) => {
                        live = self.ensure_connected(live, &stop).await;
                        let _ = reply.send(self.peer_or_error(live.as_ref()));
                    }
                    None => break,
                },
                Some(()) = self.list_changes.recv() => {
                    if let Some(live) = &live {
                        self.refresh_capabilities(&live.peer, &stop).await;
                    }
                }
            }
        }
        if let Some(live) = live {
            live.close().await;
        }
    }

    fn peer_or_error(&self, live: Option<&LiveConnection>) -> Result<Peer<RoleClient>, String> {
        match live {
            Some(live) => Ok(live.peer.clone()),
            None => {
                let trouble = self.state.borrow().error.clone();
                Err(trouble.map_or_else(|| "it is not connected".to_owned(), |why| why.to_string()))
            }
        }
    }

    /// Returns the connection, or a new one if it is dead.
    async fn ensure_connected(
        &mut self,
        live: Option<LiveConnection>,
        stop: &CancellationToken,
    ) -> Option<LiveConnection> {
        match live {
            Some(live) if !live.peer.is_transport_closed() => return Some(live),
            Some(dead) => self.handle_exit(dead).await,
            None => {}
        }
        if self.early_exits > MAX_EARLY_EXITS {
            let why = "it exited too often soon after its start, so it is not restarted";
            self.report_error(why);
            return None;
        }
        self.connect(stop).await
    }

    async fn connect(&mut self, stop: &CancellationToken) -> Option<LiveConnection> {
        let attempt = async {
            let reached = self.transport.connect(self.handler.clone()).await?;
            let offer = capabilities::list_capabilities(reached.service.peer()).await?;
            Ok((reached, offer))
        };
        let made = tokio::select! {
            biased;
            () = stop.cancelled() => return None,
            made = timeout(self.connect_timeout, attempt) => made,
        };
        let made = made.unwrap_or_else(|_| {
            Err(format!(
                "it was not ready within {} s",
                self.connect_timeout.as_secs()
            ))
        });
        match made {
            Ok((reached, offer)) => {
                self.state.send_modify(|seen| {
                    seen.error = None;
                    seen.capabilities = Some(Arc::new(offer));
                });
                self.mark_settled();
                Some(LiveConnection {
                    peer: reached.service.peer().clone(),
                    stop: reached.service.cancellation_token(),
                    closed: async move {
                        let _ = reached.service.waiting().await;
                    }
                    .boxed()
                    .shared(),
                    process: reached.process,
                    connected_at: Instant::now(),
                })
            }
            Err(why) => {
                self.early_exits += 1;
                self.report_error(&why);
                None
            }
        }
    }

    async fn handle_exit(&mut self, dead: LiveConnection) {
        self.early_exits = match dead.connected_at.elapsed() < MIN_UPTIME {
            true => self.early_exits + 1,
            false => 0,
        };
        let why = "it ended".to_owned();
        let why = match dead.process {
            Some(process) => process.describe_exit(why).await,
            None => why,
        };
        // Responses that the server sent before its end are read first. Calls still waiting then fail.
        let _ = timeout(CLOSE_TIMEOUT, dead.closed).await;
        dead.stop.cancel();
        self.report_error(&why);
    }

    async fn refresh_capabilities(&self, peer: &Peer<RoleClient>, stop: &CancellationToken) {
        let listed = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            listed = timeout(self.connect_timeout, capabilities::list_capabilities(peer)) => listed,
        };
        match listed {
            Ok(Ok(offer)) => {
                self.state
                    .send_modify(|seen| seen.capabilities = Some(Arc::new(offer)));
                self.changes.send_modify(|count| *count += 1);
            }
            Ok(Err(why)) => self.report_error(&why),
            Err(_) => self.report_error("it did not list its tools again in time"),
        }
    }

    /// Records an error, logs it unless logging is disabled, and marks the first attempt as over.
    fn report_error(&self, why: &str) {
        let why = self.secrets.redact(why);
        if self.logs_errors {
            tracing::warn!(
                "the MCP server {} does not work: {why}",
                self.handler.server
            );
        }
        self.state.send_modify(|seen| seen.error = Some(why.into()));
        self.mark_settled();
    }

    /// Marks the first attempt as over. The change is counted first, so that callers who wait see it.
    fn mark_settled(&self) {
        self.changes.send_modify(|count| *count += 1);
        self.state.send_modify(|seen| seen.is_settled = true);
    }
}

/// Returns the server called `name`. `state` is what the error says of the servers to choose from, as in "is
/// starting; these are".
pub(super) fn find_connection<'l>(
    connections: &'l [Arc<ServerConnection>],
    name: &str,
    state: &str,
) -> Result<&'l Arc<ServerConnection>, ToolError> {
    let is_called = |it: &&Arc<ServerConnection>| &*it.name == name || it.slug == name;
    connections.iter().find(is_called).ok_or_else(|| {
        let names = join_names(connections);
        let message = format!("no MCP server {name:?} {state}: {names}");
        ToolError::new(ToolErrorKind::NotFound, message)
    })
}

/// Lists the names of servers, for a text.
pub(super) fn join_names(connections: &[Arc<ServerConnection>]) -> String {
    let names: Vec<&str> = connections.iter().map(|it| &*it.name).collect();
    names.join(", ")
}

impl LiveConnection {
    /// Ends the connection first, which closes the process's stdin, and then the process.
    async fn close(self) {
        self.stop.cancel();
        let over = timeout(CLOSE_TIMEOUT, self.closed);
        match self.process {
            Some(process) => {
                let _ = futures_util::future::join(over, process.shut_down()).await;
            }
            None => {
                let _ = over.await;
            }
        }
    }
}

/// Waits until the connection is over or its process has exited. Never returns if there is no connection.
async fn wait_until_closed(live: &mut Option<LiveConnection>) {
    let Some(live) = live else {
        return std::future::pending().await;
    };
    let exited = async {
        match &mut live.process {
            Some(process) => process.wait_exit().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = live.closed.clone() => {}
        () = exited => {}
    }
}
