//! `/try`: one prompt, several models, one answer.

use crate::harness::{TestClient, TestEnv, result_of};
use serde_json::{Value, json};
use turnery_tools::Toolbox;

/// Writes a scenario whose answers are variants of this text, each with these output tokens; returns the name
/// of its model.
fn write_scenario(world: &TestEnv, file: &str, text: &str, output: u64) -> String {
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

/// Runs a command to its end; returns the answers.
fn run_command(client: &mut TestClient, id: &str, text: &str) -> Vec<String> {
    assert_eq!(client.prompt(id, text), "end_turn", "{text}");
    texts(&client.take_updates())
}

fn texts(updates: &[Value]) -> Vec<String> {
    let chunk = |update: &&Value| {
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        kind.ends_with("_message_chunk")
    };
    let text = |update: &Value| update["content"]["text"].as_str().map(str::to_owned);
    updates.iter().filter(chunk).filter_map(text).collect()
}

/// The chosen answer is shown like any other, and the session continues from it.
// proves: LOOP-70, LOOP-75, UP-17
#[test]
fn try_shows_one_answer_and_continues_from_it() {
    let world = TestEnv::new(json!([
        {"steps": [{"text": "1"}]},
        {"steps": [{"text": "2"}]},
        {"steps": [{"text": "3"}]},
        {"steps": [{"text": "and on"}]},
    ]));
    let long = write_scenario(&world, "long.json", "long", 9);
    let short = write_scenario(&world, "short.json", "short", 2);
    let (mut client, id) = world.session();
    let try_both = |rest: &str| format!("/try {long},{short} {rest}");
    assert_eq!(run_command(&mut client, &id, &try_both("hi")), ["long"]);
    let fewest = try_both("--pick fewest-tokens hi\nthere");
    assert_eq!(run_command(&mut client, &id, &fewest), ["short again"]);
    let most = format!("/try --pick most-tokens {short},{long} hi --pick it");
    assert_eq!(run_command(&mut client, &id, &most), ["long at last"]);
    assert_eq!(run_command(&mut client, &id, "go on"), ["and on"]);
    let at = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    result_of(&client.request("session/load", at));
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
    assert_eq!(texts(&client.take_updates()), expected);
}

// proves: LOOP-75
#[test]
fn current_model_is_the_judge() {
    let world = TestEnv::new(json!([{"steps": [{"text": "2"}]}]));
    let first = write_scenario(&world, "first.json", "first", 1);
    let second = write_scenario(&world, "second.json", "second", 1);
    let (mut client, id) = world.session();
    let text = format!("/try {first},{second} --pick judge hi");
    assert_eq!(run_command(&mut client, &id, &text), ["second"]);
}

/// Each model changes a copy of the folder, and the change for which the command succeeds is applied, as a call with a
/// diff.
// proves: LOOP-75
#[test]
fn command_judges_changes_in_copies() {
    let world = TestEnv::new(json!([]));
    let answer = world.cwd().join("answer");
    std::fs::write(&answer, "first").expect("written");
    let model = |text: &str| {
        let write = json!({"name": "write_file", "args": {"path": "answer", "content": text}});
        let steps = json!([{"steps": [{"tool_call": write}]}, {"steps": [{"text": "done"}]}]);
        let path = world.file(&format!("{text}.json"));
        std::fs::write(&path, json!({ "answers": steps }).to_string()).expect("written");
        format!("scripted:{}=edit", path.display())
    };
    let agent = world.agent_with_tools(Toolbox::coding());
    let mut client = TestClient::initialized(agent);
    let id = client.new_session(json!({"cwd": world.cwd(), "mcpServers": []}));
    let mode = json!({"sessionId": id, "modeId": "edit"});
    result_of(&client.request("session/set_mode", mode));
    client.take_updates();
    let both = format!("{},{}", model("41"), model("42"));
    let text = format!("/try {both} --judge-command 'grep -q 42 answer' hi");
    assert_eq!(client.prompt(&id, &text), "end_turn");
    let updates = client.take_updates();
    let said = texts(&updates);
    assert_eq!(said[0], "done");
    assert!(said[1].contains("candidate 2 (scripted/"), "{said:?}");
    assert_eq!(std::fs::read_to_string(&answer).expect("a file"), "42");
    let mut diffs = updates.iter().flat_map(|update| {
        let content = update["content"].as_array().into_iter().flatten();
        content.filter(|it| it["type"] == "diff" && it["path"] == answer.display().to_string())
    });
    let diff = diffs.next().expect("a diff");
    assert_eq!(
        (&diff["oldText"], &diff["newText"]),
        (&json!("first"), &json!("42"))
    );
}

/// Errors are explained in text, and no model is called.
#[test]
fn invalid_try_command_is_explained() {
    let world = TestEnv::new(json!([{"steps": [{"text": "1"}]}, {"steps": [{"text": "2"}]}]));
    let one = write_scenario(&world, "one.json", "one", 1);
    let nine = [one.as_str(); 9].join(",");
    let (mut client, id) = world.session();
    for (args, why) in [
        (String::new(), "Name the models"),
        (one.clone(), "add a prompt"),
        (
            format!("{one} --pick best hi"),
            "\"best\" is not a way to pick",
        ),
        (format!("{one} --pick"), "\"\" is not a way to pick"),
        (format!("{nine} hi"), "name at most 8"),
        (format!("{one},nobody/nothing hi"), "nobody/nothing"),
        (format!("{one},, hi"), "."),
        (format!("{one}=fast hi"), "\"fast\" is not a mode"),
        (format!("{one}=edit hi"), "mode edit allows more than"),
        (format!("{one} --judge-command true hi"), "into quotes"),
        (format!("{one} --judge-command '' hi"), "is empty"),
    ] {
        let said = run_command(&mut client, &id, &format!("/try {args}")).concat();
        assert!(said.contains(why), "{args}: {said}");
        assert!(!said.contains("one again"), "{args}: {said}");
    }
    // The failed commands are not part of the conversation: the first answer is still unused.
    assert_eq!(
        run_command(&mut client, &id, &format!("/try {one} hi")),
        ["one"]
    );
    assert_eq!(run_command(&mut client, &id, "hi"), ["2"]);
}
