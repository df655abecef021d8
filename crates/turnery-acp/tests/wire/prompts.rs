//! Prompts: order, ends and cancellation (PROMPT, CANCEL, REQC, ACP-28 to ACP-57).

use crate::harness::{TestEnv, error_of, prompt_params, result_of};
use serde_json::{Value, json};

fn hanging_answers() -> Value {
    json!([
        {"steps": [{"text": "wait"}, {"wait_for_cancel": true}]},
        {"steps": [{"text": "done"}]},
    ])
}

fn cancel_line(session: &str) -> String {
    json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})
        .to_string()
}

/// PROMPT-7, TR-8: the response is the last message of its prompt, a hundred times.
// proves: ACP-13, ACP-20, ACP-21, ACP-28, ACP-29, ACP-42, ACP-55, R5, TR-8, PROMPT-3, PROMPT-7, CANCEL-11, G-19
#[test]
fn updates_precede_the_response() {
    let pieces: Vec<String> = (0..50).map(|n| format!("{n} ")).collect();
    let world =
        TestEnv::new(json!([{"when": {"last_user_contains": "go"}, "steps": [{"text": pieces}]}]));
    let (mut client, id) = world.session();
    let whole: String = (0..50).map(|n| format!("{n} ")).collect();
    for _ in 0..100 {
        let answer = client.request("session/prompt", prompt_params(&id, "go"));
        assert_eq!(result_of(&answer)["stopReason"], "end_turn");
        let text: String = client
            .take_updates()
            .iter()
            .filter(|update| update["sessionUpdate"] == "agent_message_chunk")
            .filter_map(|update| update["content"]["text"].as_str())
            .collect();
        assert_eq!(text, whole);
    }
    assert_eq!(client.close_and_join().1, [] as [Value; 0]);
}

/// CANCEL-9: prompt and cancel in one write. Agents that start both concurrently lose most of these.
// proves: ACP-46, ACP-48, ACP-52, CANCEL-3, CANCEL-8, CANCEL-9, CANCEL-11, G-16
#[test]
fn cancel_in_same_write_is_not_lost() {
    let world = TestEnv::new(json!([
        {"when": {"last_user_contains": "hang"}, "steps": [{"text": "wait"}, {"wait_for_cancel": true}]},
        {"when": {"last_user_contains": "live"}, "steps": [{"text": "alive"}]},
    ]));
    let (mut client, id) = world.session();
    for n in 0..200 {
        let request = json!({"jsonrpc": "2.0", "id": n, "method": "session/prompt",
            "params": prompt_params(&id, "hang")});
        client.write_raw(format!("{request}\n{}\n", cancel_line(&id)));
        let answer = client.wait_for_response(&json!(n));
        assert_eq!(result_of(&answer)["stopReason"], "cancelled", "prompt {n}");
    }
    // CANCEL-8: the next prompt is not affected; CANCEL-11: it is not reported as cancelled.
    client.take_buffered();
    client.write_raw(format!("{}\n", cancel_line(&id)));
    let answer = client.request("session/prompt", prompt_params(&id, "live"));
    assert_eq!(result_of(&answer)["stopReason"], "end_turn");
}

/// CANCEL-2, CANCEL-3, CANCEL-5; text already shown is kept.
// proves: ACP-46, ACP-48, ACP-51, ACP-52, LASH-89, INIT-10, CANCEL-2, CANCEL-3, CANCEL-4, G-3, G-16
#[test]
fn cancel_while_model_streams() {
    let world = TestEnv::new(hanging_answers());
    let (mut client, id) = world.session();
    let asked = client.send_request("session/prompt", prompt_params(&id, "hi"));
    client.wait_for(|message| message["params"]["update"]["content"]["text"] == "wait");
    client.send_notification(
        "session/cancel",
        json!({"sessionId": id, "reason": "because"}),
    );
    let answer = client.wait_for_response(&asked);
    assert_eq!(result_of(&answer)["stopReason"], "cancelled");
    assert_eq!(
        answer["result"]["_meta"]["turnery"]["outcome"],
        "stopped.cancelled"
    );
    let answer = client.request("session/prompt", prompt_params(&id, "again"));
    assert_eq!(result_of(&answer)["stopReason"], "end_turn");
}

