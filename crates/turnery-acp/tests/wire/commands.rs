//! What a person types behind a slash (CMD-1 to CMD-3).

use crate::harness::{Client, World, error_of, prompt, result_of};
use serde_json::{Value, json};
use std::collections::HashSet;
use turnery_acp::ServeOptions;

/// Names and hints, by hand.
const OFFERED: [(&str, Option<&str>); 10] = [
    ("help", None),
    ("model", Some("[NAME]")),
    ("mode", Some("[NAME]")),
    ("compact", None),
    ("branch", Some("[POINT PROMPT]")),
    ("rerun", None),
    (
        "try",
        Some("MODEL,MODEL [--pick first|fewest-tokens|most-tokens|judge] PROMPT"),
    ),
    ("cost", None),
    ("export", Some("[PATH]")),
    ("init", Some("[WHAT TO MIND]")),
];

/// Types a line; gives what was said to it, after which the prompt has ended.
fn typed(client: &mut Client, id: &str, text: &str) -> String {
    let answer = client.call("session/prompt", prompt(id, text));
    assert_eq!(result_of(&answer)["stopReason"], "end_turn", "{text}");
    let said = client.updates();
    let said = said
        .iter()
        .filter(|update| update["sessionUpdate"] == "agent_message_chunk");
    said.filter_map(|update| update["content"]["text"].as_str())
        .collect()
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
    assert_eq!(all, OFFERED);
}

/// CMD-1, CMD-3: after each way to have a session.
// proves: CMD-1
#[test]
fn commands_are_offered_with_every_session() {
    let world = World::silent();
    let (mut client, id) = world.session();
    let at = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    for method in ["session/load", "session/resume"] {
        result_of(&client.call(method, at.clone()));
    }
    let forked = client.call("session/fork", at);
    let forked = result_of(&forked)["sessionId"].as_str().expect("an id");
    result_of(&client.call("session/list", json!({})));
    let offers = client.offers();
    assert_eq!(offers.len(), 4);
    for offer in &offers[..3] {
        check_offer(offer, &id);
    }
    check_offer(&offers[3], forked);
}

/// SESS-7, G-5: never before the answer that names the session.
// proves: SESS-7, G-5
#[test]
fn commands_are_offered_after_the_answer() {
    let world = World::silent();
    for _ in 0..50 {
        let mut client = Client::connect(world.agent(), ServeOptions::default());
        client.ask(
            "initialize",
            json!({"protocolVersion": 1, "clientCapabilities": {}}),
        );
        client.ask("session/new", world.new_session());
        let lines = client.raw_lines();
        let place = |needle: &str| lines.iter().position(|line| line.contains(needle));
        let answered = place("\"configOptions\"").expect("an answer");
        assert_eq!(place("available_commands_update"), Some(answered + 1));
    }
}

/// LOAD-2: the answer to a load or a resume is the last line of it, with all that is offered before it.
// proves: LOAD-2, CMD-1
#[test]
fn nothing_follows_the_answer_that_opens_a_known_session() {
    let world = World::new(json!([{"steps": [{"text": "first"}]}]));
    let (mut client, id) = world.session();
    assert_eq!(typed(&mut client, &id, "hi"), "first");
    client.leave();
    let server = json!({"name": "s", "command": "/bin/true", "args": [], "env": []});
    let at = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": [server]});
    for method in ["session/load", "session/resume"] {
        let mut client = Client::connect(world.agent(), ServeOptions::default());
        client.ask(
            "initialize",
            json!({"protocolVersion": 1, "clientCapabilities": {}}),
        );
        client.ask(method, at.clone());
        client.ask("session/list", json!({}));
        let lines = client.raw_lines();
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
        // What was said comes before what is offered.
        let said = places("agent_message_chunk");
        assert!(said.iter().all(|at| *at < offered[0]), "{lines:?}");
    }
}

/// CMD-2: a mention in front is no reason to overlook a command.
// proves: CMD-2
#[test]
fn a_command_may_come_with_a_mention() {
    let world = World::new(json!([{"steps": [{"text": "first"}]}]));
    let (mut client, id) = world.session();
    let link = json!({"type": "resource_link", "name": "a.txt", "uri": "file:///w/a.txt"});
    let text = json!({"type": "text", "text": "/help"});
    let asked = json!({"sessionId": id, "prompt": [link, text]});
    result_of(&client.call("session/prompt", asked));
    let said = client.updates();
    let said = said[0]["content"]["text"].as_str().expect("text");
    assert!(said.contains("`/compact`"), "{said}");
}

