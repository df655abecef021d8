//! Measures what each durability of the SQLite store costs.

use crate::{
    Outcome, ROUNDS, record_of_turn,
    rounds::{RoundTimes, print_ratio},
    samples::{commit_of, new_session, owner},
};
use std::{error::Error, fs, io::Write, path::Path, sync::Arc, time::Instant};
use tokio::runtime;
use turnery_engine::{Event, EventKind, LoopRecord};
use turnery_store::{Durability, InlineRuntime, SqliteStore, Store};

/// Measures the disk alone with as many bytes as a commit writes: a lower bound for commits.
pub(crate) fn measure_flushes(folder: &Path) -> Outcome {
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

/// Measures what each durability costs, beside a bare write and flush of 1 kB, on a runtime that also runs the jobs of
/// the store, as turnery's does.
pub(crate) async fn measure(folder: &Path) -> Outcome {
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .build()?;
    let inline = InlineRuntime {
        runtime: runtime.handle().clone(),
        on_stall: Arc::new(|| {}),
    };
    let folder = folder.to_owned();
    let measured = runtime.spawn(async move {
        let measured = measure_in(&folder, &inline).await;
        measured.map_err(|error| error.to_string())
    });
    let measured = measured.await?;
    runtime.shutdown_background();
    Ok(measured?)
}

/// All three take turns, since the speed of a disk changes.
async fn measure_in(
    folder: &Path,
    inline: &InlineRuntime,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut file = fs::File::create(folder.join("bare-1"))?;
    let open = |durability: Durability| {
        let file = folder.join(format!("{}.db", durability.as_str()));
        let store = SqliteStore::open(file).with_durability(durability);
        store.with_inline_runtime(inline.clone())
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
            // The flush after the answer belongs to no other measurement: the second call waits for it.
            for _ in 0..2 {
                store.renew(&lanes[place]).await?;
            }
        }
    }
    let bare = bare.print();
    let [process, power] = appends.map(RoundTimes::print);
    commits.into_iter().for_each(|it| {
        it.print();
    });
    print_ratio("append of 1 kB, process, to the disk alone", process, bare);
    print_ratio("append of 1 kB, power, to the disk alone", power, bare);
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
