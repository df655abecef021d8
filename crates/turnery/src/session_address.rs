//! Finds the session that a command line names: by its id, the start of it, `latest`, or its number in `sessions list`.

use crate::terminal_text::{first_line, replace_control_chars};
use std::path::Path;
use turnery_engine::SessionId;
use turnery_store::{ArchivedFilter, ListQuery, SessionInfo, Store, StoreError};

/// Name of the session that was active last in the folder.
const LATEST: &str = "latest";

/// Least length of the start of an id. Shorter numbers count the sessions of the folder instead.
const MIN_PREFIX: usize = 4;

/// Least length of a short id.
const MIN_SHORT_ID: usize = 8;

/// Number of sessions read at a time.
const PAGE: usize = 1000;

/// Most sessions that the error for an ambiguous name shows.
const MAX_CANDIDATES: usize = 10;

/// Longest title in that error. Unit: characters.
const TITLE_WIDTH: usize = 60;

/// Error of a name that does not lead to one session.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AddressError {
    /// No session has this id, and no id begins with it.
    #[error("{}", StoreError::NotFound(replace_control_chars(.0).as_ref().into()))]
    NotFound(String),
    /// The folder has fewer sessions.
    #[error(
        "this folder has {count} session(s), so there is no number {number}; `turnery sessions list` counts them"
    )]
    NoSuchNumber {
        /// Number that was asked for.
        number: usize,
        /// Number of sessions of the folder.
        count: usize,
    },
    /// The folder has no session.
    #[error(
        "no session was held in this folder yet; `turnery sessions list --all` shows those of others"
    )]
    EmptyFolder,
    /// Several ids begin with this text.
    #[error("{prefix} is the start of several ids; write more of it:\n{candidates}")]
    Ambiguous {
        /// Text that was given.
        prefix: String,
        /// One line for each session: id and title.
        candidates: String,
    },
    /// The sessions cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Returns the id of the session that `name` means to a user who works in `folder`, which is `None` if it is gone.
pub(crate) async fn find_session(
    store: &dyn Store,
    name: &str,
    folder: Option<&Path>,
) -> Result<SessionId, AddressError> {
    let id = SessionId::from(name);
    match store.info(&id).await {
        Ok(_) => return Ok(id),
        Err(StoreError::NotFound(_)) => {}
        Err(error) => return Err(error.into()),
    }
    if name == LATEST {
        let newest = sessions_of(store, folder, 1).await?.into_iter().next();
        return newest.map(|it| it.id).ok_or(AddressError::EmptyFolder);
    }
    if name.len() < MIN_PREFIX {
        return match name.parse().ok().filter(|number| *number > 0) {
            Some(number) => nth_session(store, folder, number).await,
            None => Err(AddressError::NotFound(name.to_owned())),
        };
    }
    let mut found = Vec::new();
    for_each_session(store, |session| {
        if session.id.as_str().starts_with(name) {
            found.push(session);
        }
    })
    .await?;
    match found.as_slice() {
        [] => Err(AddressError::NotFound(name.to_owned())),
        [only] => Ok(only.id.clone()),
        several => Err(AddressError::Ambiguous {
            prefix: name.to_owned(),
            candidates: describe(several),
        }),
    }
}

/// Returns the session with this number, from 1, in the list of a folder.
async fn nth_session(
    store: &dyn Store,
    folder: Option<&Path>,
    number: usize,
) -> Result<SessionId, AddressError> {
    let mut newest = sessions_of(store, folder, number).await?;
    let count = newest.len();
    match newest.pop() {
        Some(last) if count == number => Ok(last.id),
        Some(_) => Err(AddressError::NoSuchNumber { number, count }),
        None => Err(AddressError::EmptyFolder),
    }
}

async fn sessions_of(
    store: &dyn Store,
    folder: Option<&Path>,
    limit: usize,
) -> Result<Vec<SessionInfo>, StoreError> {
    let Some(folder) = folder else {
        return Ok(Vec::new());
    };
    let query = ListQuery {
        folder: Some(folder.to_owned()),
        limit,
        ..ListQuery::default()
    };
    Ok(store.list(query).await?.sessions)
}

/// Calls `visit` with every session: of all folders, archived, and those of sub-agents.
pub(crate) async fn for_each_session(
    store: &dyn Store,
    mut visit: impl FnMut(SessionInfo),
) -> Result<(), StoreError> {
    let mut query = ListQuery {
        spawned: true,
        archived: ArchivedFilter::Include,
        limit: PAGE,
        ..ListQuery::default()
    };
    loop {
        let page = store.list(query.clone()).await?;
        page.sessions.into_iter().for_each(&mut visit);
        match page.next_cursor {
            Some(cursor) => query.cursor = Some(cursor),
            None => return Ok(()),
        }
    }
}

