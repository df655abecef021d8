//! Implements the roles of the other process.

use super::{DATABASE, LINE_MARK, OtherProcess, ROLE, SharedDatabase, crash};
use crate::samples::*;
use std::{
    env,
    io::{BufRead, Write, stdin, stdout},
    path::PathBuf,
};
use turnery_store::{Lane, NextEffect, StoreError};

/// Starts itself in a role when run as a test; plays the role otherwise.
#[tokio::test]
async fn another_process() {
    let place = env::var_os(DATABASE).map(PathBuf::from).unwrap_or_default();
    let database = SharedDatabase::at(place);
    match env::var(ROLE).as_deref() {
        Ok("writer") => crash::write_forever(&database).await,
        Ok("obedient") => run_role(database).await,
        Ok(role) => panic!("{role:?} is not a role"),
        Err(_) => {
            let database = SharedDatabase::sqlite();
            let mut other = OtherProcess::start("obedient", &database);
            assert_eq!(other.request("create s1"), "made s1");
            assert_eq!(other.request("claim s1 a"), "fence 1");
        }
    }
}

/// Writes to the other process, bypassing the test harness.
pub(super) fn print_line(text: &str) {
    let mut out = stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.expect("somebody listens");
}

/// Runs commands, one per line, until the input ends.
async fn run_role(database: SharedDatabase) {
    let mut store = database.open();
    let mut lane: Option<Lane> = None;
    for line in stdin().lock().lines() {
        let line = line.expect("a line");
        let words: Vec<&str> = line.split(' ').collect();
        let held = || lane.clone().expect("a lane");
        let answer = match words.as_slice() {
            ["open", file] => {
                store = database.beside(file).open();
                "opened".to_owned()
            }
            ["create", id] => match store.create(new_session(id)).await {
                Ok(made) => format!("made {}", made.id),
                Err(error) => error.to_string(),
            },
            ["claim", id, name] => match store.claim(&(*id).into(), &owner(name)).await {
                Ok(opened) => format!("fence {}", lane.insert(opened.lane).fence),
                Err(error) => error.to_string(),
            },
            ["commit", number, head] => {
                let (lane, number) = (held(), number.parse().expect("a number"));
                let record = record(lane.session_id.as_str(), number, "And?").into();
                let head = head.parse().expect("a head");
                match store.commit(commit_of(&lane, head, &record)).await {
                    Ok(version) => format!("version {version}"),
                    Err(error) => error.to_string(),
                }
            }
            // Takes effects until none is free.
            ["take", id] => {
                let mut keys = Vec::new();
                while let Ok(NextEffect::Taken(taken)) =
                    store.take_effect(&(*id).into(), &owner("there")).await
                {
                    keys.push(taken.pending.key);
                }
                keys.join(" ")
            }
            // Journals the first events of a loop, and says whether the lane is still held.
            ["journal", number] => {
                let (lane, number) = (held(), number.parse().expect("a number"));
                let session = lane.session_id.as_str();
                let events = events(session, number, "And?")[..4].to_vec();
                let id = loop_id(session, number);
                match store.append_now(&lane, &id, events).await {
                    Ok(()) => renewal(store.renew(&lane).await),
                    Err(error) => error.to_string(),
                }
            }
            ["renew"] => renewal(store.renew(&held()).await),
            ["release"] => match store.release(&held()).await {
                Ok(()) => "released".to_owned(),
                Err(error) => error.to_string(),
            },
            _ => panic!("{line:?} is not understood"),
        };
        print_line(&format!("\n{LINE_MARK}{answer}\n"));
    }
}

fn renewal(renewed: Result<(), StoreError>) -> String {
    match renewed {
        Ok(()) => "renewed".to_owned(),
        Err(error) => error.to_string(),
    }
}
