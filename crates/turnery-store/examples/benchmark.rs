//! Measures the cost of store operations on this machine. Run with `cargo run --release -p turnery-store
//! --example benchmark`.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

#[path = "../tests/battery/samples.rs"]
mod samples;

use samples::{commit_of, new_session, owner, record, with_calls};
use std::{
    error::Error,
    fs,
    io::Write,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};
use turnery_engine::{Event, EventKind, LoopRecord};
use turnery_store::{Commit, Durability, ListQuery, NewSession, SqliteStore, Store};

const ROUNDS: u32 = 300;
const PROMPTS: u32 = 2000;
const TURNS: u32 = 200;
const SESSIONS: u64 = 10_000;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Duration of each round, and the CPU time of this process in it.
struct RoundTimes {
    name: &'static str,
    times: Vec<Duration>,
    cpu: Duration,
}

impl RoundTimes {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            times: Vec::new(),
            cpu: cpu_time(),
        }
    }

    fn add(&mut self, since: Instant) {
        self.times.push(since.elapsed());
    }

    fn print(mut self) {
        let cpu = cpu_time().saturating_sub(self.cpu);
        self.times.sort_unstable();
        let count = self.times.len();
        let (middle, late) = (self.times[count / 2], self.times[count * 9 / 10]);
        let each = cpu / u32::try_from(count).unwrap_or(u32::MAX);
        println!(
            "{:<44} median {middle:>9.1?}   9 of 10 below {late:>9.1?}   cpu {each:>9.1?}",
            self.name
        );
    }
}

/// Returns user and system time of all threads, in steps of 10 ms; zero where `/proc` is not available.
fn cpu_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = fields.split_ascii_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    // In the working directory, since a temporary folder may not be on a disk.
    let folder = tempfile::tempdir_in(".")?;
    measure_flushes(folder.path())?;
    if std::env::args().nth(1).as_deref() == Some("durability") {
        return measure_durability(folder.path()).await;
    }
    measure_durability(folder.path()).await?;
    let store = SqliteStore::open(folder.path().join("sessions.db"));
    if std::env::args().nth(1).as_deref() == Some("prompts") {
        return measure_prompts(&store).await;
    }
    measure_prompts(&store).await?;
    measure_writes(&store).await?;
    measure_reads(&store).await?;
    measure_long_session(&folder.path().join("long.db")).await?;
    Ok(())
}

/// Measures the disk alone with as many bytes as a commit writes: a lower bound for commits.
fn measure_flushes(folder: &Path) -> Outcome {
    let mut file = fs::File::create(folder.join("bare"))?;
    let mut bare = RoundTimes::new("the disk alone: write of 60 kB and flush");
    for _ in 0..ROUNDS {
        let since = Instant::now();
        file.write_all(&[7; 60_000])?;
        file.sync_data()?;
        bare.add(since);
    }
    bare.print();
    Ok(())
}

/// Measures what each durability costs, beside a bare write and flush of 1 kB. All three take turns, since the speed
/// of a disk changes.
async fn measure_durability(folder: &Path) -> Outcome {
    let mut file = fs::File::create(folder.join("bare-1"))?;
    let open = |durability: Durability| {
        let file = folder.join(format!("{}.db", durability.as_str()));
        SqliteStore::open(file).with_durability(durability)
    };
    let stores = Durability::ALL.map(open);
    let id = "s4".into();
    let mut lanes = Vec::new();
    for store in &stores {
        store.create(new_session("s4")).await?;
        lanes.push(store.claim(&id, &owner("a")).await?.lane);
    }
    let mut bare = RoundTimes::new("the disk alone: write of 1 kB and flush");
    let mut appends = [
        RoundTimes::new("append of 1 kB, process"),
        RoundTimes::new("append of 1 kB, power"),
    ];
    let mut commits = [
        RoundTimes::new("commit of 1 turn, process"),
        RoundTimes::new("commit of 1 turn, power"),
    ];
    for number in 1..=ROUNDS {
        let since = Instant::now();
        file.write_all(&[7; 1024])?;
        file.sync_data()?;
        bare.add(since);
        let record = record_of_turn("s4", number);
        for (place, store) in stores.iter().enumerate() {
            let event = large_event(&record);
            let since = Instant::now();
            store
                .append_now(&lanes[place], &record.loop_id, vec![event])
                .await?;
            appends[place].add(since);
            let commit = commit_of(&lanes[place], u64::from(number) - 1, &record);
            let since = Instant::now();
            store.commit(commit).await?;
            commits[place].add(since);
            // The flush after the answer belongs to no other measurement.
            store.renew(&lanes[place]).await?;
        }
    }
    bare.print();
    appends
        .into_iter()
        .chain(commits)
        .for_each(RoundTimes::print);
    Ok(())
}

/// Returns a first event of a loop whose JSON has 1 kB.
fn large_event(record: &LoopRecord) -> Event {
    let mut event = record.events[0].clone();
    if let EventKind::LoopStart { tag, .. } = &mut event.kind {
        *tag = Some("x".repeat(700));
    }
    event
}

/// Returns one turn with two calls: 15 events.
fn record_of_turn(session: &str, number: u32) -> Arc<LoopRecord> {
    let record = record(session, number, "What is in the two files?");
    Arc::new(with_calls(record, 2, "fn main() {}\n"))
}

