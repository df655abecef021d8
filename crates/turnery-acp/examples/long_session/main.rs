//! What a turn costs early and late in a long session, and how long a client waits until that is open
//! again: `cargo run --release -p turnery-acp --example long_session`.
//!
//! The model answers at once and does not read the history, so what is left is the engine's own work:
//! the loop, the record, the journal and the commit, with the real store on a disk.

mod clockwork;
mod meter;
mod wire;

use clockwork::{Clockwork, agent};
use meter::Used;
use std::{error::Error, io::Write as _, sync::Arc, time::Duration};
use turnery_agent::{CancellationToken, OpenRequest, Ports, Silent};
use turnery_engine::{Content, Outcome, TurnFinish};
use turnery_store::SqliteStore;
use wire::Opening;

type Ran<T = ()> = Result<T, Box<dyn Error>>;

/// How much more a late turn may cost than an early one.
const MOST: f64 = 1.5;

/// How long a client may wait until the session is open.
const LONGEST: Duration = Duration::from_millis(300);

/// How often a session is measured, if it costs too much each time.
const TRIES: u32 = 3;

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
        // Where a prompt begins, if there are several: nothing of it waits to be written.
        let last = match self.each <= self.width {
            true => self.each,
            false => 1,
        };
        let (width, end) = (self.width, self.turns - last);
        [width / 2, width / 2 + width, end - width, end]
    }
}

/// What the session cost early and late, and how long a client waits for it afterwards.
async fn measure(measured: Session) -> Ran<([Used; 2], [Opening; 2])> {
    // In the working directory, since a temporary folder may not be on a disk.
    let folder = tempfile::tempdir_in(".")?;
    let store = || Arc::new(SqliteStore::open(folder.path().join("sessions.db")));
    let written = store();
    let model = Arc::new(Clockwork::new(measured, Arc::clone(&written)));
    let here = OpenRequest {
        cwd: folder.path().canonicalize()?,
        roots: Vec::new(),
        mcp: Vec::new(),
        instructions: None,
    };
    let ports = || Ports::local(Arc::new(Silent), Box::new(Silent));
    let own = agent(written, Arc::clone(&model));
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
    let again = || agent(store(), Arc::clone(&model));
    let openings = wire::open(again, &id, &here.cwd)?;
    Ok((model.windows()?, openings))
}

/// What a turn costs.
struct Row {
    name: &'static str,
    early: f64,
    late: f64,
}

impl Row {
    /// How many times more a late one costs; 1 if there is nothing to compare.
    fn ratio(&self) -> f64 {
        match self.early > 0.0 {
            true => self.late / self.early,
            false => 1.0,
        }
    }
}

fn rows([early, late]: [Used; 2], width: u32) -> [Row; 4] {
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    let row = |name, of: fn(Used) -> u64| Row {
        name,
        early: of(early) as f64 / f64::from(width),
        late: of(late) as f64 / f64::from(width),
    };
    let micros = |used: Used| u64::try_from(used.cpu.as_micros()).unwrap_or(u64::MAX);
    [
        row("processor, µs", micros),
        row("allocations", |used| used.allocations),
        row("bytes allocated", |used| used.allocated),
        row("bytes written", |used| used.written),
    ]
}

/// Short prompts, long ones, and one that never ends.
fn sessions(turns: u32, wide: u32) -> [Session; 4] {
    [(1, 100), (2, 100), (50, 100), (turns, wide)].map(|(each, width)| Session {
        turns,
        each,
        width,
    })
}

/// What is not as it should be: a late turn that costs too much, a client that waits too long.
fn faults(rows: &[Row], openings: &[Opening]) -> Vec<String> {
    let dear = rows.iter().filter(|row| row.ratio() > MOST);
    let dear = dear.map(|row| {
        let ratio = row.ratio();
        format!("{}: {ratio:.2} times as much, at most {MOST}", row.name)
    });
    let slow = openings.iter().filter(|opening| opening.took > LONGEST);
    let slow = slow
        .map(|Opening { method, took, .. }| format!("{method}: {took:.0?}, at most {LONGEST:.0?}"));
    dear.chain(slow).collect()
}

fn print(session: Session, rows: &[Row], openings: &[Opening]) -> Ran {
    let mut out = std::io::stdout();
    let Session { turns, each, width } = session;
    writeln!(out, "{turns} turns, {each} in a prompt")?;
    for Opening {
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
        let Row { name, early, late } = row;
        let ratio = row.ratio();
        writeln!(
            out,
            "  {name:<16} at turn {width:>6} {early:>9.0}   at turn {turns:>6} {late:>9.0}   {ratio:.2}"
        )?;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Ran {
    let mut faulty = Vec::new();
    for session in sessions(10_000, 1_000) {
        // What else the machine does can only add to time: what is over each time is really so.
        for tried in 1..=TRIES {
            let (windows, openings) = measure(session).await?;
            let rows = rows(windows, session.width);
            print(session, &rows, &openings)?;
            match faults(&rows, &openings) {
                faults if faults.is_empty() => break,
                faults if tried == TRIES => faulty.extend(faults),
                _ => {}
            }
        }
    }
    match faulty.is_empty() {
        true => Ok(()),
        false => Err(faulty.join("; ").into()),
    }
}

/// Without the time of the processor, which depends on what else the machine does.
#[tokio::test]
async fn a_late_turn_costs_what_an_early_one_does() {
    for session in sessions(1_000, 250) {
        let (windows, _) = measure(session).await.expect("it runs");
        let rows = rows(windows, session.width);
        assert_eq!(faults(&rows[1..], &[]), [""; 0], "{} each", session.each);
    }
}

#[test]
fn what_grows_or_lasts_is_found_out() {
    let used = |of: u64| Used {
        cpu: Duration::from_micros(of),
        allocations: of,
        allocated: of,
        written: of,
    };
    let opening = |took| Opening {
        method: "session/load",
        took: Duration::from_millis(took),
        updates: 0,
        bytes: 0,
    };
    let steady = rows([used(1000), used(1500)], 100);
    assert_eq!(faults(&steady, &[opening(300)]), [""; 0]);
    let grown = rows([used(1000), used(1510)], 100);
    let names = faults(&grown, &[opening(301)]);
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
