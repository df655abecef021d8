//! One scenario under combinations of client capabilities. The agent must use exactly what was declared.
//!
//! `cargo test` runs 128 of the 8,192 combinations, chosen to expose every fault with few causes: all
//! combinations of the capabilities that interact in the scenario, and any three capabilities in all eight
//! ways. To run all of them: `TURNERY_MATRIX=whole cargo test -p turnery-acp --test wire matrix`.

use crate::harness::{TestClient, TestEnv, prompt_params, result_of};
use serde_json::{Value, json};
use std::{collections::BTreeSet, path::PathBuf, sync::Arc, thread};
use turnery_acp::{Login, ServeOptions};
use turnery_agent::Settings;
use turnery_engine::CompactionSettings;

/// All client capabilities, and where they are declared. Each of the first seven affects a tool or an update
/// of the same prompt. The others matter on their own: at `initialize`, in a list of options, or nowhere.
const CAPABILITIES: [(&str, &str); 13] = [
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
    ("terminal-auth", "/_meta/terminal-auth"),
    ("plan", "/plan"),
    ("subagents", "/subagents"),
];

/// Number of interacting capabilities, run in every combination.
const INTERACTING_CAPABILITIES: usize = 7;

/// For each capability after the first seven, the indexes of three of these: it is declared if an odd number
/// of the three is. No two have the same three, which is enough for any three capabilities to occur in all
/// eight ways.
const PARITIES: [[usize; 3]; 6] = [
    [0, 1, 2],
    [0, 3, 4],
    [1, 3, 5],
    [2, 4, 6],
    [1, 4, 6],
    [2, 5, 6],
];

/// Capabilities declared with `true`; all others with an object.
const BOOLEANS: [&str; 6] = [
    "read",
    "write",
    "terminal",
    "login",
    "terminal-auth",
    "usage",
];

/// Capabilities that the agent uses in the scenario if they are declared.
const SCENARIO_USES: [&str; 9] = [
    "read",
    "write",
    "terminal",
    "notices",
    "compaction",
    "form",
    "login",
    "terminal-auth",
    "usage",
];

type CapabilitySet = BTreeSet<&'static str>;

/// Returns the combinations to run.
fn combinations() -> Vec<CapabilitySet> {
    if std::env::var_os("TURNERY_MATRIX").is_some_and(|how| how == "whole") {
        return (0..1 << CAPABILITIES.len()).map(capability_set).collect();
    }
    let with_the_others = |bits: usize| {
        let odd =
            |three: &[usize; 3]| three.iter().filter(|at| bits & (1 << **at) != 0).count() % 2;
        let others = PARITIES.iter().map(odd).enumerate();
        others.fold(bits, |bits, (n, is)| {
            bits | is << (INTERACTING_CAPABILITIES + n)
        })
    };
    (0..1 << INTERACTING_CAPABILITIES)
        .map(with_the_others)
        .map(capability_set)
        .collect()
}

fn capability_set(bits: usize) -> CapabilitySet {
    let all = CAPABILITIES.iter().enumerate();
    all.filter(|(n, _)| bits & (1 << n) != 0)
        .map(|(_, (name, _))| *name)
        .collect()
}

/// Encodes the capabilities as in `initialize`.
fn capabilities_json(can: &CapabilitySet) -> Value {
    let mut said = json!({});
    for (name, path) in CAPABILITIES.iter().filter(|(name, _)| can.contains(name)) {
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

/// Returns the capabilities a message uses.
fn used_capabilities(message: &Value) -> CapabilitySet {
    let mut used = CapabilitySet::new();
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
            used.insert("terminal-auth");
        }
    }
    used
}

/// Returns the undeclared capabilities that the transcript uses.
fn violations(can: &CapabilitySet, transcript: &[Value]) -> CapabilitySet {
    let used: CapabilitySet = transcript.iter().flat_map(used_capabilities).collect();
    used.difference(can).copied().collect()
}

