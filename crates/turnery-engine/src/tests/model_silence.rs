//! Tests that a silent model is reported and changes nothing.

use super::fixtures::prompt_spec;
use super::harness::{LoopHarness, text_answer, text_delta};
use crate::{EventKind, Input, LoopFinish, Outcome};

fn silent() -> Input {
    Input::ModelSilent {
        silent_ms: 30_000,
        is_connected: true,
    }
}

// proves: UP-1
#[test]
fn model_silence_only_emits_an_event() {
    let mut script = LoopHarness::start(prompt_spec());
    script.feed_all([
        silent(),
        text_delta(0, "a"),
        silent(),
        text_answer("a"),
        silent(),
    ]);
    script.feed(Input::Committed);
    let told = |kind: &EventKind| matches!(kind, EventKind::ModelSilent { .. });
    let count = script
        .published_events
        .iter()
        .filter(|it| told(&it.kind))
        .count();
    assert_eq!(count, 2, "before and within the message, not after it");
    assert!(matches!(
        script.finish,
        Some(LoopFinish::Committed {
            outcome: Outcome::Finished(..),
            ..
        })
    ));
}
