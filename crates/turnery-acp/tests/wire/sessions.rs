//! Creating, listing, opening and closing sessions (SESS, DIR, LOAD, RES, LIST, CLOSE, DEL, MODE, CFG, MCP).

use crate::harness::{TestClient, TestEnv, error_code_of, prompt_params, result_of};
use serde_json::{Value, json};
use std::collections::HashSet;
use turnery_acp::ServeOptions;

fn text_answer() -> Value {
    json!([{"steps": [{"thinking": "hm"}, {"text": ["Hel", "lo"]}]}])
}

/// SESS-2, SESS-4, DIR-1, MCP-4, MCP-5, RPC-10, RPC-19: rejected, and no session is created.
// proves: SESS-2, SESS-4, SESS-10, DIR-1, DIR-3, RPC-19
#[test]
fn invalid_params_create_no_session() {
    let world = TestEnv::without_answers();
    let mut client = world.client(json!({}));
    let cwd = world.cwd();
    let stdio = json!({"name": "a", "command": "/bin/a", "args": [], "env": []});
    for params in [
        json!({"mcpServers": []}),
        json!({"cwd": ".", "mcpServers": []}),
        json!({"cwd": "", "mcpServers": []}),
        json!({"cwd": null, "mcpServers": []}),
        json!({"cwd": 7, "mcpServers": []}),
        json!({"cwd": world.root().join("missing"), "mcpServers": []}),
        json!({"cwd": cwd}),
        json!({"cwd": cwd, "mcpServers": "none"}),
        json!({"cwd": cwd, "mcpServers": [{"name": "a"}]}),
        json!({"cwd": cwd, "mcpServers": [stdio, 7]}),
        json!({"cwd": cwd, "mcpServers": [{"name": "a", "command": "npx", "args": [], "env": []}]}),
        json!({"cwd": cwd, "mcpServers": [{"type": "sse", "name": "a", "url": "http://x", "headers": []}]}),
        json!({"cwd": cwd, "mcpServers": [], "additionalDirectories": "/"}),
        json!({"cwd": cwd, "mcpServers": [], "additionalDirectories": ["rel"]}),
        json!({"cwd": cwd, "mcpServers": [], "additionalDirectories": [""]}),
        json!({"cwd": cwd, "mcpServers": [], "additionalDirectories": [7]}),
        json!({"cwd": cwd, "mcpServers": [], "additionalDirectories": [world.root().join("missing")]}),
        json!([cwd]),
    ] {
        let answer = client.request("session/new", params.clone());
        assert_eq!(error_code_of(&answer), -32602, "{params}");
    }
    let list = client.request("session/list", json!({}));
    assert_eq!(result_of(&list)["sessions"], json!([]));
}

/// A failing MCP server is reported after the response (SESS-7): as a notice to clients that support notices
/// (NOTE-1), and as metadata of a `session_info_update` to others.
// proves: MCP-6
#[test]
fn failing_mcp_server_is_reported() {
    let world = TestEnv::without_answers();
    let server = json!({"name": "db", "command": "/bin/no-such-db", "args": [], "env": []});
    let params = json!({"cwd": world.cwd(), "mcpServers": [server]});
    let mut client = world.client(json!({"session": {"notices": {}}}));
    let made = client.request("session/new", params.clone());
    assert_eq!(client.take_buffered(), [] as [Value; 0]);
    let notice = client.next_message().expect("a notice");
    assert_eq!(notice["params"]["sessionId"], result_of(&made)["sessionId"]);
    assert_eq!(notice["params"]["update"]["sessionUpdate"], "notice");
    assert_eq!(notice["params"]["update"]["title"], "MCP server db");
    assert_eq!(
        notice["params"]["update"]["description"],
        "It does not work: cannot start: program not found. Its tools fail or are missing; \
         everything else still works."
    );

    // A client that does not support notices gets it as metadata.
    let mut client = world.client(json!({}));
    result_of(&client.request("session/new", params));
    let told = client.next_message().expect("it is told");
    let update = &told["params"]["update"];
    assert_eq!(update["sessionUpdate"], "session_info_update");
    assert_eq!(update["_meta"]["turnery"]["notice"]["severity"], "warning");
}

