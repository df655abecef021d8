//! Measures a store with many sessions: list, search and opening.

use crate::{
    Outcome,
    prose::Prose,
    rounds::measure_reading,
    samples::{assistant, at, commit_of, message, new_session, owner, record},
};
use std::{fs, path::Path, sync::Arc, time::Instant};
use turnery_store::{ListQuery, NewSession, SearchQuery, SqliteStore, Store};

const ROUNDS: u32 = 20;

/// Words of each prompt, and of each answer.
const WORDS: [u64; 2] = [20, 80];

/// Sessions that are filled at the same time.
const FILLERS: u32 = 4;

pub(crate) async fn measure_sqlite(folder: &Path, sessions: u32, turns: u32) -> Outcome {
    let path = folder.join("sessions.db");
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(path.clone()));
    fill(&store, sessions, turns).await?;
    measure(&*store, sessions, turns).await?;
    for suffix in ["", "-search"] {
        let size = fs::metadata(format!("{}{suffix}", path.display()))?.len();
        print_size(&format!("sessions.db{suffix}"), size, sessions, turns);
    }
    Ok(())
}

fn print_size(what: &str, bytes: u64, sessions: u32, turns: u32) {
    let each = bytes / (u64::from(sessions) * u64::from(turns));
    println!("{what}: {} MiB, {each} bytes a turn", bytes >> 20);
}

/// A schema that has sessions already is measured as it is.
#[cfg(feature = "postgres")]
pub(crate) async fn measure_postgres(sessions: u32, turns: u32) -> Outcome {
    use crate::postgres_address;
    use turnery_store::PostgresStore;
    let quick = postgres_address("scale", "&options=-c%20synchronous_commit%3Doff")?;
    let store: Arc<dyn Store> = Arc::new(PostgresStore::open(quick));
    if store.list(ListQuery::default()).await?.sessions.is_empty() {
        fill(&store, sessions, turns).await?;
    }
    drop(store);
    let store = PostgresStore::open(postgres_address("scale", "")?);
    let size = store.describe().await?.bytes.unwrap_or_default();
    print_size("tables without the search", size, sessions, turns);
    measure(&store, sessions, turns).await?;
    let size = store.describe().await?.bytes.unwrap_or_default();
    print_size("all tables and indexes", size, sessions, turns);
    Ok(())
}

async fn fill(store: &Arc<dyn Store>, sessions: u32, turns: u32) -> Outcome {
    let since = Instant::now();
    let fillers = (0..FILLERS).map(|filler| {
        let store = Arc::clone(store);
        async move {
            let mut prose = Prose(filler.into());
            for number in (filler..sessions).step_by(FILLERS as usize) {
                fill_session(&*store, number, turns, &mut prose).await?;
            }
            Ok::<(), Box<dyn std::error::Error>>(())
        }
    });
    futures_util::future::try_join_all(fillers).await?;
    println!(
        "{sessions} sessions of {turns} turns stored in {:.0?}",
        since.elapsed()
    );
    Ok(())
}

async fn measure(store: &dyn Store, sessions: u32, turns: u32) -> Outcome {
    let since = Instant::now();
    search(store, "w0").await?;
    println!(
        "first search, which builds the index: {:.1?}",
        since.elapsed()
    );
    let first_page = (sessions as usize).min(100);
    measure_reading("first page of the list", ROUNDS, first_page, async || {
        Ok(store.list(ListQuery::default()).await?.sessions.len())
    })
    .await?;
    for (what, text) in [
        ("search: a word of every session", "w00"),
        ("search: words that start with it", "w8a"),
        ("search: two common words", "w31 w22"),
        ("search: a rare word", "wfabc"),
        ("search: a phrase of common words", "\"w10 w10 w20\""),
        ("search: a rare pair of common words", "\"w70 w71\""),
        (
            "search: a rare phrase of common words",
            "\"w10 w20 w10 w20 w10\"",
        ),
        ("search: no session", "nothing"),
    ] {
        let since = Instant::now();
        let hits = search(store, text).await?;
        // Of PostgreSQL, the first search for a phrase adds filters.
        if since.elapsed().as_secs() > 0 {
            println!("{what}, the first time: {:.1?}", since.elapsed());
        }
        measure_reading(what, ROUNDS, hits, async || search(store, text).await).await?;
    }
    let mut number = 0;
    let ids = (0..ROUNDS).map(|_| {
        number = (number + 7919) % sessions;
        session_id(number)
    });
    let ids: Vec<_> = ids.collect();
    let next = std::cell::Cell::new(0);
    let opened = turns as usize;
    measure_reading(
        "opening: history and first page",
        ROUNDS,
        opened,
        async || {
            let id = ids[next.replace(next.get() + 1)].as_str().into();
            let history = store.history(&id).await?;
            store.replay_page(&id, None).await?;
            Ok(history.loops.len())
        },
    )
    .await?;
    let more = sessions + std::process::id();
    fill_session(store, more, 1, &mut Prose(99)).await?;
    let since = Instant::now();
    search(store, "wfabc").await?;
    println!("search after one more prompt: {:.1?}", since.elapsed());
    Ok(())
}

async fn search(store: &dyn Store, text: &str) -> Outcome<usize> {
    let query = SearchQuery {
        text: text.to_owned(),
        ..SearchQuery::default()
    };
    Ok(store.search(query).await?.hits.len())
}

fn session_id(number: u32) -> String {
    format!("s{number:06}")
}

async fn fill_session(store: &dyn Store, number: u32, turns: u32, prose: &mut Prose) -> Outcome {
    let id = session_id(number);
    let new = NewSession {
        at: at(number.into()),
        ..new_session(&id)
    };
    store.create(new).await?;
    let lane = store.claim(&id.as_str().into(), &owner("a")).await?.lane;
    let records = (1..=turns).map(|turn| {
        let mut record = record(&id, turn, &prose.text(WORDS[0]));
        let of = record.loop_id.clone();
        record.messages[1] = message(&of, "answer", assistant(&prose.text(WORDS[1])));
        Arc::new(record)
    });
    let records: Vec<_> = records.collect();
    let mut commit = commit_of(&lane, 0, &records[0]);
    commit.tip = records.len() - 1;
    commit.records = records;
    commit.release = true;
    store.commit(commit).await?;
    Ok(())
}
