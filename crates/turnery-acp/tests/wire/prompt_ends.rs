//! Ends of prompts: however a prompt ends, it is answered once, and everything it started has ended by then
//! (PROMPT-4, TOOL-4). Titles and usage are reported once for each prompt.

use crate::harness::{TestClient, TestEnv, prompt_params, result_of, tool_step};
use serde_json::{Value, json};

/// Returns model answers: a call, then `last`.
fn after_a_call(last: Value) -> Value {
    json!([{"steps": [{"text": "so"}, tool_step("print")]}, last])
}

/// Action of a client during a running prompt.
#[derive(Clone, Copy, Debug)]
enum ClientAction {
    Cancel,
    CancelRequest,
    Close,
    Delete,
    Load,
    Disconnect,
}

/// Returns the responses to this request.
fn responses_to<'a>(said: &'a [Value], id: &Value) -> Vec<&'a Value> {
    let answers = said.iter().filter(|it| it.get("method").is_none());
    answers.filter(|it| &it["id"] == id).collect()
}

/// A prompt that ends without the client, by a stop reason, a tool or an error, gets exactly one response.
// proves: PROMPT-4, TOOL-4, RPC-12, RPC-14, THEME-11, ACP-42, ACP-43, ACP-45
#[test]
fn prompt_that_finishes_is_answered_once() {
    let fails = |kind: &str| json!({"end": {"error": {"kind": kind, "message": "no"}}});
    let ends = [
        (
            after_a_call(json!({"steps": [{"text": "done"}]})),
            "end_turn",
        ),
        (
            after_a_call(json!({"steps": [{"text": "and"}], "end": "length"})),
            "max_tokens",
        ),
        (
            after_a_call(json!({"steps": [{"text": "no"}], "end": "refusal"})),
            "refusal",
        ),
        (after_a_call(fails("bad_request")), "-32603"),
        (after_a_call(fails("auth")), "-32000"),
        (after_a_call(fails("context_overflow")), "max_tokens"),
        (
            json!([{"steps": [tool_step("print"), tool_step("finish")]}]),
            "end_turn",
        ),
        (
            json!([{"steps": [tool_step("print"), tool_step("fail_with")]}]),
            "end_turn",
        ),
        (
            json!([{"steps": [tool_step("print"), tool_step("fail"), tool_step("print")]}]),
            "-32603",
        ),
        (
            after_a_call(json!({"steps": [tool_step("none")]})),
            "-32603",
        ),
    ];
    for (answers_of_the_model, expected) in ends {
        let world = TestEnv::new(answers_of_the_model.clone());
        let (mut client, id) = world.session_with(json!({"session": {"notices": {}}}));
        let asked = client.send_prompt(&id, "hi");
        let (_, said) = finish(client, &asked);
        let all = responses_to(&said, &asked);
        assert_eq!(all.len(), 1, "{answers_of_the_model}");
        let word = match all[0].get("error") {
            Some(error) => error["code"].to_string(),
            None => all[0]["result"]["stopReason"]
                .as_str()
                .expect("a word")
                .to_owned(),
        };
        assert_eq!(word, expected, "{answers_of_the_model}");
    }
}

/// Waits for the response to a prompt and disconnects; returns the response, and all messages including it.
fn finish(mut client: TestClient, asked: &Value) -> (Value, Vec<Value>) {
    let answer = client.wait_for_response(asked);
    let mut said = client.take_buffered();
    said.push(answer.clone());
    said.extend(client.close_and_join().1);
    (answer, said)
}

/// Model answer of a stage, and a test for the message that shows the stage was reached.
type Stage = (Value, fn(&Value) -> bool);