/// In a new connection, `session/load` replays the whole conversation before its response and
/// `session/resume` replays nothing; both can be continued (LOAD-1 to LOAD-5, RES-1, RES-2).
// proves: UP-37, LOAD-5, RES-1, G-7, THEME-2, THEME-3
#[test]
fn load_replays_and_resume_is_silent() {
    let world = TestEnv::new(json!([
        {"steps": [{"thinking": "hm"}, {"text": ["Hel", "lo"]}]},
        {"steps": [{"text": "again"}]},
        {"steps": [{"text": "more"}]},
    ]));
    let (mut client, id) = world.session();
    assert_eq!(client.prompt(&id, "hi"), "end_turn");
    let live = client.take_updates();
    client.close_and_join();

    let params = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    let mut client = world.client(json!({}));
    result_of(&client.request("session/load", params.clone()));
    let chunk = |kind: &str, id: &Value, text: &str| json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}, "messageId": id});
    let replay = client.take_updates();
    let message_id = &live[0]["messageId"];
    let expected = [
        chunk("user_message_chunk", &replay[0]["messageId"], "hi"),
        chunk("agent_thought_chunk", message_id, "hm"),
        chunk("agent_message_chunk", message_id, "Hello"),
    ];
    assert_eq!(replay, expected);
    assert_eq!(client.prompt(&id, "go on"), "end_turn");
    assert_eq!(client.take_updates()[0]["content"]["text"], "again");
    client.close_and_join();

    let mut client = world.client(json!({}));
    let answer = client.request("session/resume", params);
    assert_eq!(client.take_buffered(), [] as [Value; 0]);
    assert_eq!(result_of(&answer)["modes"]["currentModeId"], "ask");
    client.prompt(&id, "go on");
    assert_eq!(client.take_updates()[0]["content"]["text"], "more");
}

/// Sessions are listed with their folder, title, time and additional directories, filtered by `cwd`, until
/// they are deleted; invalid filters and cursors are rejected (LIST-1 to LIST-6, RPC-11, DEL-1).
// proves: LIST-1, LIST-5, DEL-1, DEL-2
#[test]
fn sessions_are_listed_until_they_are_deleted() {
    let world = TestEnv::new(text_answer());
    let (mut client, id) = world.session();
    let params = json!({"cwd": world.root(), "mcpServers": [],
        "additionalDirectories": [world.cwd()]});
    let other = client.new_session(params);
    client.prompt(&id, "First line\nsecond");

    for params in [json!({}), Value::Null] {
        let list = client.request("session/list", params);
        let listed: HashSet<&str> = result_of(&list)["sessions"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|session| session["sessionId"].as_str())
            .collect();
        assert_eq!(listed, HashSet::from([id.as_str(), other.as_str()]));
    }
    let list = client.request("session/list", json!({"cwd": world.cwd()}));
    let [session] = &result_of(&list)["sessions"].as_array().expect("a list")[..] else {
        panic!("{list}");
    };
    assert_eq!(session["cwd"], json!(world.cwd()));
    assert_eq!(session["title"], "First line");
    let at = session["updatedAt"].as_str().expect("a time");
    assert!(chrono::DateTime::parse_from_rfc3339(at).is_ok(), "{at}");
    let list = client.request("session/list", json!({"cwd": world.root()}));
    assert_eq!(
        result_of(&list)["sessions"][0]["additionalDirectories"],
        json!([world.cwd()])
    );
    let list = client.request("session/list", json!({"cwd": "/nowhere"}));
    assert_eq!(result_of(&list)["sessions"], json!([]));
    assert_eq!(
        error_code_of(&client.request("session/list", json!({"cursor": "garbage"}))),
        -32602
    );
    assert_eq!(
        error_code_of(&client.request("session/list", json!({"cwd": "rel"}))),
        -32602
    );

    for _ in 0..2 {
        let answer = client.request("session/delete", json!({"sessionId": id}));
        assert_eq!(result_of(&answer), &json!({}));
    }
    let list = client.request("session/list", json!({"cwd": world.cwd()}));
    assert_eq!(result_of(&list)["sessions"], json!([]));
    assert_eq!(
        error_code_of(&client.request("session/prompt", prompt_params(&id, "hi"))),
        -32002
    );
}

