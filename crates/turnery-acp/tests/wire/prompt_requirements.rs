//! Prompts: text and calls of an answer, order of calls, cancelled calls, limits, and exclusion of other
//! connections.

use crate::harness::{TestClient, TestEnv, error_code_of, prompt_params, result_of, tool_step};
use agent_client_protocol_schema::v1::{SessionUpdate, ToolCallStatus};
use serde_json::{Value, json};
use std::sync::Arc;
use turnery_agent::Settings;
use turnery_engine::Limits;

/// Opens a session with these limits.
fn open_session_with_limits(world: &TestEnv, limits: Limits) -> (TestClient, String) {
    let settings = Settings {
        limits,
        forced_reply: false,
        ..world.settings()
    };
    let agent = world.agent_with_settings(Arc::new(settings));
    let mut client = TestClient::initialized(agent);
    let id = client.new_session(world.new_session_params());
    (client, id)
}

/// Returns the kinds of updates except `session_info_update`, without consecutive repetitions.
fn update_kinds(updates: &[Value]) -> Vec<&str> {
    let mut kinds: Vec<&str> = updates
        .iter()
        .filter_map(|update| update["sessionUpdate"].as_str())
        .filter(|kind| *kind != "session_info_update")
        .collect();
    kinds.dedup();
    kinds
}

// proves: ACP-1, ACP-12, ACP-39, ACP-40, ACP-42, PROMPT-3, LASH-5
#[test]
fn answer_may_hold_text_calls_or_both() {
    let world = TestEnv::new(json!([
        {"steps": [{"text": "only"}]},
        {"steps": [tool_step("print")]},
        {"when": {"last_tool_result_contains": "printed"}, "steps": [{"text": "done"}]},
        {"steps": [{"text": "let me"}, tool_step("print")]},
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
        assert_eq!(client.prompt(&id, "go"), "end_turn");
        let updates = client.take_updates();
        assert_eq!(update_kinds(&updates), kinds_of_one, "{updates:?}");
    }
    assert_eq!(world.run_log.all(), ["print", "print"]);
}

// proves: ACP-22, ACP-23, ACP-24, ACP-25, ACP-26, ACP-27, TOOL-1, TOOL-2
#[test]
fn all_calls_are_pending_before_one_runs() {
    let world = TestEnv::new(json!([
        {"steps": [tool_step("print"), tool_step("look"), tool_step("print")]},
        {"steps": [{"text": "done"}]},
    ]));
    let (mut client, id) = world.session();
    client.prompt(&id, "hi");
    let updates: Vec<SessionUpdate> = client
        .take_updates()
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

// proves: ACP-49, ACP-52, ACP-54, ACP-55, ACP-56, CANCEL-10, TOOL-4, ACP-40, C-6, ACP-34
#[test]
fn cancel_fails_running_and_pending_calls() {
    let world = TestEnv::new(json!([{"steps": [tool_step("hang"), tool_step("print")]}]));
    let (mut client, id) = world.session();
    let asked = client.send_prompt(&id, "hi");
    client.wait_for(|message| message["params"]["update"]["status"] == "in_progress");
    let told: Vec<Value> = client
        .take_updates()
        .iter()
        .filter(|update| update["sessionUpdate"] == "tool_call")
        .map(|update| update["toolCallId"].clone())
        .collect();
    assert_eq!(told.len(), 2);
    client.cancel(&id);
    let answer = client.wait_for_response(&asked);
    assert_eq!(result_of(&answer)["stopReason"], "cancelled");
    let ended: Vec<Value> = client
        .take_updates()
        .iter()
        .filter(|update| update["status"] == "failed")
        .map(|update| update["toolCallId"].clone())
        .collect();
    assert_eq!(ended, told, "both, after the cancel and before the answer");
    assert_eq!(world.run_log.all(), ["hang"], "nothing new began");
}

// proves: TURN-70, ACP-30, ACP-43, ACP-44, PROMPT-6, ACP-40
#[test]
fn limit_ends_prompt_with_its_stop_reason() {
    let turns = Limits {
        turns: 2,
        ..Limits::default()
    };
    let tokens = Limits {
        tokens: 100,
        ..Limits::default()
    };
    for (limits, word, runs) in [(turns, "max_turn_requests", 2), (tokens, "max_tokens", 1)] {
        let spend = json!({"steps": [tool_step("print")], "usage": {"input": 90, "output": 10}});
        let world = TestEnv::new(json!([spend, spend, spend, spend]));
        let (mut client, id) = open_session_with_limits(&world, limits);
        assert_eq!(client.prompt(&id, "hi"), word);
        assert_eq!(world.run_log.all().len(), runs, "{word}");
    }
}

// proves: LASH-33, LASH-95, C-29, C-32, C-8
#[test]
fn running_prompt_locks_out_other_connections() {
    let world = TestEnv::new(json!([
        {"steps": [tool_step("change")]},
        {"steps": [{"text": "done"}]},
    ]));
    let (mut one, id) = world.session();
    let mut two = world.client(json!({}));
    let params = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    result_of(&two.request("session/resume", params));

    let asked = one.send_prompt(&id, "hi");
    let question = one.wait_for_request("session/request_permission");
    let refused = two.request("session/prompt", prompt_params(&id, "me too"));
    assert_eq!(error_code_of(&refused), -32603);
    assert_eq!(refused["error"]["data"]["kind"], "session_busy");
    assert_eq!(refused["error"]["data"]["retryable"], true);
    // What cannot be read, or not be taken by the model, is refused as such, before the session is asked for.
    let audio = json!([{"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}]);
    for prompt in [json!([]), json!([{"type": "image"}]), audio] {
        let params = json!({"sessionId": id, "prompt": prompt});
        let refused = two.request("session/prompt", params);
        assert_eq!(error_code_of(&refused), -32602, "{refused}");
    }
    // A third connection cannot delete it either.
    let mut three = world.client(json!({}));
    let kept = three.request("session/delete", json!({"sessionId": id}));
    assert_eq!(error_code_of(&kept), -32603);
    assert_eq!(kept["error"]["data"]["kind"], "session_busy");
    two.cancel(&id);
    // The agent has read the cancel once this is answered.
    result_of(&two.request("session/list", json!({})));
    let yes = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
    one.respond(&question, yes);
    assert_eq!(one.wait_for_stop_reason(&asked), "end_turn");
    assert_eq!(world.run_log.all(), ["change"]);
    let loops = futures_util::FutureExt::now_or_never(world.store.loops(&id.as_str().into(), 0));
    assert_eq!(loops.expect("memory is ready").expect("loops").len(), 1);
}
