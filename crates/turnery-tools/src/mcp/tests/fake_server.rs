//! An in-process server that tests can inspect and break.

use crate::{
    HiddenFiles, Origin, Progress, Tool, ToolCx, TraceContext, Workspace,
    mcp::{
        McpServers,
        client_handler::McpClientHandler,
        secrets::ServerSecrets,
        transport::{ConnectedClient, Transport, initialize},
    },
};
use futures_util::future::BoxFuture;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock,
        GetPromptRequestParams, GetPromptResponse, GetPromptResult, ListPromptsResult,
        ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
        Prompt, PromptArgument, PromptMessage, ReadResourceRequestParams, ReadResourceResponse,
        ReadResourceResult, Resource, ResourceContents, Role, ServerCapabilities, ServerConfig,
        Tool as WireTool,
    },
    service::{RequestContext, serve_server},
};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use turnery_engine::{ToolCall, ToolEnvelope};

/// Handle of a server that a test inspects and controls.
#[derive(Clone)]
pub(super) struct FakeServer {
    /// Its tools, as JSON sent on the wire.
    pub(super) tools: Arc<Mutex<Vec<Value>>>,
    /// Number of connections made.
    pub(super) connects: Arc<AtomicUsize>,
    /// Number of connections that it will refuse.
    pub(super) remaining_refusals: Arc<AtomicUsize>,
    /// The `_meta` of the last call.
    pub(super) last_meta: Arc<Mutex<Value>>,
    /// Counts calls that were cancelled while they ran.
    pub(super) cancelled_calls: watch::Sender<usize>,
    /// Counts calls that never return.
    pub(super) waiting_calls: watch::Sender<usize>,
    /// Ends the connection.
    pub(super) disconnect_token: Arc<Mutex<CancellationToken>>,
    /// Never responds to the handshake.
    pub(super) hangs: bool,
}

impl FakeServer {
    pub(super) fn new(tools: Vec<Value>) -> Self {
        Self {
            tools: Arc::new(Mutex::new(tools)),
            connects: Arc::default(),
            remaining_refusals: Arc::default(),
            last_meta: Arc::default(),
            cancelled_calls: watch::channel(0).0,
            waiting_calls: watch::channel(0).0,
            disconnect_token: Arc::default(),
            hangs: false,
        }
    }

    /// Breaks the connection.
    pub(super) fn disconnect(&self) {
        self.disconnect_token.lock().unwrap().cancel();
    }

    pub(super) fn connect_count(&self) -> usize {
        self.connects.load(Ordering::SeqCst)
    }
}

/// Returns a tool as a server writes it.
pub(super) fn tool_json(name: &str) -> Value {
    json!({"name": name, "description": "Does it", "inputSchema": {"type": "object"}})
}

impl Transport for FakeServer {
    fn connect(&self, told: McpClientHandler) -> BoxFuture<'_, Result<ConnectedClient, String>> {
        Box::pin(async move {
            self.connects.fetch_add(1, Ordering::SeqCst);
            let refuses = |left: usize| left.checked_sub(1);
            if self
                .remaining_refusals
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, refuses)
                .is_ok()
            {
                return Err("it has the key s3cret-key and does not want to".to_owned());
            }
            // The wire can be cut at any time, whatever its ends are doing.
            let (ours, mut left) = tokio::io::duplex(1 << 16);
            let (mut right, theirs) = tokio::io::duplex(1 << 16);
            let end = CancellationToken::new();
            *self.disconnect_token.lock().unwrap() = end.clone();
            let wire = async move { tokio::io::copy_bidirectional(&mut left, &mut right).await };
            tokio::spawn(end.run_until_cancelled_owned(wire));
            if self.hangs {
                // Keeps its end open and sends nothing.
                tokio::spawn(async move { (std::future::pending::<()>().await, theirs) });
            } else {
                let server = self.clone();
                tokio::spawn(async move {
                    if let Ok(running) = serve_server(server, theirs).await {
                        let _ = running.waiting().await;
                    }
                });
            }
            Ok(ConnectedClient {
                service: initialize(told, ours).await?,
                process: None,
            })
        })
    }
}