/// The configured model is offered although no provider lists it, also after another one is selected, and in
/// a new connection.
#[test]
fn the_configured_model_is_always_offered() {
    let world = TestEnv::without_answers();
    let (mut client, id) = world.session();
    let options = client.request(
        "session/set_config_option",
        json!({"sessionId": id, "configId": "model", "value": "offline"}),
    );
    let models = |options: &Value| {
        let model = &options["configOptions"][1];
        assert_eq!(model["currentValue"], "offline");
        let values = model["options"].as_array().expect("a list").iter();
        Vec::from_iter(values.map(|value| value["value"].clone()))
    };
    let scripted = format!("scripted/{}/scenario.json", world.root().display());
    let offered = [json!(scripted), json!("offline")];
    assert_eq!(models(result_of(&options)), offered);
    drop(client);
    let mut client = world.client(json!({}));
    let at = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    let loaded = client.request("session/load", at);
    assert_eq!(models(result_of(&loaded)), offered);
}

/// Modes and the option `mode` follow each other; a response lists all options with current values, and
/// unknown modes, options and values are rejected without effect (MODE-1 to MODE-4, CFG-1 to CFG-7).
// proves: SESS-6, MODE-1, MODE-3, MODE-4, CFG-1, CFG-2, CFG-4, CFG-5, G-1, G-26
#[test]
fn modes_and_config_options_agree() {
    let world = TestEnv::without_answers();
    let mut client = world.client(json!({}));
    let made = client.request("session/new", world.new_session_params());
    let made = result_of(&made);
    let id = &made["sessionId"];
    let ids: Vec<&Value> = made["modes"]["availableModes"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|mode| &mode["id"])
        .collect();
    assert_eq!(ids, ["ask", "edit", "plan", "auto"]);
    let options = made["configOptions"].as_array().expect("a list");
    let shape: Vec<[&str; 3]> = options
        .iter()
        .map(|option| {
            ["id", "category", "type"].map(|key| option[key].as_str().unwrap_or_default())
        })
        .collect();
    assert_eq!(
        shape,
        [
            ["mode", "mode", "select"],
            ["model", "model", "select"],
            ["thinking", "thought_level", "select"],
            ["protocol", "", "select"]
        ]
    );
    for option in options {
        let values: Vec<&Value> = option["options"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|o| &o["value"])
            .collect();
        assert!(values.contains(&&option["currentValue"]), "{option}");
    }

    let answer = client.request(
        "session/set_mode",
        json!({"sessionId": id, "modeId": "plan"}),
    );
    assert_eq!(result_of(&answer), &json!({}));
    let updates = client.take_updates();
    assert_eq!(updates.len(), 1, "{updates:?}");
    assert_eq!(updates[0]["sessionUpdate"], "config_option_update");
    assert_eq!(updates[0]["configOptions"][0]["currentValue"], "plan");

    let set = |name: &str, value: &str| json!({"sessionId": id, "configId": name, "value": value});
    let answer = client.request("session/set_config_option", set("mode", "edit"));
    assert_eq!(
        result_of(&answer)["configOptions"][0]["currentValue"],
        "edit"
    );
    let expected = json!({"sessionUpdate": "current_mode_update", "currentModeId": "edit"});
    assert_eq!(client.take_updates(), [expected]);

    let answer = client.request("session/set_config_option", set("thinking", "high"));
    let options = &result_of(&answer)["configOptions"];
    assert_eq!(options.as_array().map(Vec::len), Some(4));
    assert_eq!(options[2]["currentValue"], "high");

    for (method, params) in [
        (
            "session/set_mode",
            json!({"sessionId": id, "modeId": "yolo"}),
        ),
        ("session/set_config_option", set("mode", "yolo")),
        ("session/set_config_option", set("thinking", "yolo")),
        ("session/set_config_option", set("protocol", "yolo")),
        ("session/set_config_option", set("model", "nobody/nothing")),
        ("session/set_config_option", set("other", "ask")),
        (
            "session/set_config_option",
            json!({"sessionId": id, "configId": "mode", "type": "boolean", "value": true}),
        ),
    ] {
        let answer = client.request(method, params.clone());
        assert_eq!(error_code_of(&answer), -32602, "{params}");
    }
    let answer = client.request("session/set_config_option", set("thinking", "low"));
    let options = &result_of(&answer)["configOptions"];
    assert_eq!(
        (&options[0]["currentValue"], &options[2]["currentValue"]),
        (&json!("edit"), &json!("low"))
    );
}

