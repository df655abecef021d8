//! Prompts: updates before the response, order of queued prompts, cancellation, and unchanged text.

use crate::harness::{TestEnv, prompt_params, result_of};
use serde_json::{Value, json};

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
        assert_eq!(client.prompt(&id, "go"), "end_turn");
        assert_eq!(client.take_text(), whole);
    }
    assert_eq!(client.close_and_join().1, [] as [Value; 0]);
}

/// CANCEL-9: a prompt followed by a cancel in one write always ends as cancelled, and the next prompt is not
/// affected (CANCEL-8).
// proves: ACP-46, ACP-48, ACP-52, CANCEL-3, CANCEL-8, CANCEL-9, CANCEL-11, G-16, THEME-5, ACP-47
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
    assert_eq!(client.prompt(&id, "live"), "end_turn");
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
    let first = client.send_prompt(&id, "1");
    let second = client.send_prompt(&id, "2");
    assert_eq!(client.wait_for_stop_reason(&first), "end_turn");
    assert_eq!(client.take_updates()[0]["content"]["text"], "one");
    assert_eq!(client.wait_for_stop_reason(&second), "end_turn");
    assert_eq!(client.take_updates()[0]["content"]["text"], "two");

    let third = client.send_prompt(&id, "3");
    let fourth = client.send_prompt(&id, "4");
    client.wait_for(|message| message["params"]["update"]["content"]["text"] == "three");
    client.cancel(&id);
    for asked in [third, fourth] {
        assert_eq!(client.wait_for_stop_reason(&asked), "cancelled");
    }
}

/// Text of the model with line breaks, quotes, control characters and emoji arrives unchanged, in several
/// chunks with one message id (TR-1, TR-2, MSG-1, MSG-2).
// proves: ACP-20, ACP-21, C-19, TR-1, TR-2, MSG-2
#[test]
fn text_is_preserved_byte_for_byte() {
    let text = "多行\r\n\"quoted\" \\ \u{7f} \u{2028} 👩‍👩‍👧 e\u{301}";
    let world = TestEnv::new(json!([{"steps": [{"text": text, "chunks": 5}]}]));
    let (mut client, id) = world.session();
    client.prompt(&id, text);
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
