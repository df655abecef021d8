//! Prompts: order, ends, cancelling (PROMPT, CANCEL, REQC, ACP-28 to ACP-57).

use crate::harness::{World, error_of, prompt, result_of};
use serde_json::{Value, json};

fn hangs() -> Value {
    json!([
        {"steps": [{"text": "wait"}, {"wait_for_cancel": true}]},
        {"steps": [{"text": "done"}]},
    ])
}

fn cancel(session: &str) -> String {
    json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})
        .to_string()
}

/// PROMPT-7, TR-8: the answer is the last of its prompt, a hundred times.
// proves: ACP-13, ACP-20, ACP-21, ACP-28, ACP-29, ACP-42, ACP-55, R5, TR-8, PROMPT-3, PROMPT-7, CANCEL-11, G-19
#[test]
fn all_updates_come_before_the_answer() {
    let pieces: Vec<String> = (0..50).map(|n| format!("{n} ")).collect();
    let world =
        World::new(json!([{"when": {"last_user_contains": "go"}, "steps": [{"text": pieces}]}]));
    let (mut client, id) = world.session();
    let whole: String = (0..50).map(|n| format!("{n} ")).collect();
    for _ in 0..100 {
        let answer = client.call("session/prompt", prompt(&id, "go"));
        assert_eq!(result_of(&answer)["stopReason"], "end_turn");
        let text: String = client
            .updates()
            .iter()
            .filter(|update| update["sessionUpdate"] == "agent_message_chunk")
            .filter_map(|update| update["content"]["text"].as_str())
            .collect();
        assert_eq!(text, whole);
    }
    assert_eq!(client.leave().1, [] as [Value; 0]);
}

/// CANCEL-9: prompt and cancel in one write. Whoever starts both side by side loses most of these.
// proves: ACP-46, ACP-48, ACP-52, CANCEL-3, CANCEL-8, CANCEL-9, CANCEL-11, G-16
#[test]
fn a_cancel_in_the_same_write_is_never_lost() {
    let world = World::new(json!([
        {"when": {"last_user_contains": "hang"}, "steps": [{"text": "wait"}, {"wait_for_cancel": true}]},
        {"when": {"last_user_contains": "live"}, "steps": [{"text": "alive"}]},
    ]));
    let (mut client, id) = world.session();
    for n in 0..200 {
        let request = json!({"jsonrpc": "2.0", "id": n, "method": "session/prompt",
            "params": prompt(&id, "hang")});
        client.note(&request);
        client.raw(format!("{request}\n{}\n", cancel(&id)));
        let answer = client.answer(&json!(n));
        assert_eq!(result_of(&answer)["stopReason"], "cancelled", "prompt {n}");
    }
    // CANCEL-8: the next prompt is not poisoned, and CANCEL-11: it is not reported as cancelled.
    client.seen();
    client.raw(format!("{}\n", cancel(&id)));
    let answer = client.call("session/prompt", prompt(&id, "live"));
    assert_eq!(result_of(&answer)["stopReason"], "end_turn");
}

/// CANCEL-2, CANCEL-3, CANCEL-5; and what the client has seen stays.
// proves: ACP-46, ACP-48, ACP-51, ACP-52, LASH-89, INIT-10, CANCEL-2, CANCEL-3, CANCEL-4, G-3, G-16
#[test]
fn a_cancel_while_the_model_talks() {
    let world = World::new(hangs());
    let (mut client, id) = world.session();
    let asked = client.ask("session/prompt", prompt(&id, "hi"));
    client.wait(|message| message["params"]["update"]["content"]["text"] == "wait");
    client.tell(
        "session/cancel",
        json!({"sessionId": id, "reason": "because"}),
    );
    let answer = client.answer(&asked);
    assert_eq!(result_of(&answer)["stopReason"], "cancelled");
    assert_eq!(
        answer["result"]["_meta"]["turnery"]["outcome"],
        "stopped.cancelled"
    );
    let answer = client.call("session/prompt", prompt(&id, "again"));
    assert_eq!(result_of(&answer)["stopReason"], "end_turn");
}

/// G-18, REQC-2: the answer to a prompt that is taken back is `cancelled`; ids are told apart.
// proves: UP-39, REQC-1, REQC-2, REQC-4, G-18
#[test]
fn a_prompt_can_be_taken_back_by_its_id() {
    let world = World::new(hangs());
    let (mut client, id) = world.session();
    let asked = client.ask("session/prompt", prompt(&id, "hi"));
    client.wait(|message| message["method"] == "session/update");
    for other in [
        json!("5"),
        json!(12345),
        json!(null),
        json!(asked.to_string()),
    ] {
        client.tell("$/cancel_request", json!({"requestId": other}));
    }
    let list = client.call("session/list", json!({}));
    result_of(&list);
    client.tell("$/cancel_request", json!({"requestId": asked}));
    let answer = client.answer(&asked);
    assert_eq!(result_of(&answer)["stopReason"], "cancelled");
}

