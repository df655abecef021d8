//! Limits of a prompt: one budget for its frames, its candidates and their judge, and its child sessions.

use crate::world::{Act, Puppet, ROOM, World, say};
use futures_util::future::BoxFuture;
use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::{Value, json};
use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, Mutex},
    time::Duration,
};
use turnery_agent::{
    Agent, Candidate, OpenRequest, Pick, Ports, PromptError, PromptOptions, PromptResult, Settings,
    Silent, SubAgents, UnknownPrice,
};
use turnery_engine::{
    CallId, Content, Detail, LimitKind, Limits, ModelFault, ModelStop, Outcome, Price, Response,
    ToolCall, ToolControl, ToolEnvelope, TurnStop, Usage,
};
use turnery_models::{Catalogue, DeltaSender, Model, ModelFacts, ModelInfo, ModelRequest};
use turnery_store::MemoryStore;
use turnery_tools::{Action, Mode, Toolbox};

/// Tokens of each answer.
const ANSWER: u64 = 50;

/// What all models of a test were asked, and what their answers cost.
#[derive(Debug, Default)]
struct Ledger {
    calls: u64,
    charged: u64,
    alive: u64,
    /// The most calls at once.
    peak: u64,
    /// Tokens after which no call may begin.
    limit: u64,
    /// Calls that began all the same.
    late: u64,
}

/// What a model wants next.
#[derive(Clone, Copy, Debug)]
enum Want {
    Rest,
    Look,
    Switch,
    Delegate,
    DelegateTwice,
}

/// A model that wants something of tools as long as it has some.
struct Worker {
    info: ModelInfo,
    want: Box<dyn Fn(u64) -> Want + Send + Sync>,
    /// How long the answer of that number takes.
    pause: fn(u64) -> Duration,
    ledger: Arc<Mutex<Ledger>>,
}

/// A call under way.
struct Alive(Arc<Mutex<Ledger>>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.lock().unwrap().alive -= 1;
    }
}

impl Model for Worker {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn call(
        &self,
        request: ModelRequest,
        _out: DeltaSender,
    ) -> BoxFuture<'_, Result<Response, ModelFault>> {
        let number = {
            let mut ledger = self.ledger.lock().unwrap();
            ledger.calls += 1;
            ledger.alive += 1;
            ledger.peak = ledger.peak.max(ledger.alive);
            ledger.late += u64::from(ledger.charged >= ledger.limit);
            ledger.calls
        };
        let alive = Alive(Arc::clone(&self.ledger));
        let want = match request.tools.is_empty() {
            true => Want::Rest,
            false => (self.want)(number),
        };
        Box::pin(async move {
            tokio::time::sleep((self.pause)(number)).await;
            self.ledger.lock().unwrap().charged += ANSWER;
            drop(alive);
            Ok(answer(want, number))
        })
    }
}

fn answer(want: Want, number: u64) -> Response {
    let call = |name: &str, beside: u64, args: Value| {
        Content::ToolCall(ToolCall {
            call_id: CallId::from(format!("{number}-{beside}")),
            name: name.to_owned(),
            args: Arc::new(args),
        })
    };
    let task = || json!({"title": "Dig", "prompt": "dig"});
    let content = match want {
        Want::Rest => vec![Content::text("1")],
        Want::Look => vec![call("look", 0, json!({}))],
        Want::Switch => vec![call("switch", 0, json!({}))],
        Want::Delegate => vec![call("task", 0, task())],
        Want::DelegateTwice => vec![call("task", 0, task()), call("task", 1, task())],
    };
    Response {
        stop: match want {
            Want::Rest => ModelStop::EndTurn,
            Want::Look | Want::Switch | Want::Delegate | Want::DelegateTwice => ModelStop::ToolUse,
        },
        content,
        raw_stop: None,
        usage: Some(Usage {
            input: ANSWER - 10,
            output: 10,
            ..Usage::default()
        }),
        model: "worker".to_owned(),
        provider: "puppet".to_owned(),
        tool_results: Vec::new(),
    }
}

