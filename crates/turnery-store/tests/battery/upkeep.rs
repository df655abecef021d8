//! Tests usage by day, sizes, and giving space back.

use crate::{World, battery, samples::*, temp_database};
use std::sync::Arc;
use turnery_engine::{ConfigSnapshot, LoopRecord, ParallelGroup, Usage};
use turnery_store::{DailyUsage, SqliteStore, Store, StoreError};

battery!(
    usage_is_added_up_by_day_and_model,
    size_grows_with_the_session_and_its_children,
    description_counts_all_sessions,
    vacuum_changes_no_session,
);

async fn store_loop(store: &dyn Store, id: &str, record: LoopRecord) {
    let claimed = store.claim(&id.into(), &owner("a")).await.unwrap();
    let record = Arc::new(record);
    let mut commit = commit_of(&claimed.lane, claimed.info.head_version, &record);
    commit.release = true;
    store.commit(commit).await.unwrap();
}

/// Returns a loop with one turn at this time, of a model of this name.
fn turn_of(session: &str, number: u32, model: &str, at: &str, used: Usage) -> LoopRecord {
    let mut record = record(session, number, "question");
    let at = at.parse().unwrap();
    record.config = Some(ConfigSnapshot {
        model: model.into(),
        provider: "p".into(),
        ..ConfigSnapshot::default()
    });
    record.started_at = at;
    record.ended_at = Some(at);
    record.turns[0].started_at = at;
    record.turns[0].ended_at = Some(at);
    record.turns[0].usage = Some(used);
    record.events.clear();
    record
}

fn row(session: &str, day: &str, model: &str, turns: u64, usage: Usage) -> DailyUsage {
    DailyUsage {
        session_id: session.into(),
        day: day.to_owned(),
        model: model.to_owned(),
        turns,
        usage,
    }
}

async fn usage_is_added_up_by_day_and_model(world: &World) {
    let store = &*world.store;
    for id in ["s1", "s2"] {
        store.create(new_session(id)).await.unwrap();
    }
    let day_1 = turn_of("s1", 1, "a", "2026-11-20T23:59:59.5Z", usage(1, 2));
    let mut day_2 = turn_of("s1", 2, "a", "2026-11-21T00:00:00Z", usage(10, 20));
    day_2.compaction_usage = Some(usage(100, 200));
    let other_model = turn_of("s1", 3, "b", "2026-11-21T12:00:00Z", usage(3, 4));
    let mut copy = turn_of("s2", 1, "a", "2026-11-21T12:00:00Z", usage(5, 5));
    copy.copied_from = Some(loop_id("s1", 1));
    let mut unknown = turn_of("s2", 2, "a", "2026-11-21T13:00:00Z", usage(7, 8));
    unknown.config = None;
    unknown.turns[0].usage = None;
    for record in [day_1, day_2, other_model] {
        store_loop(store, "s1", record).await;
    }
    for record in [copy, unknown] {
        store_loop(store, "s2", record).await;
    }
    let later = [
        row("s1", "2026-11-21", "p/a", 1, usage(110, 220)),
        row("s1", "2026-11-21", "p/b", 1, usage(3, 4)),
        row("s2", "2026-11-21", "unknown", 1, usage(0, 0)),
    ];
    let mut all = vec![row("s1", "2026-11-20", "p/a", 1, usage(1, 2))];
    all.extend(later.clone());
    assert_eq!(store.daily_usage(None).await.unwrap(), all);
    let since = "2026-11-21T00:00:00Z".parse().unwrap();
    assert_eq!(store.daily_usage(Some(since)).await.unwrap(), later);
}

/// Each branch of a group says what the judge has used: it counts once.
#[tokio::test]
async fn judge_of_a_group_counts_once() {
    let world = World::sqlite();
    let store = &*world.store;
    store.create(new_session("s1")).await.unwrap();
    for (number, is_selected) in [(1, true), (2, false)] {
        let mut branch = turn_of("s1", number, "a", "2026-11-21T12:00:00Z", usage(1, 1));
        branch.parallel_group = Some(ParallelGroup {
            all_loop_ids: vec![loop_id("s1", 1), loop_id("s1", 2)],
            selected_loop_id: loop_id("s1", 1),
            selected_config_index: 0,
            evaluation_usage: usage(50, 5),
            judge: Some("p/judge".into()),
            command: None,
            is_selected,
        });
        store_loop(store, "s1", branch).await;
    }
    assert_eq!(
        store.daily_usage(None).await.unwrap(),
        [
            row("s1", "2026-11-21", "p/a", 2, usage(2, 2)),
            row("s1", "2026-11-21", "p/judge", 0, usage(50, 5))
        ]
    );
}

