//! Everything that can be seen of a store, and what it does with the next prompts.

use super::{
    samples::*,
    workload::{Caller, Op},
};
use crate::{
    ArchivedFilter, Clock, ListQuery, MemoryStore, NextEffect, SessionInfo, Store, StoreError,
};
use std::{
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use turnery_engine::{EventKind, LoopRecord, SessionId, oracle::check_record};

/// Number of the loop that is committed after a crash.
const NEXT_LOOP: u32 = 50;

/// State of a store as text, in three steps: as found, after each session is claimed, after the next prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Snapshot(String);

/// Reads a store, and continues every session in it. Fails with a description of what is wrong.
pub(super) async fn take_snapshot(store: &dyn Store) -> Result<Snapshot, String> {
    let broken = |error: StoreError| format!("{error}");
    let mut text = describe(store).await?;
    let damage = store.check(None).await.map_err(broken)?;
    if !damage.is_empty() {
        return Err(format!("damage: {damage:?}"));
    }
    for id in sessions(store).await? {
        let claimed = store.claim(&id, &owner("next")).await.map_err(broken)?;
        let _ = writeln!(text, "{:?} {}", claimed.info, claimed.last_number);
        while let NextEffect::Taken(taken) = store
            .take_effect(&id, &owner("next"))
            .await
            .map_err(broken)?
        {
            let _ = writeln!(text, "{taken:?}");
        }
        let record = next_record(&claimed.info);
        let (lane, events) = (claimed.lane, record.events[..5].to_vec());
        let written = store.append_now(&lane, &record.loop_id, events).await;
        written.map_err(broken)?;
        let commit = commit_of(&lane, claimed.info.head_version, &record);
        store.commit(commit).await.map_err(broken)?;
    }
    text += &describe(store).await?;
    let damage = store.check(None).await.map_err(broken)?;
    match damage.is_empty() {
        true => Ok(Snapshot(text)),
        false => Err(format!("damage in the end: {damage:?}")),
    }
}

/// Returns the record of the prompt that follows the session's tip.
fn next_record(info: &SessionInfo) -> Arc<LoopRecord> {
    let mut record = record(info.id.as_str(), NEXT_LOOP, "Next?");
    record.parent_loop_id.clone_from(&info.tip_loop_id);
    if let Some(EventKind::LoopStart { parent_loop_id, .. }) =
        record.events.first_mut().map(|event| &mut event.kind)
    {
        parent_loop_id.clone_from(&info.tip_loop_id);
    }
    Arc::new(record)
}

async fn sessions(store: &dyn Store) -> Result<Vec<SessionId>, String> {
    let all = ListQuery {
        spawned: true,
        archived: ArchivedFilter::Include,
        ..ListQuery::default()
    };
    let page = store.list(all).await.map_err(|error| error.to_string())?;
    Ok(page.sessions.into_iter().map(|info| info.id).collect())
}

async fn describe(store: &dyn Store) -> Result<String, String> {
    let broken = |error: StoreError| format!("{error}");
    let mut text = String::new();
    for id in sessions(store).await? {
        let info = store.info(&id).await.map_err(broken)?;
        let loops = store.loops(&id, 0).await.map_err(broken)?;
        for record in &loops {
            check_record(record)?;
        }
        let history = store.history(&id).await.map_err(broken)?;
        let notes = store.notes(&id).await.map_err(broken)?;
        let _ = writeln!(text, "{info:?}\n{loops:?}\n{history:?}\n{notes:?}");
    }
    Ok(text)
}

/// Snapshots of a store in memory after 0, 1, 2 … operations.
pub(super) async fn expected_snapshots(ops: &[Op]) -> Vec<Snapshot> {
    let mut snapshots = Vec::new();
    for count in 0..=ops.len() {
        let seconds = Arc::new(AtomicU64::new(0));
        let clock = Arc::clone(&seconds);
        let clock = Clock::new(move || at(clock.load(Ordering::Relaxed)));
        let store = MemoryStore::with_clock(clock);
        let mut caller = Caller::default();
        for op in &ops[..count] {
            caller.run(&store, *op).await.unwrap();
        }
        seconds.store(LATER, Ordering::Relaxed);
        snapshots.push(take_snapshot(&store).await.unwrap());
    }
    snapshots
}

/// Time at which a store is opened again: all leases are over. Unit: seconds.
pub(super) const LATER: u64 = 1_000_000;
