//! Tests the offline model with handwritten tool results. Its answers on a real repository are tested in
//! `turnery-agent`, with the real tools.

mod driver;
mod outputs;
mod phrasings;
mod property_tests;
#[path = "../server/mod.rs"]
mod server;

use std::{fs, path::Path};

/// A quarter of the lines that its predecessor had: code and patterns of commands.
const MAX_LINES: usize = 975;

#[test]
fn offline_model_stays_small() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let parts = fs::read_dir(source.join("offline")).expect("a folder");
    let parts = parts.map(|part| part.expect("a file").path());
    let files = parts.chain([source.join("offline.rs")]);
    let lines = files.map(|file| fs::read_to_string(file).expect("a file").lines().count());
    let lines: usize = lines.sum();
    assert!((500..=MAX_LINES).contains(&lines), "{lines} lines");
}
