//! Test fixture: scripted model and tools, and a recording client.

use crate::{frames::report_and_wait, nested_calls, test_client::TestClient};
use futures_util::future::BoxFuture;
use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};
use tokio::sync::{Barrier, Notify, mpsc};
use tokio_util::sync::PollSender;
use turnery_agent::{
    Agent, CancellationToken, ClientPorts, Hooks, OpenRequest, Outbox, OutboxItem,
    PermissionAnswer, PromptHandle, PromptOptions, PromptResult, Session, Settings, SubAgentTool,
};
use turnery_engine::{
    CallDetail, ChildUsage, Content, Event, EventKind, Limits, LoopRecord, ModelDelta, ModelError,
    ModelErrorKind, ModelStop, Outcome, Response, SessionId, ToolCall, ToolControl, ToolEnvelope,
    ToolError, ToolSpec, TurnFinish, Usage, usage,
};
use turnery_models::{Model, ModelEventSender, ModelInfo, ModelName, ModelRegistry, ModelRequest};
use turnery_store::{
    MemoryStore, Store,
    oracle::{EventObserver, OracleGuard},
};
use turnery_tools::{Access, PreparedCall, Progress, Tool, ToolCx, Toolbox, Workspace};

/// One step of a scripted model response.
#[derive(Clone)]
pub(crate) enum ModelAct {
    Say(&'static str),
    Call(&'static str, &'static str),
    /// Call of this tool with these arguments, in JSON.
    CallWith(&'static str, &'static str, &'static str),
    /// Call of this tool with truncated arguments.
    TruncatedCall(&'static str, &'static str),
    /// Delegates "dig" to a sub-agent: call id, and whether it is read-only.
    Delegate(&'static str, bool),
    Wait(Arc<Notify>),
    Pause(std::time::Duration),
    /// Tokens in and out.
    Spend(u64, u64),
    Hang,
    Panic,
    Fail,
    Refuse,
}

/// Scripted model that records its requests.
pub(crate) struct TestModel {
    info: ModelInfo,
    script: Mutex<VecDeque<Vec<ModelAct>>>,
    pub(crate) requests: Mutex<Vec<ModelRequest>>,
    /// Calls in progress.
    pub(crate) active_calls: Arc<Mutex<usize>>,
}

impl TestModel {
    pub(crate) fn new(model: &str, script: &[&[ModelAct]]) -> Arc<Self> {
        Arc::new(Self {
            info: ModelInfo {
                display_name: "Test model".to_owned(),
                context_window: Some(1000),
                max_output: 100,
                ..ModelInfo::new(ModelName::new("puppet", model), "puppet")
            },
            script: Mutex::new(script.iter().map(|acts| acts.to_vec()).collect()),
            requests: Mutex::default(),
            active_calls: Arc::default(),
        })
    }

    /// The rest of the script is this one answer.
    pub(crate) fn answer_next(&self, acts: &[ModelAct]) {
        *self.script.lock().unwrap() = VecDeque::from([acts.to_vec()]);
    }

    /// Returns the text of each message in the request of the `n`th model call.
    pub(crate) fn request(&self, n: usize) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        requests[n]
            .messages
            .iter()
            .map(|m| m.message.text())
            .collect()
    }
}

/// Counts a call while it lives.
pub(crate) struct CallCounter(Arc<Mutex<usize>>);

impl CallCounter {
    pub(crate) fn new(count: &Arc<Mutex<usize>>) -> Self {
        *count.lock().unwrap() += 1;
        Self(Arc::clone(count))
    }
}

impl Drop for CallCounter {
    fn drop(&mut self) {
        *self.0.lock().unwrap() -= 1;
    }
}

impl Model for TestModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn call(
        &self,
        request: ModelRequest,
        out: ModelEventSender,
    ) -> BoxFuture<'_, Result<Response, ModelError>> {
        let acts = self.script.lock().unwrap().pop_front().unwrap_or_default();
        self.requests.lock().unwrap().push(request);
        let alive = CallCounter::new(&self.active_calls);
        Box::pin(async move {
            let _alive = alive;
            let mut content = Vec::new();
            let mut is_refused = false;
            let mut usage = None;
            for (block, act) in acts.into_iter().enumerate() {
                match act {
                    ModelAct::Say(text) => {
                        out.send_delta(ModelDelta::Text {
                            block: u32::try_from(block).unwrap(),
                            text: text.to_owned(),
                        })
                        .await;
                        content.push(Content::text(text));
                    }
                    ModelAct::Spend(input, output) => usage = Some(usage_of(input, output)),
                    ModelAct::Call(id, name) => content.push(tool_call(id, name, json!({}))),
                    ModelAct::CallWith(id, name, args) => {
                        let args = serde_json::from_str(args).unwrap();
                        content.push(tool_call(id, name, args));
                    }
                    ModelAct::TruncatedCall(id, name) => {
                        content.push(tool_call(id, name, json!("{\"path\": \"src/ma")));
                    }
                    ModelAct::Delegate(id, read_only) => {
                        let args = json!({"title": "Dig", "prompt": "dig", "read_only": read_only});
                        content.push(tool_call(id, "task", args));
                    }
                    ModelAct::Wait(signal) => signal.notified().await,
                    ModelAct::Pause(time) => tokio::time::sleep(time).await,
                    ModelAct::Hang => std::future::pending().await,
                    ModelAct::Panic => panic!("puppet"),
                    ModelAct::Refuse => is_refused = true,
                    ModelAct::Fail => {
                        return Err(ModelError {
                            status: Some(529),
                            ..ModelError::new(ModelErrorKind::Overloaded, "too much to do")
                        });
                    }
                }
            }
            let calls = content.iter().any(|it| matches!(it, Content::ToolCall(_)));
            Ok(Response {
                stop: match (is_refused, calls) {
                    (true, _) => ModelStop::Refusal,
                    (false, true) => ModelStop::ToolUse,
                    (false, false) => ModelStop::EndTurn,
                },
                content,
                raw_stop: None,
                usage,
                model: "one".to_owned(),
                provider: "puppet".to_owned(),
                tool_results: Vec::new(),
                request: None,
            })
        })
    }
}

