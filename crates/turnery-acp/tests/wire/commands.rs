//! Slash commands (CMD-1 to CMD-3).

use crate::harness::{TestClient, TestEnv, result_of};
use serde_json::{Value, json};
use std::collections::HashSet;
use turnery_acp::ServeOptions;

/// Names and input hints of the built-in commands, in the order offered; written by hand, not taken from the
/// agent.
const BUILTIN_COMMANDS: [(&str, Option<&str>); 11] = [
    ("help", None),
    ("model", Some("[NAME]")),
    ("mode", Some("[NAME]")),
    ("compact", None),
    ("branch", Some("[POINT PROMPT]")),
    ("continue", None),
    ("rerun", None),
    (
        "try",
        Some(
            "MODEL[=MODE],MODEL[=MODE] [--pick first|fewest-tokens|most-tokens|judge] [--judge-command 'LINE'] PROMPT",
        ),
    ),
    ("cost", None),
    ("export", Some("[PATH]")),
    ("init", Some("[WHAT TO MIND]")),
];

/// Prompts with a command; returns its answer after the prompt has ended.
fn run_command(client: &mut TestClient, id: &str, text: &str) -> String {
    assert_eq!(client.prompt(id, text), "end_turn", "{text}");
    client.take_text()
}

fn check_offer(offer: &Value, id: &str) {
    assert_eq!(offer["sessionId"], id);
    let all = offer["update"]["availableCommands"]
        .as_array()
        .expect("a list");
    let all: Vec<(&str, Option<&str>)> = all
        .iter()
        .map(|command| {
            assert!(!command["description"].as_str().expect("text").is_empty());
            let name = command["name"].as_str().expect("a name");
            (name, command["input"]["hint"].as_str())
        })
        .collect();
    assert_eq!(all, BUILTIN_COMMANDS);
}

/// All commands are offered after each way to open a session (CMD-1, CMD-3).
// proves: CMD-1
#[test]
fn commands_are_offered_with_every_session() {
    let world = TestEnv::without_answers();
    let (mut client, id) = world.session();
    let at = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    for method in ["session/load", "session/resume"] {
        result_of(&client.request(method, at.clone()));
    }
    let forked = client.request("session/fork", at);
    let forked = result_of(&forked)["sessionId"].as_str().expect("an id");
    result_of(&client.request("session/list", json!({})));
    let offers = client.take_command_offers();
    assert_eq!(offers.len(), 4);
    for offer in &offers[..3] {
        check_offer(offer, &id);
    }
    check_offer(&offers[3], forked);
}

/// The commands are offered directly after the response that names the session (SESS-7, G-5).
// proves: SESS-7, G-5
#[test]
fn commands_are_offered_after_response() {
    let world = TestEnv::without_answers();
    for _ in 0..50 {
        let mut client = TestClient::connect(world.agent(), ServeOptions::default());
        client.send_request(
            "initialize",
            json!({"protocolVersion": 1, "clientCapabilities": {}}),
        );
        client.send_request("session/new", world.new_session_params());
        let lines = client.close_and_read_lines();
        let place = |needle: &str| lines.iter().position(|line| line.contains(needle));
        let answered = place("\"configOptions\"").expect("an answer");
        assert_eq!(place("available_commands_update"), Some(answered + 1));
    }
}

/// LOAD-2: the response to a load or a resume is its last line, after the commands.
// proves: LOAD-2, CMD-1
#[test]
fn load_and_resume_responses_come_last() {
    let world = TestEnv::new(json!([{"steps": [{"text": "first"}]}]));
    let (mut client, id) = world.session();
    assert_eq!(run_command(&mut client, &id, "hi"), "first");
    client.close_and_join();
    let server = json!({"name": "s", "command": "/bin/true", "args": [], "env": []});
    let at = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": [server]});
    for method in ["session/load", "session/resume"] {
        let mut client = TestClient::connect(world.agent(), ServeOptions::default());
        client.send_request(
            "initialize",
            json!({"protocolVersion": 1, "clientCapabilities": {}}),
        );
        client.send_request(method, at.clone());
        client.send_request("session/list", json!({}));
        let lines = client.close_and_read_lines();
        let places = |needle: &str| -> Vec<usize> {
            let all = lines.iter().enumerate();
            let found = all.filter(|(_, line)| line.contains(needle));
            found.map(|(place, _)| place).collect()
        };
        let answered = places("\"configOptions\"");
        let offered = places("available_commands_update");
        assert_eq!((answered.len(), offered.len()), (1, 1), "{lines:?}");
        let updates = places("session/update");
        assert!(offered[0] < answered[0], "{lines:?}");
        assert!(updates.iter().all(|at| *at < answered[0]), "{lines:?}");
        // The conversation comes before the commands.
        let said = places("agent_message_chunk");
        assert!(said.iter().all(|at| *at < offered[0]), "{lines:?}");
    }
}