/// A prompt to workers, and who tries it.
struct Job {
    limits: Limits,
    candidates: usize,
    judge: bool,
    pause: fn(u64) -> Duration,
}

impl Job {
    fn plain(limits: Limits) -> Self {
        Self {
            limits,
            candidates: 0,
            judge: false,
            pause: |_| Duration::from_millis(1),
        }
    }

    /// Runs it to its end. The price of a token is a millionth.
    async fn run(self, want: impl Fn(u64) -> Want + Clone + Send + Sync + 'static) -> Outturn {
        let ledger = Arc::new(Mutex::new(Ledger {
            limit: self.limits.tokens.min(self.limits.cost.unwrap_or(u64::MAX)),
            ..Ledger::default()
        }));
        let names = ["one", "a", "b", "c", "d", "judge"];
        let worker = |name: &&str| {
            let puppet = Puppet::new(name, &[]);
            Arc::new(Worker {
                info: ModelInfo {
                    context_window: None,
                    ..puppet.info().clone()
                },
                want: Box::new(want.clone()),
                pause: self.pause,
                ledger: Arc::clone(&ledger),
            })
        };
        let models = names
            .iter()
            .map(worker)
            .fold(Catalogue::new(Vec::new()), |models, worker| {
                models.with_model(worker)
            });
        let action = |name: &'static str, control: fn() -> Option<Box<ToolControl>>| {
            Action::new(name, "", move |_: Value, _| async move {
                ToolEnvelope {
                    control: control(),
                    ..ToolEnvelope::text("done")
                }
            })
        };
        let tools = Toolbox::new(Vec::new())
            .and(action("look", || None))
            .and(action("switch", || {
                let task = "dig here".to_owned();
                Some(Box::new(ToolControl::SwitchFrame { task }))
            }))
            .and(SubAgents::new());
        let mut settings = Settings::new("puppet/one".parse().unwrap(), "be good");
        settings.mode = Mode::Auto;
        settings.limits = self.limits;
        settings.price = Some(Price {
            input: 1_000_000,
            output: 1_000_000,
            ..Price::default()
        });
        let store = Arc::new(MemoryStore::new());
        let agent = Agent::new(store, Arc::new(models), tools, Arc::new(settings));
        let folder = tempfile::tempdir().unwrap();
        let cwd = folder.path().canonicalize().unwrap();
        let ports = Ports::local(Arc::new(Silent), Box::new(Silent));
        let session = agent.create(OpenRequest::folder(cwd), |_| ports).await;
        let session = session.unwrap();
        let input = vec![Content::text("go")];
        let options = PromptOptions::default();
        let ticket = if self.candidates == 0 {
            session.prompt(input, options)
        } else {
            let tried = names[1..=self.candidates].iter();
            let tried = tried.map(|name| name_of(name).into()).collect();
            let pick = match self.judge {
                true => Pick::Judge(Some(name_of("judge"))),
                false => Pick::First,
            };
            session.evaluate(input, tried, pick, options)
        };
        let result = ticket.unwrap().result().await.unwrap();
        session.close().await;
        drop(agent);
        let ledger = std::mem::take(&mut *ledger.lock().unwrap());
        Outturn { result, ledger }
    }
}

/// What came of a job, and what its models say that it took.
struct Outturn {
    result: PromptResult,
    ledger: Ledger,
}

impl Outturn {
    fn limit(&self) -> Option<(LimitKind, &str)> {
        match self.result.detail.as_ref()? {
            Detail::Limit { kind, text } => Some((*kind, text)),
            other => panic!("{other:?}"),
        }
    }
}

fn name_of(model: &str) -> turnery_models::ModelName {
    format!("puppet/{model}").parse().unwrap()
}

fn turns(turns: u32) -> Limits {
    Limits {
        turns,
        ..Limits::default()
    }
}

