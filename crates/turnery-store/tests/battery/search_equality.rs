//! Searches the same random sessions in all stores, and compares what they find.

use crate::{World, samples::*, search::say};
use proptest::prelude::*;
use turnery_store::{ListQuery, SearchQuery, SessionPatch, Store};

const SESSIONS: [&str; 5] = ["s1", "s2", "s3", "s4", "s5"];

#[derive(Clone, Debug)]
enum Step {
    Say(prop::sample::Index, String, String),
    Retitle(prop::sample::Index, Option<String>),
    Delete(prop::sample::Index),
    Search(String, usize),
}

/// Few words, so that they meet: some start others, some are single letters of scripts without spaces.
fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("a".to_owned()),
        Just("ab".to_owned()),
        Just("abc".to_owned()),
        Just("abcd".to_owned()),
        Just("ÄRGER".to_owned()),
        Just("äR".to_owned()),
        Just("İx".to_owned()),
        Just("x_y".to_owned()),
        Just("1.5e3".to_owned()),
        Just("'\\%".to_owned()),
        Just("缓存".to_owned()),
        Just("缓".to_owned()),
        Just("\u{0}\u{e000}b".to_owned()),
        Just("\u{10400}".to_owned()),
        "[ab缓]{1,4}",
    ]
}

fn text(most: usize) -> impl Strategy<Value = String> {
    let part = (
        words(),
        prop_oneof![Just(" "), Just("-"), Just("\n"), Just("")],
    );
    let parts = prop::collection::vec(part, 0..most);
    parts.prop_map(|parts| {
        let parts = parts.iter().map(|(word, end)| format!("{word}{end}"));
        parts.collect()
    })
}

fn query_text() -> impl Strategy<Value = String> {
    let part = (text(4), any::<bool>()).prop_map(|(text, is_quoted)| match is_quoted {
        true => format!("\"{text}\""),
        false => text,
    });
    prop::collection::vec(part, 1..4).prop_map(|parts| parts.join(" "))
}

fn step() -> impl Strategy<Value = Step> {
    let any_session = any::<prop::sample::Index>;
    prop_oneof![
        6 => (any_session(), text(8), text(8)).prop_map(|(at, ask, answer)| Step::Say(at, ask, answer)),
        2 => (any_session(), prop::option::of(text(4))).prop_map(|(at, title)| Step::Retitle(at, title)),
        1 => any_session().prop_map(Step::Delete),
        8 => (query_text(), 1..4_usize).prop_map(|(text, limit)| Step::Search(text, limit)),
    ]
}

async fn take_step(store: &dyn Store, step: &Step) -> Vec<String> {
    let session = |at: &prop::sample::Index| *at.get(&SESSIONS);
    match step {
        Step::Say(at, ask, answer) => {
            let id = session(at);
            if store.info(&id.into()).await.is_err() {
                store.create(new_session(id)).await.unwrap();
            }
            say(store, id, ask, answer).await;
            Vec::new()
        }
        Step::Retitle(at, title) => {
            let patch = SessionPatch {
                title: Some(title.clone()),
                ..SessionPatch::default()
            };
            // A session that is absent from one store is absent from all.
            let patched = store.patch(&session(at).into(), patch).await;
            vec![patched.is_ok().to_string()]
        }
        Step::Delete(at) => {
            let deleted = store.delete(&session(at).into()).await.unwrap();
            vec![deleted.to_string()]
        }
        Step::Search(text, limit) => search_all(store, text, *limit).await,
    }
}

/// Returns all hits of a search, page by page.
async fn search_all(store: &dyn Store, text: &str, limit: usize) -> Vec<String> {
    let mut query = SearchQuery {
        text: text.to_owned(),
        list: ListQuery {
            limit,
            ..ListQuery::default()
        },
    };
    let mut found = Vec::new();
    loop {
        let page = store.search(query.clone()).await.unwrap();
        found.extend(page.hits.iter().map(|hit| {
            let session = &hit.session;
            format!("{} {:?} {:?}", session.id, session.title, hit.snippet)
        }));
        found.push(format!("cursor {:?}", page.next_cursor));
        match page.next_cursor {
            Some(cursor) => query.list.cursor = Some(cursor),
            None => return found,
        }
    }
}

async fn compare(steps: &[Step]) {
    let worlds = [World::memory(), World::sqlite()];
    #[cfg(feature = "postgres")]
    let on_server = (
        World::postgres(),
        crate::server_faults::phrase_filters::FilteredWorld::new(),
    );
    let worlds = worlds.iter();
    #[cfg(feature = "postgres")]
    let worlds = worlds.chain([&on_server.0, &on_server.1.world]);
    let worlds: Vec<&World> = worlds.collect();
    for (place, step) in steps.iter().enumerate() {
        let mut results = Vec::new();
        for world in &worlds {
            results.push(take_step(&*world.store, step).await);
        }
        let (read, indexed) = results.split_first().unwrap();
        for result in indexed {
            assert_eq!(result, read, "step {place}: {step:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn stores_find_the_same_in_random_sessions(steps in prop::collection::vec(step(), 1..50)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(compare(&steps));
    }
}
