//! Making, finding, opening and ending sessions (SESS, DIR, LOAD, RES, LIST, CLOSE, DEL, MODE, CFG, MCP).

use crate::harness::{Client, World, error_of, prompt, result_of};
use serde_json::{Value, json};
use std::collections::HashSet;
use turnery_acp::ServeOptions;

fn said() -> Value {
    json!([{"steps": [{"thinking": "hm"}, {"text": ["Hel", "lo"]}]}])
}

/// SESS-1, SESS-6.
// proves: SESS-1
#[test]
fn sessions_have_ids_of_their_own() {
    let world = World::silent();
    let mut ids = HashSet::new();
    for _ in 0..4 {
        let mut client = world.client(json!({}));
        for _ in 0..25 {
            let made = client.call("session/new", world.new_session());
            ids.insert(
                result_of(&made)["sessionId"]
                    .as_str()
                    .expect("an id")
                    .to_owned(),
            );
        }
    }
    assert_eq!(ids.len(), 100);
}

/// SESS-2, SESS-4, DIR-1, MCP-4, MCP-5, RPC-10, RPC-19: refused, and no session is made.
// proves: SESS-2, SESS-4, SESS-10, DIR-1, DIR-3, RPC-19
#[test]
fn parameters_that_do_not_fit_make_no_session() {
    let world = World::silent();
    let mut client = world.client(json!({}));
    let cwd = world.cwd();
    let stdio = json!({"name": "a", "command": "/bin/a", "args": [], "env": []});
    for params in [
        json!({"mcpServers": []}),
        json!({"cwd": ".", "mcpServers": []}),
        json!({"cwd": "", "mcpServers": []}),
        json!({"cwd": null, "mcpServers": []}),
        json!({"cwd": 7, "mcpServers": []}),
        json!({"cwd": world.outside().join("missing"), "mcpServers": []}),
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
        json!({"cwd": cwd, "mcpServers": [], "additionalDirectories": [world.outside().join("missing")]}),
        json!([cwd]),
    ] {
        let answer = client.call("session/new", params.clone());
        assert_eq!(error_of(&answer), -32602, "{params}");
    }
    let list = client.call("session/list", json!({}));
    assert_eq!(result_of(&list)["sessions"], json!([]));
}

/// RPC-19, SESS-4: what may be odd.
// proves: SESS-10, RPC-19
#[test]
fn parameters_that_are_merely_odd_are_taken() {
    let world = World::silent();
    let mut client = world.client(json!({}));
    for params in [
        json!({"cwd": world.cwd(), "mcpServers": null}),
        json!({"cwd": world.cwd(), "mcpServers": [], "unknown": 1, "_meta": 42}),
        json!({"cwd": world.cwd(), "mcpServers": [], "additionalDirectories": null}),
    ] {
        result_of(&client.call("session/new", params));
    }
}

/// After the answer (SESS-7), and as a notice only to who takes them (NOTE-1).
// proves: MCP-6
#[test]
fn an_mcp_server_that_fails_is_told_of() {
    let world = World::silent();
    let server = json!({"name": "db", "command": "/bin/no-such-db", "args": [], "env": []});
    let params = json!({"cwd": world.cwd(), "mcpServers": [server]});
    let mut client = world.client(json!({"session": {"notices": {}}}));
    let made = client.call("session/new", params.clone());
    assert_eq!(client.seen(), [] as [Value; 0]);
    let notice = client.next().expect("a notice");
    assert_eq!(notice["params"]["sessionId"], result_of(&made)["sessionId"]);
    assert_eq!(notice["params"]["update"]["sessionUpdate"], "notice");
    assert_eq!(notice["params"]["update"]["title"], "MCP server db");
    assert_eq!(
        notice["params"]["update"]["description"],
        "It does not work: cannot start: program not found. Its tools fail or are missing; \
         everything else goes on."
    );

    // A client that takes no notices gets none.
    let mut client = world.client(json!({}));
    result_of(&client.call("session/new", params));
    let told = client.next().expect("it is told");
    let update = &told["params"]["update"];
    assert_eq!(update["sessionUpdate"], "session_info_update");
    assert_eq!(update["_meta"]["turnery"]["notice"]["severity"], "warning");
}

