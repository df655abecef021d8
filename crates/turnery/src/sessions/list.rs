//! `turnery sessions list`: the sessions of this folder or of all folders, the newest first; with `--search`, those that
//! have some words.

use crate::{
    app::resolve_cwd,
    session_address::ShortIds,
    terminal_text::{first_line, format_timestamp, single_line},
};
use serde::Serialize;
use std::{
    io::{self, Write},
    process::ExitCode,
};
use turnery_store::{
    ArchivedFilter, ListQuery, SearchPage, SearchQuery, SessionInfo, Store, StoreError,
};
use turnery_tools::escape_invisible_line;

/// Longest title in a list. Unit: characters.
const TITLE_WIDTH: usize = 60;

/// Longest snippet. Unit: characters.
const SNIPPET_WIDTH: usize = 160;

/// Options of `turnery sessions list`.
pub(super) struct ListOptions {
    pub(super) all: bool,
    pub(super) search: Option<String>,
    pub(super) json: bool,
}

/// Session of a list in JSON.
#[derive(Serialize)]
struct ListedSession<'a> {
    #[serde(flatten)]
    session: &'a SessionInfo,
    /// Text that a search has found in the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    snippet: Option<&'a str>,
}

pub(super) async fn list_sessions(
    store: &dyn Store,
    options: ListOptions,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let ListOptions { all, search, json } = options;
    let mut query = ListQuery {
        folder: match all {
            true => None,
            false => Some(resolve_cwd(None)?),
        },
        archived: match all {
            true => ArchivedFilter::Include,
            false => ArchivedFilter::Exclude,
        },
        ..ListQuery::default()
    };
    let short_ids = match json {
        true => None,
        false => Some(ShortIds::read(store).await?),
    };
    let mut count = 0;
    loop {
        let page = read_page(store, &query, search.as_deref()).await?;
        for (session, snippet) in &page.sessions {
            match &short_ids {
                None => {
                    out.write_all(if count == 0 { b"[" } else { b",\n" })?;
                    let row = ListedSession {
                        session,
                        snippet: snippet.as_deref(),
                    };
                    serde_json::to_writer(&mut *out, &row)?;
                    count += 1;
                }
                Some(short_ids) => {
                    count += 1;
                    // Only what the list of the folder counts can be named by its number.
                    if !all && search.is_none() {
                        write!(out, "{count:>3}  ")?;
                    }
                    write_session_row(session, short_ids, all, out)?;
                    if let Some(snippet) = snippet {
                        writeln!(out, "    {}", single_line(snippet, SNIPPET_WIDTH))?;
                    }
                }
            }
        }
        match page.next_cursor {
            Some(cursor) => query.cursor = Some(cursor),
            None => break,
        }
    }
    match (json, count) {
        (true, 0) => writeln!(out, "[]")?,
        (true, _) => writeln!(out, "]")?,
        (false, 0) => writeln!(io::stderr(), "{}", empty_message(all, search.is_some()))?,
        (false, _) => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// Page of a list or of a search.
struct Page {
    /// Sessions, each with what a search has found.
    sessions: Vec<(SessionInfo, Option<String>)>,
    next_cursor: Option<String>,
}

async fn read_page(
    store: &dyn Store,
    query: &ListQuery,
    search: Option<&str>,
) -> Result<Page, StoreError> {
    let Some(text) = search else {
        let page = store.list(query.clone()).await?;
        return Ok(Page {
            sessions: page.sessions.into_iter().map(|it| (it, None)).collect(),
            next_cursor: page.next_cursor,
        });
    };
    let query = SearchQuery {
        text: text.to_owned(),
        list: query.clone(),
    };
    let SearchPage { hits, next_cursor } = store.search(query).await?;
    let hits = hits.into_iter().map(|hit| (hit.session, hit.snippet));
    Ok(Page {
        sessions: hits.collect(),
        next_cursor,
    })
}

fn empty_message(all: bool, is_search: bool) -> &'static str {
    match (is_search, all) {
        (false, true) => "no session was held yet",
        (false, false) => "no session was held in this folder yet; --all shows those of others",
        (true, true) => "no session has these words",
        (true, false) => {
            "no session of this folder has these words; --all searches those of others"
        }
    }
}

fn write_session_row(
    session: &SessionInfo,
    short_ids: &ShortIds,
    all: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let title = session.title.as_deref().unwrap_or("(nothing asked yet)");
    write!(
        out,
        "{}  {}  {}",
        short_ids.shorten(&session.id),
        format_timestamp(session.updated_at),
        first_line(title, TITLE_WIDTH)
    )?;
    match all {
        true => writeln!(
            out,
            "  {}",
            escape_invisible_line(&session.cwd.display().to_string())
        ),
        false => writeln!(out),
    }
}
