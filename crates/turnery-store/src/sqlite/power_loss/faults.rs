//! Makes each call to the disk fail, once or from then on until there is room again.
//!
//! Each call fails once. From then on until there is room again fails every fourth call, or every one if
//! `TURNERY_DISK_FAULTS` is set.
//!
//! A failed operation is tried again with the fault in place, then without it: it succeeds in the end, nothing is damaged,
//! and whatever was answered as done is there, also after a power cut.

use super::{
    driver::{Driver, open},
    images::{check_images, check_log, images_in_the_end},
    snapshot::{LATER, Snapshot, expected_snapshots, take_snapshot},
    workload::{Op, SHORT},
};
use crate::{Durability, StoreError};
use faulty_disk::{Fault, FaultKind};

/// Numbers of a sweep.
#[derive(Debug, Default)]
struct Counts {
    runs: usize,
    failed_operations: usize,
    images: usize,
}

/// Checks that the message names the file or its folder, and says what to do.
fn check_message(error: &StoreError, kind: FaultKind) {
    let StoreError::Broken(text) = error else {
        panic!("another error: {error:?}");
    };
    assert!(text.contains("sessions.db"), "{text}");
    assert!(text.contains("; "), "nothing to do: {text}");
    if kind == FaultKind::Full {
        assert!(text.contains("space"), "{text}");
    }
}

/// Runs all operations while one call fails. Returns false if there were fewer calls.
async fn run(
    durability: Durability,
    fault: Fault,
    expected: &[Snapshot],
    counts: &mut Counts,
) -> bool {
    let mut driver = Driver::new(durability);
    driver.disk.set_fault(Some(fault));
    let mut images = Vec::new();
    for (index, op) in SHORT.iter().enumerate() {
        let mut failures = 0;
        while let Err(error) = driver.run(index, *op).await {
            check_message(&error, fault.kind);
            counts.failed_operations += 1;
            failures += 1;
            assert!(failures < 6, "{fault:?} {op:?}: {error}");
            if failures == 2 {
                driver.disk.set_fault(None);
            }
        }
        driver.mark_promised(index, *op).await;
        if failures > 0 {
            images.extend(images_in_the_end(&driver.disk.log()));
        }
    }
    let has_fired = driver.disk.failures() > 0;
    driver.disk.set_fault(None);
    images.extend(images_in_the_end(&driver.disk.log()));
    driver.reopen();
    let path = driver.path();
    drop(driver.store);
    let found = take_snapshot(&open(path, durability, LATER)).await;
    assert_eq!(found.as_ref(), Ok(&expected[SHORT.len()]), "{fault:?}");
    let complaints = check_images(&images, expected);
    assert!(complaints.is_empty(), "{fault:?} {complaints:#?}");
    counts.runs += 1;
    counts.images += images.len();
    has_fired
}

async fn sweep(durability: Durability, kind: FaultKind) {
    let mut counts = Counts::default();
    let expected = expected_snapshots(SHORT).await;
    let is_full = std::env::var_os("TURNERY_DISK_FAULTS").is_some();
    for (lasts, step) in [(false, 1), (true, if is_full { 1 } else { 4 })] {
        for after in (0..).step_by(step) {
            let fault = Fault { kind, after, lasts };
            if !run(durability, fault, &expected, &mut counts).await {
                break;
            }
        }
    }
    println!("{durability:?} {kind:?}: {counts:?}");
    assert!(counts.failed_operations > 0, "{counts:?}");
}

#[tokio::test]
async fn full_disk_loses_nothing_answered() {
    sweep(Durability::Process, FaultKind::Full).await;
}

#[tokio::test]
async fn full_disk_loses_nothing_answered_with_power() {
    sweep(Durability::Power, FaultKind::Full).await;
}

#[tokio::test]
async fn broken_calls_lose_nothing_answered() {
    sweep(Durability::Process, FaultKind::Broken).await;
}

#[tokio::test]
async fn broken_calls_lose_nothing_answered_with_power() {
    sweep(Durability::Power, FaultKind::Broken).await;
}

#[tokio::test]
async fn failed_flushes_lose_nothing_answered() {
    sweep(Durability::Process, FaultKind::Sync).await;
}

#[tokio::test]
async fn failed_flushes_lose_nothing_answered_with_power() {
    sweep(Durability::Power, FaultKind::Sync).await;
}

/// The first checkpoint cannot flush the log, which then lacks what the second one copies to the database.
#[tokio::test]
async fn failed_flush_of_a_checkpoint_is_made_good() {
    let ops = [
        Op::Create("s1"),
        Op::Begin("s1", 1, 4),
        Op::Journal("s1", 1, 6),
        Op::Checkpoint,
        Op::Checkpoint,
        Op::Commit("s1", 1, 1),
    ];
    let mut driver = Driver::new(Durability::Process);
    for (index, op) in ops.iter().enumerate() {
        if index == 3 {
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
    let (_, complaints) = check_log(&driver.disk.log(), &ops).await;
    assert_eq!(complaints, [""; 0]);
}