/// SESS-8, SESS-9, CLOSE-2, DEL-2.
// proves: ACP-3, RPC-4, SESS-8, SESS-9, CLOSE-2, DEL-2, G-2, G-20
#[test]
fn sessions_that_are_not_open() {
    let world = World::silent();
    let (_first, stored) = world.session();
    let mut client = world.client(json!({}));
    for id in ["bogus", stored.as_str()] {
        for (method, params) in [
            ("session/prompt", prompt(id, "hi")),
            (
                "session/set_mode",
                json!({"sessionId": id, "modeId": "ask"}),
            ),
            (
                "session/set_config_option",
                json!({"sessionId": id, "configId": "mode", "value": "ask"}),
            ),
        ] {
            let answer = client.call(method, params);
            assert_eq!(error_of(&answer), -32002, "{method}");
            assert_eq!(answer["error"]["data"]["sessionId"], id);
        }
    }
    let params = json!({"sessionId": "bogus", "cwd": world.cwd(), "mcpServers": []});
    for method in ["session/load", "session/resume"] {
        let answer = client.call(method, params.clone());
        assert_eq!(error_of(&answer), -32002, "{method}");
        assert_eq!(answer["error"]["data"]["sessionId"], "bogus");
    }
    for method in ["session/close", "session/delete"] {
        let answer = client.call(method, json!({"sessionId": "bogus"}));
        assert_eq!(result_of(&answer), &json!({}), "{method}");
    }
}

/// LOAD-1 to LOAD-5, RES-1, RES-2: in a new process, all of it before the answer, or nothing.
// proves: UP-37, LOAD-5, RES-1, G-7, THEME-2, THEME-3
#[test]
fn a_session_is_loaded_with_all_that_was_said_or_resumed_in_silence() {
    let world = World::new(json!([
        {"steps": [{"thinking": "hm"}, {"text": ["Hel", "lo"]}]},
        {"steps": [{"text": "again"}]},
        {"steps": [{"text": "more"}]},
    ]));
    let (mut client, id) = world.session();
    let answer = client.call("session/prompt", prompt(&id, "hi"));
    assert_eq!(result_of(&answer)["stopReason"], "end_turn");
    let live = client.updates();
    client.leave();

    let params = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    let mut client = world.client(json!({}));
    result_of(&client.call("session/load", params.clone()));
    let chunk = |kind: &str, id: &Value, text: &str| json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}, "messageId": id});
    let replay = client.updates();
    let message_id = &live[0]["messageId"];
    let expected = [
        chunk("user_message_chunk", &replay[0]["messageId"], "hi"),
        chunk("agent_thought_chunk", message_id, "hm"),
        chunk("agent_message_chunk", message_id, "Hello"),
    ];
    assert_eq!(replay, expected);
    let answer = client.call("session/prompt", prompt(&id, "go on"));
    assert_eq!(result_of(&answer)["stopReason"], "end_turn");
    assert_eq!(client.updates()[0]["content"]["text"], "again");
    client.leave();

    let mut client = world.client(json!({}));
    let answer = client.call("session/resume", params);
    assert_eq!(client.seen(), [] as [Value; 0]);
    assert_eq!(result_of(&answer)["modes"]["currentModeId"], "ask");
    result_of(&client.call("session/prompt", prompt(&id, "go on")));
    assert_eq!(client.updates()[0]["content"]["text"], "more");
}

// proves: G-24
#[test]
fn a_session_is_opened_where_it_was_made() {
    let world = World::silent();
    let (_client, id) = world.session();
    let mut client = world.client(json!({}));
    let params = json!({"sessionId": id, "cwd": world.outside(), "mcpServers": []});
    for method in ["session/load", "session/resume"] {
        assert_eq!(error_of(&client.call(method, params.clone())), -32602);
    }
}

