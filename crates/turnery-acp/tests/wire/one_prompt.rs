//! One prompt on the wire, requirement by requirement (ACP-1 to ACP-57).

use crate::harness::{Client, World, error_of, prompt, result_of};
use agent_client_protocol_schema::v1::{SessionUpdate, ToolCallStatus};
use serde_json::{Value, json};
use std::{path::PathBuf, sync::Arc};
use turnery_acp::ServeOptions;
use turnery_agent::{Projects, Settings, SettingsError};
use turnery_engine::Limits;

/// Settings with these limits, over the world's own scenario.
struct Limited(String, Limits);

impl Projects for Limited {
    fn settings(&self, _roots: &[PathBuf]) -> Result<Settings, SettingsError> {
        Ok(Settings {
            limits: self.1,
            forced_reply: false,
            ..Settings::new(self.0.parse().expect("a model"), "You are a test.")
        })
    }
}

fn limited(world: &World, limits: Limits) -> (Client, String) {
    let scenario = world.outside().join("scenario.json");
    let model = format!("scripted:{}", scenario.display());
    let agent = world.agent_of(Arc::new(Limited(model, limits)));
    let mut client = Client::connect(agent, ServeOptions::default());
    client.initialize(json!({}));
    let made = client.call("session/new", world.new_session());
    let id = result_of(&made)["sessionId"].as_str().expect("an id");
    let id = id.to_owned();
    (client, id)
}

fn call(tool: &str) -> Value {
    json!({"tool_call": {"name": tool, "args": {}}})
}

/// The kinds of updates of the conversation, without repetitions.
fn kinds(updates: &[Value]) -> Vec<&str> {
    let mut kinds: Vec<&str> = updates
        .iter()
        .filter_map(|update| update["sessionUpdate"].as_str())
        .filter(|kind| *kind != "session_info_update")
        .collect();
    kinds.dedup();
    kinds
}

// proves: ACP-5, ACP-6
#[test]
fn a_prompt_names_its_session_and_has_blocks() {
    let world = World::silent();
    let (mut client, id) = world.session();
    let blocks = json!([{"type": "text", "text": "hi"}]);
    for params in [
        json!({"prompt": blocks}),
        json!({"sessionId": null, "prompt": blocks}),
        json!({"sessionId": 7, "prompt": blocks}),
        json!({"sessionId": id}),
        json!({"sessionId": id, "prompt": {"type": "text", "text": "hi"}}),
    ] {
        let answer = client.call("session/prompt", params.clone());
        assert_eq!(error_of(&answer), -32602, "{params}");
    }
}

// proves: ACP-1, ACP-12, ACP-39, ACP-40, ACP-42, PROMPT-3
#[test]
fn an_answer_may_be_text_or_calls_or_both() {
    let world = World::new(json!([
        {"steps": [{"text": "only"}]},
        {"steps": [call("print")]},
        {"when": {"last_tool_result_contains": "printed"}, "steps": [{"text": "done"}]},
        {"steps": [{"text": "let me"}, call("print")]},
    ]));
    let (mut client, id) = world.session();
    let expected: [&[&str]; 3] = [
        &["agent_message_chunk"],
        &["tool_call", "tool_call_update", "agent_message_chunk"],
        &[
            "agent_message_chunk",
            "tool_call",
            "tool_call_update",
            "agent_message_chunk",
        ],
    ];
    for kinds_of_one in expected {
        let answer = client.call("session/prompt", prompt(&id, "go"));
        assert_eq!(result_of(&answer)["stopReason"], "end_turn");
        let updates = client.updates();
        assert_eq!(kinds(&updates), kinds_of_one, "{updates:?}");
    }
    assert_eq!(world.ran.all(), ["print", "print"]);
}

// proves: ACP-4, ACP-13, ACP-29, UPD-1
#[test]
fn output_is_told_in_notifications_and_the_answer_has_the_requests_id() {
    let hello = json!({"steps": [{"text": "hello"}, call("print")]});
    let bye = json!({"steps": [{"text": "bye"}]});
    let world = World::new(json!([hello, bye, hello, bye]));
    let (mut client, session) = world.session();
    for id in [json!("a-1"), json!(-7)] {
        client.send(
            &json!({"jsonrpc": "2.0", "id": id, "method": "session/prompt",
            "params": prompt(&session, "hi")}),
        );
        let answer = client.answer(&id);
        assert_eq!(result_of(&answer)["stopReason"], "end_turn");
    }
    let seen = client.seen();
    assert!(seen.len() > 4, "{seen:?}");
    for message in seen {
        assert_eq!(message["method"], "session/update", "{message}");
        assert!(message.get("id").is_none(), "{message}");
        assert_eq!(message["params"]["sessionId"], session);
        assert!(message["params"]["update"].is_object());
    }
}

