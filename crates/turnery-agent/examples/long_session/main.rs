//! What a turn costs early and late in a long session: `cargo run -p turnery-agent --example long_session`.
//!
//! The model answers at once and does not read the history, so what is left is the engine's own work:
//! the loop, the record, the journal and the commit, with the real store on a disk.

mod meter;

use futures_util::future::BoxFuture;
use meter::Used;
use serde_json::{Value, json};
use std::{
    error::Error,
    io::Write as _,
    ops::Range,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};
use turnery_agent::{Agent, CancellationToken, OpenRequest, Ports, Settings, Silent};
use turnery_engine::{
    CallDetail, CallId, Content, Limits, ModelDelta, ModelFault, ModelStop, Outcome, Response,
    ToolCall, ToolEnvelope, ToolFailure, ToolSpec, TurnFinish,
};
use turnery_models::{Catalogue, DeltaSender, Model, ModelInfo, ModelName, ModelRequest};
use turnery_store::SqliteStore;
use turnery_tools::{Access, Prepared, Tool, ToolCx, Toolbox, Workspace};

type Ran<T = ()> = Result<T, Box<dyn Error>>;

/// How much more a late turn may cost than an early one.
const MOST: f64 = 1.5;

/// A session to be measured.
#[derive(Clone, Copy)]
struct Session {
    turns: u32,
    /// Turns of each prompt.
    each: u32,
    /// How many turns are measured together, around the first measured one and at the end. Many where
    /// a prompt is long: its journal is written in large pieces now and then.
    width: u32,
}

impl Session {
    /// The calls of the model at which the two measurements begin and end.
    fn marks(&self) -> [u32; 4] {
        let (width, end) = (self.width, self.turns - 1);
        [width / 2, width / 2 + width, end - width, end]
    }

    /// The rows that depend on nothing but the turns. Of a prompt that takes longer than its events
    /// wait to be journalled, what is written depends on how quick the machine is, too.
    fn steady(&self) -> Range<usize> {
        match self.each {
            2 => 0..4,
            _ => 1..3,
        }
    }
}

/// A model that calls a tool in every turn but the last of each prompt, and looks at the meter.
struct Clockwork {
    info: ModelInfo,
    session: Session,
    calls: AtomicU32,
    seen: Mutex<Vec<Used>>,
}

impl Clockwork {
    fn new(session: Session) -> Self {
        Self {
            info: ModelInfo {
                name: ModelName {
                    provider: "clockwork".to_owned(),
                    model: "one".to_owned(),
                },
                display_name: "Clockwork".to_owned(),
                context_window: None,
                max_output: u32::MAX,
                images: false,
                reasoning: false,
                api: "clockwork",
                base_url: None,
            },
            session,
            calls: AtomicU32::new(0),
            seen: Mutex::default(),
        }
    }

    /// What early turns used up, and what the last ones did.
    fn windows(&self) -> Ran<[Used; 2]> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match seen[..] {
            [a, b, c, d] => Ok([b - a, d - c]),
            _ => Err("not all turns were run".into()),
        }
    }
}

impl Model for Clockwork {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn call(
        &self,
        request: ModelRequest,
        out: DeltaSender,
    ) -> BoxFuture<'_, Result<Response, ModelFault>> {
        drop(request);
        let n = self.calls.fetch_add(1, Ordering::Relaxed);
        if self.session.marks().contains(&n) {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.push(Used::so_far());
        }
        Box::pin(async move {
            let text = format!("This is what I think in turn {n}.");
            let block = 0;
            let delta = text.clone();
            out.send(ModelDelta::Text { block, text: delta }).await;
            let mut content = vec![Content::text(text)];
            let ends = (n + 1).is_multiple_of(self.session.each);
            if !ends {
                content.push(Content::ToolCall(ToolCall {
                    call_id: CallId::from(format!("call-{n}")),
                    name: "look".to_owned(),
                    args: Arc::new(json!({"at": n})),
                }));
            }
            Ok(Response {
                content,
                stop: match ends {
                    true => ModelStop::EndTurn,
                    false => ModelStop::ToolUse,
                },
                raw_stop: None,
                usage: None,
                tool_results: Vec::new(),
                model: "one".to_owned(),
                provider: "clockwork".to_owned(),
            })
        })
    }
}

/// Gives back a page of text.
struct Look(ToolSpec);

impl Tool for Look {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }
    fn describe(&self, _: &Value, _: &Workspace) -> CallDetail {
        CallDetail::default()
    }
    fn prepare<'a>(
        &'a self,
        args: &'a Value,
        cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<Prepared, ToolFailure>> {
        let access = Access::Nothing;
        let detail = self.describe(args, &cx.workspace);
        Box::pin(async move { Ok(Prepared { access, detail }) })
    }
    fn run<'a>(&'a self, _: &'a Value, _: &'a ToolCx) -> BoxFuture<'a, ToolEnvelope> {
        Box::pin(async { ToolEnvelope::text("one line of what there is to see\n".repeat(30)) })
    }
}

