//! Measures the search. Run with `cargo run --release -p turnery-store --example search_benchmark -- 10000 100`, the
//! number of sessions and of turns in each.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

#[path = "../tests/battery/samples.rs"]
mod samples;

use samples::{assistant, at, commit_of, message, new_session, owner, record, with_calls};
use std::{error::Error, fs, path::Path, sync::Arc, time::Instant};
use turnery_store::{NewSession, SearchQuery, SqliteStore, Store};

const ROUNDS: usize = 20;

/// Words of each prompt, and of each answer.
const WORDS: [u64; 2] = [20, 80];

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Source of texts whose words are as unevenly frequent as in prose.
struct Prose(u64);

impl Prose {
    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn text(&mut self, words: u64) -> String {
        let mut text = String::new();
        for _ in 0..words {
            // Each group of words is as frequent as the one of half its size.
            let group = self.next() % 16;
            let word = self.next() % (1 << group);
            text.push_str(&format!("w{group:x}{word:x} "));
        }
        text
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse());
    let sessions: u32 = args.next().transpose()?.unwrap_or(1000);
    let turns: u32 = args.next().transpose()?.unwrap_or(100);
    // In the working directory, since a temporary folder may not be on a disk.
    let folder = tempfile::tempdir_in(".")?;
    let path = folder.path().join("sessions.db");
    let store = SqliteStore::open(path.clone());
    let mut prose = Prose(1);
    for number in 0..sessions {
        fill_session(&store, number, turns, &mut prose).await?;
    }
    println!("{sessions} sessions of {turns} turns: {}", mebibytes(&path));
    let since = Instant::now();
    search(&store, "w0").await?;
    let index = folder.path().join("sessions.db-search");
    println!(
        "first search, which builds the index: {:.1?}, {}",
        since.elapsed(),
        mebibytes(&index)
    );
    for (what, text) in [
        ("a word of every session", "w00"),
        ("words that start with it", "w8a"),
        ("two common words", "w31 w22"),
        ("a rare word", "wfabc"),
        ("a phrase of common words", "\"w10 w10 w20\""),
        ("no session", "nothing"),
    ] {
        let mut times = Vec::new();
        let mut hits = 0;
        for _ in 0..ROUNDS {
            let since = Instant::now();
            hits = search(&store, text).await?;
            times.push(since.elapsed());
        }
        times.sort_unstable();
        println!(
            "{what:<28} {hits:>3} of the first page   median {:>8.1?}   9 of 10 below {:>8.1?}",
            times[ROUNDS / 2],
            times[ROUNDS * 9 / 10]
        );
    }
    let since = Instant::now();
    fill_session(&store, sessions, 1, &mut prose).await?;
    let stored = since.elapsed();
    let since = Instant::now();
    search(&store, "wfabc").await?;
    println!(
        "search after one more prompt, stored in {stored:.1?}: {:.1?}",
        since.elapsed()
    );
    let since = Instant::now();
    let rows = store.daily_usage(None).await?.len();
    println!("usage by day of all, {rows} rows: {:.1?}", since.elapsed());
    Ok(())
}

async fn search(store: &SqliteStore, text: &str) -> Outcome<usize> {
    let query = SearchQuery {
        text: text.to_owned(),
        ..SearchQuery::default()
    };
    Ok(store.search(query).await?.hits.len())
}

async fn fill_session(store: &SqliteStore, number: u32, turns: u32, prose: &mut Prose) -> Outcome {
    let id = format!("s{number:06}");
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
        Arc::new(with_calls(record, 1, "fn main() {}\n"))
    });
    let records: Vec<_> = records.collect();
    let mut commit = commit_of(&lane, 0, &records[0]);
    commit.tip = records.len() - 1;
    commit.records = records;
    commit.release = true;
    store.commit(commit).await?;
    Ok(())
}

fn mebibytes(path: &Path) -> String {
    let size = fs::metadata(path).map_or(0, |file| file.len());
    format!("{} MiB", size >> 20)
}
