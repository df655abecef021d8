//! Tests the search in titles, prompts and answers.

use crate::{World, battery, samples::*, temp_database};
use std::{fs, path::Path, sync::Arc};
use turnery_engine::{Content, LoopRecord, Message, SessionId};
use turnery_store::{
    ArchivedFilter, ListQuery, NewSession, SearchQuery, SessionPatch, SpawnRef, SqliteStore, Store,
    StoreError,
};

battery!(
    words_are_found_in_titles_prompts_and_answers,
    all_words_must_be_in_the_session,
    phrase_must_be_in_one_text,
    foreign_syntax_is_no_error,
    new_loops_are_found_by_the_next_search,
    deleted_session_is_not_found,
    other_session_of_a_reused_id_is_found,
    filters_of_lists_hold_for_searches,
    pages_show_each_found_session_once,
    snippet_shows_the_first_place_of_the_first_word,
    tool_results_and_reasoning_are_not_searched,
    texts_beside_long_ones_are_found,
);

/// Commits a loop with this question and answer.
pub(crate) async fn say(store: &dyn Store, id: &str, question: &str, answer: &str) {
    let claimed = store.claim(&id.into(), &owner("a")).await.unwrap();
    let number = u32::try_from(claimed.last_number).unwrap() + 1;
    let mut record = record(id, number, question);
    let of = record.loop_id.clone();
    record.messages[1] = message(&of, "answer", assistant(answer));
    record.events.truncate(1);
    commit(store, claimed, record).await;
}

async fn commit(store: &dyn Store, claimed: turnery_store::ClaimedLane, record: LoopRecord) {
    let record = Arc::new(record);
    let mut commit = commit_of(&claimed.lane, claimed.info.head_version, &record);
    commit.release = true;
    store.commit(commit).await.unwrap();
}

pub(crate) async fn create_and_say(store: &dyn Store, id: &str, question: &str, answer: &str) {
    store.create(new_session(id)).await.unwrap();
    say(store, id, question, answer).await;
}

fn query(text: &str) -> SearchQuery {
    SearchQuery {
        text: text.to_owned(),
        ..SearchQuery::default()
    }
}

/// Returns the ids of the found sessions, sorted.
pub(crate) async fn found(store: &dyn Store, text: &str) -> Vec<String> {
    let page = store.search(query(text)).await.unwrap();
    let ids = page.hits.iter().map(|hit| hit.session.id.to_string());
    let mut ids: Vec<String> = ids.collect();
    ids.sort();
    ids
}

async fn words_are_found_in_titles_prompts_and_answers(world: &World) {
    let store = &*world.store;
    create_and_say(
        store,
        "s1",
        "Why is the Cache stale?",
        "An Ärger with keys.",
    )
    .await;
    create_and_say(store, "s2", "Nothing here", "nor here").await;
    let patch = SessionPatch {
        title: Some(Some("Release of the parser".to_owned())),
        ..SessionPatch::default()
    };
    store.patch(&"s2".into(), patch).await.unwrap();
    for (text, expected) in [
        ("cache", vec!["s1"]),
        ("CACHE", vec!["s1"]),
        ("stal", vec!["s1"]),
        ("ärger", vec!["s1"]),
        ("parser", vec!["s2"]),
        ("parser nothing", vec!["s2"]),
        ("the", vec!["s1", "s2"]),
        ("he", vec![]),
        ("parsers", vec![]),
    ] {
        assert_eq!(found(store, text).await, expected, "{text}");
    }
}

pub(crate) async fn all_words_must_be_in_the_session(world: &World) {
    let store = &*world.store;
    create_and_say(store, "s1", "apple", "pear").await;
    say(store, "s1", "plum", "grape").await;
    create_and_say(store, "s2", "apple", "fig").await;
    assert_eq!(found(store, "grape apple").await, ["s1"]);
    assert_eq!(found(store, "fig apple").await, ["s2"]);
    assert_eq!(found(store, "fig grape").await, [""; 0]);
}

pub(crate) async fn phrase_must_be_in_one_text(world: &World) {
    let store = &*world.store;
    create_and_say(store, "s1", "call read_file now", "file now").await;
    create_and_say(store, "s2", "file, then read", "the file").await;
    for (text, expected) in [
        ("read_file", vec!["s1"]),
        ("read_fil", vec!["s1"]),
        ("\"read file\"", vec!["s1"]),
        ("\"read fil\"", vec![]),
        ("\"file then\"", vec!["s2"]),
        ("file read", vec!["s1", "s2"]),
        // The end of the prompt and the start of the answer.
        ("\"read the\"", vec![]),
        ("\"now file\"", vec![]),
    ] {
        assert_eq!(found(store, text).await, expected, "{text}");
    }
}

