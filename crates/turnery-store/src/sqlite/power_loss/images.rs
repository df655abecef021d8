//! Opens every image that a power cut may leave of a busy run.
//!
//! For each prefix of the log there are all images if there are at most [`EXHAUSTIVE`], else the two extremes and a
//! number of random ones, which `TURNERY_CRASH_IMAGES` sets (default: [`SAMPLES`]).

use super::{
    driver::{Driver, open},
    snapshot::{LATER, Snapshot, expected_snapshots, take_snapshot},
    temp_folder,
    workload::{BUSY, Op},
};
use crate::Durability;
use faulty_disk::{CrashState, Image, LogEntry, Random};
use std::{
    collections::BTreeMap,
    ops::RangeInclusive,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// Largest number of images of one prefix that are all opened.
const EXHAUSTIVE: usize = 16;

/// Random images of each other prefix.
const SAMPLES: usize = 2;

/// Numbers of a run.
#[derive(Debug, Default)]
pub(super) struct Counts {
    entries: usize,
    syncs: usize,
    pub(super) images: usize,
}

/// Images, each with the numbers of operations that it may contain.
type Images = BTreeMap<(Image, usize), RangeInclusive<usize>>;

fn crash_images(log: &[LogEntry], samples: usize) -> (Images, Counts) {
    let (mut state, mut images) = (CrashState::default(), Images::new());
    let mut random = Random::new(16);
    let mut counts = Counts::default();
    for (place, entry) in log.iter().enumerate() {
        state.apply(entry);
        let allowed = allowed_operations(&log[..=place]);
        counts.entries += 1;
        counts.syncs += usize::from(matches!(entry, LogEntry::Sync(_)));
        for image in state.images(EXHAUSTIVE, samples, &mut random) {
            // The same image after a later promise has to hold more. What it may hold only grows.
            images.insert((image, *allowed.start()), allowed.clone());
        }
    }
    counts.images = images.len();
    (images, counts)
}

/// Returns images that a power cut right after this log may leave.
pub(super) fn images_in_the_end(log: &[LogEntry]) -> Vec<(Image, RangeInclusive<usize>)> {
    let mut state = CrashState::default();
    log.iter().for_each(|entry| state.apply(entry));
    let allowed = allowed_operations(log);
    let images = state.images(1, 0, &mut Random::new(1));
    images
        .into_iter()
        .map(|image| (image, allowed.clone()))
        .collect()
}

/// Returns the least and the greatest number of operations whose effect a power cut after this log may leave.
fn allowed_operations(log: &[LogEntry]) -> RangeInclusive<usize> {
    let marks = log.iter().filter_map(|entry| match entry {
        LogEntry::Mark(mark) => Some(*mark),
        _ => None,
    });
    let (mut begun, mut promised) = (0, 0);
    for mark in marks {
        match mark % 2 {
            0 => begun = mark / 2 + 1,
            _ => promised = mark / 2 + 1,
        }
    }
    promised..=begun
}

/// Opens each image, and compares it with the snapshots that it may be. Returns the complaints.
pub(super) fn check_images(
    images: &[(Image, RangeInclusive<usize>)],
    expected: &[Snapshot],
) -> Vec<String> {
    let (next, complaints) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().build();
                let runtime = runtime.unwrap();
                while let Some((image, allowed)) = images.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let checked = runtime.block_on(check_image(image, allowed.clone(), expected));
                    if let Err(complaint) = checked {
                        complaints.lock().unwrap().push(complaint);
                    }
                }
            });
        }
    });
    let mut complaints = complaints.into_inner().unwrap();
    complaints.sort();
    complaints.dedup();
    complaints
}

async fn check_image(
    image: &Image,
    allowed: RangeInclusive<usize>,
    expected: &[Snapshot],
) -> Result<(), String> {
    let folder = temp_folder();
    image.write(folder.path()).unwrap();
    let path = folder.path().join("sessions.db");
    let store = open(path, Durability::Process, LATER);
    let found = take_snapshot(&store).await;
    let found = found.map_err(|error| format!("{allowed:?}: {error}"))?;
    if expected[allowed.clone()].contains(&found) {
        return Ok(());
    }
    let other = expected.iter().position(|it| *it == found);
    Err(format!(
        "one of the operations {allowed:?} must be the last, but it is {other:?}"
    ))
}

/// Runs the operations. Returns the log of the disk.
pub(super) async fn log_of(mut driver: Driver, ops: &[Op]) -> Vec<LogEntry> {
    for (index, op) in ops.iter().enumerate() {
        driver.run(index, *op).await.unwrap();
        driver.mark_promised(index, *op).await;
    }
    driver.disk.log()
}

/// Opens the images of the log of these operations. Returns the complaints.
pub(super) async fn check_log(log: &[LogEntry], ops: &[Op]) -> (Counts, Vec<String>) {
    let samples = std::env::var("TURNERY_CRASH_IMAGES").ok();
    let samples = samples.map_or(SAMPLES, |count| count.parse().unwrap());
    let (images, counts) = crash_images(log, samples);
    let images = images
        .into_iter()
        .map(|((image, _), allowed)| (image, allowed));
    let complaints = check_images(&images.collect::<Vec<_>>(), &expected_snapshots(ops).await);
    (counts, complaints)
}

async fn check(durability: Durability) {
    let log = log_of(Driver::new(durability), BUSY).await;
    let (counts, complaints) = check_log(&log, BUSY).await;
    assert!(complaints.is_empty(), "{counts:?} {complaints:#?}");
    assert!(counts.images > 500, "{counts:?}");
    println!("{durability:?}: {counts:?}");
}

#[tokio::test]
async fn power_cut_keeps_what_was_answered() {
    check(Durability::Power).await;
}

#[tokio::test]
async fn power_cut_keeps_what_was_flushed_after_its_answer() {
    check(Durability::Process).await;
}
