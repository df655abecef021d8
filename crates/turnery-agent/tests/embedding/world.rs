//! The world of these tests: an agent over toys, sinks that remember, and a trace.

use crate::toy::{Act, Toy, ToyTool};
use futures_util::future::BoxFuture;
use std::{
    sync::{Arc, Mutex},
    task::{Context, Poll},
};
use turnery_agent::{
    ActivitySink, Agent, Item, ModelCall, OpenRequest, Outbox, Ports, PromptOutput, Session,
    Settings, Silent, TraceSink, TurnActivity, TurnEvent, TurnInput,
};
use turnery_engine::LoopRecord;
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
    pub(crate) store: Arc<dyn Store>,
    traced: Arc<Traced>,
    pub(crate) ran: Arc<Mutex<Vec<String>>>,
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
        let toy = Toy::new("one", script);
        let ran: Arc<Mutex<Vec<String>>> = Arc::default();
        let traced: Arc<Traced> = Arc::default();
        let settings = Settings::new("toy/one".parse().unwrap(), "be good");
        let models = Catalogue::new(Vec::new())
            .with_model(toy.clone())
            .with_model(Toy::new("two", second));
        let agent = Agent::new(
            Arc::clone(&store),
            Arc::new(models),
            Toolbox::new(ToyTool::all(&ran)),
            Arc::new(settings),
        );
        Self {
            agent: agent.with_trace(traced.clone()),
            toy,
            guard: Guard::over(Arc::clone(&store)),
            store,
            traced,
            ran,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn request(&self) -> OpenRequest {
        OpenRequest {
            cwd: self.folder.path().canonicalize().unwrap(),
            roots: Vec::new(),
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
        let ports = self.ports();
        let opened = self
            .agent
            .open(session.id(), self.request(), false, |_| ports);
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