async fn foreign_syntax_is_no_error(world: &World) {
    let store = &*world.store;
    create_and_say(store, "s1", "one", "two").await;
    for text in [
        "one*", "(one", "one -- '", "title:", "^one", "\"one", "one \"\"", "\\one%_",
    ] {
        let expected: &[&str] = if text == "title:" { &[] } else { &["s1"] };
        assert_eq!(found(store, text).await, expected, "{text}");
    }
    for text in ["", " ", "\"", "*", "-", "\u{0}", "OR", "NEAR(one two)"] {
        assert_eq!(found(store, text).await, [""; 0], "{text}");
    }
}

async fn new_loops_are_found_by_the_next_search(world: &World) {
    let store = &*world.store;
    create_and_say(store, "s1", "first", "answer").await;
    assert_eq!(found(store, "first").await, ["s1"]);
    assert_eq!(found(store, "second").await, [""; 0]);
    // More than the segments of the index that are merged.
    for number in 0..40 {
        say(store, "s1", &format!("second number{number}"), "answer").await;
        let word = format!("number{number}");
        assert_eq!(found(store, &word).await, ["s1"], "{number}");
    }
    assert_eq!(found(store, "number0 number39 first").await, ["s1"]);
    assert_eq!(found(store, "\"second number7\"").await, ["s1"]);
}

pub(crate) async fn deleted_session_is_not_found(world: &World) {
    let store = &*world.store;
    create_and_say(store, "s1", "apple", "pear").await;
    create_and_say(store, "s2", "apple", "plum").await;
    assert_eq!(found(store, "apple").await, ["s1", "s2"]);
    store.delete(&"s1".into()).await.unwrap();
    assert_eq!(found(store, "apple").await, ["s2"]);
    assert_eq!(found(store, "pear").await, [""; 0]);
    // What shared a segment of the index with it.
    assert_eq!(found(store, "plum").await, ["s2"]);
}

async fn other_session_of_a_reused_id_is_found(world: &World) {
    let store = &*world.store;
    create_and_say(store, "s1", "apple", "pear").await;
    say(store, "s1", "more", "more").await;
    assert_eq!(found(store, "apple").await, ["s1"]);
    store.delete(&"s1".into()).await.unwrap();
    create_and_say(store, "s1", "plum", "grape").await;
    assert_eq!(found(store, "apple").await, [""; 0]);
    assert_eq!(found(store, "plum").await, ["s1"]);
    // With as many loops as the one before.
    store.delete(&"s1".into()).await.unwrap();
    create_and_say(store, "s1", "cherry", "fig").await;
    assert_eq!(found(store, "plum").await, [""; 0]);
    assert_eq!(found(store, "cherry").await, ["s1"]);
}

pub(crate) async fn filters_of_lists_hold_for_searches(world: &World) {
    let store = &*world.store;
    for (id, folder, parent) in [
        ("s1", "/a", None),
        ("s2", "/b", None),
        ("s3", "/a", Some("s1")),
    ] {
        let new = NewSession {
            cwd: folder.into(),
            spawned_by: parent.map(|parent| SpawnRef {
                session_id: parent.into(),
                loop_id: loop_id(parent, 1),
                call_id: "c".into(),
            }),
            ..new_session(id)
        };
        store.create(new).await.unwrap();
        say(store, id, "apple", "pear").await;
    }
    let archived = SessionPatch {
        archived: Some(true),
        ..SessionPatch::default()
    };
    store.patch(&"s2".into(), archived).await.unwrap();
    let of_list = |list: ListQuery| SearchQuery {
        list,
        ..query("apple")
    };
    let folder = |folder: &str| ListQuery {
        folder: Some(folder.into()),
        ..ListQuery::default()
    };
    for (list, expected) in [
        (ListQuery::default(), vec!["s1"]),
        (folder("/a"), vec!["s1"]),
        (folder("/b"), vec![]),
        (
            ListQuery {
                archived: ArchivedFilter::Only,
                ..folder("/b")
            },
            vec!["s2"],
        ),
        (
            ListQuery {
                archived: ArchivedFilter::Include,
                spawned: true,
                ..ListQuery::default()
            },
            vec!["s3", "s2", "s1"],
        ),
    ] {
        let page = store.search(of_list(list.clone())).await.unwrap();
        let ids: Vec<_> = page
            .hits
            .iter()
            .map(|hit| hit.session.id.as_str())
            .collect();
        assert_eq!(ids, expected, "{list:?}");
    }
}