/// LIST-1 to LIST-6, RPC-11, DEL-1.
// proves: LIST-1, LIST-5, DEL-1, DEL-2
#[test]
fn sessions_are_listed_until_they_are_deleted() {
    let world = World::new(said());
    let (mut client, id) = world.session();
    let params = json!({"cwd": world.outside(), "mcpServers": [],
        "additionalDirectories": [world.cwd()]});
    let other = client.call("session/new", params);
    let other = result_of(&other)["sessionId"]
        .as_str()
        .expect("an id")
        .to_owned();
    result_of(&client.call("session/prompt", prompt(&id, "First line\nsecond")));

    for params in [json!({}), Value::Null] {
        let list = client.call("session/list", params);
        let listed: HashSet<&str> = result_of(&list)["sessions"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|session| session["sessionId"].as_str())
            .collect();
        assert_eq!(listed, HashSet::from([id.as_str(), other.as_str()]));
    }
    let list = client.call("session/list", json!({"cwd": world.cwd()}));
    let [session] = &result_of(&list)["sessions"].as_array().expect("a list")[..] else {
        panic!("{list}");
    };
    assert_eq!(session["cwd"], json!(world.cwd()));
    assert_eq!(session["title"], "First line");
    let at = session["updatedAt"].as_str().expect("a time");
    assert!(chrono::DateTime::parse_from_rfc3339(at).is_ok(), "{at}");
    let list = client.call("session/list", json!({"cwd": world.outside()}));
    assert_eq!(
        result_of(&list)["sessions"][0]["additionalDirectories"],
        json!([world.cwd()])
    );
    let list = client.call("session/list", json!({"cwd": "/nowhere"}));
    assert_eq!(result_of(&list)["sessions"], json!([]));
    assert_eq!(
        error_of(&client.call("session/list", json!({"cursor": "garbage"}))),
        -32602
    );
    assert_eq!(
        error_of(&client.call("session/list", json!({"cwd": "rel"}))),
        -32602
    );

    for _ in 0..2 {
        let answer = client.call("session/delete", json!({"sessionId": id}));
        assert_eq!(result_of(&answer), &json!({}));
    }
    let list = client.call("session/list", json!({"cwd": world.cwd()}));
    assert_eq!(result_of(&list)["sessions"], json!([]));
    assert_eq!(
        error_of(&client.call("session/prompt", prompt(&id, "hi"))),
        -32002
    );
}

/// The model of the configuration is in no list, yet whoever chose another one finds the way back.
#[test]
fn the_configured_model_is_always_offered() {
    let world = World::silent();
    let (mut client, id) = world.session();
    let options = client.call(
        "session/set_config_option",
        json!({"sessionId": id, "configId": "model", "value": "offline"}),
    );
    let models = |options: &Value| {
        let model = &options["configOptions"][1];
        assert_eq!(model["currentValue"], "offline");
        let values = model["options"].as_array().expect("a list").iter();
        Vec::from_iter(values.map(|value| value["value"].clone()))
    };
    let scripted = format!("scripted/{}/scenario.json", world.outside().display());
    let offered = [json!(scripted), json!("offline")];
    assert_eq!(models(result_of(&options)), offered);
    drop(client);
    let mut client = world.client(json!({}));
    let at = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    let loaded = client.call("session/load", at);
    assert_eq!(models(result_of(&loaded)), offered);
}

