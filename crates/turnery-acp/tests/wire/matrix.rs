//! Matrix: one scenario under the combinations of what a client can do. Nothing is used, sent or offered that
//! was not advertised; and all that was, is.
//!
//! `cargo test` plays 128 of the 8,192 combinations, chosen so that no fault of few causes hides between them:
//! what meets in the scenario in all ways there are, and any three abilities in all eight. All of them:
//! `TURNERY_MATRIX=whole cargo test -p turnery-acp --test wire matrix`.

use crate::harness::{Client, World, prompt, result_of};
use serde_json::{Value, json};
use std::{collections::BTreeSet, path::PathBuf, sync::Arc, thread};
use turnery_acp::{Login, ServeOptions};
use turnery_agent::Settings;
use turnery_engine::CompactionSettings;

/// All that a client may say that it can do, and where it says so. The first seven each stand in the way
/// of a tool or an update of the same prompt. The others are looked at by themselves: at `initialize`, in a list of
/// options, or nowhere.
const ABILITIES: [(&str, &str); 13] = [
    ("read", "/fs/readTextFile"),
    ("write", "/fs/writeTextFile"),
    ("terminal", "/terminal"),
    ("form", "/elicitation/form"),
    ("notices", "/session/notices"),
    ("compaction", "/session/compaction"),
    ("usage", "/_meta/turnery/promptUsage"),
    ("url", "/elicitation/url"),
    ("booleans", "/session/configOptions/boolean"),
    ("login", "/auth/terminal"),
    ("dialect", "/_meta/terminal-auth"),
    ("plan", "/plan"),
    ("subagents", "/subagents"),
];

/// So many of them meet: each combination of these is played.
const MEET: usize = 7;

/// Each of the others is there when an odd number of these three of the first ones is. No two have the same three,
/// and that is enough for any three abilities whatever to come in all eight ways.
const ODD: [[usize; 3]; 6] = [
    [0, 1, 2],
    [0, 3, 4],
    [1, 3, 5],
    [2, 4, 6],
    [1, 4, 6],
    [2, 5, 6],
];

/// Those that are said by `true`; all others by an object.
const BOOLEANS: [&str; 6] = ["read", "write", "terminal", "login", "dialect", "usage"];

/// What is used in the scenario, if it may be.
const USED: [&str; 9] = [
    "read",
    "write",
    "terminal",
    "notices",
    "compaction",
    "form",
    "login",
    "dialect",
    "usage",
];

type Set = BTreeSet<&'static str>;

/// The combinations that are played.
fn combinations() -> Vec<Set> {
    if std::env::var_os("TURNERY_MATRIX").is_some_and(|how| how == "whole") {
        return (0..1 << ABILITIES.len()).map(set).collect();
    }
    let with_the_others = |bits: usize| {
        let odd =
            |three: &[usize; 3]| three.iter().filter(|at| bits & (1 << **at) != 0).count() % 2;
        let others = ODD.iter().map(odd).enumerate();
        others.fold(bits, |bits, (n, is)| bits | is << (MEET + n))
    };
    (0..1 << MEET).map(with_the_others).map(set).collect()
}

fn set(bits: usize) -> Set {
    let all = ABILITIES.iter().enumerate();
    all.filter(|(n, _)| bits & (1 << n) != 0)
        .map(|(_, (name, _))| *name)
        .collect()
}

/// As `initialize` says it.
fn said(can: &Set) -> Value {
    let mut said = json!({});
    for (name, path) in ABILITIES.iter().filter(|(name, _)| can.contains(name)) {
        let mut at = &mut said;
        for part in path.split('/').skip(1) {
            at = &mut at[part];
        }
        *at = match BOOLEANS.contains(name) {
            true => json!(true),
            false => json!({}),
        };
    }
    said
}

/// The abilities that a message makes use of.
fn uses(message: &Value) -> Set {
    let mut used = Set::new();
    let params = &message["params"];
    match message["method"].as_str() {
        Some("fs/read_text_file") => used.insert("read"),
        Some("fs/write_text_file") => used.insert("write"),
        Some("elicitation/create") => match params["mode"].as_str() {
            Some("form") => used.insert("form"),
            Some("url") => used.insert("url"),
            other => panic!("elicitation of the mode {other:?}"),
        },
        Some("elicitation/complete") => used.insert("url"),
        Some("session/update") => match params["update"]["sessionUpdate"].as_str() {
            Some("notice") => used.insert("notices"),
            Some("compaction_update" | "compaction_summary_chunk") => used.insert("compaction"),
            Some("plan_update" | "plan_removed") => used.insert("plan"),
            Some("subagent_update" | "session_message" | "session_message_chunk") => {
                used.insert("subagents")
            }
            Some(_) | None => false,
        },
        Some(name) if name.starts_with("terminal/") => used.insert("terminal"),
        Some(_) | None => false,
    };
    if message["result"]["stopReason"].is_string() && !message["result"]["usage"].is_null() {
        used.insert("usage");
    }
    let of_result = message["result"]["configOptions"].as_array();
    let of_update = params["update"]["configOptions"].as_array();
    let mut options = of_result.into_iter().chain(of_update).flatten();
    if options.any(|option| option["type"] == "boolean") {
        used.insert("booleans");
    }
    for method in message["result"]["authMethods"]
        .as_array()
        .into_iter()
        .flatten()
    {
        if method["type"] == "terminal" {
            used.insert("login");
        }
        if !method["_meta"]["terminal-auth"].is_null() {
            used.insert("dialect");
        }
    }
    used
}

