//! Stores with a flaw: the crash images and faults find each of them.

use super::{
    driver::{Driver, Mutation},
    images::{check_log, log_of},
    workload::{Op, SHORT},
};
use crate::Durability;
use faulty_disk::{Fault, FaultKind, LogEntry};

/// Operations up to the second commit, with a checkpoint.
const FEW: &[Op] = SHORT.split_at(8).0;

async fn complaints(driver: Driver) -> Vec<String> {
    let log = log_of(driver, FEW).await;
    check_log(&log, FEW).await.1
}

fn with_mutation(durability: Durability, mutation: Mutation) -> Driver {
    let mut driver = Driver::new(durability);
    driver.mutation = Some(mutation);
    driver
}

#[tokio::test]
async fn answer_before_its_flush_is_caught() {
    let mut driver = Driver::new(Durability::Process);
    driver.promise = Durability::Power;
    let complaints = complaints(driver).await;
    let is_lost = |it: &String| it.contains("must be the last");
    assert!(complaints.iter().any(is_lost), "{complaints:?}");
}

#[tokio::test]
async fn flush_of_another_file_is_caught() {
    let driver = Driver::new(Durability::Process);
    let mut log = log_of(driver, FEW).await;
    let name_of = |log: &[LogEntry], file| {
        let mut names = log.iter().filter_map(|entry| match entry {
            LogEntry::Create(name, id) if *id == file => Some(name.clone()),
            _ => None,
        });
        names.next()
    };
    let names = log.clone();
    for entry in &mut log {
        if let LogEntry::Sync(file) = entry
            && name_of(&names, *file).as_deref() == Some("sessions.db-wal")
        {
            *file = 0;
        }
    }
    assert_eq!(name_of(&names, 0).as_deref(), Some("sessions.db"));
    assert_ne!(check_log(&log, FEW).await.1, [""; 0]);
}

#[tokio::test]
async fn commit_in_two_transactions_is_caught() {
    for durability in Durability::ALL {
        let driver = with_mutation(durability, Mutation::SplitCommit);
        let complaints = complaints(driver).await;
        // The state between both is that after no number of operations.
        let is_half = |it: &String| it.ends_with("but it is None");
        assert!(complaints.iter().any(is_half), "{complaints:?}");
    }
}

#[tokio::test]
async fn checkpoint_without_flush_is_caught() {
    let driver = with_mutation(Durability::Process, Mutation::NoCheckpointFlush);
    assert_ne!(complaints(driver).await, [""; 0]);
}

/// The second session is in a log that was begun when the database was opened.
#[tokio::test]
async fn unflushed_name_of_a_begun_log_is_caught() {
    const REOPENED: &[Op] = &[Op::Create("s1"), Op::Reopen, Op::Create("s2")];
    let log = log_of(Driver::new(Durability::Process), REOPENED).await;
    assert_eq!(check_log(&log, REOPENED).await.1, [""; 0]);
    let driver = with_mutation(Durability::Process, Mutation::ForgottenName);
    let log = log_of(driver, REOPENED).await;
    assert_ne!(check_log(&log, REOPENED).await.1, [""; 0]);
}

/// The flush of a commit fails, and the next one succeeds without writing the first commit again.
#[tokio::test]
async fn forgotten_failure_of_a_flush_is_caught() {
    let mut driver = with_mutation(Durability::Process, Mutation::ForgottenFailure);
    for (index, op) in FEW.iter().enumerate() {
        if matches!(op, Op::Commit(_, 1, _)) {
            driver.disk.set_fault(Some(Fault {
                kind: FaultKind::Sync,
                after: 0,
                lasts: false,
            }));
        }
        driver.run(index, *op).await.unwrap();
        driver.mark_promised(index, *op).await;
    }
    assert_eq!(driver.disk.failures(), 1);
    assert_ne!(check_log(&driver.disk.log(), FEW).await.1, [""; 0]);
}