/// PROMPT-11, PROMPT-12, G-6: prompts queue; a cancel ends those that wait as well.
// proves: C-29, PROMPT-11, G-6
#[test]
fn prompts_of_one_session_run_one_after_the_other() {
    let world = World::new(json!([
        {"steps": [{"delay_ms": 5}, {"text": "one"}]},
        {"steps": [{"text": "two"}]},
        {"steps": [{"text": "three"}, {"wait_for_cancel": true}]},
    ]));
    let (mut client, id) = world.session();
    let first = client.ask("session/prompt", prompt(&id, "1"));
    let second = client.ask("session/prompt", prompt(&id, "2"));
    assert_eq!(result_of(&client.answer(&first))["stopReason"], "end_turn");
    assert_eq!(client.updates()[0]["content"]["text"], "one");
    assert_eq!(result_of(&client.answer(&second))["stopReason"], "end_turn");
    assert_eq!(client.updates()[0]["content"]["text"], "two");

    let third = client.ask("session/prompt", prompt(&id, "3"));
    let fourth = client.ask("session/prompt", prompt(&id, "4"));
    client.wait(|message| message["params"]["update"]["content"]["text"] == "three");
    client.tell("session/cancel", json!({"sessionId": id}));
    for asked in [third, fourth] {
        assert_eq!(result_of(&client.answer(&asked))["stopReason"], "cancelled");
    }
}

/// RPC-18, MODE-2, CFG-7, SESS-5: everything else goes on beside a prompt.
// proves: ACP-48, RPC-18, MODE-2, SESS-5
#[test]
fn a_prompt_blocks_nothing() {
    let world = World::new(hangs());
    let (mut client, id) = world.session();
    let asked = client.ask("session/prompt", prompt(&id, "hi"));
    client.wait(|message| message["method"] == "session/update");
    result_of(&client.call("session/list", json!({})));
    result_of(&client.call(
        "session/set_mode",
        json!({"sessionId": id, "modeId": "plan"}),
    ));
    let made = client.call("session/new", world.new_session());
    let other = result_of(&made)["sessionId"]
        .as_str()
        .expect("an id")
        .to_owned();
    let beside = client.ask("session/prompt", prompt(&other, "hi"));
    client.wait(|message| message["params"]["sessionId"] == json!(other));
    client.tell("session/cancel", json!({"sessionId": other}));
    assert_eq!(
        result_of(&client.answer(&beside))["stopReason"],
        "cancelled"
    );
    client.tell("session/cancel", json!({"sessionId": id}));
    assert_eq!(result_of(&client.answer(&asked))["stopReason"], "cancelled");
}

/// CLOSE-1, CLOSE-3.
// proves: ACP-3, CLOSE-1, CLOSE-3
#[test]
fn closing_a_session_ends_its_prompt() {
    let world = World::new(hangs());
    let (mut client, id) = world.session();
    let asked = client.ask("session/prompt", prompt(&id, "hi"));
    client.wait(|message| message["method"] == "session/update");
    let closed = client.ask("session/close", json!({"sessionId": id}));
    assert_eq!(result_of(&client.answer(&asked))["stopReason"], "cancelled");
    assert_eq!(result_of(&client.answer(&closed)), &json!({}));
    assert_eq!(
        error_of(&client.call("session/prompt", prompt(&id, "hi"))),
        -32002
    );
}

/// PROMPT-2, PROMPT-10, PROMPT-13: refused before a turn begins.
// proves: ACP-6, ACP-10, C-8, PROMPT-2, PROMPT-10, PROMPT-13
#[test]
fn prompts_that_are_none() {
    let world = World::new(json!([{"steps": [{"text": "first"}]}]));
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
        let answer = client.call("session/prompt", json!({"sessionId": id, "prompt": blocks}));
        assert_eq!(error_of(&answer), -32602, "{blocks}");
    }
    assert_eq!(
        error_of(&client.call("session/prompt", json!({"sessionId": id}))),
        -32602
    );
    result_of(&client.call("session/prompt", prompt(&id, "hi")));
    assert_eq!(client.updates()[0]["content"]["text"], "first");
}

/// PROMPT-5, PROMPT-6.
// proves: ACP-30, ACP-43, ACP-45, PROMPT-5, PROMPT-6
#[test]
fn ends_of_all_sorts() {
    let fails = |word: &str, kind: &str| json!({"when": {"last_user_contains": word}, "end": {"error": {"kind": kind, "message": "the provider said no"}}});
    let world = World::new(json!([
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
        let answer = client.call("session/prompt", prompt(&id, word));
        assert_eq!(result_of(&answer)["stopReason"], reason, "{word}");
    }
    for (word, code) in [("bad", -32603), ("login", -32000)] {
        let answer = client.call("session/prompt", prompt(&id, word));
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
fn text_survives_as_it_was() {
    let text = "多行\r\n\"quoted\" \\ \u{7f} \u{2028} 👩‍👩‍👧 e\u{301}";
    let world = World::new(json!([{"steps": [{"text": text, "chunks": 5}]}]));
    let (mut client, id) = world.session();
    result_of(&client.call("session/prompt", prompt(&id, text)));
    let updates: Vec<Value> = client
        .updates()
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