impl ServerHandler for FakeServer {
    fn get_info(&self) -> ServerConfig {
        let mut has = ServerCapabilities::default();
        has.tools = Some(serde_json::from_value(json!({"listChanged": true})).unwrap());
        has.prompts = Some(serde_json::from_value(json!({})).unwrap());
        has.resources = Some(serde_json::from_value(json!({})).unwrap());
        ServerConfig::new(has)
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        _cx: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // One per page, to check that all pages are read.
        let at: usize = page
            .and_then(|page| page.cursor)
            .map_or(0, |cursor| cursor.parse().unwrap());
        let tools = self.tools.lock().unwrap();
        let page = tools
            .get(at)
            .map(|tool| serde_json::from_value::<WireTool>(tool.clone()).unwrap());
        let mut list = ListToolsResult::with_all_items(page.into_iter().collect());
        list.next_cursor = (at + 1 < tools.len()).then(|| (at + 1).to_string());
        Ok(list)
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        *self.last_meta.lock().unwrap() = serde_json::to_value(&cx.meta).unwrap();
        let args = Value::Object(call.arguments.unwrap_or_default());
        match &*call.name {
            "echo" => {
                Ok(CallToolResult::success(vec![ContentBlock::text(args.to_string())]).into())
            }
            "wait" => {
                self.waiting_calls.send_modify(|count| *count += 1);
                cx.ct.cancelled().await;
                self.cancelled_calls.send_modify(|count| *count += 1);
                Err(ErrorData::internal_error("too late", None))
            }
            "die" => {
                self.disconnect();
                std::future::pending().await
            }
            "progress" => {
                let token = cx.meta.get_progress_token().unwrap();
                let mut report = ProgressNotificationParam::new(token, 1.0);
                report.total = Some(2.0);
                report.message = Some("half".to_owned());
                cx.peer.notify_progress(report).await.unwrap();
                Ok(CallToolResult::success(vec![ContentBlock::text("done")]).into())
            }
            "change" => {
                *self.tools.lock().unwrap() = vec![tool_json("changed")];
                cx.peer.notify_tool_list_changed().await.unwrap();
                Ok(CallToolResult::success(Vec::new()).into())
            }
            "refuse" => Err(ErrorData::invalid_params(
                "no such thing as s3cret-key",
                None,
            )),
            _ => Ok(serde_json::from_value::<CallToolResult>(args)
                .unwrap()
                .into()),
        }
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _cx: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let city = PromptArgument::new("city").with_required(true);
        let weather = Prompt::new("the weather", Some("Asks for it"), Some(vec![city]));
        Ok(ListPromptsResult::with_all_items(vec![weather]))
    }

    async fn get_prompt(
        &self,
        asked: GetPromptRequestParams,
        _cx: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let city = asked.arguments.unwrap_or_default()["city"].clone();
        let text = format!("What is the weather in {city}?");
        let messages = vec![PromptMessage::new_text(Role::User, text)];
        Ok(GetPromptResult::new(messages).into())
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        _cx: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let note = Resource::new("note://1", "first").with_description("A note");
        Ok(ListResourcesResult::with_all_items(vec![note]))
    }

    async fn read_resource(
        &self,
        asked: ReadResourceRequestParams,
        _cx: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = vec![ResourceContents::text("Buy milk", asked.uri)];
        Ok(ReadResourceResult::new(contents).into())
    }
}

/// Servers under test, and the context for calls to them.
pub(super) struct McpFixture {
    pub(super) servers: McpServers,
    pub(super) cx: ToolCx,
    pub(super) progress: mpsc::Receiver<Progress>,
    _folder: tempfile::TempDir,
}

impl McpFixture {
    /// Creates servers with these names and waits until they are connected.
    pub(super) async fn connected(servers: Vec<(&str, FakeServer)>) -> Self {
        let bench = Self::new(servers);
        bench.servers.wait_until_settled().await;
        bench
    }

    /// Creates servers with these names that are connecting.
    pub(super) fn new(servers: Vec<(&str, FakeServer)>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::local(folder.path().canonicalize().unwrap()).unwrap();
        let (sender, progress) = mpsc::channel(16);
        let reaching = servers.into_iter().map(|(name, fake)| {
            let reach: Box<dyn Transport> = Box::new(fake);
            let given = crate::mcp::McpTransport::Stdio {
                command: "x".into(),
                args: vec!["s3cret-key".to_owned()],
                env: Vec::new(),
            };
            let minute = Duration::from_secs(60);
            (
                name.into(),
                minute,
                ServerSecrets::from_transport(&given),
                reach,
            )
        });
        let servers = McpServers::with_transports(reaching, workspace.roots());
        servers.start();
        Self {
            servers,
            cx: ToolCx {
                call_id: "c1".into(),
                origin: Origin::default(),
                workspace: Arc::new(workspace),
                hidden: HiddenFiles::default(),
                line_limits: crate::CommandLineLimits::default(),
                progress: sender,
                cancel: CancellationToken::new(),
                trace: TraceContext::default(),
                caller: None,
                host: None,
            },
            progress,
            _folder: folder,
        }
    }

    pub(super) fn tool_names(&self) -> Vec<String> {
        let tools = self.servers.tools();
        tools.iter().map(|tool| tool.spec().name).collect()
    }

    pub(super) fn tool(&self, name: &str) -> Arc<dyn Tool> {
        let tools = self.servers.tools();
        let found = tools.into_iter().find(|tool| tool.spec().name == name);
        found.expect("the tool is there")
    }

    /// Calls a tool, bounded as in a session.
    pub(super) async fn call(&self, name: &str, args: Value) -> ToolEnvelope {
        let toolbox = crate::Toolbox::new(self.servers.tools());
        let call = ToolCall::new("c1", name, args);
        toolbox.run(&call, &self.cx).await
    }
}

/// Returns the text of a result or of a failure.
pub(super) fn envelope_text(envelope: &ToolEnvelope) -> String {
    match &envelope.result {
        Ok(content) => content
            .iter()
            .map(|item| match item {
                turnery_engine::Content::Text { text } => text.clone(),
                other => format!("{other:?}"),
            })
            .collect::<Vec<_>>()
            .join("\n"),
        Err(failure) => format!("{:?}: {}", failure.kind, failure.message),
    }
}
