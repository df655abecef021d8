//! A silent model is told of, and changes nothing.

use super::fixture::prompt;
use super::script::{Script, prose, text};
use crate::{EventKind, Finish, Input, Outcome};

fn silent() -> Input {
    Input::Silent {
        silent_ms: 30_000,
        is_connected: true,
    }
}

// proves: UP-1
#[test]
fn silence_of_the_model_is_shown_and_changes_nothing() {
    let mut script = Script::start(prompt());
    script.feed_all([silent(), text(0, "a"), silent(), prose("a"), silent()]);
    script.feed(Input::Committed);
    let told = |kind: &EventKind| matches!(kind, EventKind::ModelSilent { .. });
    let count = script.shown.iter().filter(|it| told(&it.kind)).count();
    assert_eq!(count, 2, "before and within the message, not after it");
    assert!(matches!(
        script.finish,
        Some(Finish::Done {
            outcome: Outcome::Finished(_),
            ..
        })
    ));
}
