//! Tests lists: order, folders, pages (LIST-1 to LIST-4).

use crate::{World, battery, samples::*};
use std::path::PathBuf;
use turnery_store::{ListPage, ListQuery, NewSession, SessionPatch, StoreError};

battery!(
    empty_store_lists_an_empty_page,
    last_active_session_comes_first,
    folder_filter_is_exact,
    pages_show_each_session_once,
    a_page_has_a_hundred_by_default,
    garbage_is_not_a_cursor,
    special_characters_in_a_folder_are_kept,
);

async fn list_ids(world: &World, query: ListQuery) -> Vec<String> {
    let page = world.store.list(query).await.expect("a page");
    let ids = page.sessions.iter().map(|info| info.id.to_string());
    ids.collect()
}

async fn special_characters_in_a_folder_are_kept(world: &World) {
    let folders = ["/a\0b", "/a", "/a%_'\"; --", "/a\n\u{202e}b", "/a\0"];
    for (number, folder) in folders.iter().enumerate() {
        let new = NewSession {
            cwd: folder.into(),
            ..new_session(&format!("s{number}"))
        };
        world.store.create(new).await.unwrap();
    }
    for (number, folder) in folders.iter().enumerate() {
        let query = ListQuery {
            folder: Some(folder.into()),
            ..ListQuery::default()
        };
        let page = world.store.list(query).await.unwrap();
        let found: Vec<_> = page.sessions.iter().map(|it| (&it.id, &it.cwd)).collect();
        let id = format!("s{number}").as_str().into();
        assert_eq!(found, [(&id, &PathBuf::from(folder))]);
    }
}

/// No session is stored for a folder whose name is not UTF-8, so none is found.
#[cfg(unix)]
#[tokio::test]
async fn a_folder_that_is_not_text_has_no_sessions() {
    use std::os::unix::ffi::OsStrExt;
    let world = World::sqlite();
    world.store.create(new_session("s1")).await.unwrap();
    let query = ListQuery {
        folder: Some(std::ffi::OsStr::from_bytes(b"/a\xff").into()),
        ..ListQuery::default()
    };
    assert_eq!(world.store.list(query).await, Ok(ListPage::default()));
}

// proves: LIST-1
async fn empty_store_lists_an_empty_page(world: &World) {
    let page = world.store.list(ListQuery::default()).await;
    assert_eq!(page, Ok(ListPage::default()));
}

/// Fractions of seconds sort correctly; ties are ordered by descending id.
async fn last_active_session_comes_first(world: &World) {
    for (id, time) in [
        ("s1", "2026-11-21T05:00:01Z"),
        ("s2", "2026-11-21T05:00:01.5Z"),
        ("s3", "2026-11-21T05:00:01Z"),
        ("s4", "2026-11-21T05:00:00.999999999Z"),
    ] {
        let at = time.parse().unwrap();
        let new = NewSession {
            at,
            ..new_session(id)
        };
        world.store.create(new).await.unwrap();
    }
    assert_eq!(
        list_ids(world, ListQuery::default()).await,
        ["s2", "s3", "s1", "s4"]
    );
    let patch = SessionPatch {
        updated_at: Some(at(100)),
        ..SessionPatch::default()
    };
    world.store.patch(&"s4".into(), patch).await.unwrap();
    assert_eq!(
        list_ids(world, ListQuery::default()).await,
        ["s4", "s2", "s3", "s1"]
    );
    let lane = world.claim("a").await.unwrap().lane;
    let record = record("s1", 2, "Hello").into();
    world.commit(&lane, 0, &record).await.unwrap();
    assert_eq!(
        list_ids(world, ListQuery::default()).await,
        ["s1", "s4", "s2", "s3"]
    );
}

/// LIST-2.
// proves: LIST-2
async fn folder_filter_is_exact(world: &World) {
    for (id, cwd) in [
        ("s1", "/a"),
        ("s2", "/a/b"),
        ("s3", "/a/b/c"),
        ("s4", "/a/b"),
    ] {
        let new = NewSession {
            cwd: cwd.into(),
            ..new_session(id)
        };
        world.store.create(new).await.unwrap();
    }
    for (cwd, expected) in [
        ("/a/b", vec!["s4", "s2"]),
        ("/a", vec!["s1"]),
        ("/", vec![]),
    ] {
        let query = ListQuery {
            folder: Some(PathBuf::from(cwd)),
            ..ListQuery::default()
        };
        assert_eq!(list_ids(world, query).await, expected, "{cwd}");
    }
}

/// LIST-3, with many sessions of the same time.
// proves: LIST-3
pub(crate) async fn pages_show_each_session_once(world: &World) {
    for number in 0..25_u64 {
        let new = NewSession {
            at: at(number / 10),
            ..new_session(&format!("s{number:02}"))
        };
        world.store.create(new).await.unwrap();
    }
    let mut seen = Vec::new();
    let mut sizes = Vec::new();
    let mut cursor = None;
    loop {
        let query = ListQuery {
            cursor,
            limit: 4,
            folder: Some("/home/ann/project".into()),
            ..ListQuery::default()
        };
        let page = world.store.list(query).await.unwrap();
        sizes.push(page.sessions.len());
        seen.extend(page.sessions.iter().map(|info| info.id.to_string()));
        if page.next_cursor.is_none() {
            break;
        }
        cursor = page.next_cursor;
    }
    let expected: Vec<String> = (0..25)
        .rev()
        .map(|number| format!("s{number:02}"))
        .collect();
    assert_eq!(seen, expected);
    assert_eq!(sizes, [4, 4, 4, 4, 4, 4, 1]);
}

async fn a_page_has_a_hundred_by_default(world: &World) {
    for number in 0..100 {
        let new = new_session(&format!("s{number:03}"));
        world.store.create(new).await.unwrap();
    }
    let page = world.store.list(ListQuery::default()).await.unwrap();
    assert_eq!((page.sessions.len(), page.next_cursor), (100, None));
    world.store.create(new_session("s100")).await.unwrap();
    let page = world.store.list(ListQuery::default()).await.unwrap();
    assert_eq!(page.sessions.len(), 100);
    let query = ListQuery {
        cursor: page.next_cursor,
        ..ListQuery::default()
    };
    assert_eq!(list_ids(world, query).await, ["s000"]);
}

/// LIST-3.
// proves: LIST-3
async fn garbage_is_not_a_cursor(world: &World) {
    world.store.create(new_session("s1")).await.unwrap();
    let query = ListQuery {
        cursor: Some("🦀".into()),
        ..ListQuery::default()
    };
    let refused = Err(StoreError::BadCursor("🦀".into()));
    assert_eq!(world.store.list(query).await, refused);
}
