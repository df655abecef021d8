//! Tests of the limits of a prompt: one budget for its frames, candidates, judge and child sessions.

use crate::fixture::{
    EmbeddingFixture, LARGE_CAPACITY, ModelAct, TestModel, check_random, run_text,
};
use futures_util::future::BoxFuture;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, Mutex},
    time::Duration,
};
use turnery_agent::{
    Agent, ClientPorts, OpenRequest, PromptOptions, PromptResult, SelectionStrategy, Settings,
    SubAgentTool,
};
use turnery_engine::{
    Content, LimitKind, Limits, ModelError, ModelStop, Outcome, Price, Response, ToolCall,
    ToolControl, ToolEnvelope, TurnStop, Usage,
};
use turnery_models::{Model, ModelEventSender, ModelInfo, ModelRegistry, ModelRequest};
use turnery_store::MemoryStore;
use turnery_tools::{FunctionTool, Mode, Toolbox};

/// Tokens of each answer.
const ANSWER_TOKENS: u64 = 50;

/// Calls and usage of all models of a test.
#[derive(Debug, Default)]
struct CallLedger {
    calls: u64,
    charged: u64,
    active: u64,
    /// The most calls at once.
    peak: u64,
    /// Tokens after which no call may begin.
    limit: u64,
    /// Calls that began after the limit.
    late: u64,
}

/// Next step of a worker model.
#[derive(Clone, Copy, Debug)]
enum WorkerStep {
    Finish,
    CallTool,
    SwitchFrame,
    Delegate,
    DelegateTwice,
}

/// Model that calls tools as long as it is offered some.
struct WorkerModel {
    info: ModelInfo,
    want: Box<dyn Fn(u64) -> WorkerStep + Send + Sync>,
    /// Duration of the response with this number.
    pause: fn(u64) -> Duration,
    ledger: Arc<Mutex<CallLedger>>,
}

/// Guard of a call in progress.
struct LedgerCallGuard(Arc<Mutex<CallLedger>>);

impl Drop for LedgerCallGuard {
    fn drop(&mut self) {
        self.0.lock().unwrap().active -= 1;
    }
}

impl Model for WorkerModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn call(
        &self,
        request: ModelRequest,
        _out: ModelEventSender,
    ) -> BoxFuture<'_, Result<Response, ModelError>> {
        let number = {
            let mut ledger = self.ledger.lock().unwrap();
            ledger.calls += 1;
            ledger.active += 1;
            ledger.peak = ledger.peak.max(ledger.active);
            ledger.late += u64::from(ledger.charged >= ledger.limit);
            ledger.calls
        };
        let active = LedgerCallGuard(Arc::clone(&self.ledger));
        let want = match request.callable_tools().is_empty() {
            true => WorkerStep::Finish,
            false => (self.want)(number),
        };
        Box::pin(async move {
            tokio::time::sleep((self.pause)(number)).await;
            self.ledger.lock().unwrap().charged += ANSWER_TOKENS;
            drop(active);
            Ok(answer(want, number))
        })
    }
}

fn answer(want: WorkerStep, number: u64) -> Response {
    let call = |name: &str, beside: u64, args: Value| {
        Content::ToolCall(ToolCall::new(format!("{number}-{beside}"), name, args))
    };
    let task = || json!({"title": "Dig", "prompt": "dig"});
    let content = match want {
        WorkerStep::Finish => vec![Content::text("1")],
        WorkerStep::CallTool => vec![call("look", 0, json!({}))],
        WorkerStep::SwitchFrame => vec![call("switch", 0, json!({}))],
        WorkerStep::Delegate => vec![call("task", 0, task())],
        WorkerStep::DelegateTwice => vec![call("task", 0, task()), call("task", 1, task())],
    };
    Response {
        stop: match want {
            WorkerStep::Finish => ModelStop::EndTurn,
            WorkerStep::CallTool
            | WorkerStep::SwitchFrame
            | WorkerStep::Delegate
            | WorkerStep::DelegateTwice => ModelStop::ToolUse,
        },
        content,
        raw_stop: None,
        usage: Some(Usage {
            input: ANSWER_TOKENS - 10,
            output: 10,
            ..Usage::default()
        }),
        model: "worker".to_owned(),
        provider: "puppet".to_owned(),
        tool_results: Vec::new(),
        request: None,
    }
}

/// Prompt to worker models, with its candidates.
struct LimitRun {
    limits: Limits,
    candidates: usize,
    judge: bool,
    pause: fn(u64) -> Duration,
}