/// `/help` is answered without a model call: the model's first answer is left for the next prompt (CMD-2).
#[test]
fn help_needs_no_model() {
    let world = TestEnv::new(json!([{"steps": [{"text": "first"}]}]));
    let (mut client, id) = world.session();
    for text in ["/help", "/help  ", "/help me\nplease"] {
        let said = run_command(&mut client, &id, text);
        for (name, _) in BUILTIN_COMMANDS {
            assert!(said.contains(&format!("`/{name}")), "{said}");
        }
    }
    assert_eq!(run_command(&mut client, &id, "hi"), "first");
}

/// Each answer has its own message id, also after a restart.
// proves: MSG-2
#[test]
fn command_answers_have_distinct_message_ids() {
    let world = TestEnv::without_answers();
    let (mut client, id) = world.session();
    let mut ids = HashSet::new();
    for _ in 0..2 {
        for _ in 0..2 {
            client.prompt(&id, "/help");
            ids.insert(client.take_updates()[0]["messageId"].to_string());
        }
        client.close_and_join();
        client = world.client(json!({}));
        let at = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
        result_of(&client.request("session/resume", at));
    }
    assert_eq!(ids.len(), 4);
}

/// A prompt that begins with a slash may be a path or any other text.
#[test]
fn unknown_command_goes_to_the_model() {
    for text in [
        "/usr/bin/env",
        "/helpless",
        "/",
        "//help",
        " /help",
        "/HELP",
        "/help/me",
        "see /help",
    ] {
        let world = TestEnv::new(json!([{"steps": [{"text": "first"}]}]));
        let (mut client, id) = world.session();
        assert_eq!(run_command(&mut client, &id, text), "first", "{text:?}");
    }
}

/// Without an argument `/mode` lists the modes; with one it changes the mode and sends both updates (MODE-3,
/// MODE-4).
// proves: MODE-3, MODE-4, G-1
#[test]
fn mode_command_shows_and_changes_mode() {
    let world = TestEnv::without_answers();
    let (mut client, id) = world.session();
    let said = run_command(&mut client, &id, "/mode");
    assert!(said.contains("- `ask`: "), "{said}");
    assert_eq!(said.matches("(in use)").count(), 1, "{said}");

    assert_eq!(client.prompt(&id, "/mode plan"), "end_turn");
    let updates = client.take_updates();
    assert_eq!(updates[0]["sessionUpdate"], "current_mode_update");
    assert_eq!(updates[0]["currentModeId"], "plan");
    assert_eq!(updates[1]["sessionUpdate"], "config_option_update");
    assert_eq!(updates[1]["configOptions"][0]["currentValue"], "plan");
    assert!(
        updates[2]["content"]["text"]
            .as_str()
            .expect("text")
            .contains("`plan`")
    );

    let said = run_command(&mut client, &id, "/mode fast");
    assert!(said.contains("no mode \"fast\""), "{said}");
    assert!(said.contains("- `plan`: "), "{said}");
}

// proves: LOOP-4, THEME-13
#[test]
fn model_command_shows_and_changes_model() {
    let world = TestEnv::new(json!([{"steps": [{"text": "first"}]}]));
    let (mut client, id) = world.session();
    let said = run_command(&mut client, &id, "/model");
    assert!(said.contains("- `scripted/"), "{said}");
    assert!(said.contains("- `offline`"), "{said}");
    assert_eq!(said.matches("(in use)").count(), 1, "{said}");

    let said = run_command(&mut client, &id, "/model nobody/nothing");
    assert!(said.contains("nobody/nothing"), "{said}");
    assert_eq!(run_command(&mut client, &id, "hi"), "first");

    assert_eq!(client.prompt(&id, "/model offline"), "end_turn");
    let updates = client.take_updates();
    assert_eq!(updates[0]["sessionUpdate"], "config_option_update");
    assert_eq!(updates[0]["configOptions"][1]["currentValue"], "offline");
    let said = run_command(&mut client, &id, "/model");
    assert!(said.contains("- `offline`: "), "{said}");
}

// proves: LASH-105
#[test]
fn cost_command_lists_purpose_and_model() {
    let usage = json!({"input": 1000, "output": 20, "cache_read": 300, "cache_write": 4});
    let answers = json!([
        {"steps": [{"text": "one"}], "usage": usage},
        {"steps": [{"text": "two"}], "usage": usage},
    ]);
    let world = TestEnv::new(answers);
    let (mut client, id) = world.session();
    assert_eq!(
        run_command(&mut client, &id, "/cost"),
        "No tokens have been spent yet."
    );
    run_command(&mut client, &id, "1");
    run_command(&mut client, &id, "2");
    let said = run_command(&mut client, &id, "/cost");
    let rows: Vec<&str> = said.lines().collect();
    assert_eq!(rows.len(), 4, "{said}");
    assert!(rows[2].starts_with("| turn | `scripted"), "{said}");
    assert!(rows[2].ends_with("| 2000 | 600 | 8 | 40 |"), "{said}");
    assert_eq!(rows[3], "| **all** |  | 2000 | 600 | 8 | 40 |");
}