/// What of all that was said was not the client's to get.
fn not_offered(can: &Set, transcript: &[Value]) -> Set {
    let used: Set = transcript.iter().flat_map(uses).collect();
    used.difference(can).copied().collect()
}

fn world() -> World {
    let call = |name: &str, args: Value| json!({"tool_call": {"name": name, "args": args}});
    let yes = json!({"question": "Really?", "answer": "boolean"});
    World::new(json!([
        {"when": {"last_user_contains": "Sum up this conversation"}, "steps": [{"text": "Talk."}]},
        {"steps": [
            call("change", json!({})),
            call("look", json!({})),
            call("shell", json!({})),
            call("ask_user", yes),
        ]},
        {"steps": [{"text": "done ".repeat(100)}], "usage": {"input": 5, "output": 5}},
    ]))
}

/// Play the scenario as such a client; gives all that the agent said.
fn play(world: &World, can: &Set) -> Vec<Value> {
    let options = ServeOptions {
        login: Some(Login {
            program: PathBuf::from("/bin/turnery"),
            args: vec!["login".to_owned()],
            env: [].into(),
            forget: Arc::new(|| Ok(())),
            pages: None,
        }),
        ..ServeOptions::default()
    };
    let settings = Settings {
        compaction: CompactionSettings {
            first_turns: 0,
            recent_turns: 1,
            ..CompactionSettings::default()
        },
        ..world.settings()
    };
    let mut client = Client::connect(world.agent_of(Arc::new(settings)), options);
    let mut transcript = vec![client.initialize(said(can))];
    let server = json!({"name": "gone", "command": "/nowhere/to/be/found", "args": [], "env": []});
    let params = json!({"cwd": world.cwd(), "mcpServers": [server]});
    let made = client.call("session/new", params);
    let id = result_of(&made)["sessionId"].clone();
    let option = json!({"sessionId": id, "configId": "mode", "value": "auto"});
    let chosen = client.call("session/set_config_option", option);
    transcript.extend([made, chosen]);

    let id = id.as_str().expect("an id");
    let asked = client.ask("session/prompt", prompt(id, "work"));
    loop {
        let message = client.wait(|message| message.get("id").is_some());
        let Some(method) = message["method"].as_str() else {
            assert_eq!(message["id"], asked);
            assert_eq!(result_of(&message)["stopReason"], "end_turn");
            transcript.push(message);
            break;
        };
        let reply = match method {
            "fs/read_text_file" => json!({"content": "unsaved"}),
            "terminal/create" => json!({"terminalId": "t1"}),
            "terminal/wait_for_exit" => json!({"exitCode": 0}),
            "terminal/output" => json!({"output": "", "truncated": false}),
            "elicitation/create" => json!({"action": "accept", "content": {"answer": true}}),
            _ => json!({}),
        };
        client.reply(&message, reply);
        transcript.push(message);
    }
    transcript.push(client.call("session/prompt", prompt(id, "/compact")));
    let load = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    transcript.push(client.call("session/load", load));
    let (_, rest) = client.leave();
    transcript.extend(rest);
    transcript
}

/// The comments above say what is played: this is how it is known.
#[test]
fn what_meets_is_played_in_all_ways_and_any_three_in_all_eight() {
    let played = combinations();
    let ways = |of: &[usize]| -> usize {
        let names: Set = of.iter().map(|at| ABILITIES[*at].0).collect();
        let ways = played.iter().map(|can| can.intersection(&names).collect());
        ways.collect::<BTreeSet<BTreeSet<_>>>().len()
    };
    assert_eq!(ways(&[0, 1, 2, 3, 4, 5, 6]), 128);
    for a in 0..13 {
        for b in 0..a {
            for c in 0..b {
                assert_eq!(ways(&[a, b, c]), 8, "{a} {b} {c}");
            }
        }
    }
}

/// In each combination nothing that was not advertised, and all that was and that the scenario can use.
// proves: INIT-4, INIT-7, INIT-8, CFG-3, AUTH-2, FS-1, TERM-1, NOTE-1, COMP-1, ELIC-1
#[test]
fn every_combination_gets_what_it_offered_and_nothing_else() {
    let all = combinations();
    let workers = 4;
    thread::scope(|scope| {
        for worker in 0..workers {
            let mine = all.iter().skip(worker).step_by(workers);
            scope.spawn(move || {
                let world = world();
                for can in mine {
                    let transcript = play(&world, can);
                    assert_eq!(not_offered(can, &transcript), Set::new(), "{can:?}");
                    let used: Set = transcript.iter().flat_map(uses).collect();
                    let expected: Set = can
                        .iter()
                        .copied()
                        .filter(|name| USED.contains(name))
                        .collect();
                    assert_eq!(used, expected, "{can:?}");
                }
            });
        }
    });
}

/// An agent that uses one thing more than was advertised is found out, whatever the thing.
#[test]
fn each_use_of_what_was_not_advertised_is_found() {
    let world = world();
    let everything = set(usize::MAX);
    let mut transcript = play(&world, &everything);
    assert_eq!(not_offered(&everything, &transcript), Set::new());
    let update = |update: Value| json!({"method": "session/update", "params": {"update": update}});
    transcript.extend([
        json!({"result": {"configOptions": [{"id": "x", "type": "boolean"}]}}),
        json!({"method": "elicitation/create", "params": {"mode": "url"}}),
        update(json!({"sessionUpdate": "plan_removed"})),
        update(json!({"sessionUpdate": "subagent_update"})),
    ]);
    for (name, _) in ABILITIES {
        let mut can = everything.clone();
        can.remove(name);
        assert_eq!(not_offered(&can, &transcript), Set::from([name]));
    }
}
