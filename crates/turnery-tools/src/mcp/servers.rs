//! Manages all MCP servers of one session.

use super::{
    McpServer, McpTransport, capabilities,
    client_handler::McpClientHandler,
    connection::{ConnectionConfig, ConnectionTask, ServerConnection, ServerState},
    http::HttpTransport,
    list_resources::ListResourcesTool,
    prompts::{self, McpPrompt},
    read_resource::ReadResourceTool,
    secrets::ServerSecrets,
    stdio::StdioTransport,
    tool::McpTool,
    tool_names,
    transport::{ConnectedClient, Transport},
    wait_for_server::WaitForServerTool,
};
use crate::{Tool, TraceContext, TypedTool as _, policy::program_files, shell::hidden_variables};
use futures_util::future::{BoxFuture, join_all, ready};
use std::{
    collections::HashSet,
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use turnery_engine::Content;

/// Time limit for a server to connect. Calls that use the server wait as long.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// Default time limit of a call.
const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(120);

/// Settings for starting servers.
#[derive(Clone, Debug, Default)]
pub struct McpLaunchOptions {
    /// The folders of the session, its working directory first.
    pub roots: Vec<PathBuf>,
    /// Variables that servers do not inherit, in addition to [`HIDDEN_ENV`](crate::shell::HIDDEN_ENV). A `*` at
    /// either end of a name stands for any text.
    pub hidden_env: Vec<String>,
}

/// Status of a server for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServerStatus {
    /// Name for display.
    pub name: String,
    /// Names of its tools, as the model calls them.
    pub tools: Vec<String>,
    /// Number of its tools that are not offered, because they are too many or too large.
    pub omitted_tools: usize,
    /// Current error, if any.
    pub error: Option<String>,
}

/// The servers of one session. They end when this value is closed or dropped.
pub struct McpServers {
    connections: Vec<Arc<ServerConnection>>,
    program_files: Vec<PathBuf>,
    /// Tasks that were not started yet.
    tasks: Mutex<Vec<ConnectionTask>>,
    changes: watch::Receiver<u64>,
    stop: CancellationToken,
    tracker: TaskTracker,
}

impl fmt::Debug for McpServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.connections.iter().map(|connection| &connection.name);
        f.debug_set().entries(names).finish()
    }
}

impl McpServers {
    /// Name of the tool that waits for a server that is starting.
    pub const WAIT_TOOL: &str = WaitForServerTool::NAME;

    /// Creates the servers without starting them.
    #[must_use]
    pub fn new(servers: &[McpServer], launch: &McpLaunchOptions) -> Self {
        let hidden_env: Arc<[String]> =
            hidden_variables(launch.hidden_env.iter().map(String::as_str)).into();
        let cwd = launch
            .roots
            .first()
            .cloned()
            .unwrap_or_else(|| PathBuf::from("/"));
        let reaching = servers.iter().map(|server| {
            let name: Arc<str> = capabilities::single_line(&server.name).into();
            let secrets = ServerSecrets::from_transport(&server.transport);
            let reach: Box<dyn Transport> = match &server.transport {
                McpTransport::Stdio { command, args, env } => Box::new(StdioTransport {
                    server: Arc::clone(&name),
                    command: command.clone(),
                    args: args.clone(),
                    env: env.clone(),
                    cwd: cwd.clone(),
                    hidden_env: Arc::clone(&hidden_env),
                    secrets: secrets.clone(),
                }),
                McpTransport::Http { url, headers } => Box::new(HttpTransport {
                    url: url.clone(),
                    headers: headers.clone(),
                }),
                McpTransport::Unusable(why) => Box::new(UnusableTransport(why.clone())),
            };
            (
                name,
                server.timeout.unwrap_or(DEFAULT_CALL_TIMEOUT),
                secrets,
                reach,
            )
        });
        let words = servers.iter().flat_map(|server| server.transport.words());
        let mut all = Self::with_transports(reaching, &launch.roots);
        all.program_files = program_files(words, &launch.roots);
        all
    }