fn tool_call(id: &str, name: &str, args: Value) -> Content {
    Content::ToolCall(ToolCall::new(id, name, args))
}

/// Tool whose behavior follows from its name.
struct FakeTool {
    spec: ToolSpec,
    ran: Arc<Mutex<Vec<String>>>,
    /// Barrier at which two parallel calls meet.
    barrier: Arc<Barrier>,
}

impl Tool for FakeTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn describe(&self, _args: &Value, _workspace: &Workspace) -> CallDetail {
        CallDetail {
            title: self.spec.name.clone(),
            ..CallDetail::default()
        }
    }

    fn prepare<'a>(
        &'a self,
        args: &'a Value,
        cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<PreparedCall, ToolError>> {
        let access = match &*self.spec.name {
            // Asks for permission, as every unknown command does.
            "ring" => Access::Run {
                command: format!(
                    "ring-the-bell {}",
                    args["how"].as_str().unwrap_or("--loudly")
                ),
                cwd: cx.workspace.cwd().to_owned(),
            },
            _ => Access::Nothing,
        };
        let detail = self.describe(args, &cx.workspace);
        Box::pin(async move { Ok(PreparedCall { access, detail }) })
    }

    fn can_run_in_parallel(&self, _args: &Value) -> bool {
        self.spec.name == "meet"
    }

    fn run<'a>(&'a self, args: &'a Value, cx: &'a ToolCx) -> BoxFuture<'a, ToolEnvelope> {
        self.ran.lock().unwrap().push(self.spec.name.clone());
        Box::pin(async move {
            match &*self.spec.name {
                "group" => nested_calls::call_group(args, cx).await,
                "hang" => {
                    cx.cancel.cancelled().await;
                    ToolEnvelope::text("stopped when asked to")
                }
                "stubborn" => std::future::pending().await,
                "panic" => panic!("puppet tool"),
                "meet" => {
                    self.barrier.wait().await;
                    ToolEnvelope::text("met")
                }
                "switch" => ToolEnvelope {
                    control: Some(Box::new(ToolControl::SwitchFrame {
                        task: "dig here".to_owned(),
                    })),
                    ..ToolEnvelope::text("switched")
                },
                "half_done" => report_and_wait(cx).await,
                "spend" => {
                    let report = Progress::Message("half way".to_owned());
                    cx.progress.send(report).await.unwrap();
                    for (iteration, output) in [(0, 3), (1, 5)] {
                        let spent = Progress::ChildUsage(child_usage(iteration, output));
                        cx.progress.send(spent).await.unwrap();
                    }
                    ToolEnvelope::text("spent")
                }
                _ => ToolEnvelope::text("done"),
            }
        })
    }

    fn timeout(&self, _args: &Value) -> std::time::Duration {
        std::time::Duration::from_secs(3600)
    }
}

/// Usage of a child session as of the turn with this number.
fn child_usage(iteration: u32, output: u64) -> ChildUsage {
    ChildUsage {
        session_id: SessionId::from("child"),
        source: usage::source::SUBAGENT.to_owned(),
        model: "puppet/two".to_owned(),
        iteration,
        usage: None,
        cumulative: usage_of(0, output),
    }
}

/// Item shown to the client.
#[derive(Clone, Debug)]
pub(crate) enum ShownItem {
    Live(Event),
    Replay(Event),
    Info(Option<String>),
}

/// Passes the items shown to the client to the oracle as well.
struct TestOutbox(PollSender<ShownItem>, EventObserver);