async fn size_grows_with_the_session_and_its_children(world: &World) {
    let store = &*world.store;
    store.create(new_session("s1")).await.unwrap();
    store_loop(store, "s1", record("s1", 1, "short")).await;
    let small = store.session_size(&"s1".into()).await.unwrap();
    assert!((500..20_000).contains(&small), "{small}");
    let long = "long ".repeat(10_000);
    store_loop(store, "s1", record("s1", 2, &long)).await;
    let large = store.session_size(&"s1".into()).await.unwrap();
    assert!(
        (small + 50_000..small + 200_000).contains(&large),
        "{large}"
    );
    assert_eq!(
        store.session_size(&"none".into()).await,
        Err(StoreError::NotFound("none".into()))
    );
}

async fn description_counts_all_sessions(world: &World) {
    let store = &*world.store;
    assert_eq!(store.describe().await.unwrap().sessions, 0);
    for id in ["s1", "s2"] {
        store.create(new_session(id)).await.unwrap();
    }
    assert_eq!(store.describe().await.unwrap().sessions, 2);
}

async fn vacuum_changes_no_session(world: &World) {
    let store = &*world.store;
    store.create(new_session("s1")).await.unwrap();
    store_loop(store, "s1", record("s1", 1, "question")).await;
    let before = store.loops(&"s1".into(), 0).await.unwrap();
    store.vacuum().await.unwrap();
    assert_eq!(store.loops(&"s1".into(), 0).await.unwrap(), before);
    assert_eq!(store.check(None).await.unwrap(), []);
}

/// The space goes back to the disk although another process has the database open.
#[tokio::test]
async fn vacuum_gives_space_back_while_others_read() {
    let (_folder, path) = temp_database();
    let store = SqliteStore::open(path.clone());
    let other = SqliteStore::open(path.clone());
    for number in 0..20_u32 {
        let id = format!("s{number}");
        store.create(new_session(&id)).await.unwrap();
        let long = format!("{number} ").repeat(20_000);
        store_loop(&store, &id, record(&id, 1, &long)).await;
    }
    let described = store.describe().await.unwrap();
    assert_eq!((described.kind, described.sessions), ("SQLite", 20));
    assert_eq!(described.location, path.display().to_string());
    for number in 1..20 {
        other
            .delete(&format!("s{number}").as_str().into())
            .await
            .unwrap();
    }
    assert!(store.describe().await.unwrap().free_bytes > 300_000);
    let freed = store.vacuum().await.unwrap();
    assert!(
        freed.bytes_before > freed.bytes_after + 300_000 && !freed.is_incomplete,
        "{freed:?}"
    );
    assert_eq!(store.describe().await.unwrap().free_bytes, 0);
    assert_eq!(other.loops(&"s0".into(), 0).await.unwrap().len(), 1);
    assert_eq!(store.check(None).await.unwrap(), []);
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn vacuum_on_postgresql_shrinks_the_tables() {
    let schema = format!("vacuum_{}", turnery_store::new_uuid().simple());
    let store = turnery_store::PostgresStore::open(crate::postgres_address(&schema));
    for session in 0..20_u64 {
        let id = format!("s{session}");
        store.create(new_session(&id)).await.unwrap();
        // The server compresses repetitions.
        let number = |n: u64| (n * 20 + session).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let numbers = (0..4000).map(|n| number(n).to_string());
        let long = numbers.collect::<Vec<_>>().join(" ");
        store_loop(&store, &id, record(&id, 1, &long)).await;
    }
    for session in 1..20 {
        let id = format!("s{session}");
        store.delete(&id.as_str().into()).await.unwrap();
    }
    let freed = store.vacuum().await.unwrap();
    assert!(
        freed.bytes_before > freed.bytes_after + 300_000 && freed.bytes_after > 0,
        "{freed:?}"
    );
    assert_eq!(store.loops(&"s0".into(), 0).await.unwrap().len(), 1);
}
