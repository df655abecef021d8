//! Measures the cost of a turn early and late in a long session, and how long a client waits until the session
//! is open again: `cargo run --release -p turnery-acp --example long_session`.
//!
//! The model answers at once and ignores the history, so the cost is the engine's own: the loop, the record,
//! the journal and the commit, with the real store on a disk.

mod client;
mod model;
#[path = "../support/pipes.rs"]
mod pipes;
mod resource_usage;

use client::OpenTiming;
use model::{BenchModel, agent};
use resource_usage::ResourceUsage;
use std::{error::Error, io::Write as _, sync::Arc, time::Duration};
use turnery_agent::{CancellationToken, ClientPorts, OpenRequest, SilentClient};
use turnery_engine::{Content, Outcome, TurnFinish};
use turnery_store::SqliteStore;

type BenchResult<T = ()> = Result<T, Box<dyn Error>>;

/// Maximum ratio of the cost of a late turn to an early one.
const MAX_RATIO: f64 = 1.5;

/// Maximum time until the session is open.
const MAX_OPEN_TIME: Duration = Duration::from_millis(300);

/// Number of measurements of a session before a violation counts.
const MAX_ATTEMPTS: u32 = 3;

/// Number of turns of a measured session, and how they are divided into prompts and measurements.
#[derive(Clone, Copy)]
struct SessionShape {
    turns: u32,
    /// Number of turns per prompt.
    turns_per_prompt: u32,
    /// Number of turns in each of the two measurements, the early and the late one. Large if prompts are
    /// long: their journal is written in large pieces now and then.
    window: u32,
}

impl SessionShape {
    /// Returns the model calls at which the two measurements begin and end.
    fn measurement_bounds(&self) -> [u32; 4] {
        // At the start of a prompt, if there are several: nothing is waiting to be written then.
        let last = match self.turns_per_prompt <= self.window {
            true => self.turns_per_prompt,
            false => 1,
        };
        let (width, end) = (self.window, self.turns - last);
        [width / 2, width / 2 + width, end - width, end]
    }
}

/// Measures the cost of early and late turns, and how long a client waits for the session afterwards.
async fn measure(measured: SessionShape) -> BenchResult<([ResourceUsage; 2], [OpenTiming; 2])> {
    // In the working directory, since a temporary folder may not be on a disk.
    let folder = tempfile::tempdir_in(".")?;
    let store = || Arc::new(SqliteStore::open(folder.path().join("sessions.db")));
    let written = store();
    let model = Arc::new(BenchModel::new(measured, Arc::clone(&written)));
    let here = OpenRequest::folder(folder.path().canonicalize()?);
    let ports = || ClientPorts::local(Arc::new(SilentClient), Box::new(SilentClient));
    let own = agent(written, Arc::clone(&model));
    let session = own.create(here.clone(), |_| ports()).await?;
    for _ in 0..measured.turns / measured.turns_per_prompt {
        let prompt = vec![Content::text("What is there to see?")];
        let ticket = session.start(prompt, CancellationToken::new())?;
        match ticket.result().await?.outcome {
            Outcome::Finished(TurnFinish::AssistantMessage { .. }, _) => {}
            other => return Err(format!("a prompt ended early: {other:?}").into()),
        }
    }
    let id = session.id().clone();
    session.close().await;
    drop(own);
    let again = || agent(store(), Arc::clone(&model));
    let openings = client::measure_opening(again, &id, &here.cwd)?;
    Ok((model.measured_usage()?, openings))
}

/// Row of the cost table.
struct CostRow {
    name: &'static str,
    early: f64,
    late: f64,
}

impl CostRow {
    /// Returns the ratio of late to early cost, or 1 if the early cost is zero.
    fn ratio(&self) -> f64 {
        match self.early > 0.0 {
            true => self.late / self.early,
            false => 1.0,
        }
    }
}

fn rows([early, late]: [ResourceUsage; 2], width: u32) -> [CostRow; 4] {
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    let row = |name, of: fn(ResourceUsage) -> u64| CostRow {
        name,
        early: of(early) as f64 / f64::from(width),
        late: of(late) as f64 / f64::from(width),
    };
    let micros = |used: ResourceUsage| u64::try_from(used.cpu.as_micros()).unwrap_or(u64::MAX);
    [
        row("processor, µs", micros),
        row("allocations", |used| used.allocations),
        row("bytes allocated", |used| used.allocated),
        row("bytes written", |used| used.written),
    ]
}