/// Regression: a load behind a close in one write opened the session before its prompt had ended, and answered
/// before the end of the prompt's call.
// proves: LOAD-2, LOAD-7, CLOSE-1
#[test]
fn load_behind_close_waits_for_the_end() {
    for method in ["session/close", "session/archive"] {
        let world = TestEnv::new(json!([
            {"steps": [{"tool_call": {"name": "hang", "args": {}}}]},
        ]));
        let (mut client, id) = world.session();
        let asked = client.send_prompt(&id, "hi");
        client.wait_for(|message| message["params"]["update"]["status"] == "in_progress");
        let at = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
        let close =
            json!({"jsonrpc": "2.0", "id": "c", "method": method, "params": {"sessionId": id}});
        let load = json!({"jsonrpc": "2.0", "id": "l", "method": "session/load", "params": at});
        client.write_raw(format!("{close}\n{load}\n"));
        result_of(&client.wait_for_response(&json!("l")));
        let seen = client.take_buffered();
        let answer = seen.iter().find(|message| message["id"] == asked);
        let answer = answer.expect("the prompt is answered before the load");
        assert_eq!(result_of(answer)["stopReason"], "cancelled", "{method}");
        assert_eq!(client.close_and_join().1, [] as [Value; 0], "{method}");
    }
}

/// REQC-2, REQC-3: a load that is cancelled half-way is answered with -32800, sends nothing more and can be
/// repeated.
// proves: UP-39, REQC-2, REQC-3, C-10, ACP-3
#[test]
fn load_is_cancelled_by_request_id() {
    let world =
        TestEnv::new(json!([{"when": {"last_user_contains": "x"}, "steps": [{"text": "y"}]}]));
    let (mut client, id) = world.session();
    // The first message fills the pipe; the others fill the queue behind it.
    let long = "x".repeat(200_000);
    for text in std::iter::once(&*long).chain(std::iter::repeat_n("x", 200)) {
        client.prompt(&id, text);
        client.take_buffered();
    }
    client.close_and_join();

    let load = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    let mut client = TestClient::connect_without_reading(world.agent(), ServeOptions::default());
    let lines = [
        json!({"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": {"protocolVersion": 1}}),
        json!({"jsonrpc": "2.0", "id": "l", "method": "session/load", "params": load}),
        json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": "l"}}),
    ];
    client.write_raw(lines.map(|line| format!("{line}\n")).concat());
    // More than all buffers of input hold: once it is written, the agent has handled the cancel.
    let padding =
        json!({"jsonrpc": "2.0", "method": "_padding", "params": {"x": "x".repeat(1_000)}});
    for _ in 0..1_000 {
        client.write_raw(format!("{padding}\n"));
    }
    client.start_reading();
    assert_eq!(
        error_code_of(&client.wait_for_response(&json!("l"))),
        -32800
    );
    let shown = client.take_updates().len();
    assert!(shown < 402, "{shown}");
    let unopened = client.request("session/prompt", prompt_params(&id, "x"));
    assert_eq!(error_code_of(&unopened), -32002);
    assert_eq!(client.take_updates(), [] as [Value; 0]);
    result_of(&client.request("session/load", load));
    assert_eq!(client.take_updates().len(), 402);
}

/// Loading an open session ends its prompt, unless the request is rejected.
// proves: THEME-3, C-32
#[test]
fn rejected_load_keeps_open_session() {
    let world = TestEnv::new(json!([
        {"steps": [{"text": "wait"}, {"wait_for_cancel": true}]},
        {"steps": [{"text": "done"}]},
    ]));
    let (mut client, id) = world.session();
    let asked = client.send_prompt(&id, "hi");
    client.wait_for(|message| message["method"] == "session/update");
    let elsewhere = json!({"sessionId": id, "cwd": world.root(), "mcpServers": []});
    assert_eq!(
        error_code_of(&client.request("session/load", elsewhere)),
        -32602
    );
    let still = json!({"sessionId": id, "modeId": "plan"});
    result_of(&client.request("session/set_mode", still));
    assert_eq!(
        client.take_buffered().len(),
        1,
        "the options, and no answer"
    );

    let again = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    let loading = client.send_request("session/load", again);
    assert_eq!(client.wait_for_stop_reason(&asked), "cancelled");
    result_of(&client.wait_for_response(&loading));
    assert_eq!(client.prompt(&id, "hi"), "end_turn");
}