fn tokens(tokens: u64) -> Limits {
    Limits {
        tokens,
        ..Limits::default()
    }
}

fn cost(cost: u64) -> Limits {
    Limits {
        cost: Some(cost),
        ..Limits::default()
    }
}

fn seconds(seconds: u64) -> Limits {
    Limits {
        duration: Duration::from_secs(seconds),
        ..Limits::default()
    }
}

/// Each frame goes on with what those before it have left.
// proves: UP-1, C-4, LASH-13
#[tokio::test(start_paused = true)]
async fn frames_of_a_prompt_share_its_limits() {
    // Four answers of two seconds and 50 tokens reach each limit; one reply comes on top of the turns.
    let cases = [
        (turns(4), 5, LimitKind::Turns, "Max turns reached (4/4)"),
        (
            tokens(175),
            4,
            LimitKind::Tokens,
            "Max tokens reached (200/175)",
        ),
        (
            cost(175),
            4,
            LimitKind::Cost,
            "Max cost reached (0.0002/0.000175)",
        ),
    ];
    for (limits, calls, kind, text) in cases {
        let job = Job::plain(limits);
        let done = job.run(|_| Want::Switch).await;
        assert_eq!(done.ledger.calls, calls, "{text}");
        assert_eq!(done.limit(), Some((kind, text)));
        assert!(done.result.loops.len() > 1, "{text}");
    }
    let mut job = Job::plain(seconds(7));
    job.pause = |_| Duration::from_secs(2);
    let done = job.run(|_| Want::Switch).await;
    assert_eq!(done.ledger.calls, 4, "the fourth is cut off");
    assert_eq!(done.ledger.charged, 3 * ANSWER);
    assert!(matches!(done.limit(), Some((LimitKind::Duration, _))));
}

/// The reply without tools is given to one of them, and its answer is the prompt's.
// proves: UP-3, C-4
#[tokio::test(start_paused = true)]
async fn candidates_share_the_one_last_reply() {
    let mut job = Job::plain(turns(5));
    job.candidates = 3;
    let done = job.run(|_| Want::Look).await;
    assert_eq!(done.ledger.calls, 6);
    assert!(matches!(done.result.outcome, Outcome::Finished(_)));
    let text = "Max turns reached (5/5)";
    assert_eq!(done.limit(), Some((LimitKind::Turns, text)));
    let stopped = |it: &&Arc<turnery_engine::LoopRecord>| {
        it.outcome == Some(Outcome::Stopped(TurnStop::MaxTurns))
    };
    assert_eq!(done.result.loops.iter().filter(stopped).count(), 2);
}

/// One candidate comes to its end, and the other is stopped: that is told.
#[tokio::test(start_paused = true)]
async fn limit_that_stopped_a_loser_is_reported() {
    let mut job = Job::plain(tokens(120));
    job.candidates = 2;
    // Calls 1 and 2 are the first of each candidate.
    let done = job
        .run(|number| if number == 1 { Want::Rest } else { Want::Look })
        .await;
    assert!(matches!(done.result.outcome, Outcome::Finished(_)));
    let text = "Max tokens reached (150/120)";
    assert_eq!(done.limit(), Some((LimitKind::Tokens, text)));
    assert_eq!(done.ledger.charged, 150);
}

/// The parent hears that its child had to stop, and goes on.
// proves: UP-18
#[tokio::test(start_paused = true)]
async fn child_has_turns_of_its_own_and_says_so() {
    let job = Job::plain(turns(50));
    let done = job
        .run(|number| match number {
            1 => Want::Delegate,
            2..=31 => Want::Look,
            _ => Want::Rest,
        })
        .await;
    // One of the parent, thirty and the last reply of the child, one of the parent.
    assert_eq!(done.ledger.calls, 33);
    assert_eq!(done.limit(), None, "the prompt has not reached its own");
    let told = done.result.executions()[0].envelope.result.clone().unwrap();
    let told: String = told.iter().filter_map(Content::as_text).collect();
    assert!(
        told.contains("had to stop here: Max turns reached (30/30)"),
        "{told}"
    );
}