impl LimitRun {
    fn plain(limits: Limits) -> Self {
        Self {
            limits,
            candidates: 0,
            judge: false,
            pause: |_| Duration::from_millis(1),
        }
    }

    /// Runs it to its end. The price of a token is a millionth.
    async fn run(
        self,
        want: impl Fn(u64) -> WorkerStep + Clone + Send + Sync + 'static,
    ) -> LimitRunResult {
        let ledger = Arc::new(Mutex::new(CallLedger {
            limit: self.limits.tokens.min(self.limits.cost.unwrap_or(u64::MAX)),
            ..CallLedger::default()
        }));
        let names = ["one", "a", "b", "c", "d", "judge"];
        let worker = |name: &&str| {
            let puppet = TestModel::new(name, &[]);
            Arc::new(WorkerModel {
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
            .fold(ModelRegistry::new(Vec::new()), |models, worker| {
                models.with_model(worker)
            });
        let action = |name: &'static str, control: fn() -> Option<Box<ToolControl>>| {
            FunctionTool::new(name, "", move |_: Value, _| async move {
                ToolEnvelope {
                    control: control(),
                    ..ToolEnvelope::text("done")
                }
            })
        };
        let tools = Toolbox::new(Vec::new())
            .with_tool(action("look", || None))
            .with_tool(action("switch", || {
                let task = "dig here".to_owned();
                Some(Box::new(ToolControl::SwitchFrame { task }))
            }))
            .with_tool(SubAgentTool);
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
        let request = OpenRequest::folder(cwd);
        let session = agent.create(request, |_| ClientPorts::silent()).await;
        let session = session.unwrap();
        let input = vec![Content::text("go")];
        let options = PromptOptions::default();
        let ticket = if self.candidates == 0 {
            session.prompt(input, options)
        } else {
            let tried = names[1..=self.candidates].iter();
            let tried = tried.map(|name| model_name(name).into()).collect();
            let pick = match self.judge {
                true => SelectionStrategy::Judge(Some(model_name("judge"))),
                false => SelectionStrategy::First,
            };
            session.evaluate(input, tried, pick, options)
        };
        let result = ticket.unwrap().result().await.unwrap();
        session.close().await;
        drop(agent);
        let ledger = std::mem::take(&mut *ledger.lock().unwrap());
        LimitRunResult { result, ledger }
    }
}

/// Result of a job, with the usage claimed by its models.
struct LimitRunResult {
    result: PromptResult,
    ledger: CallLedger,
}

impl LimitRunResult {
    fn limit(&self) -> Option<(LimitKind, &str)> {
        let limit = self.result.outcome.limit()?;
        Some((limit.kind, &limit.text))
    }
}

fn model_name(model: &str) -> turnery_models::ModelName {
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

/// Each frame continues with the budget that earlier frames have left.
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
        let job = LimitRun::plain(limits);
        let done = job.run(|_| WorkerStep::SwitchFrame).await;
        assert_eq!(done.ledger.calls, calls, "{text}");
        assert_eq!(done.limit(), Some((kind, text)));
        assert!(done.result.loops.len() > 1, "{text}");
    }
    let mut job = LimitRun::plain(seconds(7));
    job.pause = |_| Duration::from_secs(2);
    let done = job.run(|_| WorkerStep::SwitchFrame).await;
    assert_eq!(done.ledger.calls, 4, "the fourth is cut off");
    assert_eq!(done.ledger.charged, 3 * ANSWER_TOKENS);
    assert!(matches!(done.limit(), Some((LimitKind::Duration, _))));
}

/// The forced reply is granted to one of them, and its answer is the prompt's.
// proves: UP-3, C-4
#[tokio::test(start_paused = true)]
async fn candidates_share_one_forced_reply() {
    let mut job = LimitRun::plain(turns(5));
    job.candidates = 3;
    let done = job.run(|_| WorkerStep::CallTool).await;
    assert_eq!(done.ledger.calls, 6);
    assert!(matches!(done.result.outcome, Outcome::Finished(..)));
    let text = "Max turns reached (5/5)";
    assert_eq!(done.limit(), Some((LimitKind::Turns, text)));
    let stopped = |it: &&Arc<turnery_engine::LoopRecord>| {
        matches!(it.outcome, Some(Outcome::Stopped(TurnStop::MaxTurns(_))))
    };
    assert_eq!(done.result.loops.iter().filter(stopped).count(), 2);
}

/// One candidate finishes and the other is stopped, which is reported.
#[tokio::test(start_paused = true)]
async fn limit_of_losing_candidate_is_reported() {
    let mut job = LimitRun::plain(tokens(120));
    job.candidates = 2;
    // Calls 1 and 2 are the first of each candidate.
    let done = job
        .run(|number| {
            if number == 1 {
                WorkerStep::Finish
            } else {
                WorkerStep::CallTool
            }
        })
        .await;
    assert!(matches!(done.result.outcome, Outcome::Finished(..)));
    let text = "Max tokens reached (150/120)";
    assert_eq!(done.limit(), Some((LimitKind::Tokens, text)));
    assert_eq!(done.ledger.charged, 150);
}

/// The parent learns that its child was stopped, and continues.
// proves: UP-18
#[tokio::test(start_paused = true)]
async fn child_turn_limit_is_reported_to_parent() {
    let job = LimitRun::plain(turns(50));
    let done = job
        .run(|number| match number {
            1 => WorkerStep::Delegate,
            2..=31 => WorkerStep::CallTool,
            _ => WorkerStep::Finish,
        })
        .await;
    // One of the parent, thirty and the last reply of the child, one of the parent.
    assert_eq!(done.ledger.calls, 33);
    assert_eq!(done.limit(), None, "the prompt has not reached its own");
    let content = done.result.executions()[0].envelope.result.clone().unwrap();
    let text: String = content.iter().filter_map(Content::as_text).collect();
    assert!(
        text.contains("had to stop here: Max turns reached (30/30)"),
        "{text}"
    );
}

/// Threads of the runtime race for the last turns: each turn is taken once.
// proves: UP-1
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn turn_limit_is_exact_for_racing_sub_agents() {
    for _ in 0..5 {
        let mut job = LimitRun::plain(turns(40));
        job.pause = |_| Duration::ZERO;
        let done = job.run(|_| WorkerStep::DelegateTwice).await;
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

/// Step of the model in the call with this number.
fn random_step(seed: u64, number: u64) -> WorkerStep {
    match hash(seed, number) % 10 {
        0 => WorkerStep::Finish,
        1..=4 => WorkerStep::CallTool,
        5 => WorkerStep::SwitchFrame,
        6 | 7 => WorkerStep::Delegate,
        _ => WorkerStep::DelegateTwice,
    }
}

fn hash(seed: u64, number: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seed, number).hash(&mut hasher);
    hasher.finish()
}

/// For any tree of frames, candidates and children, no call begins without a turn or after the limit was
/// reached; the total exceeds the limit only by the responses in flight.
// proves: UP-1, C-4
#[test]
fn random_loop_trees_stay_within_limits() {
    let jobs = (any_limits(), 0..5usize, any::<bool>(), any::<u64>());
    check_random(150, jobs, async |(limits, candidates, judge, seed)| {
        let job = LimitRun {
            limits,
            candidates,
            judge,
            pause: |number| Duration::from_millis(1 + hash(7, number) % 9),
        };
        let done = job.run(move |number| random_step(seed, number)).await;
        let CallLedger {
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
        prop_assert_eq!(charged, calls * ANSWER_TOKENS);
        let beyond = charged.saturating_sub(limit.saturating_sub(1));
        prop_assert!(
            beyond <= peak * ANSWER_TOKENS,
            "{} beyond {}",
            beyond,
            limit
        );
        // A limit that was hit is told.
        let is_stopped = matches!(done.result.outcome, Outcome::Stopped(TurnStop::MaxTurns(_)));
        let is_hit = calls > most || is_stopped;
        prop_assert!(
            done.limit().is_some() || !is_hit,
            "{:?}",
            done.result.outcome
        );
        Ok(())
    });
}

/// The next prompt has a budget of its own.
#[tokio::test(start_paused = true)]
async fn next_prompt_starts_with_fresh_budget() {
    let turn: &[ModelAct] = &[ModelAct::Spend(40, 10), ModelAct::Call("l", "look")];
    let world = EmbeddingFixture::with_settings(&[turn; 6], |settings| {
        settings.limits = tokens(100);
    });
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    for calls in [2, 4] {
        let result = run_text(&session, "go").await;
        assert!(matches!(
            result.outcome,
            Outcome::Stopped(TurnStop::MaxTurns(_))
        ));
        assert_eq!(world.model.requests.lock().unwrap().len(), calls);
    }
}