impl Outbox for TestOutbox {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.poll_reserve(cx).map(|_| ())
    }

    fn push(&mut self, item: OutboxItem<'_>) {
        let seen = match item {
            OutboxItem::Live(event) => {
                self.1.observe(event);
                ShownItem::Live(event.clone())
            }
            OutboxItem::Replay(event) => ShownItem::Replay(event.clone()),
            OutboxItem::Info { title, .. } => ShownItem::Info(title.map(str::to_owned)),
            OutboxItem::ReplayEnd | OutboxItem::PromptEnd(_) => return self.release_slot(),
        };
        let _ = self.0.send_item(seen);
    }

    fn release_slot(&mut self) {
        self.0.abort_send();
    }
}

/// Agent with scripted models and tools and a recording client, in a temporary folder.
pub(crate) struct EmbeddingFixture {
    pub(crate) agent: Agent,
    pub(crate) model: Arc<TestModel>,
    pub(crate) client: Arc<TestClient>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) ran: Arc<Mutex<Vec<String>>>,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) guard: OracleGuard,
}

impl EmbeddingFixture {
    pub(crate) fn new(script: &[&[ModelAct]]) -> Self {
        Self::with_store(Arc::new(MemoryStore::new()), script)
    }

    pub(crate) fn with_store(store: Arc<dyn Store>, script: &[&[ModelAct]]) -> Self {
        Self::build(store, script, &[], |_| {}, |tools| tools)
    }

    /// Creates a world with sub-agents.
    pub(crate) fn with_sub_agents(script: &[&[ModelAct]], set: impl FnOnce(&mut Settings)) -> Self {
        let store = Arc::new(MemoryStore::new());
        Self::build(store, script, &[], set, |tools| {
            tools.with_tool(SubAgentTool)
        })
    }

    /// Creates a world with custom settings.
    pub(crate) fn with_settings(script: &[&[ModelAct]], set: impl FnOnce(&mut Settings)) -> Self {
        Self::build(Arc::new(MemoryStore::new()), script, &[], set, |tools| {
            tools
        })
    }

    /// Creates a world with several models.
    pub(crate) fn with_models(store: Arc<dyn Store>, others: &[Arc<TestModel>]) -> Self {
        Self::build(store, &[], others, |_| {}, |tools| tools)
    }