pub(crate) async fn pages_show_each_found_session_once(world: &World) {
    let store = &*world.store;
    for number in 0..25_u64 {
        let id = format!("s{number:02}");
        let new = NewSession {
            at: at(1000 + number / 10),
            ..new_session(&id)
        };
        store.create(new).await.unwrap();
        let words = if number % 5 == 4 { "pear" } else { "apple" };
        say(store, &id, words, "and").await;
    }
    let mut search = query("apple");
    search.list.limit = 6;
    let (mut seen, mut sizes) = (Vec::new(), Vec::new());
    loop {
        let page = store.search(search.clone()).await.unwrap();
        sizes.push(page.hits.len());
        seen.extend(page.hits.into_iter().map(|hit| hit.session.id.to_string()));
        match page.next_cursor {
            Some(cursor) => search.list.cursor = Some(cursor),
            None => break,
        }
    }
    let expected: Vec<String> = (0..25)
        .rev()
        .filter(|number| number % 5 != 4)
        .map(|number| format!("s{number:02}"))
        .collect();
    assert_eq!(seen, expected);
    assert_eq!(sizes, [6, 6, 6, 2]);
    // The page size of searches.
    let page = store.search(query("and")).await.unwrap();
    assert_eq!((page.hits.len(), page.next_cursor.is_some()), (20, true));
    search.list.cursor = Some("nonsense".to_owned());
    assert_eq!(
        store.search(search).await,
        Err(StoreError::BadCursor("nonsense".to_owned()))
    );
}

pub(crate) async fn snippet_shows_the_first_place_of_the_first_word(world: &World) {
    let store = &*world.store;
    create_and_say(store, "s1", "zero", "The first apple\n is red").await;
    say(store, "s1", "a second apple and a pear", "ok").await;
    let snippet = async |text: &str| {
        let page = store.search(query(text)).await.unwrap();
        page.hits[0].snippet.clone()
    };
    assert_eq!(
        snippet("apple pear").await.unwrap(),
        "The first apple is red"
    );
    assert_eq!(
        snippet("pear apple").await.unwrap(),
        "a second apple and a pear"
    );
    let patch = SessionPatch {
        title: Some(Some("About fruit".to_owned())),
        ..SessionPatch::default()
    };
    store.patch(&"s1".into(), patch).await.unwrap();
    assert_eq!(snippet("fruit").await, None);
    assert_eq!(
        snippet("fruit second").await.unwrap(),
        "a second apple and a pear"
    );
}

async fn tool_results_and_reasoning_are_not_searched(world: &World) {
    let store = &*world.store;
    store.create(new_session("s1")).await.unwrap();
    let claimed = store.claim(&"s1".into(), &owner("a")).await.unwrap();
    let mut record = record("s1", 1, "question");
    let of = record.loop_id.clone();
    record.events.truncate(1);
    record.messages.push(message(
        &of,
        "result",
        Message::ToolResult {
            call_id: "c".into(),
            tool_name: "read".into(),
            content: vec![Content::text("secretresult")],
            is_error: false,
        },
    ));
    record.messages.push(message(
        &of,
        "thought",
        Message::User {
            content: vec![
                Content::Thinking {
                    text: "secretthought".into(),
                    signature: None,
                },
                Content::text("visible"),
            ],
        },
    ));
    commit(store, claimed, record).await;
    assert_eq!(found(store, "secretresult").await, [""; 0]);
    assert_eq!(found(store, "secretthought").await, [""; 0]);
    assert_eq!(found(store, "visible").await, ["s1"]);
}

async fn texts_beside_long_ones_are_found(world: &World) {
    let store = &*world.store;
    let long = format!("start {} end", "filler ".repeat(20_000));
    create_and_say(store, "s1", &long, "needle").await;
    for word in ["start", "end", "needle", "\"filler end\""] {
        assert_eq!(found(store, word).await, ["s1"], "{word}");
    }
}