// proves: ACP-22, ACP-23, ACP-24, ACP-25, ACP-26, ACP-27, TOOL-1, TOOL-2
#[test]
fn all_calls_are_told_as_pending_before_one_runs() {
    let world = World::new(json!([
        {"steps": [call("print"), call("look"), call("print")]},
        {"steps": [{"text": "done"}]},
    ]));
    let (mut client, id) = world.session();
    result_of(&client.call("session/prompt", prompt(&id, "hi")));
    let updates: Vec<SessionUpdate> = client
        .updates()
        .into_iter()
        .map(|update| serde_json::from_value(update).expect("an update"))
        .collect();
    let mut ids = Vec::new();
    for update in &updates[..3] {
        let SessionUpdate::ToolCall(call) = update else {
            panic!("{update:?} before all were told");
        };
        assert_eq!(call.status, ToolCallStatus::Pending);
        ids.push(call.tool_call_id.to_string());
    }
    let titles: Vec<String> = updates[..3]
        .iter()
        .map(|update| match update {
            SessionUpdate::ToolCall(call) => format!("{} {:?}", call.title, call.kind),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        titles,
        ["Do print Execute", "Do look Read", "Do print Execute"]
    );
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 3, "each has its own id");
}

// proves: ACP-49, ACP-52, ACP-54, ACP-56, CANCEL-10, TOOL-4
#[test]
fn a_call_that_the_client_called_cancelled_is_still_brought_to_its_end() {
    let world = World::new(json!([{"steps": [call("hang"), call("print")]}]));
    let (mut client, id) = world.session();
    let asked = client.ask("session/prompt", prompt(&id, "hi"));
    client.wait(|message| message["params"]["update"]["status"] == "in_progress");
    let told: Vec<Value> = client
        .updates()
        .iter()
        .filter(|update| update["sessionUpdate"] == "tool_call")
        .map(|update| update["toolCallId"].clone())
        .collect();
    assert_eq!(told.len(), 2);
    client.tell("session/cancel", json!({"sessionId": id}));
    let answer = client.answer(&asked);
    assert_eq!(result_of(&answer)["stopReason"], "cancelled");
    let ended: Vec<Value> = client
        .updates()
        .iter()
        .filter(|update| update["status"] == "failed")
        .map(|update| update["toolCallId"].clone())
        .collect();
    assert_eq!(ended, told, "both, after the cancel and before the answer");
    assert_eq!(world.ran.all(), ["hang"], "nothing new began");
}

// proves: TURN-70, ACP-30, ACP-43, ACP-44, PROMPT-6
#[test]
fn a_limit_ends_the_prompt_with_its_own_word() {
    let turns = Limits {
        turns: 2,
        ..Limits::default()
    };
    let tokens = Limits {
        tokens: 100,
        ..Limits::default()
    };
    for (limits, word, runs) in [(turns, "max_turn_requests", 2), (tokens, "max_tokens", 1)] {
        let spend = json!({"steps": [call("print")], "usage": {"input": 90, "output": 10}});
        let world = World::new(json!([spend, spend, spend, spend]));
        let (mut client, id) = limited(&world, limits);
        let answer = client.call("session/prompt", prompt(&id, "hi"));
        assert_eq!(result_of(&answer)["stopReason"], word);
        assert_eq!(world.ran.all().len(), runs, "{word}");
    }
}

// proves: LASH-33, LASH-95, C-29, C-32
#[test]
fn another_connection_is_kept_out_of_a_running_prompt() {
    let world = World::new(json!([
        {"steps": [call("change")]},
        {"steps": [{"text": "done"}]},
    ]));
    let (mut one, id) = world.session();
    let mut two = world.client(json!({}));
    let params = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    result_of(&two.call("session/resume", params));

    let asked = one.ask("session/prompt", prompt(&id, "hi"));
    let question = one.asked("session/request_permission");
    let refused = two.call("session/prompt", prompt(&id, "me too"));
    assert_eq!(error_of(&refused), -32603);
    assert_eq!(refused["error"]["data"]["kind"], "session_busy");
    assert_eq!(refused["error"]["data"]["retryable"], true);
    // Nor does a third delete it.
    let mut three = world.client(json!({}));
    let kept = three.call("session/delete", json!({"sessionId": id}));
    assert_eq!(error_of(&kept), -32603);
    assert_eq!(kept["error"]["data"]["kind"], "session_busy");
    two.tell("session/cancel", json!({"sessionId": id}));
    // The cancel has been read once this is answered.
    result_of(&two.call("session/list", json!({})));
    let yes = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
    one.reply(&question, yes);
    assert_eq!(result_of(&one.answer(&asked))["stopReason"], "end_turn");
    assert_eq!(world.ran.all(), ["change"]);
}
