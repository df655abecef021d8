//! Measures the store on this machine. All commands start with
//! `cargo run --release -p turnery-store --features postgres --example benchmark --`, and those that need PostgreSQL
//! with `cargo xtask postgres --` before that:
//!
//! | arguments | what is measured |
//! |---|---|
//! | `operations` | each operation on SQLite |
//! | `prompts` | a small prompt on SQLite; `strace -f -c` counts its writes |
//! | `durability` | an append and a commit on SQLite with each durability, beside a bare write and flush |
//! | `scale sqlite 10000 100`, `scale postgres 10000 100` | list, search and opening with as many sessions and turns |
//! | `commit` | a commit on PostgreSQL, beside the same rows written with plain statements |
//! | `hosts 50 20` | commits of as many hosts with as many sessions each on one PostgreSQL, beside `pgbench` |

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

mod durability;
#[cfg(feature = "postgres")]
mod hosts;
mod operations;
#[cfg(feature = "postgres")]
mod plain_commit;
mod prose;
mod rounds;
#[path = "../../tests/battery/samples.rs"]
mod samples;
mod scale;

use samples::{record, with_calls};
use std::{error::Error, sync::Arc};
use turnery_engine::LoopRecord;
use turnery_store::SqliteStore;

const ROUNDS: u32 = 300;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    // In the working directory, since a temporary folder may not be on a disk.
    let folder = tempfile::tempdir_in(".")?;
    let path = folder.path();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["operations"] => operations::measure(path).await,
        ["prompts"] => {
            operations::measure_prompts(&SqliteStore::open(path.join("sessions.db"))).await
        }
        ["durability"] => durability::measure(path).await,
        ["scale", "sqlite", sessions, turns] => {
            scale::measure_sqlite(path, sessions.parse()?, turns.parse()?).await
        }
        #[cfg(feature = "postgres")]
        ["scale", "postgres", sessions, turns] => {
            scale::measure_postgres(sessions.parse()?, turns.parse()?).await
        }
        #[cfg(feature = "postgres")]
        ["commit"] => plain_commit::measure().await,
        #[cfg(feature = "postgres")]
        ["hosts", hosts, sessions] => hosts::measure(hosts.parse()?, sessions.parse()?).await,
        _ => Err("unknown arguments; the head of the example lists them".into()),
    }
}

#[cfg(feature = "postgres")]
/// Returns the address of a schema on the server that `cargo xtask postgres` has started.
fn postgres_address(schema: &str, options: &str) -> Outcome<turnery_store::PostgresAddress> {
    let url = std::env::var("POSTGRES_TEST_URL")
        .map_err(|_| "POSTGRES_TEST_URL is missing: run the example with `cargo xtask postgres`")?;
    let url = format!("{url}?schema={schema}{options}");
    Ok(turnery_store::PostgresAddress::parse(&url, |_| None)?)
}

/// Returns one turn with two calls: 15 events.
pub(crate) fn record_of_turn(session: &str, number: u32) -> Arc<LoopRecord> {
    let record = record(session, number, "What is in the two files?");
    Arc::new(with_calls(record, 2, "fn main() {}\n"))
}