/// MODE-1 to MODE-4, CFG-1 to CFG-7.
// proves: SESS-6, MODE-1, MODE-3, MODE-4, CFG-1, CFG-2, CFG-4, CFG-5, G-1, G-26
#[test]
fn modes_and_options_say_the_same() {
    let world = World::silent();
    let mut client = world.client(json!({}));
    let made = client.call("session/new", world.new_session());
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
    let shape: Vec<[&Value; 3]> = options
        .iter()
        .map(|option| [&option["id"], &option["category"], &option["type"]])
        .collect();
    assert_eq!(
        shape,
        [
            ["mode", "mode", "select"],
            ["model", "model", "select"],
            ["thinking", "thought_level", "select"]
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

    let answer = client.call(
        "session/set_mode",
        json!({"sessionId": id, "modeId": "plan"}),
    );
    assert_eq!(result_of(&answer), &json!({}));
    let updates = client.updates();
    assert_eq!(updates.len(), 1, "{updates:?}");
    assert_eq!(updates[0]["sessionUpdate"], "config_option_update");
    assert_eq!(updates[0]["configOptions"][0]["currentValue"], "plan");

    let set = |name: &str, value: &str| json!({"sessionId": id, "configId": name, "value": value});
    let answer = client.call("session/set_config_option", set("mode", "edit"));
    assert_eq!(
        result_of(&answer)["configOptions"][0]["currentValue"],
        "edit"
    );
    let expected = json!({"sessionUpdate": "current_mode_update", "currentModeId": "edit"});
    assert_eq!(client.updates(), [expected]);

    let answer = client.call("session/set_config_option", set("thinking", "high"));
    let options = &result_of(&answer)["configOptions"];
    assert_eq!(options.as_array().map(Vec::len), Some(3));
    assert_eq!(options[2]["currentValue"], "high");

    for (method, params) in [
        (
            "session/set_mode",
            json!({"sessionId": id, "modeId": "yolo"}),
        ),
        ("session/set_config_option", set("mode", "yolo")),
        ("session/set_config_option", set("thinking", "yolo")),
        ("session/set_config_option", set("model", "nobody/nothing")),
        ("session/set_config_option", set("other", "ask")),
        (
            "session/set_config_option",
            json!({"sessionId": id, "configId": "mode", "type": "boolean", "value": true}),
        ),
    ] {
        let answer = client.call(method, params.clone());
        assert_eq!(error_of(&answer), -32602, "{params}");
    }
    let answer = client.call("session/set_config_option", set("thinking", "low"));
    let options = &result_of(&answer)["configOptions"];
    assert_eq!(
        (&options[0]["currentValue"], &options[2]["currentValue"]),
        (&json!("edit"), &json!("low"))
    );
}

/// REQC-2, REQC-3: a load that is taken back half-way is answered with -32800, shows nothing more, and
/// can be asked for again.
// proves: REQC-2, REQC-3
#[test]
fn a_load_can_be_taken_back() {
    let world =
        World::new(json!([{"when": {"last_user_contains": "x"}, "steps": [{"text": "y"}]}]));
    let (mut client, id) = world.session();
    // The first fills the pipe; that many more fill the queue behind it.
    let long = "x".repeat(200_000);
    for text in std::iter::once(&*long).chain(std::iter::repeat_n("x", 200)) {
        result_of(&client.call("session/prompt", prompt(&id, text)));
        client.seen();
    }
    client.leave();

    let load = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    let mut client = Client::connect_deaf(world.agent(), ServeOptions::default());
    let lines = [
        json!({"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": {"protocolVersion": 1}}),
        json!({"jsonrpc": "2.0", "id": "l", "method": "session/load", "params": load}),
        json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": "l"}}),
    ];
    for line in &lines {
        client.note(line);
    }
    client.raw(lines.map(|line| format!("{line}\n")).concat());
    client.listen();
    assert_eq!(error_of(&client.answer(&json!("l"))), -32800);
    let shown = client.updates().len();
    assert!(shown < 402, "{shown}");
    let unopened = client.call("session/prompt", prompt(&id, "x"));
    assert_eq!(error_of(&unopened), -32002);
    assert_eq!(client.updates(), [] as [Value; 0]);
    result_of(&client.call("session/load", load));
    assert_eq!(client.updates().len(), 402);
}

/// Opening an open session again ends its prompt, unless the request is refused.
// proves: THEME-3
#[test]
fn a_refused_load_leaves_an_open_session_alone() {
    let world = World::new(json!([
        {"steps": [{"text": "wait"}, {"wait_for_cancel": true}]},
        {"steps": [{"text": "done"}]},
    ]));
    let (mut client, id) = world.session();
    let asked = client.ask("session/prompt", prompt(&id, "hi"));
    client.wait(|message| message["method"] == "session/update");
    let elsewhere = json!({"sessionId": id, "cwd": world.outside(), "mcpServers": []});
    assert_eq!(error_of(&client.call("session/load", elsewhere)), -32602);
    let still = json!({"sessionId": id, "modeId": "plan"});
    result_of(&client.call("session/set_mode", still));
    assert_eq!(client.seen().len(), 1, "the options, and no answer");

    let again = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    let loading = client.ask("session/load", again);
    assert_eq!(result_of(&client.answer(&asked))["stopReason"], "cancelled");
    result_of(&client.answer(&loading));
    let answer = client.call("session/prompt", prompt(&id, "hi"));
    assert_eq!(result_of(&answer)["stopReason"], "end_turn");
}
