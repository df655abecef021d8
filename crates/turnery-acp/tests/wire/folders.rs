//! Concurrent sessions: each has its own folder and its own updates (SESS-3, SESS-5).

use crate::harness::{TestClient, TestEnv, prompt_params, result_of};
use serde_json::{Value, json};

/// Returns the texts of the session's model and tools.
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

/// Waits until both prompts have ended normally; returns the other messages received so far. `asked` holds
/// the request ids of the prompts.
fn await_both_prompts(client: &mut TestClient, asked: &[Value; 2]) -> Vec<Value> {
    for _ in asked {
        let answer = client.wait_for(|message| asked.contains(&message["id"]));
        assert_eq!(result_of(&answer)["stopReason"], "end_turn");
    }
    client.take_buffered()
}

/// The process was started in neither folder.
// proves: SESS-3
#[test]
fn sessions_use_their_own_cwd() {
    let world = TestEnv::new(json!([
        {"when": {"last_tool_result_contains": "first"}, "steps": [{"text": "one"}]},
        {"when": {"last_tool_result_contains": "second"}, "steps": [{"text": "two"}]},
        {"when": {"last_user_contains": "look"}, "steps": [{"tool_call": {"name": "look", "args": {}}}]},
    ]));
    let second = world.root().join("second");
    std::fs::create_dir(&second).expect("a folder");
    std::fs::write(world.file("a.txt"), "first").expect("a file");
    std::fs::write(second.join("a.txt"), "second").expect("a file");
    let (mut client, id) = world.session();
    let other = client.new_session(json!({"cwd": second, "mcpServers": []}));
    let asked = [&id, &other].map(|id| client.send_prompt(id, "look"));
    let seen = await_both_prompts(&mut client, &asked);
    assert_eq!(texts(&seen, &id), ["first", "one"]);
    assert_eq!(texts(&seen, &other), ["second", "two"]);
    assert_eq!(world.run_log.all(), ["look", "look"]);
}

/// Two prompts stream at the same time: no update of one names the other session.
// proves: SESS-5
#[test]
fn concurrent_updates_name_their_session() {
    let slow = |word: &str| {
        let steps: Vec<Value> = (0..10)
            .flat_map(|_| [json!({"text": word}), json!({"delay_ms": 1})])
            .collect();
        json!({"when": {"last_user_contains": word}, "steps": steps})
    };
    let world = TestEnv::new(json!([slow("left"), slow("right")]));
    let (mut client, left) = world.session();
    let right = client.new_session(world.new_session_params());
    let asked = [
        client.send_prompt(&left, "left"),
        client.send_prompt(&right, "right"),
    ];
    let seen = await_both_prompts(&mut client, &asked);
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

/// A path cannot contain NUL; the error says so.
// proves: RPC-10
#[test]
fn nul_in_a_path_is_invalid_params() {
    let world = TestEnv::without_answers();
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
        let answer = client.request(method, params);
        assert_eq!(answer["error"]["code"], -32602, "{method}: {answer}");
        let details = &answer["error"]["data"]["details"];
        assert!(details.to_string().contains("NUL"), "{method}: {answer}");
    }
}

/// A command that may write to the parent folder can replace the folder by a link. Open sessions stay open.
#[test]
fn session_whose_cwd_became_a_link_is_rejected() {
    let world = TestEnv::new(json!([
        {"when": {"last_user_contains": "hi"}, "steps": [{"text": "still here"}]},
    ]));
    let (mut client, id) = world.session();
    let cwd = world.cwd();
    let elsewhere = world.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a folder");
    std::fs::rename(&cwd, world.root().join("moved")).expect("it is there");
    std::os::unix::fs::symlink(&elsewhere, &cwd).expect("a link");
    let request = json!({"sessionId": id, "cwd": cwd, "mcpServers": []});
    for method in ["session/load", "session/resume", "session/fork"] {
        let answer = client.request(method, request.clone());
        assert_eq!(answer["error"]["code"], -32602, "{method}: {answer}");
        let message = answer["error"]["message"].as_str().expect("a text");
        for folder in [&cwd, &elsewhere] {
            assert!(message.contains(&folder.display().to_string()), "{answer}");
        }
    }
    let said = client.request("session/prompt", prompt_params(&id, "hi"));
    assert_eq!(result_of(&said)["stopReason"], "end_turn");
}
