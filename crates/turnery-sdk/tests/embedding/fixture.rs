//! Test fixture: an agent with toy models and tools, recording sinks and a trace.

use crate::toy::{TestModel, TestTool, ToyStep};
use futures_util::future::BoxFuture;
use std::{
    sync::{Arc, Mutex},
    task::{Context, Poll},
};
use turnery_engine::{LoopRecord, Outcome, SessionId, TurnFinish, Usage};
use turnery_models::ModelRegistry;
use turnery_sdk::{
    ActivityEvent, ActivitySink, Agent, ClientPorts, ModelCallAttempt, OpenRequest, Outbox,
    OutboxItem, PromptActivity, PromptOutput, Session, SessionExt as _, Settings, SilentClient,
    SubAgentTool, TraceSink,
};
use turnery_store::{
    MemoryStore, Store,
    oracle::{EventObserver, OracleGuard},
};
use turnery_tools::Toolbox;

/// Records every model call.
#[derive(Default)]
struct RecordingTraceSink(Mutex<Vec<ModelCallAttempt>>);

impl TraceSink for RecordingTraceSink {
    fn record(&self, call: &ModelCallAttempt) {
        self.0.lock().unwrap().push(call.clone());
    }
}

/// Passes events only to the oracle of its world.
struct OracleOutbox(EventObserver);

impl Outbox for OracleOutbox {
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    fn push(&mut self, item: OutboxItem<'_>) {
        match item {
            OutboxItem::Live(event) => self.0.observe(event),
            OutboxItem::Replay(_)
            | OutboxItem::ReplayEnd
            | OutboxItem::Info { .. }
            | OutboxItem::PromptEnd(_) => {}
        }
    }
}

/// Agent with toys, in its own folder.
pub(crate) struct World {
    pub(crate) agent: Agent,
    pub(crate) toy: Arc<TestModel>,
    pub(crate) second: Arc<TestModel>,
    pub(crate) store: Arc<dyn Store>,
    traced: Arc<RecordingTraceSink>,
    pub(crate) ran: Arc<Mutex<Vec<String>>>,
    /// Usage of all external children.
    pub(crate) hired: Arc<Mutex<Usage>>,
    folder: tempfile::TempDir,
    guard: OracleGuard,
}

impl World {
    pub(crate) fn new(script: Vec<Vec<ToyStep>>) -> Self {
        Self::over(Arc::new(MemoryStore::new()), script, Vec::new())
    }

    /// Creates a world with a second model, `toy/two`.
    pub(crate) fn over(
        store: Arc<dyn Store>,
        script: Vec<Vec<ToyStep>>,
        second: Vec<Vec<ToyStep>>,
    ) -> Self {
        let toys = [TestModel::new("one", script), TestModel::new("two", second)];
        Self::build(store, toys, |_| {}, |tools| tools)
    }

    /// Creates a world with custom settings.
    pub(crate) fn with_settings(
        script: Vec<Vec<ToyStep>>,
        set: impl FnOnce(&mut Settings),
    ) -> Self {
        let toys = [
            TestModel::new("one", script),
            TestModel::new("two", Vec::new()),
        ];
        Self::build(Arc::new(MemoryStore::new()), toys, set, |tools| tools)
    }

    /// Creates a world with sub-agents and small context windows: the history is summarized soon.
    pub(crate) fn with_small_context(
        store: Arc<dyn Store>,
        script: Vec<Vec<ToyStep>>,
        second: Vec<Vec<ToyStep>>,
    ) -> Self {
        const WINDOW: Option<u32> = Some(20_000);
        let toys = [
            TestModel::with_window("one", WINDOW, script),
            TestModel::with_window("two", WINDOW, second),
        ];
        let set = |settings: &mut Settings| {
            settings.compact_at = 50;
            settings.compaction.first_turns = 0;
            settings.compaction.recent_turns = 1;
        };
        Self::build(store, toys, set, |tools| tools.with_tool(SubAgentTool))
    }