    /// Creates servers with these names and transports.
    pub(super) fn with_transports(
        servers: impl Iterator<Item = (Arc<str>, Duration, ServerSecrets, Box<dyn Transport>)>,
        roots: &[PathBuf],
    ) -> Self {
        let (news, read) = watch::channel(0);
        let mut slugs = HashSet::new();
        let (connections, tasks) = servers
            .map(|(name, timeout, secrets, reach)| {
                let (connection, task) = ServerConnection::new(ConnectionConfig {
                    slug: tool_names::server_slug(&name, &mut slugs),
                    name,
                    timeout,
                    connect_timeout: CONNECT_TIMEOUT,
                    secrets,
                    transport: reach,
                    roots: roots.into(),
                    changes: news.clone(),
                });
                (Arc::new(connection), task)
            })
            .unzip();
        Self {
            connections,
            program_files: Vec::new(),
            tasks: Mutex::new(tasks),
            changes: read,
            stop: CancellationToken::new(),
            tracker: TaskTracker::new(),
        }
    }

    /// Disables logging of server errors, for callers that show [`status`](Self::status).
    #[must_use]
    pub fn without_logging(self) -> Self {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.iter_mut().for_each(ConnectionTask::disable_logging);
        drop(tasks);
        self
    }

    /// Connects to all servers in the background. Needs a tokio runtime.
    pub fn start(&self) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        for task in tasks.drain(..) {
            self.tracker.spawn(task.run(self.stop.clone()));
        }
    }

    /// Waits, for a bounded time, until each server is connected or has failed.
    pub async fn wait_until_settled(&self) {
        join_all(
            self.connections
                .iter()
                .map(|connection| connection.wait_until_settled()),
        )
        .await;
    }

    /// Waits until the servers whose tools this text names are connected or have failed. Prompts do not wait
    /// for other servers: the model gets a tool to wait for them, and their tools once they are connected.
    pub async fn wait_for_servers_named_in(&self, text: &str) {
        let is_named = |connection: &&Arc<ServerConnection>| {
            text.contains(&format!(
                "{}__",
                tool_names::server_pattern(&connection.slug)
            ))
        };
        let named = self.connections.iter().filter(is_named);
        join_all(named.map(|connection| connection.wait_until_settled())).await;
    }

    /// Returns true if a server that is still connecting may provide a tool called `name`.
    #[must_use]
    pub fn may_have_tool(&self, name: &str) -> bool {
        self.states().any(|(connection, seen)| {
            !seen.is_settled && tool_names::is_tool_of(name, &connection.slug)
        })
    }

    /// Waits until the server of the tool called `name` is connected or has failed.
    pub async fn wait_for_server_of_tool(&self, name: &str) {
        let its = self.connections.iter();
        let its = its.filter(|connection| tool_names::is_tool_of(name, &connection.slug));
        join_all(its.map(|connection| connection.wait_until_settled())).await;
    }

    /// Waits until the server of this prompt command is connected or has failed.
    pub async fn wait_for_server_of_prompt(&self, command: &str) {
        let slug = command.split_once(':').map_or(command, |(slug, _)| slug);
        let its = self
            .connections
            .iter()
            .filter(|connection| connection.slug == slug);
        join_all(its.map(|connection| connection.wait_until_settled())).await;
    }

    /// Ends all servers and waits, for a bounded time, until they are gone.
    pub async fn close(&self) {
        self.stop.cancel();
        self.tasks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        self.tracker.close();
        self.tracker.wait().await;
    }

    /// Returns a counter of changes. Whenever it grows, tools, prompts and status may have changed.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.clone()
    }

    /// Returns the files in the session's folders that the command lines of the servers name.
    pub fn program_files(&self) -> &[PathBuf] {
        &self.program_files
    }

    /// Resolves once `close` was called or this value was dropped; the servers may still be ending.
    pub fn closed(&self) -> impl Future<Output = ()> + Send + use<> {
        self.stop.clone().cancelled_owned()
    }

    /// Returns the current tools of all servers, those that read resources, and one to wait for servers that
    /// are starting; at most as many as model APIs accept.
    #[must_use]
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        let mut with_resources = Vec::new();
        let mut starting = Vec::new();
        for (connection, seen) in self.states() {
            if !seen.is_settled {
                starting.push(Arc::clone(connection));
            }
            let Some(offer) = seen.capabilities else {
                continue;
            };
            for (it, name) in offer.tools.iter().zip(connection.tool_names(&offer)) {
                tools.push(Arc::new(McpTool::new(name, it, Arc::clone(connection))));
            }
            if offer.has_resources {
                with_resources.push(Arc::clone(connection));
            }
        }
        tools.truncate(capabilities::MAX_LISTED);
        if !with_resources.is_empty() {
            tools.push(Arc::new(ListResourcesTool::new(with_resources.clone())));
            tools.push(Arc::new(ReadResourceTool::new(with_resources)));
        }
        if !starting.is_empty() {
            tools.push(Arc::new(WaitForServerTool::new(starting)));
        }
        tools
    }

    /// Returns the current prompts of all servers.
    #[must_use]
    pub fn prompts(&self) -> Vec<McpPrompt> {
        let of = |(connection, seen): (&Arc<ServerConnection>, ServerState)| {
            let prompts = seen.capabilities.iter().flat_map(|offer| &offer.prompts);
            prompts
                .map(|prompt| McpPrompt::new(connection, prompt))
                .collect::<Vec<_>>()
        };
        self.states().flat_map(of).collect()
    }

    /// Returns true if a server has a prompt of this name, or may have one because it is still connecting.
    #[must_use]
    pub fn may_have_prompt(&self, command: &str) -> bool {
        let of = |(connection, seen): (&Arc<ServerConnection>, ServerState)| {
            let prompts = seen.capabilities.iter().flat_map(|offer| &offer.prompts);
            let mut names = prompts.map(|prompt| prompts::command_name(connection, prompt));
            let is_its = command
                .split_once(':')
                .is_some_and(|(slug, _)| slug == connection.slug);
            is_its && (!seen.is_settled || names.any(|name| name == command))
        };
        self.states().any(of)
    }

    /// Requests a prompt with these arguments. The error is for display.
    pub async fn get_prompt(
        &self,
        command: &str,
        typed: &str,
        trace: &TraceContext,
    ) -> Result<Vec<Content>, String> {
        for (connection, seen) in self.states() {
            let offer = seen.capabilities.unwrap_or_default();
            let of_it = |prompt: &&rmcp::model::Prompt| {
                prompts::command_name(connection, prompt) == command
            };
            if let Some(prompt) = offer.prompts.iter().find(of_it) {
                return prompts::get_prompt(connection, prompt, typed, trace).await;
            }
        }
        Err(format!("no MCP server offers /{command} any more"))
    }

    /// Returns the status of all servers.
    #[must_use]
    pub fn status(&self) -> Vec<McpServerStatus> {
        let mut room = capabilities::MAX_LISTED;
        let of = |(connection, seen): (&Arc<ServerConnection>, ServerState)| {
            let offer = seen.capabilities.unwrap_or_default();
            let mut tools = connection.tool_names(&offer);
            tools.truncate(room);
            room -= tools.len();
            McpServerStatus {
                name: connection.name.to_string(),
                omitted_tools: offer.omitted_tools + offer.tools.len() - tools.len(),
                tools,
                error: seen.error.map(|why| why.to_string()),
            }
        };
        self.states().map(of).collect()
    }

    fn states(&self) -> impl Iterator<Item = (&Arc<ServerConnection>, ServerState)> {
        self.connections
            .iter()
            .map(|connection| (connection, connection.state()))
    }
}

impl Drop for McpServers {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Transport of a server whose configuration is unusable.
struct UnusableTransport(String);

impl Transport for UnusableTransport {
    fn connect(
        &self,
        _handler: McpClientHandler,
    ) -> BoxFuture<'_, Result<ConnectedClient, String>> {
        Box::pin(ready(Err(self.0.clone())))
    }
}