    pub(crate) fn build(
        store: Arc<dyn Store>,
        script: &[&[ModelAct]],
        others: &[Arc<TestModel>],
        set: impl FnOnce(&mut Settings),
        and: impl FnOnce(Toolbox) -> Toolbox,
    ) -> Self {
        let model = TestModel::new("one", script);
        let second = TestModel::new("two", &[&[ModelAct::Say("the second")]]);
        let ran: Arc<Mutex<Vec<String>>> = Arc::default();
        let barrier = Arc::new(Barrier::new(2));
        let tools = "look ring hang stubborn panic meet switch spend group half_done".split(' ');
        let tools = tools.map(|name| {
            Arc::new(FakeTool {
                spec: ToolSpec::new(
                    name,
                    "",
                    json!({"type": "object", "properties": {"calls": {}}}),
                ),
                ran: Arc::clone(&ran),
                barrier: Arc::clone(&barrier),
            }) as Arc<dyn Tool>
        });
        let mut settings = Settings::new("puppet/one".parse().unwrap(), "be good");
        set(&mut settings);
        let models = ModelRegistry::new(Vec::new())
            .with_model(model.clone())
            .with_model(second);
        let models = others
            .iter()
            .fold(models, |models, other| models.with_model(other.clone()));
        let agent = Agent::new(
            Arc::clone(&store),
            Arc::new(models),
            and(Toolbox::new(tools.collect())),
            Arc::new(settings),
        );
        Self {
            agent,
            model,
            client: Arc::default(),
            guard: OracleGuard::new(Arc::clone(&store)),
            store,
            ran,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn with_answers(self, answers: &[PermissionAnswer]) -> Self {
        self.client
            .answers
            .lock()
            .unwrap()
            .extend(answers.iter().cloned());
        self
    }

    pub(crate) fn request(&self) -> OpenRequest {
        OpenRequest::folder(self.folder.path().canonicalize().unwrap())
    }

    /// Returns the number of commits of a session.
    pub(crate) async fn head(&self, session: &Session) -> u64 {
        let info = self.store.info(session.id()).await;
        info.unwrap().head_version
    }

    pub(crate) async fn loops(&self, id: &SessionId) -> Vec<Arc<LoopRecord>> {
        self.store.loops(id, 0).await.unwrap()
    }

    /// Creates an outbox with this capacity, and its receiver.
    pub(crate) fn outbox(&self, room: usize) -> (Box<dyn Outbox>, mpsc::Receiver<ShownItem>) {
        let (sender, seen) = mpsc::channel(room);
        (
            Box::new(TestOutbox(PollSender::new(sender), self.guard.observer())),
            seen,
        )
    }

    pub(crate) fn ports(&self, room: usize) -> (ClientPorts, mpsc::Receiver<ShownItem>) {
        let (outbox, seen) = self.outbox(room);
        (ClientPorts::local(self.client.clone(), outbox), seen)
    }

    /// Creates a session whose client takes `room` items before it must be read.
    pub(crate) async fn session(&self, room: usize) -> (Session, mpsc::Receiver<ShownItem>) {
        let (ports, seen) = self.ports(room);
        let session = self.agent.create(self.request(), |_| ports).await.unwrap();
        (session, seen)
    }

    /// An existing session, opened again.
    pub(crate) async fn open(
        &self,
        id: &SessionId,
        replay: bool,
    ) -> (Session, mpsc::Receiver<ShownItem>) {
        let (ports, seen) = self.ports(1000);
        let opened = self.agent.open(id, self.request(), replay, |_| ports).await;
        (opened.unwrap(), seen)
    }
}

/// Capacity large enough that the client never blocks.
pub(crate) const LARGE_CAPACITY: usize = 1000;

/// Set of these hook requests.
macro_rules! hook_set {
    ($($request:ident),+) => {
        turnery_engine::HookSet { $($request: true,)+ ..turnery_engine::HookSet::default() }
    };
}
pub(crate) use hook_set;

/// Runs a prompt to its end.
pub(crate) async fn run_text(session: &Session, text: &str) -> PromptResult {
    start_text(session, text).result().await.unwrap()
}

/// Lets other tasks work while the condition holds.
pub(crate) async fn yield_while(condition: impl Fn() -> bool) {
    while condition() {
        tokio::task::yield_now().await;
    }
}

/// Reads items up to the next live event that fits.
pub(crate) async fn wait_for_event(
    seen: &mut mpsc::Receiver<ShownItem>,
    fits: impl Fn(&EventKind) -> bool,
) -> Event {
    loop {
        if let ShownItem::Live(event) = seen.recv().await.unwrap()
            && fits(&event.kind)
        {
            return event;
        }
    }
}

/// Checks random values, each on a runtime of its own with a paused clock.
pub(crate) fn check_random<S: Strategy>(
    cases: u32,
    values: S,
    check: impl AsyncFn(S::Value) -> Result<(), TestCaseError>,
) {
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let checked = TestRunner::new(config).run(&values, |value| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(check(value))
    });
    checked.unwrap_or_else(|failure| panic!("{failure}"));
}

pub(crate) fn usage_of(input: u64, output: u64) -> Usage {
    Usage {
        input,
        output,
        ..Usage::default()
    }
}

pub(crate) fn finished(text: &str) -> Outcome {
    Outcome::Finished(TurnFinish::AssistantMessage { text: text.into() }, None)
}

pub(crate) fn choose(id: &str) -> PermissionAnswer {
    PermissionAnswer::Selected(id.to_owned())
}

/// Options of a prompt that may take one turn and ends without a forced reply.
pub(crate) fn one_turn() -> PromptOptions {
    PromptOptions {
        limits: Some(Limits {
            turns: 1,
            ..Limits::default()
        }),
        forced_reply: Some(false),
        ..PromptOptions::default()
    }
}

/// Options of a prompt with these hooks.
pub(crate) fn with_hooks(hooks: Arc<dyn Hooks>) -> PromptOptions {
    PromptOptions {
        hooks: vec![hooks],
        ..PromptOptions::default()
    }
}

pub(crate) fn start_text(session: &Session, text: &str) -> PromptHandle {
    start(session, text, CancellationToken::new())
}

pub(crate) fn start(session: &Session, text: &str, cancel: CancellationToken) -> PromptHandle {
    session.start(vec![Content::text(text)], cancel).unwrap()
}

/// Returns all items shown so far.
pub(crate) fn drain(seen: &mut mpsc::Receiver<ShownItem>) -> Vec<ShownItem> {
    std::iter::from_fn(|| seen.try_recv().ok()).collect()
}

/// Returns the replayed events among all items shown so far.
pub(crate) fn drain_replayed(seen: &mut mpsc::Receiver<ShownItem>) -> Vec<Event> {
    let replayed = drain(seen).into_iter().filter_map(|seen| match seen {
        ShownItem::Replay(event) => Some(event),
        ShownItem::Live(_) | ShownItem::Info(_) => None,
    });
    replayed.collect()
}

/// Returns the live events among them.
pub(crate) fn live_events(seen: &[ShownItem]) -> Vec<Event> {
    seen.iter()
        .filter_map(|seen| match seen {
            ShownItem::Live(event) => Some(event.clone()),
            ShownItem::Replay(_) | ShownItem::Info(_) => None,
        })
        .collect()
}
