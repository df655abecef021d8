//! Sessions side by side: each in its own folder, and each with its own words (SESS-3, SESS-5).

use crate::harness::{Client, World, prompt, result_of};
use serde_json::{Value, json};

/// What the session's model and tools have said.
fn texts(seen: &[Value], session: &str) -> Vec<String> {
    seen.iter()
        .filter(|message| message["params"]["sessionId"] == session)
        .flat_map(|message| {
            let content = &message["params"]["update"]["content"];
            [&content["text"], &content[0]["content"]["text"]]
        })
        .filter_map(|text| text.as_str().map(str::to_owned))
        .collect()
}

/// All that is said until both are answered, in whatever order.
fn both(client: &mut Client, asked: &[Value; 2]) -> Vec<Value> {
    for _ in asked {
        let answer = client.wait(|message| asked.contains(&message["id"]));
        assert_eq!(result_of(&answer)["stopReason"], "end_turn");
    }
    client.seen()
}

/// Wherever the process was started: in neither folder.
// proves: SESS-3
#[test]
fn each_session_works_in_its_own_folder() {
    let world = World::new(json!([
        {"when": {"last_tool_result_contains": "first"}, "steps": [{"text": "one"}]},
        {"when": {"last_tool_result_contains": "second"}, "steps": [{"text": "two"}]},
        {"when": {"last_user_contains": "look"}, "steps": [{"tool_call": {"name": "look", "args": {}}}]},
    ]));
    let second = world.outside().join("second");
    std::fs::create_dir(&second).expect("a folder");
    std::fs::write(world.file("a.txt"), "first").expect("a file");
    std::fs::write(second.join("a.txt"), "second").expect("a file");
    let (mut client, id) = world.session();
    let made = client.call("session/new", json!({"cwd": second, "mcpServers": []}));
    let other = result_of(&made)["sessionId"]
        .as_str()
        .expect("an id")
        .to_owned();
    let asked = [&id, &other].map(|id| client.ask("session/prompt", prompt(id, "look")));
    let seen = both(&mut client, &asked);
    assert_eq!(texts(&seen, &id), ["first", "one"]);
    assert_eq!(texts(&seen, &other), ["second", "two"]);
    assert_eq!(world.ran.all(), ["look", "look"]);
}

/// Two prompts that talk at the same time: nothing of one is told of the other.
// proves: SESS-5
#[test]
fn sessions_that_talk_at_once_are_told_apart() {
    let slow = |word: &str| {
        let steps: Vec<Value> = (0..10)
            .flat_map(|_| [json!({"text": word}), json!({"delay_ms": 1})])
            .collect();
        json!({"when": {"last_user_contains": word}, "steps": steps})
    };
    let world = World::new(json!([slow("left"), slow("right")]));
    let (mut client, left) = world.session();
    let made = client.call("session/new", world.new_session());
    let right = result_of(&made)["sessionId"]
        .as_str()
        .expect("an id")
        .to_owned();
    let asked = [
        client.ask("session/prompt", prompt(&left, "left")),
        client.ask("session/prompt", prompt(&right, "right")),
    ];
    let seen = both(&mut client, &asked);
    let of = |session: &str| texts(&seen, session).concat();
    assert_eq!(of(&left), "left".repeat(10));
    assert_eq!(of(&right), "right".repeat(10));
    let sessions: Vec<&Value> = seen
        .iter()
        .map(|message| &message["params"]["sessionId"])
        .collect();
    let changes = sessions.windows(2).filter(|two| two[0] != two[1]).count();
    assert!(changes > 1, "they did not talk at once: {sessions:?}");
}

/// No path has a NUL in it, and what is wrong with a request is told as such.
// proves: RPC-10
#[test]
fn nul_in_a_path_is_invalid_params() {
    let world = World::silent();
    let (mut client, id) = world.session();
    let nul = format!("{}\0", world.cwd().display());
    let server = json!({"name": "s", "command": "/bin/\0", "args": [], "env": []});
    for (method, params) in [
        ("session/new", json!({"cwd": nul, "mcpServers": []})),
        (
            "session/new",
            json!({"cwd": world.cwd(), "additionalDirectories": [nul], "mcpServers": []}),
        ),
        (
            "session/new",
            json!({"cwd": world.cwd(), "mcpServers": [server]}),
        ),
        (
            "session/load",
            json!({"sessionId": id, "cwd": nul, "mcpServers": []}),
        ),
        ("session/resume", json!({"sessionId": id, "cwd": nul})),
        ("session/list", json!({"cwd": nul})),
    ] {
        let answer = client.call(method, params);
        assert_eq!(answer["error"]["code"], -32602, "{method}: {answer}");
        let details = &answer["error"]["data"]["details"];
        assert!(details.to_string().contains("NUL"), "{method}: {answer}");
    }
}

/// A command that may write beside the folder can put a link in its place. What is open stays open.
#[test]
fn session_whose_folder_is_a_link_by_now_is_refused() {
    let world = World::new(json!([
        {"when": {"last_user_contains": "hi"}, "steps": [{"text": "still here"}]},
    ]));
    let (mut client, id) = world.session();
    let cwd = world.cwd();
    let elsewhere = world.outside().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a folder");
    std::fs::rename(&cwd, world.outside().join("moved")).expect("it is there");
    std::os::unix::fs::symlink(&elsewhere, &cwd).expect("a link");
    let request = json!({"sessionId": id, "cwd": cwd, "mcpServers": []});
    for method in ["session/load", "session/resume", "session/fork"] {
        let answer = client.call(method, request.clone());
        assert_eq!(answer["error"]["code"], -32602, "{method}: {answer}");
        let message = answer["error"]["message"].as_str().expect("a text");
        for folder in [&cwd, &elsewhere] {
            assert!(message.contains(&folder.display().to_string()), "{answer}");
        }
    }
    let said = client.call("session/prompt", prompt(&id, "hi"));
    assert_eq!(result_of(&said)["stopReason"], "end_turn");
}