fn scenario_env() -> TestEnv {
    let call = |name: &str, args: Value| json!({"tool_call": {"name": name, "args": args}});
    let yes = json!({"question": "Really?", "answer": "boolean"});
    TestEnv::new(json!([
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

/// Runs the scenario with these capabilities; returns everything the agent sent.
fn run_scenario(world: &TestEnv, can: &CapabilitySet) -> Vec<Value> {
    let options = ServeOptions {
        login: Some(Login {
            program: PathBuf::from("/bin/turnery"),
            args: vec!["login".to_owned()],
            env: [].into(),
            forget_keys: Arc::new(|| Ok(())),
            key_page_opener: None,
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
    let mut client = TestClient::connect(world.agent_with_settings(Arc::new(settings)), options);
    let mut transcript = vec![client.initialize(capabilities_json(can))];
    let server = json!({"name": "gone", "command": "/nowhere/to/be/found", "args": [], "env": []});
    let params = json!({"cwd": world.cwd(), "mcpServers": [server]});
    let made = client.request("session/new", params);
    let id = result_of(&made)["sessionId"].clone();
    let option = json!({"sessionId": id, "configId": "mode", "value": "auto"});
    let chosen = client.request("session/set_config_option", option);
    transcript.extend([made, chosen]);

    let id = id.as_str().expect("an id");
    let asked = client.send_prompt(id, "work");
    loop {
        let message = client.wait_for(|message| message.get("id").is_some());
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
        client.respond(&message, reply);
        transcript.push(message);
    }
    transcript.push(client.request("session/prompt", prompt_params(id, "/compact")));
    let load = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    transcript.push(client.request("session/load", load));
    let (_, rest) = client.close_and_join();
    transcript.extend(rest);
    transcript
}

/// The chosen combinations include all 128 of the first seven capabilities, and any three capabilities in all
/// eight ways.
#[test]
fn combinations_cover_first_seven_and_all_triples() {
    let played = combinations();
    let ways = |of: &[usize]| -> usize {
        let names: CapabilitySet = of.iter().map(|at| CAPABILITIES[*at].0).collect();
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

/// In each combination the agent uses nothing undeclared, and everything declared that the scenario can use.
// proves: INIT-4, INIT-7, INIT-8, CFG-3, AUTH-2, FS-1, TERM-1, NOTE-1, COMP-1, ELIC-1, ACP-36, THEME-9
#[test]
fn agent_uses_exactly_declared_capabilities() {
    let all = combinations();
    let workers = 4;
    thread::scope(|scope| {
        for worker in 0..workers {
            let mine = all.iter().skip(worker).step_by(workers);
            scope.spawn(move || {
                let world = scenario_env();
                for can in mine {
                    let transcript = run_scenario(&world, can);
                    assert_eq!(
                        violations(can, &transcript),
                        CapabilitySet::new(),
                        "{can:?}"
                    );
                    let used: CapabilitySet =
                        transcript.iter().flat_map(used_capabilities).collect();
                    let expected: CapabilitySet = can
                        .iter()
                        .copied()
                        .filter(|name| SCENARIO_USES.contains(name))
                        .collect();
                    assert_eq!(used, expected, "{can:?}");
                }
            });
        }
    });
}

/// An agent that uses any one capability too many is detected.
#[test]
fn undeclared_use_is_detected() {
    let world = scenario_env();
    let everything = capability_set(usize::MAX);
    let mut transcript = run_scenario(&world, &everything);
    assert_eq!(violations(&everything, &transcript), CapabilitySet::new());
    let update = |update: Value| json!({"method": "session/update", "params": {"update": update}});
    transcript.extend([
        json!({"result": {"configOptions": [{"id": "x", "type": "boolean"}]}}),
        json!({"method": "elicitation/create", "params": {"mode": "url"}}),
        update(json!({"sessionUpdate": "plan_removed"})),
        update(json!({"sessionUpdate": "subagent_update"})),
    ]);
    for (name, _) in CAPABILITIES {
        let mut can = everything.clone();
        can.remove(name);
        assert_eq!(violations(&can, &transcript), CapabilitySet::from([name]));
    }
}
