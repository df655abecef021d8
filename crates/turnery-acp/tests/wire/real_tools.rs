//! The shipped tools over the wire: where they work, what they change, and which permissions they request.

use crate::harness::{TestClient, TestEnv, result_of};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use turnery_tools::Toolbox;

fn call(name: &str, args: Value) -> Value {
    json!({"tool_call": {"name": name, "args": args}})
}

fn session(world: &TestEnv) -> (TestClient, String) {
    let mut client = TestClient::initialized(world.agent_with_tools(Toolbox::coding()));
    let id = client.new_session(world.new_session_params());
    (client, id)
}

/// Creates an environment with one call of every tool, with relative paths.
fn env_using_every_tool() -> TestEnv {
    let calls = [
        call("read_file", json!({"path": "a.txt", "start_line": 2})),
        call("list_dir", json!({})),
        call("find_files", json!({"pattern": "*.txt"})),
        call("search", json!({"pattern": "two", "path": "."})),
        call(
            "edit_file",
            json!({"path": "a.txt", "old_text": "two", "new_text": "2"}),
        ),
        call("write_file", json!({"path": "new/b.txt", "content": "b\n"})),
        call("shell", json!({"command": "cat a.txt"})),
        call("update_plan", json!({"entries": [{"content": "all"}]})),
    ];
    let mut answers: Vec<Value> = calls.map(|call| json!({"steps": [call]})).into();
    answers.push(json!({"steps": [{"text": "done"}]}));
    let world = TestEnv::new(json!(answers));
    std::fs::write(world.file("a.txt"), "one\ntwo\nthree\n").expect("a file");
    world
}

/// Returns the last value of this field for each call, by tool name.
fn last_field_values(updates: &[Value], what: &str) -> Vec<(String, Value)> {
    let calls = updates
        .iter()
        .filter(|it| it["sessionUpdate"] == "tool_call");
    calls
        .map(|call| {
            let same = |it: &&Value| it["toolCallId"] == call["toolCallId"];
            let told = updates.iter().filter(same);
            let last = told.filter_map(|it| it.get(what)).next_back();
            let name = call["name"].as_str().expect("a name").to_owned();
            (name, last.cloned().unwrap_or_default())
        })
        .collect()
}

fn find_entry<'a>(all: &'a [(String, Value)], name: &str) -> &'a Value {
    &all.iter().find(|one| one.0 == name).expect("called").1
}

/// TOOL-7 for every tool. The oracle checks the form of each path and line; this test checks the values. After a
/// restart, every call is shown again, completed and with its diff.
// proves: TOOL-7, TOOL-8, THEME-2, THEME-3, THEME-9
#[test]
fn paths_are_absolute_and_lines_one_based() {
    let world = env_using_every_tool();
    let (mut client, id) = session(&world);
    let auto = json!({"sessionId": id, "modeId": "auto"});
    result_of(&client.request("session/set_mode", auto));
    assert_eq!(client.prompt(&id, "go"), "end_turn");
    let live = client.take_updates();
    client.close_and_join();
    let mut client = TestClient::initialized(world.agent_with_tools(Toolbox::coding()));
    let load = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    result_of(&client.request("session/load", load));
    let again = client.take_updates();

    let box_of_all = Toolbox::coding();
    let all = box_of_all.names().filter(|name| *name != "update_plan");
    let all: BTreeSet<&str> = all.collect();
    let cwd = world.cwd().canonicalize().expect("a folder");
    let at = |name: &str| json!(cwd.join(name));
    for updates in [live, again] {
        let locations = last_field_values(&updates, "locations");
        let called: BTreeSet<&str> = locations.iter().map(|one| one.0.as_str()).collect();
        assert_eq!(called, all, "a tool is missing here");
        for (name, status) in last_field_values(&updates, "status") {
            assert_eq!(status, "completed", "{name}");
        }
        let plans = updates.iter().filter(|it| it["sessionUpdate"] == "plan");
        assert_eq!(plans.count(), 1);
        let read = json!([{"path": at("a.txt"), "line": 2}]);
        assert_eq!(find_entry(&locations, "read_file"), &read);
        let edited = json!([{"path": at("a.txt"), "line": 2}]);
        assert_eq!(find_entry(&locations, "edit_file"), &edited);
        assert_eq!(
            find_entry(&locations, "write_file")[0]["path"],
            at("new/b.txt")
        );
        // An editor cannot open a folder.
        assert_eq!(find_entry(&locations, "shell"), &json!(null));
        for name in ["list_dir", "find_files", "search"] {
            let path = find_entry(&locations, name)[0]["path"]
                .as_str()
                .expect("a place");
            assert_eq!(
                path.trim_end_matches('/'),
                at("").as_str().expect("a path").trim_end_matches('/'),
                "{name}"
            );
        }
        let content = last_field_values(&updates, "content");
        let diff = json!({"type": "diff", "path": at("a.txt"),
            "oldText": "one\ntwo\nthree\n", "newText": "one\n2\nthree\n"});
        assert_eq!(find_entry(&content, "edit_file")[0], diff);
        let new = json!({"type": "diff", "path": at("new/b.txt"), "newText": "b\n"});
        assert_eq!(find_entry(&content, "write_file")[0], new);
        assert!(
            find_entry(&content, "shell")
                .to_string()
                .contains("one\\n2\\nthree")
        );
    }
}

/// Blanks cannot push text out of view, and hidden characters are made visible, everywhere in the request.
#[test]
fn permission_shows_end_of_padded_command() {
    let command = format!("make test{}; touch\u{202e} M", " ".repeat(4050));
    let world = TestEnv::new(json!([
        {"steps": [call("shell", json!({"command": command}))]},
        {"steps": [{"text": "done"}]},
    ]));
    let (mut client, id) = session(&world);
    let asked = client.send_prompt(&id, "go");
    let question = client.wait_for_request("session/request_permission");
    let shown = &question["params"]["toolCall"];
    let told = "make test ⟨4050 blanks⟩ ; touch⟨U+202E⟩ M";
    assert_eq!(shown["title"], told);
    let text = shown["content"][0]["content"]["text"].as_str();
    assert_eq!(text, Some(&*format!("```sh\n{told}\n```")));
    assert_eq!(shown["rawInput"]["command"], command);
    let no = json!({"outcome": {"outcome": "selected", "optionId": "reject_once"}});
    client.respond(&question, no);
    client.wait_for_response(&asked);
}

/// The user sees the command itself, and it runs only once allowed.
// proves: THEME-7
#[test]
fn permission_shows_the_command() {
    let command = "printf hello > made.txt";
    let world = TestEnv::new(json!([
        {"steps": [call("shell", json!({"command": command}))]},
        {"steps": [{"text": "done"}]},
    ]));
    let (mut client, id) = session(&world);
    let asked = client.send_prompt(&id, "go");
    let question = client.wait_for_request("session/request_permission");
    let shown = &question["params"]["toolCall"];
    assert_eq!(shown["kind"], "execute");
    let title = shown["title"].as_str().expect("a title");
    assert!(title.contains(command), "{title}");
    assert_eq!(shown["rawInput"]["command"], command);
    assert!(!world.file("made.txt").exists(), "not before a yes");
    let yes = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
    client.respond(&question, yes);
    assert_eq!(client.wait_for_stop_reason(&asked), "end_turn");
    let made = std::fs::read_to_string(world.file("made.txt")).expect("made");
    assert_eq!(made, "hello");
}