fn describe(sessions: &[SessionInfo]) -> String {
    let mut lines: Vec<String> = sessions
        .iter()
        .take(MAX_CANDIDATES)
        .map(|session| {
            let title = session.title.as_deref().unwrap_or("(nothing asked yet)");
            format!("  {}  {}", session.id, first_line(title, TITLE_WIDTH))
        })
        .collect();
    if let Some(more @ 1..) = sessions.len().checked_sub(MAX_CANDIDATES) {
        lines.push(format!("  and {more} more"));
    }
    lines.join("\n")
}

/// Short forms of the ids of all sessions.
pub(crate) struct ShortIds {
    /// All ids, sorted.
    ids: Vec<SessionId>,
}

impl ShortIds {
    /// Reads the ids of a store.
    pub(crate) async fn read(store: &dyn Store) -> Result<Self, StoreError> {
        let mut ids = Vec::new();
        for_each_session(store, |session| ids.push(session.id)).await?;
        ids.sort_unstable();
        Ok(Self { ids })
    }

    /// Returns the shortest start of an id that no other id has.
    pub(crate) fn shorten<'a>(&self, id: &'a SessionId) -> &'a str {
        let before = self.ids.partition_point(|other| other < id);
        let after = self.ids.partition_point(|other| other <= id);
        let neighbours = [before.checked_sub(1), Some(after)];
        let shared = neighbours
            .into_iter()
            .flatten()
            .filter_map(|place| self.ids.get(place))
            .map(|other| shared_len(id.as_str(), other.as_str()))
            .max();
        let end = shared.unwrap_or_default() + 1;
        let end = id.as_str().ceil_char_boundary(end.max(MIN_SHORT_ID));
        id.as_str().get(..end).unwrap_or(id.as_str())
    }
}

/// Returns the number of bytes with which both texts begin.
fn shared_len(one: &str, other: &str) -> usize {
    let pairs = one.bytes().zip(other.bytes());
    pairs.take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnery_store::{MemoryStore, NewSession};

    async fn store_with(ids: &[(&str, &str)]) -> MemoryStore {
        let store = MemoryStore::new();
        for (number, (id, folder)) in ids.iter().enumerate() {
            let new = NewSession {
                id: (*id).into(),
                cwd: folder.into(),
                folder: None,
                roots: Vec::new(),
                model: "offline/echo".to_owned(),
                mode: "ask".to_owned(),
                at: format!("2026-11-21T05:00:{number:02}Z").parse().unwrap(),
                spawned_by: None,
            };
            store.create(new).await.unwrap();
        }
        store
    }

    async fn find(store: &MemoryStore, name: &str) -> Result<String, String> {
        let found = find_session(store, name, Some(Path::new("/a"))).await;
        found
            .map(|id| id.to_string())
            .map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn number_and_latest_count_the_folder() {
        let all = [("aaaa1111", "/a"), ("aaaa2222", "/a"), ("bbbb", "/b")];
        let store = store_with(&all).await;
        assert_eq!(find(&store, "latest").await.unwrap(), "aaaa2222");
        assert_eq!(find(&store, "1").await.unwrap(), "aaaa2222");
        assert_eq!(find(&store, "2").await.unwrap(), "aaaa1111");
        let error = find(&store, "3").await.unwrap_err();
        assert!(error.contains("has 2 session(s)"), "{error}");
        for name in ["0", "-1", "", "x"] {
            let error = find(&store, name).await.unwrap_err();
            assert!(error.starts_with("there is no session"), "{error}");
        }
    }

    #[tokio::test]
    async fn whole_id_wins_over_other_meanings() {
        let store = store_with(&[
            ("1", "/b"),
            ("latest", "/b"),
            ("aaaa", "/a"),
            ("aaaab", "/a"),
        ])
        .await;
        for id in ["1", "latest", "aaaa"] {
            assert_eq!(find(&store, id).await.unwrap(), id);
        }
    }

    #[tokio::test]
    async fn start_of_an_id_must_fit_one_session() {
        let store = store_with(&[("aaaa1111", "/b"), ("aaaa2222", "/b")]).await;
        assert_eq!(find(&store, "aaaa1").await.unwrap(), "aaaa1111");
        let error = find(&store, "aaaa").await.unwrap_err();
        assert!(error.contains("  aaaa1111  (nothing asked yet)"), "{error}");
        assert!(error.contains("  aaaa2222  "), "{error}");
        let error = find(&store, "aaa").await.unwrap_err();
        assert!(error.starts_with("there is no session aaa"), "{error}");
    }

    #[tokio::test]
    async fn short_id_is_unique_and_has_eight_characters() {
        let ids = ["0123456789a", "0123456789b", "01234567x", "f", "äöüäöüäöü"];
        let store = store_with(&ids.map(|id| (id, "/a"))).await;
        let short = ShortIds::read(&store).await.unwrap();
        let shortened = ids.map(SessionId::from);
        let shortened: Vec<&str> = shortened.iter().map(|id| short.shorten(id)).collect();
        assert_eq!(
            shortened,
            ["0123456789a", "0123456789b", "01234567x", "f", "äöüä"]
        );
    }
}
