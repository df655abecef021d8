//! However a prompt ends, it is answered once, and all that it began is over by then (PROMPT-4, TOOL-4). The
//! oracle of the harness looks at each message; here are all the ends that there are.

use crate::harness::{Client, World, prompt, result_of};
use serde_json::{Value, json};

fn call(tool: &str) -> Value {
    json!({"tool_call": {"name": tool, "args": {}}})
}

/// The model's answers for an end: a call, and then this.
fn after_a_call(last: Value) -> Value {
    json!([{"steps": [{"text": "so"}, call("print")]}, last])
}

/// What a client does to a prompt at work.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Cancel,
    TakeBack,
    Close,
    Delete,
    Load,
    Leave,
}

/// The answers to this request among all that was said.
fn answers<'a>(said: &'a [Value], id: &Value) -> Vec<&'a Value> {
    let answers = said.iter().filter(|it| it.get("method").is_none());
    answers.filter(|it| &it["id"] == id).collect()
}

/// Ends of their own.
// proves: PROMPT-4, TOOL-4, RPC-12, RPC-14, THEME-11
#[test]
fn a_prompt_that_ends_by_itself_is_answered_once() {
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
            json!([{"steps": [call("print"), call("finish")]}]),
            "end_turn",
        ),
        (
            json!([{"steps": [call("print"), call("fail_with")]}]),
            "end_turn",
        ),
        (
            json!([{"steps": [call("print"), call("fail"), call("print")]}]),
            "-32603",
        ),
        (after_a_call(json!({"steps": [call("none")]})), "-32603"),
    ];
    for (answers_of_the_model, expected) in ends {
        let world = World::new(answers_of_the_model.clone());
        let (mut client, id) = world.session_with(json!({"session": {"notices": {}}}));
        let asked = client.ask("session/prompt", prompt(&id, "hi"));
        let (_, said) = finished(client, &asked);
        let all = answers(&said, &asked);
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

/// Waits for the answer, then leaves; gives all that was said, the answer included.
fn finished(mut client: Client, asked: &Value) -> (Value, Vec<Value>) {
    let answer = client.answer(asked);
    let mut said = client.seen();
    said.push(answer.clone());
    said.extend(client.leave().1);
    (answer, said)
}

/// What the model does, and the message that tells that it does it.
type Stage = (Value, fn(&Value) -> bool);

/// Ends that the client brings about: while the model talks, while a tool works, while a person is asked.
// proves: PROMPT-4, TOOL-4, CANCEL-3, CANCEL-4, CANCEL-5, CANCEL-7, CANCEL-10, G-3, THEME-5
#[test]
fn a_prompt_that_is_ended_is_answered_once() {
    let stages: [Stage; 3] = [
        (
            json!([{"steps": [{"text": "wait"}, {"wait_for_cancel": true}]}]),
            |it| it["params"]["update"]["content"]["text"] == "wait",
        ),
        (
            json!([{"steps": [call("print"), call("hang"), call("print")]}]),
            |it| it["params"]["update"]["status"] == "in_progress",
        ),
        (
            json!([{"steps": [call("print"), call("change"), call("print")]}]),
            |it| it["method"] == "session/request_permission",
        ),
    ];
    let deeds = [
        Deed::Cancel,
        Deed::TakeBack,
        Deed::Close,
        Deed::Delete,
        Deed::Load,
        Deed::Leave,
    ];
    for (model, there) in stages {
        for deed in deeds {
            let world = World::new(model.clone());
            let (mut client, id) = world.session();
            let asked = client.ask("session/prompt", prompt(&id, "hi"));
            client.wait(there);
            let done = does(&mut client, &world, deed, &id, &asked);
            let (_, said) = match deed {
                Deed::Leave => client.leave(),
                _ => {
                    let mut said = client.seen();
                    let waited = done.map(|done| client.answer(&done));
                    said.extend(client.seen());
                    if answers(&said, &asked).is_empty() {
                        said.push(client.answer(&asked));
                    }
                    said.extend(waited);
                    let (reason, rest) = client.leave();
                    said.extend(rest);
                    (reason, said)
                }
            };
            let all = answers(&said, &asked);
            assert_eq!(all.len(), 1, "{deed:?}: {said:?}");
            assert_eq!(result_of(all[0])["stopReason"], "cancelled", "{deed:?}");
            let changed = world.ran.all().contains(&"change".to_owned());
            assert!(!changed, "{deed:?}: nobody said yes");
        }
    }
}

/// Gives the id of the request that it is, if it is one.
fn does(client: &mut Client, world: &World, deed: Deed, id: &str, asked: &Value) -> Option<Value> {
    let this = json!({"sessionId": id});
    match deed {
        Deed::Cancel => {
            client.tell("session/cancel", this);
            None
        }
        Deed::TakeBack => {
            client.tell("$/cancel_request", json!({ "requestId": asked }));
            None
        }
        Deed::Close => Some(client.ask("session/close", this)),
        Deed::Delete => Some(client.ask("session/delete", this)),
        Deed::Load => {
            let params = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
            Some(client.ask("session/load", params))
        }
        Deed::Leave => None,
    }
}

/// A title is told when there is one, and not again (INFO-1).
// proves: INFO-1
#[test]
fn a_title_is_told_once() {
    let world = World::new(json!([
        {"when": {"last_user_contains": "x"}, "steps": [{"text": "y"}]},
    ]));
    let (mut client, id) = world.session();
    let mut titles = Vec::new();
    for text in ["x is the title", "x again", "x once more"] {
        result_of(&client.call("session/prompt", prompt(&id, text)));
        let updates = client.updates().into_iter();
        let told = updates.filter(|update| update["sessionUpdate"] == "session_info_update");
        titles.extend(told.filter_map(|update| update.get("title").cloned()));
    }
    assert_eq!(titles, [json!("x is the title")]);
}

/// Our requests have ids of their own, though the client has the same ones in use.
// proves: RPC-16
#[test]
fn both_sides_may_use_the_same_id() {
    let world = World::new(json!([
        {"steps": [call("change")]},
        {"steps": [{"text": "one"}]},
        {"steps": [call("change")]},
        {"steps": [{"text": "two"}]},
    ]));
    let (mut client, id) = world.session();
    let no = json!({"outcome": {"outcome": "selected", "optionId": "reject_once"}});
    let asked = client.ask("session/prompt", prompt(&id, "hi"));
    let question = client.asked("session/request_permission");
    client.reply(&question, no.clone());
    client.answer(&asked);
    // The next question has the next id: the prompt takes it first.
    let next = question["id"]
        .as_i64()
        .map(|id| json!(id + 1))
        .expect("a number");
    let request = json!({"jsonrpc": "2.0", "id": next, "method": "session/prompt",
        "params": prompt(&id, "hi")});
    client.send(&request);
    let question = client.asked("session/request_permission");
    assert_eq!(question["id"], next, "both use it");
    client.reply(&question, no);
    assert_eq!(result_of(&client.answer(&next))["stopReason"], "end_turn");
    assert_eq!(world.ran.all(), [] as [String; 0]);
}

/// Usage in a prompt's answer is that prompt's, and not the session's so far (G-23).
// proves: G-23, THEME-12
#[test]
fn usage_is_counted_by_prompt() {
    let spends =
        |input: u64| json!({"steps": [{"text": "x"}], "usage": {"input": input, "output": 1}});
    let world = World::new(json!([spends(10), spends(20)]));
    let (mut client, id) = world.session();
    for input in [10, 20] {
        let answer = client.call("session/prompt", prompt(&id, "hi"));
        let usage = &result_of(&answer)["_meta"]["turnery"]["usage"];
        assert_eq!(
            (&usage["input"], &usage["output"]),
            (&json!(input), &json!(1))
        );
    }
}