/// G-18, REQC-2: a prompt cancelled by request id is answered with `cancelled`; ids are distinguished.
// proves: UP-39, REQC-1, REQC-2, REQC-4, G-18
#[test]
fn prompt_is_cancelled_by_request_id() {
    let world = TestEnv::new(hanging_answers());
    let (mut client, id) = world.session();
    let asked = client.send_request("session/prompt", prompt_params(&id, "hi"));
    client.wait_for(|message| message["method"] == "session/update");
    for other in [
        json!("5"),
        json!(12345),
        json!(null),
        json!(asked.to_string()),
    ] {
        client.send_notification("$/cancel_request", json!({"requestId": other}));
    }
    let list = client.request("session/list", json!({}));
    result_of(&list);
    client.send_notification("$/cancel_request", json!({"requestId": asked}));
    let answer = client.wait_for_response(&asked);
    assert_eq!(result_of(&answer)["stopReason"], "cancelled");
}

/// PROMPT-11, PROMPT-12, G-6: prompts queue; a cancel ends queued ones too.
// proves: C-29, PROMPT-11, G-6
#[test]
fn prompts_of_a_session_run_in_order() {
    let world = TestEnv::new(json!([
        {"steps": [{"delay_ms": 5}, {"text": "one"}]},
        {"steps": [{"text": "two"}]},
        {"steps": [{"text": "three"}, {"wait_for_cancel": true}]},
    ]));
    let (mut client, id) = world.session();
    let first = client.send_request("session/prompt", prompt_params(&id, "1"));
    let second = client.send_request("session/prompt", prompt_params(&id, "2"));
    assert_eq!(
        result_of(&client.wait_for_response(&first))["stopReason"],
        "end_turn"
    );
    assert_eq!(client.take_updates()[0]["content"]["text"], "one");
    assert_eq!(
        result_of(&client.wait_for_response(&second))["stopReason"],
        "end_turn"
    );
    assert_eq!(client.take_updates()[0]["content"]["text"], "two");

    let third = client.send_request("session/prompt", prompt_params(&id, "3"));
    let fourth = client.send_request("session/prompt", prompt_params(&id, "4"));
    client.wait_for(|message| message["params"]["update"]["content"]["text"] == "three");
    client.send_notification("session/cancel", json!({"sessionId": id}));
    for asked in [third, fourth] {
        assert_eq!(
            result_of(&client.wait_for_response(&asked))["stopReason"],
            "cancelled"
        );
    }
}

/// RPC-18, MODE-2, CFG-7, SESS-5: everything else works during a prompt.
// proves: ACP-48, RPC-18, MODE-2, SESS-5
#[test]
fn prompt_does_not_block_other_requests() {
    let world = TestEnv::new(hanging_answers());
    let (mut client, id) = world.session();
    let asked = client.send_request("session/prompt", prompt_params(&id, "hi"));
    client.wait_for(|message| message["method"] == "session/update");
    result_of(&client.request("session/list", json!({})));
    result_of(&client.request(
        "session/set_mode",
        json!({"sessionId": id, "modeId": "plan"}),
    ));
    let made = client.request("session/new", world.new_session_params());
    let other = result_of(&made)["sessionId"]
        .as_str()
        .expect("an id")
        .to_owned();
    let beside = client.send_request("session/prompt", prompt_params(&other, "hi"));
    client.wait_for(|message| message["params"]["sessionId"] == json!(other));
    client.send_notification("session/cancel", json!({"sessionId": other}));
    assert_eq!(
        result_of(&client.wait_for_response(&beside))["stopReason"],
        "cancelled"
    );
    client.send_notification("session/cancel", json!({"sessionId": id}));
    assert_eq!(
        result_of(&client.wait_for_response(&asked))["stopReason"],
        "cancelled"
    );
}

