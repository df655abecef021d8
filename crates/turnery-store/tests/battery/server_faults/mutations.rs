//! Stores with a flaw in their statements: the battery finds each of them.

use super::proxy::{Proxy, Replacement};
use crate::{World, commits, connect, effects, lanes, postgres_url, recovery, samples::*, search};
use futures_util::FutureExt;
use std::{
    any::Any,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex},
};
use turnery_store::{PostgresAddress, PostgresStore};

pub(super) const fn instead(part: &'static str, by: &'static str) -> Replacement {
    Replacement { part, by }
}

/// A commit does not ask whether its lane is held.
const NO_FENCE: Replacement = instead(
    "AND s.owner_id = $18 AND s.fence = $19",
    "AND $18::text IS NOT NULL AND $19::bigint IS NOT NULL",
);

const NO_FENCE_OF_APPENDS: Replacement = instead(
    "AND owner_id = $2 AND fence = $3 FOR SHARE",
    "AND $2::text IS NOT NULL AND $3::bigint IS NOT NULL FOR SHARE",
);

const NO_FENCE_OF_RELEASES: Replacement = instead(
    "host = NULL WHERE session_id = $1 AND owner_id = $2 AND fence = $3",
    "host = NULL WHERE session_id = $1 AND $2::text IS NOT NULL AND $3::bigint IS NOT NULL",
);

const NO_FENCE_OF_RENEWALS: Replacement = instead(
    "SELECT host FROM sessions WHERE session_id = $1 AND owner_id = $2 AND fence = $3",
    "SELECT host FROM sessions WHERE session_id = $1 AND $2::text IS NOT NULL AND $3::bigint IS NOT NULL",
);

const FENCE_STAYS: Replacement = instead(
    "SET fence = s.fence + 1, owner_id = $3",
    "SET fence = greatest(s.fence, 1), owner_id = $3",
);

const NO_COMPARE_AND_SWAP: Replacement =
    instead("AND s.head_version = $20", "AND $20::bigint IS NOT NULL");

const COMMIT_WITHOUT_LOOPS: Replacement = instead(
    "log_checksum, place) ORDER BY t.place)",
    "log_checksum, place) ORDER BY t.place LIMIT 0)",
);

const COMMIT_WITHOUT_EFFECTS: Replacement = instead(
    "ON p.session_id = t.session_id ORDER BY t.place",
    "ON p.session_id = t.session_id ORDER BY t.place LIMIT 0",
);

const COMMIT_KEEPS_JOURNAL: Replacement = instead(
    "journal.loop_id = ANY ($2))",
    "journal.loop_id = ANY ($2) AND false)",
);

const EXPIRED_HOLDER_STAYS: Replacement = instead(
    ", h.heartbeat_at, ",
    ", h.heartbeat_at + interval '1 hour' AS heartbeat_at, ",
);

const LIVING_HOLDER_LOSES: Replacement = instead(
    ", h.heartbeat_at, ",
    ", h.heartbeat_at - interval '1 hour' AS heartbeat_at, ",
);

/// The conditional update takes a lane from anybody.
const CLAIM_OF_HELD_LANE: Replacement = instead(
    "AND (seen.owner_id IS NULL OR",
    "AND (true OR seen.owner_id IS NULL OR",
);

const NO_HEARTBEAT: Replacement = instead(
    "WHERE h.host = lane.host AND",
    "WHERE h.host = lane.host AND false AND",
);

const EFFECT_IS_NOT_HELD: Replacement = instead(
    "held_until = $5",
    "held_until = $5::timestamptz - interval '1 day'",
);

const LOST_NUMBER_IS_FORGOTTEN: Replacement =
    instead("AND last_number < $2", "AND last_number < $2 AND false");

/// Creates a store in a new schema behind a proxy. Drop the world first.
pub(super) fn world_behind(proxy: &Proxy, schema: &str) -> World {
    let clock = Arc::new(Mutex::new(at(0)));
    let address = PostgresAddress::parse(&proxy.url(schema), |_| None).unwrap();
    let store = PostgresStore::with_clock(address, crate::test_clock(&clock));
    World {
        store: Arc::new(store),
        clock,
        has_heartbeat: true,
        _folder: None,
    }
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|it| (*it).to_owned()))
        .unwrap_or_default()
}

/// Runs a case with a store that has this flaw. Returns the complaint of a case that fails.
pub(super) async fn run_with(
    flaw: &[Replacement],
    case: impl AsyncFnOnce(&World, &str),
) -> Result<(), String> {
    let proxy = Proxy::start(flaw);
    let schema = turnery_store::new_uuid().to_string();
    let world = world_behind(&proxy, &schema);
    let done = run_with_panic(case(&world, &schema)).await;
    drop(world);
    assert_eq!(proxy.unused_replacements(), [""; 0]);
    done
}

