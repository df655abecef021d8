//! Fuzz: bytes of all sorts into a whole connection. Whatever comes in, nothing panics, nothing hangs (time is
//! virtual), every line that comes out is a valid message, and each request is answered exactly once.
//!
//! `cargo test` replays the corpus, and a few hundred inputs that are made from it the same way each time.
//! To look for more, for ten minutes:
//! `TURNERY_FUZZ_SECONDS=600 cargo test -p turnery-acp --test wire fuzz -- --nocapture`.
//! What it finds belongs into the corpus, under a name that says what it was.

mod input;
mod play;

use input::{Dice, mutated};
use play::{Played, play};
use std::{
    collections::HashSet,
    fs,
    path::Path,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

/// No input takes longer, on whatever machine. This is real time: time of the connection costs nothing.
const BOUND: Duration = Duration::from_secs(60);

/// The inputs that are kept, by name.
fn corpus() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire/fuzz/corpus");
    let entries = fs::read_dir(folder).expect("the corpus");
    let mut inputs: Vec<(String, Vec<u8>)> = entries
        .map(|entry| {
            let entry = entry.expect("an entry");
            let name = entry.file_name().display().to_string();
            (name, fs::read(entry.path()).expect("an input"))
        })
        .collect();
    inputs.sort();
    inputs
}

/// Play inputs one after the other. `next` is given what came of the last one.
fn run(mut next: impl FnMut(Option<Played>) -> Option<(u64, Vec<u8>)>) {
    let (give, inputs) = mpsc::sync_channel::<(u64, Vec<u8>)>(1);
    let (done, played) = mpsc::sync_channel(1);
    let player = thread::spawn(move || {
        for (seed, input) in inputs {
            if done.send(play(seed, &input)).is_err() {
                return;
            }
        }
    });
    let mut last = None;
    while let Some((seed, input)) = next(last.take()) {
        give.send((seed, input.clone())).expect("it plays");
        let shown = || String::from_utf8_lossy(&input).into_owned();
        match played.recv_timeout(BOUND) {
            Ok(Ok(played)) => last = Some(played),
            Ok(Err(complaint)) => panic!("{complaint}\nseed {seed}, input:\n{}", shown()),
            Err(_) => panic!("it hangs\nseed {seed}, input:\n{}", shown()),
        }
    }
    drop(give);
    player.join().expect("no panic");
}

// proves: RPC-3, RPC-6, RPC-7, RPC-8, RPC-12
#[test]
fn every_input_that_is_kept_is_answered() {
    let mut inputs = corpus().into_iter();
    assert!(inputs.len() > 8, "the corpus is there");
    let mut answers = 0;
    run(|last| {
        answers += last.map_or(0, |played: Played| played.lines);
        inputs.next().map(|(_, input)| (1, input))
    });
    assert!(answers > 50, "the corpus says something: {answers}");
}

// proves: RPC-12, TR-3
#[test]
fn inputs_that_nobody_has_thought_of() {
    let seconds = std::env::var("TURNERY_FUZZ_SECONDS").ok();
    let seconds = seconds.map(|text| text.parse::<u64>().expect("a number"));
    let begun = Instant::now();
    let mut pool: Vec<Vec<u8>> = corpus().into_iter().map(|(_, input)| input).collect();
    let mut known = HashSet::new();
    let mut dice = Dice::new(seconds.map_or(7, |_| u64::from(std::process::id())));
    let mut count = 0u64;
    let mut current = Vec::new();
    run(|last| {
        // What made the agent say something new is worth trying more of.
        if last.is_some_and(|played| played.said.into_iter().any(|said| known.insert(said))) {
            pool.push(std::mem::take(&mut current));
        }
        count += 1;
        let goes_on = match seconds {
            Some(seconds) => begun.elapsed() < Duration::from_secs(seconds),
            None => count <= 300,
        };
        if count.is_multiple_of(5000) {
            eprintln!("{count} inputs, {} sorts of lines", known.len());
        }
        goes_on.then(|| {
            current = mutated(&pool, &mut dice);
            (dice.next(), current.clone())
        })
    });
    eprintln!("{count} inputs, {} sorts of lines", known.len());
    assert!(known.len() > 20, "it gets somewhere: {}", known.len());
}
