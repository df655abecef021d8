//! Fuzzes a whole connection with arbitrary bytes. Nothing may panic or hang (time is virtual), every output
//! line must be a valid message, and each request must be answered exactly once.
//!
//! `cargo test` replays the corpus and a few hundred inputs derived from it deterministically. To fuzz for ten
//! minutes: `TURNERY_FUZZ_SECONDS=600 cargo test -p turnery-acp --test wire fuzz -- --nocapture`. Add findings
//! to the corpus, under a name that describes them.

mod mutation;
mod runner;

use mutation::{FuzzRng, mutate};
use runner::{FuzzOutcome, run_input};
use std::{
    collections::HashSet,
    fs,
    path::Path,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

/// Maximum real time per input, on any machine. The connection's time is virtual and costs nothing.
const INPUT_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the inputs of the corpus, by name.
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

/// Runs inputs one after the other. `next` receives the outcome of the previous one.
fn run(mut next: impl FnMut(Option<FuzzOutcome>) -> Option<(u64, Vec<u8>)>) {
    let (give, inputs) = mpsc::sync_channel::<(u64, Vec<u8>)>(1);
    let (done, played) = mpsc::sync_channel(1);
    let player = thread::spawn(move || {
        for (seed, input) in inputs {
            if done.send(run_input(seed, &input)).is_err() {
                return;
            }
        }
    });
    let mut last = None;
    while let Some((seed, input)) = next(last.take()) {
        give.send((seed, input.clone())).expect("it plays");
        let shown = || String::from_utf8_lossy(&input).into_owned();
        match played.recv_timeout(INPUT_TIMEOUT) {
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
fn corpus_inputs_are_answered() {
    let mut inputs = corpus().into_iter();
    assert!(inputs.len() > 8, "the corpus is there");
    let mut answers = 0;
    run(|last| {
        answers += last.map_or(0, |played: FuzzOutcome| played.lines);
        inputs.next().map(|(_, input)| (1, input))
    });
    assert!(answers > 50, "the corpus says something: {answers}");
}

// proves: RPC-12, TR-3
#[test]
fn mutated_inputs_are_answered() {
    let seconds = std::env::var("TURNERY_FUZZ_SECONDS").ok();
    let seconds = seconds.map(|text| text.parse::<u64>().expect("a number"));
    let begun = Instant::now();
    let mut pool: Vec<Vec<u8>> = corpus().into_iter().map(|(_, input)| input).collect();
    let mut known = HashSet::new();
    let mut rng = FuzzRng::new(seconds.map_or(7, |_| u64::from(std::process::id())));
    let mut count = 0u64;
    let mut current = Vec::new();
    run(|last| {
        // Inputs that produced a new kind of line are worth mutating further.
        if last.is_some_and(|played| played.line_kinds.into_iter().any(|said| known.insert(said))) {
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
            current = mutate(&pool, &mut rng);
            (rng.next(), current.clone())
        })
    });
    eprintln!("{count} inputs, {} sorts of lines", known.len());
    assert!(known.len() > 20, "it gets somewhere: {}", known.len());
}
