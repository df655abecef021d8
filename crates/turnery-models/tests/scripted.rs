//! Tests the scripted model: played answers, its position, and errors of invalid files.

mod server;

use serde_json::{Value, json};
use server::{assistant, call_for_deltas, request, tool_result, user};
use std::{path::Path, time::Duration};
use turnery_engine::{Content, Message, ModelDelta, ModelErrorKind, ModelStop, Usage};
use turnery_models::{Scenario, ScriptedModel};

fn scenario(value: &Value) -> Scenario {
    Scenario::parse(&value.to_string(), Path::new("s.json")).expect("a scenario")
}

fn answer(text: &str) -> Message {
    assistant(vec![Content::text(text)])
}

/// Calls the model and returns the text of its answer.
async fn text(model: &ScriptedModel, messages: Vec<Message>) -> String {
    let (response, _) = call_for_deltas(model, request(messages)).await;
    response.expect("an answer").text()
}

// proves: TURN-52, TURN-53, TURN-54
#[tokio::test(start_paused = true)]
async fn answer_is_streamed_and_finished() {
    let model = ScriptedModel::new(scenario(&json!({"answers": [{
        "steps": [
            {"thinking": "hm", "chunks": 2},
            {"text": ["Let me ", "", "look"]},
            {"delay_ms": 5000},
            {"text": "."},
            {"tool_call": {"name": "read_file", "args": {"path": "a"}}, "chunks": 2}
        ],
        "usage": {"input": 3, "output": 4}
    }]})));
    let before = tokio::time::Instant::now();
    let (answer, deltas) = call_for_deltas(&model, request(vec![user("hi")])).await;
    assert_eq!(before.elapsed(), Duration::from_secs(5));
    let thinking = |text: &str| ModelDelta::Thinking {
        block: 0,
        text: text.into(),
    };
    let prose = |text: &str| ModelDelta::Text {
        block: 1,
        text: text.into(),
    };
    let args = |fragment: &str| ModelDelta::ToolCallArgs {
        block: 2,
        name: "read_file".into(),
        fragment: fragment.into(),
    };
    assert_eq!(
        deltas,
        [
            thinking("h"),
            thinking("m"),
            prose("Let me "),
            prose("look"),
            prose("."),
            args(r#"{"path"#),
            args(r#"":"a"}"#),
        ]
    );
    let answer = answer.expect("an answer");
    assert_eq!(answer.stop, ModelStop::ToolUse);
    assert_eq!(answer.content.len(), 3);
    assert_eq!(answer.content[1], Content::text("Let me look."));
    let calls: Vec<_> = answer.calls().collect();
    assert_eq!(calls[0].call_id.as_str(), "scripted-0-2");
    assert_eq!(*calls[0].args, json!({"path": "a"}));
    let usage = Usage {
        input: 3,
        output: 4,
        ..Usage::default()
    };
    assert_eq!(answer.usage, Some(usage));
}

#[tokio::test]
async fn history_selects_the_next_answer() {
    let value = json!({"answers": [{"steps": [{"text": "one"}]}, {"steps": [{"text": "two"}]}]});
    let model = ScriptedModel::new(scenario(&value));
    let second = vec![user("a"), answer("one"), user("b")];
    // A new process and a parallel session each follow their own history.
    assert_eq!(text(&model, second.clone()).await, "two");
    assert_eq!(text(&model, vec![user("a")]).await, "one");
    assert_eq!(text(&model, second).await, "two");
    let after = vec![user("a"), answer("one"), user("b"), answer("two")];
    let (over, _) = call_for_deltas(&model, request(after)).await;
    let over = over.expect_err("over");
    assert_eq!(over.kind, ModelErrorKind::BadRequest);
    assert!(over.message.contains("is over"), "{over}");
    assert!(over.message.contains("2 answers"), "{over}");
}

#[tokio::test]
async fn calls_can_be_counted_instead_and_repeated() {
    let value = json!({"by_history": false, "repeat": true,
        "answers": [{"steps": [{"text": "one"}]}, {"steps": [{"text": "two"}]}]});
    let model = ScriptedModel::new(scenario(&value));
    for expected in ["one", "two", "one"] {
        assert_eq!(text(&model, vec![user("a")]).await, expected);
    }
}

#[tokio::test]
async fn conditional_answers_do_not_consume_the_order() {
    let value = json!({"answers": [
        {"steps": [{"text": "one"}]},
        {"when": {"last_user_contains": "edit"}, "steps": [{"text": "editing"}]},
        {"when": {"last_user_contains": "edit", "last_tool_result_contains": "done"},
         "steps": [{"text": "edited"}]},
        {"steps": [{"text": "two"}]}
    ]});
    let model = ScriptedModel::new(scenario(&value));
    let mut history = vec![user("please edit")];
    assert_eq!(text(&model, history.clone()).await, "editing");
    history.extend([
        answer("editing"),
        tool_result("c", vec![Content::text("all done")], false),
    ]);
    assert_eq!(text(&model, history.clone()).await, "edited");
    history.extend([answer("edited"), user("hello")]);
    assert_eq!(text(&model, history.clone()).await, "one");
    history.extend([answer("one"), user("hello")]);
    assert_eq!(text(&model, history).await, "two");
}

#[tokio::test(start_paused = true)]
async fn waiting_for_cancel_never_ends_by_itself() {
    let value = json!({"answers": [{"steps": [{"text": "hm"}, {"wait_for_cancel": true}]}]});
    let model = ScriptedModel::new(scenario(&value));
    let waiting = call_for_deltas(&model, request(vec![user("a")]));
    let ended = tokio::time::timeout(Duration::from_secs(86_400), waiting).await;
    assert!(ended.is_err());
}

#[tokio::test]
async fn each_end_is_reported() {
    for (end, stop) in [
        ("stop", ModelStop::EndTurn),
        ("length", ModelStop::Length),
        ("refusal", ModelStop::Refusal),
        ("tool_use", ModelStop::ToolUse),
    ] {
        let model = ScriptedModel::new(scenario(&json!({"answers": [{"end": end}]})));
        let (answer, _) = call_for_deltas(&model, request(vec![user("a")])).await;
        assert_eq!(answer.expect("an answer").stop, stop, "{end}");
    }
    let error = json!({"error": {"kind": "rate_limit", "message": "slow down", "status": 429, "retry_after_ms": 1500}});
    let model = ScriptedModel::new(scenario(
        &json!({"answers": [{"steps": [{"text": "x"}], "end": error}]}),
    ));
    let (answer, deltas) = call_for_deltas(&model, request(vec![user("a")])).await;
    assert_eq!(deltas.len(), 1);
    let error = answer.expect_err("an error");
    assert_eq!(error.kind, ModelErrorKind::RateLimit);
    assert_eq!(error.message, "slow down");
    assert_eq!(error.status, Some(429));
    assert_eq!(error.retry_after, Some(Duration::from_millis(1500)));
}

#[test]
fn invalid_file_is_explained() {
    let cases = [
        (
            "{\n \"answers\": [\n  {\"step\": []}]}",
            "s.json:3:9: unknown field `step`, expected one of `when`, `steps`, `end`, `usage`; did you mean `steps`?",
        ),
        (
            "{\"answers\": [{\"steps\": [{\"txt\": \"a\"}]}]}",
            "did you mean `text`?",
        ),
        (
            "{\"answers\": [{\"steps\": [\n{\"text\": \"a\", \"delay_ms\": 1}]}]}",
            ": a step has exactly one of `text`, `thinking`, `tool_call`, `delay_ms` and `wait_for_cancel`; this one has 2",
        ),
        (
            "{\"answers\": [{\"steps\": [{\"text\": 5}]}]}",
            "expected a string or a list of strings",
        ),
        (
            "{\"answers\": [{\"end\": \"refused\"}]}",
            "did you mean `refusal`?",
        ),
        ("{\"answers\": [", "s.json:1:13: EOF"),
        ("{}", "missing field `answers`"),
    ];
    for (text, wanted) in cases {
        let error = Scenario::parse(text, Path::new("s.json")).expect_err(text);
        assert!(error.to_string().contains(wanted), "{error}\n{wanted}");
    }
    let missing = ScriptedModel::open(Path::new("no-such-scenario.json")).expect_err("no file");
    let wanted = "cannot read the scenario no-such-scenario.json: ";
    assert!(missing.to_string().starts_with(wanted), "{missing}");
}