/// Threads of the runtime race for the last turns: each turn is taken once.
// proves: UP-1
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn turns_are_exact_however_many_sub_agents_race_for_them() {
    for _ in 0..5 {
        let mut job = Job::plain(turns(40));
        job.pause = |_| Duration::ZERO;
        let done = job.run(|_| Want::DelegateTwice).await;
        assert_eq!(done.ledger.calls, 41, "{:?}", done.ledger);
        assert_eq!(
            done.limit(),
            Some((LimitKind::Turns, "Max turns reached (40/40)"))
        );
    }
}

fn any_limits() -> impl Strategy<Value = Limits> {
    prop_oneof![
        (1..30u32).prop_map(turns),
        (1..1_500u64).prop_map(tokens),
        (1..1_500u64).prop_map(cost),
        (1..30u32, 1..1_500u64, 1..1_500u64).prop_map(|(most, few, little)| Limits {
            turns: most,
            tokens: few,
            cost: Some(little),
            ..Limits::default()
        }),
    ]
}

/// What the model wants in its call of that number.
fn wanted(seed: u64, number: u64) -> Want {
    match hash(seed, number) % 10 {
        0 => Want::Rest,
        1..=4 => Want::Look,
        5 => Want::Switch,
        6 | 7 => Want::Delegate,
        _ => Want::DelegateTwice,
    }
}

fn hash(seed: u64, number: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seed, number).hash(&mut hasher);
    hasher.finish()
}

