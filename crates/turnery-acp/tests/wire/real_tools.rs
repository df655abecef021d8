//! The tools that people really get, over the wire: where they work, what they change, what is asked.

use crate::harness::{Client, World, prompt, result_of};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use turnery_acp::ServeOptions;
use turnery_tools::Toolbox;

fn call(name: &str, args: Value) -> Value {
    json!({"tool_call": {"name": name, "args": args}})
}

fn session(world: &World) -> (Client, String) {
    let agent = world.agent_with_tools(Toolbox::coding());
    let mut client = Client::connect(agent, ServeOptions::default());
    client.initialize(json!({}));
    let made = client.call("session/new", world.new_session());
    let id = result_of(&made)["sessionId"].as_str().expect("an id");
    let id = id.to_owned();
    (client, id)
}

/// One call of every tool, with relative paths.
fn one_of_each() -> World {
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
    let world = World::new(json!(answers));
    std::fs::write(world.file("a.txt"), "one\ntwo\nthree\n").expect("a file");
    world
}

/// The last that was said of each of these, by name of the tool.
fn places(updates: &[Value], what: &str) -> Vec<(String, Value)> {
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

fn of<'a>(all: &'a [(String, Value)], name: &str) -> &'a Value {
    &all.iter().find(|one| one.0 == name).expect("called").1
}

/// TOOL-7 for every tool there is; the oracle looks at each path and line, and here is what they must be.
// proves: TOOL-7, TOOL-8, THEME-9
#[test]
fn paths_are_absolute_and_lines_count_from_one_now_and_when_loaded() {
    let world = one_of_each();
    let (mut client, id) = session(&world);
    let auto = json!({"sessionId": id, "modeId": "auto"});
    result_of(&client.call("session/set_mode", auto));
    let answer = client.call("session/prompt", prompt(&id, "go"));
    assert_eq!(result_of(&answer)["stopReason"], "end_turn");
    let live = client.updates();
    let load = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    result_of(&client.call("session/load", load));
    let again = client.updates();

    let box_of_all = Toolbox::coding();
    let all = box_of_all.names().filter(|name| *name != "update_plan");
    let all: BTreeSet<&str> = all.collect();
    let cwd = world.cwd().canonicalize().expect("a folder");
    let at = |name: &str| json!(cwd.join(name));
    for updates in [live, again] {
        let locations = places(&updates, "locations");
        let called: BTreeSet<&str> = locations.iter().map(|one| one.0.as_str()).collect();
        assert_eq!(called, all, "a tool is missing here");
        let plans = updates.iter().filter(|it| it["sessionUpdate"] == "plan");
        assert_eq!(plans.count(), 1);
        let read = json!([{"path": at("a.txt"), "line": 2}]);
        assert_eq!(of(&locations, "read_file"), &read);
        let edited = json!([{"path": at("a.txt"), "line": 2}]);
        assert_eq!(of(&locations, "edit_file"), &edited);
        assert_eq!(of(&locations, "write_file")[0]["path"], at("new/b.txt"));
        // A folder is no place for an editor to go to.
        assert_eq!(of(&locations, "shell"), &json!(null));
        for name in ["list_dir", "find_files", "search"] {
            let path = of(&locations, name)[0]["path"].as_str().expect("a place");
            assert_eq!(
                path.trim_end_matches('/'),
                at("").as_str().expect("a path").trim_end_matches('/'),
                "{name}"
            );
        }
        let content = places(&updates, "content");
        let diff = json!({"type": "diff", "path": at("a.txt"),
            "oldText": "one\ntwo\nthree\n", "newText": "one\n2\nthree\n"});
        assert_eq!(of(&content, "edit_file")[0], diff);
        let new = json!({"type": "diff", "path": at("new/b.txt"), "newText": "b\n"});
        assert_eq!(of(&content, "write_file")[0], new);
        assert!(
            of(&content, "shell")
                .to_string()
                .contains("one\\n2\\nthree")
        );
    }
}

/// Blanks push nothing out of view, and hidden characters are spelled out, in all that the question holds.
#[test]
fn a_question_shows_the_end_of_a_padded_command() {
    let command = format!("make test{}; touch\u{202e} M", " ".repeat(4050));
    let world = World::new(json!([
        {"steps": [call("shell", json!({"command": command}))]},
        {"steps": [{"text": "done"}]},
    ]));
    let (mut client, id) = session(&world);
    let asked = client.ask("session/prompt", prompt(&id, "go"));
    let question = client.asked("session/request_permission");
    let shown = &question["params"]["toolCall"];
    let told = "make test ⟨4050 blanks⟩ ; touch⟨U+202E⟩ M";
    assert_eq!(shown["title"], told);
    let text = shown["content"][0]["content"]["text"].as_str();
    assert_eq!(text, Some(&*format!("```sh\n{told}\n```")));
    assert_eq!(shown["rawInput"]["command"], command);
    let no = json!({"outcome": {"outcome": "selected", "optionId": "reject_once"}});
    client.reply(&question, no);
    client.answer(&asked);
}

/// A person who is asked sees the command itself, and what "always" would mean.
// proves: THEME-7
#[test]
fn a_question_shows_the_command() {
    let command = "printf hello > made.txt";
    let world = World::new(json!([
        {"steps": [call("shell", json!({"command": command}))]},
        {"steps": [{"text": "done"}]},
    ]));
    let (mut client, id) = session(&world);
    let asked = client.ask("session/prompt", prompt(&id, "go"));
    let question = client.asked("session/request_permission");
    let shown = &question["params"]["toolCall"];
    assert_eq!(shown["kind"], "execute");
    let title = shown["title"].as_str().expect("a title");
    assert!(title.contains(command), "{title}");
    assert_eq!(shown["rawInput"]["command"], command);
    assert!(!world.file("made.txt").exists(), "not before a yes");
    let yes = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
    client.reply(&question, yes);
    assert_eq!(result_of(&client.answer(&asked))["stopReason"], "end_turn");
    let made = std::fs::read_to_string(world.file("made.txt")).expect("made");
    assert_eq!(made, "hello");
}
