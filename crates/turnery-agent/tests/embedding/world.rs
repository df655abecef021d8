//! The world of these tests: an agent over toys, sinks that remember, and a trace.

use crate::toy::{Act, Toy, ToyTool};
use futures_util::future::BoxFuture;
use std::{
    sync::{Arc, Mutex},
    task::{Context, Poll},
};
use turnery_agent::{
    ActivitySink, Agent, Item, ModelCall, OpenRequest, Outbox, Ports, PromptOutput, Session,
    Settings, Silent, SubAgents, TraceSink, TurnActivity, TurnEvent, TurnInput,
};
use turnery_engine::{LoopRecord, SessionId, Usage};
use turnery_models::Catalogue;
use turnery_store::{
    MemoryStore, Store,
    oracle::{Eye, Guard},
};
use turnery_tools::Toolbox;

/// Remembers every call of a model.
#[derive(Default)]
struct Traced(Mutex<Vec<ModelCall>>);

impl TraceSink for Traced {
    fn record(&self, call: &ModelCall) {
        self.0.lock().unwrap().push(call.clone());
    }
}

/// Shows nobody but the guard of its world.
struct Watched(Eye);

impl Outbox for Watched {
    fn poll_room(&mut self, _cx: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    fn push(&mut self, item: Item<'_>) {
        match item {
            Item::Live(event) => self.0.see(event),
            Item::Replay(_) | Item::Info { .. } | Item::Ended(_) => {}
        }
    }
}

/// An agent over toys, in a folder of its own.
pub(crate) struct World {
    pub(crate) agent: Agent,
    pub(crate) toy: Arc<Toy>,
    pub(crate) second: Arc<Toy>,
    pub(crate) store: Arc<dyn Store>,
    traced: Arc<Traced>,
    pub(crate) ran: Arc<Mutex<Vec<String>>>,
    /// What all children that were hired have spent.
    pub(crate) hired: Arc<Mutex<Usage>>,
    folder: tempfile::TempDir,
    guard: Guard,
}

impl World {
    pub(crate) fn new(script: Vec<Vec<Act>>) -> Self {
        Self::over(Arc::new(MemoryStore::new()), script, Vec::new())
    }

    /// With a second model, `toy/two`.
    pub(crate) fn over(
        store: Arc<dyn Store>,
        script: Vec<Vec<Act>>,
        second: Vec<Vec<Act>>,
    ) -> Self {
        let toys = [Toy::new("one", script), Toy::new("two", second)];
        Self::made(store, toys, |_| {}, |tools| tools)
    }

    /// With sub-agents, and with models that have little room: history is summarised soon.
    pub(crate) fn tight(
        store: Arc<dyn Store>,
        script: Vec<Vec<Act>>,
        second: Vec<Vec<Act>>,
    ) -> Self {
        const WINDOW: Option<u32> = Some(20_000);
        let toys = [
            Toy::with_window("one", WINDOW, script),
            Toy::with_window("two", WINDOW, second),
        ];
        let set = |settings: &mut Settings| {
            settings.compact_at = 50;
            settings.compaction.first_turns = 0;
            settings.compaction.recent_turns = 1;
        };
        Self::made(store, toys, set, |tools| tools.and(SubAgents::new()))
    }

    fn made(
        store: Arc<dyn Store>,
        [toy, second]: [Arc<Toy>; 2],
        set: impl FnOnce(&mut Settings),
        and: impl FnOnce(Toolbox) -> Toolbox,
    ) -> Self {
        let ran: Arc<Mutex<Vec<String>>> = Arc::default();
        let hired: Arc<Mutex<Usage>> = Arc::default();
        let traced: Arc<Traced> = Arc::default();
        let mut settings = Settings::new("toy/one".parse().unwrap(), "be good");
        set(&mut settings);
        let models = Catalogue::new(Vec::new())
            .with_model(toy.clone())
            .with_model(second.clone());
        let agent = Agent::new(
            Arc::clone(&store),
            Arc::new(models),
            and(Toolbox::new(ToyTool::all(&ran, &hired))),
            Arc::new(settings),
        );
        Self {
            agent: agent.with_trace(traced.clone()),
            toy,
            guard: Guard::over(Arc::clone(&store)),
            second,
            store,
            traced,
            ran,
            hired,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn request(&self) -> OpenRequest {
        OpenRequest {
            cwd: self.folder.path().canonicalize().unwrap(),
            roots: Vec::new(),
            mcp: Vec::new(),
            instructions: None,
        }
    }

    fn ports(&self) -> Ports {
        Ports::local(Arc::new(Silent), Box::new(Watched(self.guard.eye())))
    }

    /// A new session without a client.
    pub(crate) async fn session(&self) -> Session {
        let ports = self.ports();
        self.agent.create(self.request(), |_| ports).await.unwrap()
    }

    /// The same session, opened apart.
    pub(crate) async fn again(&self, session: &Session) -> Session {
        self.open(session.id()).await
    }

    /// A session that there is.
    pub(crate) async fn open(&self, id: &SessionId) -> Session {
        let ports = self.ports();
        let opened = self.agent.open(id, self.request(), false, |_| ports);
        opened.await.unwrap()
    }

    /// All calls of a model so far.
    pub(crate) fn calls(&self) -> Vec<ModelCall> {
        self.traced.0.lock().unwrap().clone()
    }

    /// What is stored of a session.
    pub(crate) async fn records(&self, session: &Session) -> Vec<Arc<LoopRecord>> {
        self.store.loops(session.id(), 0).await.unwrap()
    }
}

/// Say hello, to the end.
pub(crate) async fn hello(session: &Session) -> PromptOutput {
    session.turn(TurnInput::text("hello")).run().await.unwrap()
}

/// Remembers what it was given. It breaks at the activity of that number, from 0.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) seen: Mutex<Vec<TurnActivity>>,
    pub(crate) breaks_at: Option<usize>,
    /// Break before there is a future.
    pub(crate) at_once: bool,
}

impl ActivitySink for Memory {
    fn emit(&self, activity: TurnActivity) -> BoxFuture<'_, ()> {
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

/// Each activity in a word or two.
pub(crate) fn words(activities: &[TurnActivity]) -> Vec<String> {
    activities.iter().map(word).collect()
}

fn word(activity: &TurnActivity) -> String {
    match &activity.event {
        TurnEvent::AssistantProseDelta { text } => format!("say {text}"),
        TurnEvent::ReasoningDelta { text } => format!("think {text}"),
        TurnEvent::ToolCallStarted { name, .. } => format!("start {name}"),
        TurnEvent::ToolCallCompleted { name, output, .. } => {
            format!("end {name}: {}", output.text())
        }
        TurnEvent::Usage { .. } => "usage".to_owned(),
        TurnEvent::ModelRetried { attempt, .. } => format!("retry {attempt}"),
        TurnEvent::Error { .. } => "error".to_owned(),
        other => format!("{other:?}"),
    }
}