/// Ends caused by the client: while the model streams, while a tool runs, while permission is pending.
// proves: PROMPT-4, TOOL-4, CANCEL-3, CANCEL-4, CANCEL-5, CANCEL-7, CANCEL-10, REQC-2, G-3, G-18, THEME-5
#[test]
fn prompt_ended_by_client_is_answered_once() {
    let stages: [Stage; 3] = [
        (
            json!([{"steps": [{"text": "wait"}, {"wait_for_cancel": true}]}]),
            |it| it["params"]["update"]["content"]["text"] == "wait",
        ),
        (
            json!([{"steps": [tool_step("print"), tool_step("hang"), tool_step("print")]}]),
            |it| it["params"]["update"]["status"] == "in_progress",
        ),
        (
            json!([{"steps": [tool_step("print"), tool_step("change"), tool_step("print")]}]),
            |it| it["method"] == "session/request_permission",
        ),
    ];
    let deeds = [
        ClientAction::Cancel,
        ClientAction::CancelRequest,
        ClientAction::Close,
        ClientAction::Delete,
        ClientAction::Load,
        ClientAction::Disconnect,
    ];
    for (model, there) in stages {
        for deed in deeds {
            let world = TestEnv::new(model.clone());
            let (mut client, id) = world.session();
            let asked = client.send_prompt(&id, "hi");
            client.wait_for(there);
            let done = perform(&mut client, &world, deed, &id, &asked);
            let (_, said) = match deed {
                ClientAction::Disconnect => client.close_and_join(),
                _ => {
                    let mut said = client.take_buffered();
                    let waited = done.map(|done| client.wait_for_response(&done));
                    said.extend(client.take_buffered());
                    if responses_to(&said, &asked).is_empty() {
                        said.push(client.wait_for_response(&asked));
                    }
                    said.extend(waited);
                    let (reason, rest) = client.close_and_join();
                    said.extend(rest);
                    (reason, said)
                }
            };
            let all = responses_to(&said, &asked);
            assert_eq!(all.len(), 1, "{deed:?}: {said:?}");
            assert_eq!(result_of(all[0])["stopReason"], "cancelled", "{deed:?}");
            let changed = world.run_log.all().contains(&"change".to_owned());
            assert!(!changed, "{deed:?}: nobody said yes");
        }
    }
}

/// Sends the message of the action; returns its id if it is a request. Sends nothing for `Leave`, which the
/// caller performs.
fn perform(
    client: &mut TestClient,
    world: &TestEnv,
    action: ClientAction,
    id: &str,
    asked: &Value,
) -> Option<Value> {
    let this = json!({"sessionId": id});
    match action {
        ClientAction::Cancel => {
            client.send_notification("session/cancel", this);
            None
        }
        ClientAction::CancelRequest => {
            client.send_notification("$/cancel_request", json!({ "requestId": asked }));
            None
        }
        ClientAction::Close => Some(client.send_request("session/close", this)),
        ClientAction::Delete => Some(client.send_request("session/delete", this)),
        ClientAction::Load => {
            let params = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
            Some(client.send_request("session/load", params))
        }
        ClientAction::Disconnect => None,
    }
}

/// A title is reported once (INFO-1).
// proves: INFO-1
#[test]
fn title_is_reported_once() {
    let world = TestEnv::new(json!([
        {"when": {"last_user_contains": "x"}, "steps": [{"text": "y"}]},
    ]));
    let (mut client, id) = world.session();
    let mut titles = Vec::new();
    for text in ["x is the title", "x again", "x once more"] {
        client.prompt(&id, text);
        let updates = client.take_updates().into_iter();
        let told = updates.filter(|update| update["sessionUpdate"] == "session_info_update");
        titles.extend(told.filter_map(|update| update.get("title").cloned()));
    }
    assert_eq!(titles, [json!("x is the title")]);
}

/// Usage in a response is that of the prompt, not of the session so far (G-23).
// proves: G-23, THEME-12
#[test]
fn usage_is_counted_per_prompt() {
    let spends =
        |input: u64| json!({"steps": [{"text": "x"}], "usage": {"input": input, "output": 1}});
    let world = TestEnv::new(json!([spends(10), spends(20)]));
    let declared = json!({"_meta": {"turnery": {"promptUsage": true}}});
    let mut client = world.client(declared);
    let id = client.new_session(world.new_session_params());
    for input in [10, 20] {
        let answer = client.request("session/prompt", prompt_params(&id, "hi"));
        let result = result_of(&answer);
        let usage = &result["_meta"]["turnery"]["usage"];
        assert_eq!(
            (&usage["input"], &usage["output"]),
            (&json!(input), &json!(1))
        );
        assert_eq!(result["usage"]["inputTokens"], input);
    }
}