/// Returns the sessions to measure: with one, two and fifty turns per prompt, and with all turns in one
/// prompt. `wide` is the window of the last.
fn sessions(turns: u32, wide: u32) -> [SessionShape; 4] {
    [(1, 100), (2, 100), (50, 100), (turns, wide)].map(|(each, width)| SessionShape {
        turns,
        turns_per_prompt: each,
        window: width,
    })
}

/// Returns the violated limits: turns that cost too much, and clients that wait too long.
fn violations(rows: &[CostRow], openings: &[OpenTiming]) -> Vec<String> {
    let dear = rows.iter().filter(|row| row.ratio() > MAX_RATIO);
    let dear = dear.map(|row| {
        let ratio = row.ratio();
        format!(
            "{}: {ratio:.2} times as much, at most {MAX_RATIO}",
            row.name
        )
    });
    let slow = openings
        .iter()
        .filter(|opening| opening.took > MAX_OPEN_TIME);
    let slow = slow.map(|OpenTiming { method, took, .. }| {
        format!("{method}: {took:.0?}, at most {MAX_OPEN_TIME:.0?}")
    });
    dear.chain(slow).collect()
}

fn print(session: SessionShape, rows: &[CostRow], openings: &[OpenTiming]) -> BenchResult {
    let mut out = std::io::stdout();
    let SessionShape {
        turns,
        turns_per_prompt: each,
        window: width,
    } = session;
    writeln!(out, "{turns} turns, {each} in a prompt")?;
    for OpenTiming {
        method,
        took,
        updates,
        bytes,
    } in openings
    {
        writeln!(
            out,
            "  {method:<16} {took:>6.0?}   {updates} updates, {bytes} bytes"
        )?;
    }
    for row in rows {
        let CostRow { name, early, late } = row;
        let ratio = row.ratio();
        writeln!(
            out,
            "  {name:<16} at turn {width:>6} {early:>9.0}   at turn {turns:>6} {late:>9.0}   {ratio:.2}"
        )?;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> BenchResult {
    let mut faulty = Vec::new();
    for session in sessions(10_000, 1_000) {
        // Other load only adds time: only what exceeds the limit every time is a violation.
        for tried in 1..=MAX_ATTEMPTS {
            let (windows, openings) = measure(session).await?;
            let rows = rows(windows, session.window);
            print(session, &rows, &openings)?;
            match violations(&rows, &openings) {
                faults if faults.is_empty() => break,
                faults if tried == MAX_ATTEMPTS => faulty.extend(faults),
                _ => {}
            }
        }
    }
    match faulty.is_empty() {
        true => Ok(()),
        false => Err(faulty.join("; ").into()),
    }
}

/// Ignores CPU time, which depends on other load.
#[tokio::test]
async fn late_turn_cost_stays_below_max_ratio() {
    for session in sessions(1_000, 250) {
        let (windows, _) = measure(session).await.expect("it runs");
        let rows = rows(windows, session.window);
        assert_eq!(
            violations(&rows[1..], &[]),
            [""; 0],
            "{} each",
            session.turns_per_prompt
        );
    }
}

#[test]
fn growing_cost_and_slow_open_are_detected() {
    let used = |of: u64| ResourceUsage {
        cpu: Duration::from_micros(of),
        allocations: of,
        allocated: of,
        written: of,
    };
    let opening = |took| OpenTiming {
        method: "session/load",
        took: Duration::from_millis(took),
        updates: 0,
        bytes: 0,
    };
    let steady = rows([used(1000), used(1500)], 100);
    assert_eq!(violations(&steady, &[opening(300)]), [""; 0]);
    let grown = rows([used(1000), used(1510)], 100);
    let names = violations(&grown, &[opening(301)]);
    let names = names.iter().map(|fault| fault.split(':').next());
    let expected = [
        "processor, µs",
        "allocations",
        "bytes allocated",
        "bytes written",
        "session/load",
    ];
    assert_eq!(names.collect::<Vec<_>>(), expected.map(Some));
}