/// Whatever tree of frames, candidates and children comes of it: no call begins that has no turn, or once
/// the answers so far have reached a limit. So the sum is within the limit but for the answers under way.
// proves: UP-1, C-4
#[test]
fn sum_of_any_tree_stays_within_its_limits() {
    let config = ProptestConfig {
        cases: 150,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let jobs = (any_limits(), 0..5usize, any::<bool>(), any::<u64>());
    let ended = TestRunner::new(config).run(&jobs, |(limits, candidates, judge, seed)| {
        let job = Job {
            limits,
            candidates,
            judge,
            pause: |number| Duration::from_millis(1 + hash(7, number) % 9),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        let done = runtime.block_on(job.run(move |number| wanted(seed, number)));
        let Ledger {
            calls,
            charged,
            peak,
            limit,
            late,
            ..
        } = done.ledger;
        let most = u64::from(limits.turns);
        prop_assert!(calls <= most + 1, "{} calls of {}", calls, most);
        prop_assert_eq!(late, 0);
        prop_assert_eq!(charged, calls * ANSWER);
        let beyond = charged.saturating_sub(limit.saturating_sub(1));
        prop_assert!(beyond <= peak * ANSWER, "{} beyond {}", beyond, limit);
        // A limit that was hit is told.
        let is_hit = calls > most || done.result.outcome == Outcome::Stopped(TurnStop::MaxTurns);
        prop_assert!(
            done.limit().is_some() || !is_hit,
            "{:?}",
            done.result.outcome
        );
        Ok(())
    });
    ended.unwrap_or_else(|failure| panic!("{failure}"));
}

fn with_cost(most: u64) -> PromptOptions {
    PromptOptions {
        limits: Some(cost(most)),
        ..PromptOptions::default()
    }
}

/// Models `a` and `b` have no price, `one` has.
fn partly_priced(others: &[Arc<Puppet>], script: &[&[Act]]) -> (World, Arc<Puppet>) {
    let world = World::made(
        Arc::new(MemoryStore::new()),
        script,
        others,
        |_| {},
        |tools| tools,
    );
    let puppet = Arc::clone(&world.puppet);
    let models = others.iter().fold(
        Catalogue::new(Vec::new()).with_model(puppet.clone()),
        |models, other| models.with_model(other.clone()),
    );
    let facts = ModelFacts {
        price: Some(Price {
            input: 1_000_000,
            output: 1_000_000,
            ..Price::default()
        }),
        ..ModelFacts::default()
    };
    let models = models.with_facts(vec![(name_of("one"), facts)]);
    let settings = Settings::new(name_of("one"), "be good");
    let agent = Agent::new(
        Arc::clone(&world.store),
        Arc::new(models),
        world.agent.toolbox().clone(),
        Arc::new(settings),
    );
    (World { agent, ..world }, puppet)
}

// proves: UP-1
#[tokio::test(start_paused = true)]
async fn unknown_price_is_refused_before_the_first_call() {
    let others = [
        Puppet::new("a", &[&[Act::Say("a")]]),
        Puppet::new("b", &[&[Act::Say("b")]]),
    ];
    let (world, puppet) = partly_priced(&others, &[&[Act::Say("one")], &[Act::Say("two")]]);
    let (session, _seen) = world.session(ROOM).await;
    let tried = |names: &[&str]| -> Vec<Candidate> {
        names.iter().map(|name| name_of(name).into()).collect()
    };
    let judged = |name: &str| Pick::Judge(Some(name_of(name)));
    for (candidates, pick, unknown) in [
        (tried(&["one", "b"]), Pick::First, "b"),
        (tried(&["one", "one"]), judged("a"), "a"),
    ] {
        let input = vec![Content::text("go")];
        let ticket = session.evaluate(input, candidates, pick, with_cost(9));
        let refused = ticket.unwrap().result().await;
        let model = name_of(unknown);
        assert_eq!(refused, Err(PromptError::Price(UnknownPrice { model })));
    }
    for model in others.iter().chain([&puppet]) {
        assert!(model.requests.lock().unwrap().is_empty());
    }
    // Nothing is limited, or all is known.
    let free = session.evaluate(
        vec![Content::text("go")],
        tried(&["a", "b"]),
        Pick::First,
        PromptOptions::default(),
    );
    assert!(free.unwrap().result().await.is_ok());
    let ticket = session.prompt(vec![Content::text("go")], with_cost(9));
    assert!(ticket.unwrap().result().await.is_ok());
}

/// The price of the model that answers counts, also of one that is chosen in the middle.
// proves: UP-1
#[tokio::test(start_paused = true)]
async fn model_chosen_in_mid_prompt_needs_a_price_too() {
    let gate = Arc::new(tokio::sync::Notify::new());
    let others = [Puppet::new("a", &[&[Act::Say("a")]])];
    let script: &[&[Act]] = &[&[Act::Wait(gate.clone()), Act::Call("l", "look")]];
    let (world, puppet) = partly_priced(&others, script);
    let (session, _seen) = world.session(ROOM).await;
    let ticket = session.prompt(vec![Content::text("go")], with_cost(9));
    while puppet.requests.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    session.set_model("puppet/a").await.unwrap();
    gate.notify_one();
    let result = ticket.unwrap().result().await.unwrap();
    assert!(others[0].requests.lock().unwrap().is_empty());
    assert_eq!(result.outcome, Outcome::Stopped(TurnStop::ProviderError));
    let told = result.detail.as_ref().and_then(Detail::sentence).unwrap();
    assert!(
        told.starts_with("no price is known for puppet/a, "),
        "{told}"
    );
}

/// The next prompt has a budget of its own.
#[tokio::test(start_paused = true)]
async fn next_prompt_begins_with_nothing_spent() {
    let turn: &[Act] = &[Act::Spend(40, 10), Act::Call("l", "look")];
    let world = World::set(&[turn; 6], |settings| {
        settings.limits = tokens(100);
    });
    let (session, _seen) = world.session(ROOM).await;
    for calls in [2, 4] {
        let result = say(&session, "go").result().await.unwrap();
        assert_eq!(result.outcome, Outcome::Stopped(TurnStop::MaxTurns));
        assert_eq!(world.puppet.requests.lock().unwrap().len(), calls);
    }
}