/// CLOSE-1, CLOSE-3.
// proves: ACP-3, CLOSE-1, CLOSE-3
#[test]
fn closing_a_session_ends_its_prompt() {
    let world = TestEnv::new(hanging_answers());
    let (mut client, id) = world.session();
    let asked = client.send_request("session/prompt", prompt_params(&id, "hi"));
    client.wait_for(|message| message["method"] == "session/update");
    let closed = client.send_request("session/close", json!({"sessionId": id}));
    assert_eq!(
        result_of(&client.wait_for_response(&asked))["stopReason"],
        "cancelled"
    );
    assert_eq!(result_of(&client.wait_for_response(&closed)), &json!({}));
    assert_eq!(
        error_of(&client.request("session/prompt", prompt_params(&id, "hi"))),
        -32002
    );
}

/// PROMPT-2, PROMPT-10, PROMPT-13: rejected before a turn begins.
// proves: ACP-6, ACP-10, C-8, PROMPT-2, PROMPT-10, PROMPT-13
#[test]
fn invalid_prompts_are_rejected() {
    let world = TestEnv::new(json!([{"steps": [{"text": "first"}]}]));
    let (mut client, id) = world.session();
    for blocks in [
        json!([]),
        json!("text"),
        json!(null),
        json!([{"type": "text"}]),
        json!([{"type": "nonsense"}]),
        json!([{"type": "text", "text": "a"}, 7]),
        json!([{"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}]),
    ] {
        let answer = client.request("session/prompt", json!({"sessionId": id, "prompt": blocks}));
        assert_eq!(error_of(&answer), -32602, "{blocks}");
    }
    assert_eq!(
        error_of(&client.request("session/prompt", json!({"sessionId": id}))),
        -32602
    );
    result_of(&client.request("session/prompt", prompt_params(&id, "hi")));
    assert_eq!(client.take_updates()[0]["content"]["text"], "first");
}

/// PROMPT-5, PROMPT-6.
// proves: ACP-30, ACP-43, ACP-45, PROMPT-5, PROMPT-6
#[test]
fn every_model_end_has_its_stop_reason() {
    let fails = |word: &str, kind: &str| json!({"when": {"last_user_contains": word}, "end": {"error": {"kind": kind, "message": "the provider said no"}}});
    let world = TestEnv::new(json!([
        {"when": {"last_user_contains": "long"}, "steps": [{"text": "and so"}], "end": "length"},
        {"when": {"last_user_contains": "refuse"}, "steps": [{"text": "no"}], "end": "refusal"},
        fails("bad", "bad_request"),
        fails("login", "auth"),
        fails("full", "context_overflow"),
    ]));
    let (mut client, id) = world.session();
    for (word, reason) in [
        ("long", "max_tokens"),
        ("refuse", "refusal"),
        ("full", "max_tokens"),
    ] {
        let answer = client.request("session/prompt", prompt_params(&id, word));
        assert_eq!(result_of(&answer)["stopReason"], reason, "{word}");
    }
    for (word, code) in [("bad", -32603), ("login", -32000)] {
        let answer = client.request("session/prompt", prompt_params(&id, word));
        assert_eq!(error_of(&answer), code, "{word}");
        assert_eq!(answer["error"]["data"]["retryable"], false);
        for text in [
            &answer["error"]["message"],
            &answer["error"]["data"]["details"],
        ] {
            let text = text.as_str().expect("a text");
            assert!(text.contains("the provider said no"), "{text}");
        }
    }
}

/// TR-1, TR-2, MSG-1, MSG-2.
// proves: ACP-20, ACP-21, C-19, TR-1, TR-2, MSG-2
#[test]
fn text_is_preserved_byte_for_byte() {
    let text = "多行\r\n\"quoted\" \\ \u{7f} \u{2028} 👩‍👩‍👧 e\u{301}";
    let world = TestEnv::new(json!([{"steps": [{"text": text, "chunks": 5}]}]));
    let (mut client, id) = world.session();
    result_of(&client.request("session/prompt", prompt_params(&id, text)));
    let updates: Vec<Value> = client
        .take_updates()
        .into_iter()
        .filter(|update| update["sessionUpdate"] == "agent_message_chunk")
        .collect();
    let said: String = updates
        .iter()
        .filter_map(|u| u["content"]["text"].as_str())
        .collect();
    assert_eq!(said, text);
    assert!(updates.len() > 1);
    assert!(
        updates
            .iter()
            .all(|update| update["messageId"] == updates[0]["messageId"])
    );
}
