//! Tests that each watched rule is broken by a stream that breaks no other rule.

use super::{streams::whole_line, v2::V2_SESSION, *};
use crate::requirements::Requirements;

/// `initialize` of a client that offers files, terminals, forms and compactions.
const CAPABLE_CLIENT: &[&str] = &[
    r#"> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true},"terminal":true,"elicitation":{"form":{}},"session":{"compaction":{}}}}}"#,
    INITIALIZED[1],
];

/// Returns the exchange before a stream, by its name.
pub(super) fn exchange(name: &str) -> &'static [&'static [&'static str]] {
    match name {
        "none" => &[],
        "one" => &[INITIALIZED, SESSION],
        "two" => &[V2_SESSION],
        "with" => &[CAPABLE_CLIENT, SESSION],
        other => panic!("{other:?}"),
    }
}

/// Returns the end of the output, by its name.
pub(super) fn ending(name: Option<&str>) -> Option<OutputEnding> {
    name.map(|name| match name {
        "eof" => OutputEnding::Eof,
        "died" => OutputEnding::Unexpected,
        other => panic!("{other:?}"),
    })
}

#[test]
fn each_watched_rule_has_a_breaking_stream() {
    let text = include_str!("each.txt");
    let streams = text.split("\n\n").filter(|block| !block.starts_with('#'));
    let mut rules: Vec<&str> = Vec::new();
    let mut wrong = Vec::new();
    for stream in streams {
        let mut lines = stream.lines();
        let head: Vec<&str> = lines.next().unwrap().split(' ').collect();
        let lines: Vec<String> = lines.map(whole_line).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let broken = violations_after(exchange(head[1]), &lines, ending(head.get(2).copied()));
        if broken != [head[0]] {
            wrong.push((head[0], broken));
        }
        rules.push(head[0]);
    }
    assert_eq!(wrong, []);
    // These two need bytes that no text file can hold; the tests of `framing` break them.
    rules.extend(["TR-1", "TR-9"]);
    rules.sort_unstable();
    let table = Requirements::built_in().unwrap().rules.into_iter();
    let mut watched: Vec<String> = table.filter(|it| it.watched).map(|it| it.id).collect();
    watched.sort_unstable();
    assert_eq!(rules, watched);
}
