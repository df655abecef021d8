//! Checks that every prompt and every tool result leads to a response, without a panic.

use crate::driver::play;
use proptest::{collection::vec, prelude::*};

fn prompt() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        "(where|is|defined|replace|with|in|run|the|tests|show|outline|find|explain|list|TODO|what|changed|git|E0308|commit|message|help|rename|to)",
        "(src/a.rs|src/a.rs:99999999999999999999|`Loop`|`a b`|a_b|Foo::bar\\(\\)|\\*\\*/x\\*|\\.|/|\"x y\"|é|`|@@|--- a/x|\\+\\+\\+ b/x|@@ -1,9 \\+1 @@|\n)",
        "\\PC{0,12}",
    ];
    vec(word, 0..9).prop_map(|words| words.join(" "))
}

fn result() -> impl Strategy<Value = Result<String, String>> {
    let line = prop_oneof![
        "[a-z/.]{1,9}:[0-9]{1,22}: (pub )?(fn|struct) \\PC{0,9}",
        "(error|warning)(\\[E0308\\])?: \\PC{0,9}",
        " +--> \\PC{0,5}:[0-9]{1,3}:1",
        "exit code: -?[0-9]{1,12}",
        "(Cargo.toml|package.json|src/|README.md|## main| M é.rs|\\?\\? )",
        "diff --git a/é.rs b/é.rs|@@ -1 \\+1 @@ fn é|\\+\\PC{0,5}|-\\PC{0,5}",
        "test \\PC{0,5} \\.\\.\\. FAILED|thread 'é' panicked at é.rs:1:2:|--- FAIL: é \\(",
        "[ 0-9]{0,25}\t\\PC{0,9}",
        "\\PC{0,20}",
    ];
    let text = vec(line, 0..8).prop_map(|lines| lines.join("\n"));
    prop_oneof![4 => text.clone().prop_map(Ok), 1 => text.prop_map(Err)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// The driver fails the test if a prompt takes too many calls, a call names an unavailable tool, or the
    /// deltas differ from the settled text.
    #[test]
    fn every_conversation_terminates(prompt in prompt(), results in vec(result(), 1..6)) {
        let mut at = 0;
        let played = play(&prompt, |_, _| {
            at += 1;
            results[at % results.len()].clone()
        });
        prop_assert!(!played.text.trim().is_empty());
    }
}
