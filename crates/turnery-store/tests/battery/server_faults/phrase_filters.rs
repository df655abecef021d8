//! Searches with the filters of phrases, which a store otherwise has from 256 chunks on.

use super::{
    mutations::{assert_found, instead, run_with, world_behind},
    proxy::{Proxy, Replacement},
};
use crate::{
    World, connect, postgres_url,
    search::{self, create_and_say, found, say},
};

/// No flaw: few chunks get filters.
const FEW_CHUNKS: Replacement = instead("count(*) / 256 * 256", "count(*)");

/// All texts have each phrase, so that only the filters decide.
const NO_TEXTS: Replacement = instead(
    "ELSE strpos(c.words, t.needle) > 0 END",
    "ELSE strpos(c.words, t.needle) >= 0 END",
);

/// Chunks that may have a phrase are excluded, in place of those that cannot.
const WRONG_BIT: Replacement = instead("number::integer - 1) = 0", "number::integer - 1) = 1");

/// A filter tells of the chunk beside its own.
const WRONG_POSITION: Replacement = instead("u.number::integer - 1)", "u.number::integer)");

const FILTERS_STAY: Replacement = instead(
    "DELETE FROM search_filters f WHERE f.sessions &&",
    "DELETE FROM search_filters f WHERE false AND f.sessions &&",
);

const OUTDATED_FILTERS_STAY: Replacement = instead("< cardinality(f.chunks)", "< 0");

/// A store whose chunks all have filters. Drop it before the proxy.
pub(crate) struct FilteredWorld {
    pub(crate) world: World,
    _proxy: Proxy,
}

impl FilteredWorld {
    pub(crate) fn new() -> Self {
        let proxy = Proxy::start(&[FEW_CHUNKS]);
        Self {
            world: world_behind(&proxy, &turnery_store::new_uuid().to_string()),
            _proxy: proxy,
        }
    }
}

#[tokio::test]
async fn phrases_are_found_with_filters() {
    let found = run_with(&[FEW_CHUNKS], async |world, _| {
        search::phrase_must_be_in_one_text(world).await;
    });
    assert_eq!(found.await, Ok(()));
    for flaw in [WRONG_BIT, WRONG_POSITION] {
        let flaws = [FEW_CHUNKS, flaw];
        let complaint = run_with(&flaws, async |world, _| {
            search::phrase_must_be_in_one_text(world).await;
        });
        assert_found(complaint.await);
    }
}

/// Without the texts: 60 sessions have the words of the phrases, and one has the phrases. A few others have the
/// bits of a pair by chance.
async fn filters_alone_exclude_most(world: &World) {
    let store = &*world.store;
    for number in 0..60 {
        let id = format!("s{number:02}");
        let question = match number {
            41 => "the big red fox".to_owned(),
            _ => format!("the red {number} fox, big and the fox {number} red big"),
        };
        create_and_say(store, &id, &question, "well").await;
    }
    for phrase in [
        "\"red fox\"",
        "\"big red\"",
        "\"the big\"",
        "\"the big red fox\"",
        "big_red_fox",
    ] {
        let found = found(store, phrase).await;
        assert!(found.contains(&"s41".to_owned()), "{phrase}: {found:?}");
        assert!(found.len() < 15, "{phrase}: {found:?}");
    }
    for phrase in ["\"fox red\"", "\"the red fox\"", "\"big red the\""] {
        let found = found(store, phrase).await;
        assert!(found.len() < 15, "{phrase}: {found:?}");
    }
}

#[tokio::test]
async fn filters_exclude_texts_without_the_phrase() {
    let case = async |world: &World, _: &str| filters_alone_exclude_most(world).await;
    assert_eq!(run_with(&[FEW_CHUNKS, NO_TEXTS], case).await, Ok(()));
    // Without filters, the texts are needed.
    assert_found(run_with(&[NO_TEXTS], case).await);
}

/// Returns the number of rows of filters and of their chunks.
async fn count_filters(schema: &str) -> (i64, Option<i64>) {
    let sql = format!("SELECT count(*), sum(cardinality(chunks)) FROM \"{schema}\".search_filters");
    let client = connect(&postgres_url(schema)).await;
    let row = client.query_one(&sql, &[]).await.unwrap();
    (row.get(0), row.get(1))
}

async fn filters_go_with_their_chunks(world: &World, schema: &str) {
    let store = &*world.store;
    for id in ["s1", "s2", "s3"] {
        create_and_say(store, id, "one two three", id).await;
    }
    // A search for words needs no filters.
    assert_eq!(found(store, "one two").await, ["s1", "s2", "s3"]);
    assert_eq!(count_filters(schema).await, (0, None));
    assert_eq!(found(store, "\"one two\"").await, ["s1", "s2", "s3"]);
    assert_eq!(count_filters(schema).await, (1, Some(3)));
    assert_eq!(store.delete(&"s2".into()).await, Ok(true));
    assert_eq!(count_filters(schema).await, (0, None));
    assert_eq!(found(store, "\"one two\"").await, ["s1", "s3"]);
    assert_eq!(count_filters(schema).await, (1, Some(2)));
    // Of both chunks one is replaced, then the other too.
    say(store, "s1", "four five", "six").await;
    assert_eq!(found(store, "\"four five\"").await, ["s1"]);
    assert_eq!(count_filters(schema).await, (2, Some(3)));
    say(store, "s3", "four five", "six").await;
    assert_eq!(found(store, "\"four five\"").await, ["s1", "s3"]);
    assert_eq!(found(store, "\"one two\"").await, ["s1", "s3"]);
    assert_eq!(count_filters(schema).await, (2, Some(2)));
    // A replaced chunk leaves nothing behind either.
    say(store, "s1", "seven", "eight").await;
    assert_eq!(found(store, "seven").await, ["s1"]);
    assert_eq!(count_filters(schema).await, (2, Some(2)));
    assert_eq!(store.delete(&"s1".into()).await, Ok(true));
    assert_eq!(count_filters(schema).await, (1, Some(1)));
}

#[tokio::test]
async fn filters_that_stay_are_caught() {
    let with = |flaws: &[Replacement]| {
        let flaws = [&[FEW_CHUNKS], flaws].concat();
        async move { run_with(&flaws, filters_go_with_their_chunks).await }
    };
    assert_eq!(with(&[]).await, Ok(()));
    assert_found(with(&[FILTERS_STAY]).await);
    assert_found(with(&[OUTDATED_FILTERS_STAY]).await);
}