fn agent(folder: &Path, model: Arc<Clockwork>) -> Agent {
    let mut settings = Settings::new(model.info().name.clone(), "You look around.");
    settings.limits = Limits {
        turns: u32::MAX,
        tokens: u64::MAX,
        duration: Duration::from_secs(24 * 3600),
        cost: None,
    };
    let look = Look(ToolSpec {
        name: "look".to_owned(),
        description: "Looks around.".to_owned(),
        schema: json!({"type": "object", "properties": {"at": {"type": "integer"}}}).into(),
    });
    Agent::new(
        Arc::new(SqliteStore::open(folder.join("sessions.db"))),
        Arc::new(Catalogue::new(Vec::new()).with_model(model)),
        Toolbox::new(vec![Arc::new(look)]),
        Arc::new(settings),
    )
}

/// What the session cost early and late, and how long it takes to open it again.
async fn measure(measured: Session) -> Ran<([Used; 2], Duration)> {
    // In the working directory, since a temporary folder may not be on a disk.
    let folder = tempfile::tempdir_in(".")?;
    let model = Arc::new(Clockwork::new(measured));
    let here = OpenRequest {
        cwd: folder.path().canonicalize()?,
        roots: Vec::new(),
        mcp: Vec::new(),
    };
    let ports = || Ports::local(Arc::new(Silent), Box::new(Silent));
    let own = agent(folder.path(), Arc::clone(&model));
    let session = own.create(here.clone(), |_| ports()).await?;
    for _ in 0..measured.turns / measured.each {
        let prompt = vec![Content::text("What is there to see?")];
        let ticket = session.start(prompt, CancellationToken::new())?;
        match ticket.result().await?.outcome {
            Outcome::Finished(TurnFinish::AssistantMessage { .. }) => {}
            other => return Err(format!("a prompt ended early: {other:?}").into()),
        }
    }
    let id = session.id().clone();
    session.close().await;
    drop(own);
    let other = agent(folder.path(), Arc::clone(&model));
    let begun = Instant::now();
    let session = other.open(&id, here, false, |_| ports()).await?;
    let opening = begun.elapsed();
    session.close().await;
    Ok((model.windows()?, opening))
}

/// How many times more; 1 if there is nothing to compare.
fn ratio(early: f64, late: f64) -> f64 {
    match early > 0.0 {
        true => late / early,
        false => 1.0,
    }
}

fn rows([early, late]: [Used; 2], width: u32) -> [(&'static str, f64, f64); 4] {
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    let per_turn = |all: u64| all as f64 / f64::from(width);
    let cpu = |used: Used| used.cpu.as_secs_f64() * 1e6 / f64::from(width);
    let row = |name, of: fn(Used) -> u64| (name, per_turn(of(early)), per_turn(of(late)));
    [
        ("processor, µs", cpu(early), cpu(late)),
        row("allocations", |used| used.allocations),
        row("bytes allocated", |used| used.allocated),
        row("bytes written", |used| used.written),
    ]
}

/// Short prompts, long ones, and one that never ends.
fn sessions(turns: u32, wide: u32) -> [Session; 3] {
    [(2, 100), (50, 100), (turns, wide)].map(|(each, width)| Session { turns, each, width })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Ran {
    let mut out = std::io::stdout();
    let mut dear = false;
    for session in sessions(10_000, 1_000) {
        let (windows, opening) = measure(session).await?;
        let Session { turns, each, width } = session;
        writeln!(
            out,
            "{turns} turns, {each} in a prompt; opened in {opening:.0?}"
        )?;
        for (place, (name, early, late)) in rows(windows, width).into_iter().enumerate() {
            let ratio = ratio(early, late);
            dear |= ratio > MOST && session.steady().contains(&place);
            writeln!(
                out,
                "  {name:<16} at turn {width:>6} {early:>9.0}   at turn {turns:>6} {late:>9.0}   {ratio:.2}"
            )?;
        }
    }
    match dear {
        false => Ok(()),
        true => Err(format!("a late turn costs more than {MOST} times an early one").into()),
    }
}

/// Without the time of the processor, which depends on what else the machine does.
#[tokio::test]
async fn a_late_turn_costs_what_an_early_one_does() {
    for session in sessions(1_000, 250) {
        let (windows, _) = measure(session).await.expect("it runs");
        let rows = rows(windows, session.width);
        for (name, early, late) in &rows[session.steady().start.max(1)..session.steady().end] {
            let each = session.each;
            assert!(
                ratio(*early, *late) <= MOST,
                "{name}: {early} {late}, {each}"
            );
        }
    }
}