    fn build(
        store: Arc<dyn Store>,
        [toy, second]: [Arc<TestModel>; 2],
        set: impl FnOnce(&mut Settings),
        and: impl FnOnce(Toolbox) -> Toolbox,
    ) -> Self {
        let ran: Arc<Mutex<Vec<String>>> = Arc::default();
        let hired: Arc<Mutex<Usage>> = Arc::default();
        let traced: Arc<RecordingTraceSink> = Arc::default();
        let mut settings = Settings::new("toy/one".parse().unwrap(), "be good");
        set(&mut settings);
        let models = ModelRegistry::new(Vec::new())
            .with_model(toy.clone())
            .with_model(second.clone());
        let agent = Agent::new(
            Arc::clone(&store),
            Arc::new(models),
            and(Toolbox::new(TestTool::all(&ran, &hired))),
            Arc::new(settings),
        );
        Self {
            agent: agent.with_trace(traced.clone()),
            toy,
            guard: OracleGuard::new(Arc::clone(&store)),
            second,
            store,
            traced,
            ran,
            hired,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn request(&self) -> OpenRequest {
        OpenRequest::folder(self.folder.path().canonicalize().unwrap())
    }

    fn ports(&self) -> ClientPorts {
        ClientPorts::local(
            Arc::new(SilentClient),
            Box::new(OracleOutbox(self.guard.observer())),
        )
    }

    /// A new session without a client.
    pub(crate) async fn session(&self) -> Session {
        let ports = self.ports();
        self.agent.create(self.request(), |_| ports).await.unwrap()
    }

    /// Opens the session again under a second handle.
    pub(crate) async fn reopen(&self, session: &Session) -> Session {
        self.open(session.id()).await
    }

    /// Opens an existing session.
    pub(crate) async fn open(&self, id: &SessionId) -> Session {
        let ports = self.ports();
        let opened = self.agent.open(id, self.request(), false, |_| ports);
        opened.await.unwrap()
    }

    /// Returns all model calls so far.
    pub(crate) fn traced_calls(&self) -> Vec<ModelCallAttempt> {
        self.traced.0.lock().unwrap().clone()
    }

    /// Returns the stored loops of a session.
    pub(crate) async fn records(&self, session: &Session) -> Vec<Arc<LoopRecord>> {
        self.store.loops(session.id(), 0).await.unwrap()
    }
}

pub(crate) fn finished(text: &str) -> Outcome {
    Outcome::Finished(TurnFinish::AssistantMessage { text: text.into() }, None)
}

/// Runs a hello prompt to its end.
pub(crate) async fn run_hello(session: &Session) -> PromptOutput {
    session.new_prompt("hello").run().await.unwrap()
}

/// Sink that records activities. Panics at the activity with the given index.
#[derive(Default)]
pub(crate) struct RecordingSink {
    pub(crate) seen: Mutex<Vec<PromptActivity>>,
    pub(crate) breaks_at: Option<usize>,
    /// Panic before returning a future.
    pub(crate) at_once: bool,
}

impl ActivitySink for RecordingSink {
    fn emit(&self, activity: PromptActivity) -> BoxFuture<'_, ()> {
        let number = {
            let mut seen = self.seen.lock().unwrap();
            seen.push(activity);
            seen.len() - 1
        };
        let breaks = self.breaks_at == Some(number);
        assert!(!breaks || !self.at_once, "broken at once");
        Box::pin(async move { assert!(!breaks, "broken") })
    }
}

/// Describes each activity in a word or two.
pub(crate) fn describe_all(activities: &[PromptActivity]) -> Vec<String> {
    activities.iter().map(describe).collect()
}

fn describe(activity: &PromptActivity) -> String {
    match &activity.event {
        ActivityEvent::AssistantProseDelta { text } => format!("say {text}"),
        ActivityEvent::ReasoningDelta { text } => format!("think {text}"),
        ActivityEvent::ToolCallStarted { name, .. } => format!("start {name}"),
        ActivityEvent::ToolCallCompleted { name, output, .. } => {
            format!("end {name}: {}", output.text())
        }
        ActivityEvent::Usage { .. } => "usage".to_owned(),
        ActivityEvent::ModelRetried { attempt, .. } => format!("retry {attempt}"),
        ActivityEvent::Error { .. } => "error".to_owned(),
        other => format!("{other:?}"),
    }
}