/// Measures a small prompt's store operations; `strace -f -c` with the argument `prompts` counts its
/// writes.
async fn measure_prompts(store: &SqliteStore) -> Outcome {
    store.create(new_session("s0")).await?;
    let id = "s0".into();
    let mut times = RoundTimes::new("a small prompt: claim, commit and release");
    for number in 1..=PROMPTS {
        let record = Arc::new(record("s0", number, "How is it?"));
        let since = Instant::now();
        let lane = store.claim(&id, &owner("a")).await?.lane;
        let giving = Commit {
            release: true,
            ..commit_of(&lane, u64::from(number) - 1, &record)
        };
        store.commit(giving).await?;
        times.add(since);
        // As between prompts: the store's thread goes to sleep.
        std::thread::sleep(Duration::from_micros(500));
    }
    times.print();
    Ok(())
}

async fn measure_writes(store: &SqliteStore) -> Outcome {
    store.create(new_session("s1")).await?;
    let id = "s1".into();
    let mut claims = RoundTimes::new("claim");
    for _ in 0..ROUNDS {
        let since = Instant::now();
        store.claim(&id, &owner("a")).await?;
        claims.add(since);
    }
    claims.print();

    let lane = store.claim(&id, &owner("a")).await?.lane;
    let mut queued = RoundTimes::new("append of 5 events, queued");
    for number in 1..=ROUNDS {
        let record = record_of_turn("s1", number);
        let events = record.events[..5].to_vec();
        let since = Instant::now();
        store.append(&lane, &record.loop_id, events);
        queued.add(since);
    }
    queued.print();
    let mut written = RoundTimes::new("append of 5 events and renew: written");
    for number in 1..=ROUNDS {
        let record = record_of_turn("s1", number);
        let events = record.events[5..10].to_vec();
        let since = Instant::now();
        store.append(&lane, &record.loop_id, events);
        store.renew(&lane).await?;
        written.add(since);
    }
    written.print();

    let records: Vec<_> = (1..=ROUNDS)
        .map(|number| record_of_turn("s1", number))
        .collect();
    let mut commits = RoundTimes::new("commit of 1 turn, 15 events, on disk");
    for (head, record) in (0..).zip(&records) {
        let since = Instant::now();
        store.commit(commit_of(&lane, head, record)).await?;
        commits.add(since);
    }
    commits.print();
    let mut mixed = RoundTimes::new("append, renew, commit: a short loop");
    for number in ROUNDS + 1..=2 * ROUNDS {
        let record = record_of_turn("s1", number);
        let events = record.events[..5].to_vec();
        let since = Instant::now();
        store.append(&lane, &record.loop_id, events);
        store.renew(&lane).await?;
        store
            .commit(commit_of(&lane, u64::from(number) - 1, &record))
            .await?;
        mixed.add(since);
    }
    mixed.print();
    Ok(())
}

/// Measures creating and reading a session of 10,000 turns.
async fn measure_long_session(path: &Path) -> Outcome {
    let store = SqliteStore::open(path.to_path_buf());
    store.create(new_session("s3")).await?;
    let id = "s3".into();
    let lane = store.claim(&id, &owner("a")).await?.lane;
    for number in 1..=10_000 {
        let head = u64::from(number) - 1;
        store
            .commit(commit_of(&lane, head, &record_of_turn("s3", number)))
            .await?;
    }
    measure_reading(
        "loops of 10,000 turns, 150,000 events",
        3,
        10_000,
        async || Ok(store.loops(&id, 0).await?.len()),
    )
    .await?;
    measure_reading("history of 10,000 turns", 3, 10_000, async || {
        Ok(store.history(&id).await?.loops.len())
    })
    .await
}

/// Measures an operation that returns the number of things that it read.
async fn measure_reading(
    name: &'static str,
    rounds: u32,
    expected: usize,
    read: impl AsyncFn() -> Outcome<usize>,
) -> Outcome {
    let mut times = RoundTimes::new(name);
    for _ in 0..rounds {
        let since = Instant::now();
        let count = read().await?;
        times.add(since);
        if count != expected {
            return Err(format!("{count} in place of {expected}").into());
        }
    }
    times.print();
    Ok(())
}

async fn measure_reads(store: &SqliteStore) -> Outcome {
    store.create(new_session("s2")).await?;
    let id = "s2".into();
    let lane = store.claim(&id, &owner("a")).await?.lane;
    for number in 1..=TURNS {
        let head = u64::from(number) - 1;
        store
            .commit(commit_of(&lane, head, &record_of_turn("s2", number)))
            .await?;
    }
    measure_reading("loops of 200 turns, 3,000 events", 100, 200, async || {
        Ok(store.loops(&id, 0).await?.len())
    })
    .await?;

    for number in 0..SESSIONS {
        let new = NewSession {
            at: samples::at(number / 3),
            cwd: format!("/home/ann/project-{}", number % 7).into(),
            ..new_session(&format!("many-{number}"))
        };
        store.create(new).await?;
    }
    for (name, cwd) in [
        ("list, first page of 10,000 sessions", None),
        (
            "list, first page of a folder",
            Some("/home/ann/project-3".into()),
        ),
    ] {
        let query = ListQuery {
            folder: cwd,
            ..ListQuery::default()
        };
        measure_reading(name, ROUNDS, 100, async || {
            Ok(store.list(query.clone()).await?.sessions.len())
        })
        .await?;
    }
    Ok(())
}
