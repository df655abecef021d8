//! Measures the operations of the store on SQLite.

use crate::{
    Outcome, ROUNDS,
    durability::measure_flushes,
    record_of_turn,
    rounds::{RoundTimes, measure_reading},
    samples::{self, commit_of, new_session, owner, record},
};
use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};
use turnery_store::{Commit, ListQuery, NewSession, SqliteStore, Store};

const PROMPTS: u32 = 2000;
const TURNS: u32 = 200;
const SESSIONS: u64 = 10_000;

pub(crate) async fn measure(folder: &Path) -> Outcome {
    measure_flushes(folder)?;
    let store = SqliteStore::open(folder.join("sessions.db"));
    measure_prompts(&store).await?;
    measure_writes(&store).await?;
    measure_reads(&store).await?;
    measure_long_session(&folder.join("long.db")).await
}

/// Measures a small prompt's store operations; `strace -f -c` with the argument `prompts` counts its
/// writes.
pub(crate) async fn measure_prompts(store: &SqliteStore) -> Outcome {
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
    .await?;
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