/// CMD-2: answered like a prompt, and no model is called: its first answer is still to come.
#[test]
fn help_needs_no_model() {
    let world = World::new(json!([{"steps": [{"text": "first"}]}]));
    let (mut client, id) = world.session();
    for text in ["/help", "/help  ", "/help me\nplease"] {
        let said = typed(&mut client, &id, text);
        for (name, _) in OFFERED {
            assert!(said.contains(&format!("`/{name}")), "{said}");
        }
    }
    assert_eq!(typed(&mut client, &id, "hi"), "first");
}

/// Each answer is a message of its own, also after a restart.
// proves: MSG-2
#[test]
fn answers_of_commands_are_different_messages() {
    let world = World::silent();
    let (mut client, id) = world.session();
    let mut ids = HashSet::new();
    for _ in 0..2 {
        for _ in 0..2 {
            result_of(&client.call("session/prompt", prompt(&id, "/help")));
            ids.insert(client.updates()[0]["messageId"].to_string());
        }
        client.leave();
        client = world.client(json!({}));
        let at = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
        result_of(&client.call("session/resume", at));
    }
    assert_eq!(ids.len(), 4);
}

/// A person may write a path, or a word of their own.
#[test]
fn what_is_no_command_goes_to_the_model() {
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
        let world = World::new(json!([{"steps": [{"text": "first"}]}]));
        let (mut client, id) = world.session();
        assert_eq!(typed(&mut client, &id, text), "first", "{text:?}");
    }
}

/// MODE-3, MODE-4.
// proves: MODE-3, MODE-4, G-1
#[test]
fn the_mode_is_shown_and_changed() {
    let world = World::silent();
    let (mut client, id) = world.session();
    let said = typed(&mut client, &id, "/mode");
    assert!(said.contains("- `ask`: "), "{said}");
    assert_eq!(said.matches("(in use)").count(), 1, "{said}");

    let answer = client.call("session/prompt", prompt(&id, "/mode plan"));
    assert_eq!(result_of(&answer)["stopReason"], "end_turn");
    let updates = client.updates();
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

    let said = typed(&mut client, &id, "/mode fast");
    assert!(said.contains("no mode \"fast\""), "{said}");
    assert!(said.contains("- `plan`: "), "{said}");
}

// proves: LOOP-4, THEME-13
#[test]
fn the_model_is_shown_and_changed() {
    let world = World::new(json!([{"steps": [{"text": "first"}]}]));
    let (mut client, id) = world.session();
    let said = typed(&mut client, &id, "/model");
    assert!(said.contains("- `scripted/"), "{said}");
    assert!(said.contains("- `offline`"), "{said}");
    assert_eq!(said.matches("(in use)").count(), 1, "{said}");

    let said = typed(&mut client, &id, "/model nobody/nothing");
    assert!(said.contains("nobody/nothing"), "{said}");
    assert_eq!(typed(&mut client, &id, "hi"), "first");

    let answer = client.call("session/prompt", prompt(&id, "/model offline"));
    assert_eq!(result_of(&answer)["stopReason"], "end_turn");
    let updates = client.updates();
    assert_eq!(updates[0]["sessionUpdate"], "config_option_update");
    assert_eq!(updates[0]["configOptions"][1]["currentValue"], "offline");
    let said = typed(&mut client, &id, "/model");
    assert!(said.contains("- `offline`: "), "{said}");
}

// proves: LASH-105, LASH-106
#[test]
fn the_cost_is_by_purpose_and_model() {
    let usage = json!({"input": 1000, "output": 20, "cache_read": 300, "cache_write": 4});
    let answers = json!([
        {"steps": [{"text": "one"}], "usage": usage},
        {"steps": [{"text": "two"}], "usage": usage},
    ]);
    let world = World::new(answers);
    let (mut client, id) = world.session();
    assert_eq!(
        typed(&mut client, &id, "/cost"),
        "No tokens have been spent yet."
    );
    typed(&mut client, &id, "1");
    typed(&mut client, &id, "2");
    let said = typed(&mut client, &id, "/cost");
    let rows: Vec<&str> = said.lines().collect();
    assert_eq!(rows.len(), 4, "{said}");
    assert!(rows[2].starts_with("| turn | `scripted"), "{said}");
    assert!(rows[2].ends_with("| 2000 | 600 | 8 | 40 |"), "{said}");
    assert_eq!(rows[3], "| **all** |  | 2000 | 600 | 8 | 40 |");
}

/// SESS-8: a command needs an open session like any prompt.
// proves: SESS-8
#[test]
fn a_command_to_no_session_is_refused() {
    let world = World::silent();
    let (mut client, _id) = world.session();
    let answer = client.call("session/prompt", prompt("bogus", "/help"));
    assert_eq!(error_of(&answer), -32002);
}