/// Runs a case. Returns the complaint of a case that fails.
pub(super) async fn run_with_panic(case: impl Future<Output = ()>) -> Result<(), String> {
    let done = AssertUnwindSafe(case).catch_unwind().await;
    done.map_err(|panic| text_of(&*panic))
}

/// A case passes without the flaw and fails with it, because of what it found, not because the server refused the
/// statement.
macro_rules! found_out {
    ($flaw:expr, $case:path) => {
        assert_eq!(
            run_with(&[], async |world, _| $case(world).await).await,
            Ok(())
        );
        assert_found(run_with(&[$flaw], async |world, _| $case(world).await).await);
    };
}

pub(super) fn assert_found(complaint: Result<(), String>) {
    let complaint = complaint.expect_err("the flaw is not found");
    assert!(!complaint.contains("Broken("), "{complaint}");
}

#[tokio::test]
async fn missing_fence_is_caught() {
    found_out!(NO_FENCE, commits::lost_lane_changes_nothing);
    found_out!(NO_FENCE_OF_APPENDS, recovery::lost_lane_cannot_journal);
    found_out!(NO_FENCE_OF_RELEASES, lanes::release_keeps_a_newer_holder);
    found_out!(NO_FENCE_OF_RENEWALS, lanes::a_lost_lane_is_not_renewed);
    found_out!(FENCE_STAYS, lanes::each_claim_gets_a_higher_fence);
}

#[tokio::test]
async fn missing_comparison_of_the_head_is_caught() {
    found_out!(NO_COMPARE_AND_SWAP, commits::stale_head_changes_nothing);
}

#[tokio::test]
async fn partial_commit_is_caught() {
    found_out!(
        COMMIT_WITHOUT_LOOPS,
        commits::retried_commit_returns_the_same_version
    );
    found_out!(
        COMMIT_WITHOUT_EFFECTS,
        effects::effects_are_taken_in_order_and_once
    );
    assert_eq!(run_with(&[], commit_leaves_no_journal_row).await, Ok(()));
    assert_found(run_with(&[COMMIT_KEEPS_JOURNAL], commit_leaves_no_journal_row).await);
}

#[tokio::test]
async fn wrong_comparison_of_leases_is_caught() {
    found_out!(EXPIRED_HOLDER_STAYS, lanes::lease_expires_unless_renewed);
    found_out!(LIVING_HOLDER_LOSES, lanes::a_lane_has_one_holder);
    found_out!(
        LIVING_HOLDER_LOSES,
        lanes::live_holder_keeps_its_lane_while_a_commit_waits
    );
    found_out!(CLAIM_OF_HELD_LANE, lanes::a_lane_has_one_holder);
    found_out!(
        EFFECT_IS_NOT_HELD,
        effects::effects_are_taken_in_order_and_once
    );
}

#[tokio::test]
async fn ignored_heartbeat_is_caught() {
    found_out!(NO_HEARTBEAT, lanes::lease_expires_unless_renewed);
}

#[tokio::test]
async fn forgotten_number_of_a_lost_loop_is_caught() {
    found_out!(
        LOST_NUMBER_IS_FORGOTTEN,
        recovery::last_loop_number_counts_lost_loops
    );
}

/// The next claim would ignore the journal of a stored loop, but every append would make it longer.
async fn commit_leaves_no_journal_row(world: &World, schema: &str) {
    let lane = commits::claim_new_session(world).await;
    let id = loop_id("s1", 1);
    let events = events("s1", 1, "How is it?");
    world.store.append_now(&lane, &id, events).await.unwrap();
    let count = format!("SELECT count(*) FROM \"{schema}\".journal");
    let client = connect(&postgres_url(schema)).await;
    let rows = async || {
        client
            .query_one(&count, &[])
            .await
            .unwrap()
            .get::<_, i64>(0)
    };
    assert_eq!(rows().await, 1);
    let committed = world.commit(&lane, 0, &commits::sample_record(1)).await;
    assert_eq!(committed, Ok(1));
    assert_eq!(rows().await, 0);
}

/// No flaw: few sessions are searched like many.
const MANY_CANDIDATES: [Replacement; 2] = [
    instead("FROM candidates) > 1000", "FROM candidates) > 0"),
    instead("FROM candidates) <= 1000", "FROM candidates) <= 0"),
];

#[tokio::test]
async fn many_found_sessions_are_listed_like_few() {
    macro_rules! passes {
        ($($case:ident),*) => {
            $({
                let found = run_with(&MANY_CANDIDATES, async |world, _| search::$case(world).await);
                assert_eq!(found.await, Ok(()), stringify!($case));
            })*
        };
    }
    passes!(
        all_words_must_be_in_the_session,
        phrase_must_be_in_one_text,
        deleted_session_is_not_found,
        filters_of_lists_hold_for_searches,
        pages_show_each_found_session_once,
        snippet_shows_the_first_place_of_the_first_word
    );
}