/// Returns the path of the index of the search.
fn index_of(path: &Path) -> std::path::PathBuf {
    path.with_file_name("sessions.db-search")
}

#[tokio::test]
async fn index_is_built_again_if_it_cannot_be_used() {
    let (_folder, path) = temp_database();
    let store = SqliteStore::open(path.clone());
    create_and_say(&store, "s1", "apple", "pear").await;
    assert!(!index_of(&path).exists());
    assert_eq!(found(&store, "apple").await, ["s1"]);
    let whole = fs::read(index_of(&path)).unwrap();
    let zeroed: Vec<u8> = whole
        .iter()
        .enumerate()
        .map(|(place, byte)| if place < 4096 { *byte } else { 0 })
        .collect();
    for wrong in [b"not a database at all, but text".as_slice(), &[], &zeroed] {
        fs::write(index_of(&path), wrong).unwrap();
        assert_eq!(found(&store, "apple").await, ["s1"]);
        assert_eq!(found(&store, "pear apple").await, ["s1"]);
    }
    fs::remove_file(index_of(&path)).unwrap();
    assert_eq!(found(&store, "apple").await, ["s1"]);
}

#[tokio::test]
async fn search_without_news_writes_nothing() {
    let (_folder, path) = temp_database();
    let store = SqliteStore::open(path.clone());
    create_and_say(&store, "s1", "apple", "pear").await;
    found(&store, "apple").await;
    let before = fs::read(index_of(&path)).unwrap();
    assert_eq!(found(&store, "pear").await, ["s1"]);
    // Each transaction that writes is counted in the file.
    assert_eq!(fs::read(index_of(&path)).unwrap(), before);
    say(&store, "s1", "plum", "grape").await;
    found(&store, "plum").await;
    assert_ne!(fs::read(index_of(&path)).unwrap(), before);
}

#[tokio::test]
async fn search_works_without_a_place_for_its_index() {
    let (_folder, path) = temp_database();
    let store = SqliteStore::open(path.clone());
    create_and_say(&store, "s1", "apple", "pear").await;
    fs::create_dir(index_of(&path)).unwrap();
    assert_eq!(found(&store, "apple").await, ["s1"]);
    assert!(index_of(&path).is_dir());
}

#[cfg(unix)]
#[tokio::test]
async fn index_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let (_folder, path) = temp_database();
    let store = SqliteStore::open(path.clone());
    create_and_say(&store, "s1", "apple", "pear").await;
    found(&store, "apple").await;
    let mode = fs::metadata(index_of(&path)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// A deleted session's words are not in any file once the store is closed.
#[tokio::test]
async fn words_of_a_deleted_session_leave_the_index() {
    let (folder, path) = temp_database();
    let store = SqliteStore::open(path.clone());
    create_and_say(&store, "s1", "swordfishpassword", "ok").await;
    create_and_say(&store, "s2", "apple", "ok").await;
    assert_eq!(found(&store, "swordfishpassword").await, ["s1"]);
    let files_with = |word: &str| {
        let files = fs::read_dir(folder.path()).unwrap().map(Result::unwrap);
        let with = files.filter(|file| {
            let bytes = fs::read(file.path()).unwrap();
            bytes.windows(word.len()).any(|it| it == word.as_bytes())
        });
        let mut names: Vec<_> = with
            .map(|it| it.file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    assert!(files_with("swordfishpassword").contains(&"sessions.db-search".to_owned()));
    store.delete(&SessionId::from("s1")).await.unwrap();
    drop(store);
    assert_eq!(files_with("swordfishpassword"), [""; 0]);
    let store = SqliteStore::open(path);
    assert_eq!(found(&store, "apple").await, ["s2"]);
}

/// Two processes add to one index: each finds all.
#[tokio::test(flavor = "multi_thread")]
async fn searches_at_the_same_time_find_all() {
    let (_folder, path) = temp_database();
    let store = Arc::new(SqliteStore::open(path.clone()));
    for number in 0..20 {
        create_and_say(&*store, &format!("s{number:02}"), "apple", "pear").await;
    }
    let others: Vec<_> = (0..4)
        .map(|_| {
            let path = path.clone();
            tokio::spawn(async move {
                let other = SqliteStore::open(path);
                found(&other, "apple pear").await.len()
            })
        })
        .collect();
    for other in others {
        assert_eq!(other.await.unwrap(), 20);
    }
    assert_eq!(found(&*store, "apple").await.len(), 20);
}
