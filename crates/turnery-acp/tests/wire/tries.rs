//! `/try`: one prompt, several models, one answer.

use crate::harness::{Client, World, prompt, result_of};
use serde_json::{Value, json};

/// Another model: its name, and what it says and spends.
fn model(world: &World, file: &str, text: &str, output: u64) -> String {
    let usage = json!({"input": 10, "output": output});
    let answers = json!([
        {"steps": [{"text": text}], "usage": usage},
        {"steps": [{"text": format!("{text} again")}], "usage": usage},
        {"steps": [{"text": format!("{text} at last")}], "usage": usage},
        {"steps": [{"text": "more"}], "usage": usage},
    ]);
    let path = world.file(file);
    std::fs::write(&path, json!({ "answers": answers }).to_string()).expect("written");
    format!("scripted:{}", path.display())
}

/// What is said to a line after which the prompt has ended well.
fn typed(client: &mut Client, id: &str, text: &str) -> Vec<String> {
    let answer = client.call("session/prompt", prompt(id, text));
    assert_eq!(result_of(&answer)["stopReason"], "end_turn", "{text}");
    texts(&client.updates())
}

fn texts(updates: &[Value]) -> Vec<String> {
    let chunk = |update: &&Value| {
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        kind.ends_with("_message_chunk")
    };
    let text = |update: &Value| update["content"]["text"].as_str().map(str::to_owned);
    updates.iter().filter(chunk).filter_map(text).collect()
}

/// The answer that is taken is shown like any other, and the session goes on from it.
// proves: LOOP-70, LOOP-75, UP-17
#[test]
fn one_answer_is_shown_and_gone_on_from() {
    let world = World::new(json!([
        {"steps": [{"text": "1"}]},
        {"steps": [{"text": "2"}]},
        {"steps": [{"text": "3"}]},
        {"steps": [{"text": "and on"}]},
    ]));
    let long = model(&world, "long.json", "long", 9);
    let short = model(&world, "short.json", "short", 2);
    let (mut client, id) = world.session();
    let try_both = |rest: &str| format!("/try {long},{short} {rest}");
    assert_eq!(typed(&mut client, &id, &try_both("hi")), ["long"]);
    let fewest = try_both("--pick fewest-tokens hi\nthere");
    assert_eq!(typed(&mut client, &id, &fewest), ["short again"]);
    let most = format!("/try --pick most-tokens {short},{long} hi --pick it");
    assert_eq!(typed(&mut client, &id, &most), ["long at last"]);
    assert_eq!(typed(&mut client, &id, "go on"), ["and on"]);
    let at = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    result_of(&client.call("session/load", at));
    let expected = [
        "hi",
        "long",
        "hi\nthere",
        "short again",
        "hi --pick it",
        "long at last",
        "go on",
        "and on",
    ];
    assert_eq!(texts(&client.updates()), expected);
}

// proves: LOOP-75
#[test]
fn the_model_in_use_is_the_judge() {
    let world = World::new(json!([{"steps": [{"text": "2"}]}]));
    let first = model(&world, "first.json", "first", 1);
    let second = model(&world, "second.json", "second", 1);
    let (mut client, id) = world.session();
    let text = format!("/try {first},{second} --pick judge hi");
    assert_eq!(typed(&mut client, &id, &text), ["second"]);
}

/// What is wrong is said in words, and no model is called.
#[test]
fn what_cannot_be_tried_is_explained() {
    let world = World::new(json!([{"steps": [{"text": "1"}]}, {"steps": [{"text": "2"}]}]));
    let one = model(&world, "one.json", "one", 1);
    let nine = [one.as_str(); 9].join(",");
    let (mut client, id) = world.session();
    for (args, why) in [
        (String::new(), "Name the models"),
        (one.clone(), "say what they are to do"),
        (
            format!("{one} --pick best hi"),
            "\"best\" is no way to pick",
        ),
        (format!("{one} --pick"), "\"\" is no way to pick"),
        (format!("{nine} hi"), "name at most 8"),
        (format!("{one},nobody/nothing hi"), "nobody/nothing"),
        (format!("{one},, hi"), "."),
    ] {
        let said = typed(&mut client, &id, &format!("/try {args}")).concat();
        assert!(said.contains(why), "{args}: {said}");
        assert!(!said.contains("one again"), "{args}: {said}");
    }
    // All of that is no part of the conversation: its first answer is still to come.
    assert_eq!(typed(&mut client, &id, &format!("/try {one} hi")), ["one"]);
    assert_eq!(typed(&mut client, &id, "hi"), ["2"]);
}
