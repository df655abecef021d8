//! Tests of prompts that end with a value.

use crate::fixture::{EmbeddingFixture, LARGE_CAPACITY, ModelAct};
use serde_json::{Value, json};
use std::sync::Arc;
use turnery_agent::{
    FinalAnswerFormat, FinishRule, PromptOptions, PromptResult, Protocol, Session, ValueSchema,
};
use turnery_engine::{Content, LimitKind, Limits, Outcome, TurnFinish, TurnStop};

const RIGHT: &str = r#"{"value": {"rating": "low", "score": 2}}"#;

fn rating() -> FinishRule {
    let schema = json!({
        "type": "object",
        "required": ["rating", "score"],
        "properties": {
            "rating": {"enum": ["low", "high"]},
            "score": {"type": "integer", "minimum": 1}
        },
        "additionalProperties": false
    });
    FinishRule::ValueOf(Arc::new(ValueSchema::new(schema).unwrap()))
}

async fn run(session: &Session, finish: FinishRule) -> PromptResult {
    let options = PromptOptions {
        finish,
        ..PromptOptions::default()
    };
    let handle = session.prompt(vec![Content::text("rate it")], options);
    handle.unwrap().result().await.unwrap()
}

fn submitted(value: Value) -> Outcome {
    Outcome::Finished(TurnFinish::FinalValue { value }, None)
}

/// Returns the description of `finish` in the `n`th request, if the model has the tool.
fn finish_description(world: &EmbeddingFixture, n: usize) -> Option<String> {
    let requests = world.model.requests.lock().unwrap();
    let tool = requests[n].tools.iter().find(|tool| tool.name == "finish");
    tool.map(|tool| tool.description.clone())
}

/// Prose is answered with a reminder and a wrong value with the reasons, until the value fits. The tools are gone in
/// the next prompt.
// proves: LASH-114, LASH-120, LASH-117
#[tokio::test]
async fn value_is_checked_against_schema() {
    let world = EmbeddingFixture::new(&[
        &[ModelAct::Say("It is low.")],
        &[ModelAct::CallWith(
            "a",
            "finish",
            r#"{"value": {"rating": "low", "score": 0}}"#,
        )],
        &[ModelAct::CallWith("b", "finish", RIGHT)],
        &[ModelAct::Say("hello")],
    ]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let result = run(&session, rating()).await;
    assert_eq!(
        result.outcome,
        submitted(json!({"rating": "low", "score": 2}))
    );
    let last = world.model.request(2);
    assert!(
        last[2].starts_with("A reply in prose does not end this task."),
        "{last:?}"
    );
    let reasons = &last[4];
    assert!(reasons.contains("/score: "), "{reasons}");
    {
        let requests = world.model.requests.lock().unwrap();
        let names: Vec<&str> = requests[0].tools.iter().map(|tool| &*tool.name).collect();
        assert!(names.ends_with(&["finish", "submit_error"]), "{names:?}");
        let finish = &requests[0].tools[names.len() - 2];
        let value = &finish.schema["properties"]["value"];
        assert_eq!(
            value["properties"]["rating"]["enum"],
            json!(["low", "high"])
        );
    }
    let next = run(&session, FinishRule::Prose).await;
    let text = "hello".into();
    let prose = Outcome::Finished(TurnFinish::AssistantMessage { text }, None);
    assert_eq!(next.outcome, prose);
    assert_eq!(finish_description(&world, 3), None);
}

/// An error takes the place of a value.
// proves: LASH-26
#[tokio::test]
async fn submitted_error_ends_the_prompt() {
    let error = r#"{"error": {"missing": "the report"}}"#;
    let world = EmbeddingFixture::new(&[&[ModelAct::CallWith("a", "submit_error", error)]]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let result = run(&session, rating()).await;
    let value = json!({"missing": "the report"});
    let stop = TurnStop::SubmittedError { value };
    assert_eq!(result.outcome, Outcome::Stopped(stop));
}

/// Values of any form end the prompt. If prose is allowed too, it ends the prompt as usual. The rule is that of one
/// prompt, not of the session.
// proves: LASH-115, LASH-117, LASH-118
#[tokio::test]
async fn value_or_prose_ends_the_prompt_as_allowed() {
    let finish = &[ModelAct::CallWith("a", "finish", r#"{"value": [1, null]}"#)];
    let prose: &[ModelAct] = &[ModelAct::Say("It is low.")];
    for (rule, script, expected) in [
        (FinishRule::Value, &finish[..], submitted(json!([1, null]))),
        (
            FinishRule::ProseOrValue,
            &finish[..],
            submitted(json!([1, null])),
        ),
        (
            FinishRule::ProseOrValue,
            prose,
            Outcome::Finished(
                TurnFinish::AssistantMessage {
                    text: "It is low.".into(),
                },
                None,
            ),
        ),
    ] {
        let world = EmbeddingFixture::new(&[script, &[ModelAct::Say("hello")]]);
        let (session, _seen) = world.session(LARGE_CAPACITY).await;
        assert_eq!(run(&session, rule).await.outcome, expected);
        let next = run(&session, FinishRule::Prose).await;
        let text = "hello".into();
        let prose = Outcome::Finished(TurnFinish::AssistantMessage { text }, None);
        assert_eq!(next.outcome, prose);
        assert!(finish_description(&world, 0).is_some());
        assert_eq!(finish_description(&world, 1), None);
    }
}

/// Text that is the value ends the prompt with the first request; text that never is ends it with the third.
// proves: LASH-120
#[tokio::test]
async fn text_that_is_the_value_ends_the_prompt() {
    let block = "Here it is:\n```json\n{\"rating\": \"low\", \"score\": 2}\n```";
    let world = EmbeddingFixture::new(&[&[ModelAct::Say(block)]]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let result = run(&session, rating()).await;
    let value = json!({"rating": "low", "score": 2});
    assert_eq!(result.outcome, submitted(value));
    assert_eq!(world.model.requests.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn prose_instead_of_value_ends_after_three_calls() {
    let wrong: &[ModelAct] = &[ModelAct::Say(r#"{"rating": "low", "score": 0}"#)];
    let world = EmbeddingFixture::new(&[wrong; 9]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let result = run(&session, rating()).await;
    let Outcome::Stopped(TurnStop::RuntimeError { message }) = result.outcome else {
        panic!("{:?}", result.outcome);
    };
    assert!(
        message.contains(r#"{"rating": "low", "score": 0}"#),
        "{message}"
    );
    assert_eq!(world.model.requests.lock().unwrap().len(), 3);
    let last = world.model.request(2);
    assert!(
        last.iter().any(|text| text.contains("/score: ")),
        "{last:?}"
    );
}

/// A model that never finishes is stopped at the turn limit, without a last reply in prose.
#[tokio::test]
async fn reminders_are_bounded_by_the_turn_limit() {
    let prose: &[ModelAct] = &[ModelAct::Say("It is low.")];
    let world = EmbeddingFixture::with_settings(&[prose; 9], |settings| {
        settings.limits = Limits {
            turns: 2,
            ..Limits::default()
        };
    });
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let result = run(&session, FinishRule::Value).await;
    let Outcome::Stopped(TurnStop::MaxTurns(limit)) = result.outcome else {
        panic!("{:?}", result.outcome);
    };
    assert_eq!(limit.kind, LimitKind::Turns);
    assert_eq!(world.model.requests.lock().unwrap().len(), 2);
}

/// The usual form of values is part of the tool's description, unless a schema says more.
// proves: LASH-121, LASH-122, LASH-124, LASH-125
#[tokio::test]
async fn usual_form_of_values_is_described() {
    let finish: &[ModelAct] = &[ModelAct::CallWith("a", "finish", RIGHT)];
    for (format, rule, is_markdown, is_raw) in [
        (None, FinishRule::Value, true, false),
        (None, FinishRule::ProseOrValue, true, false),
        (
            Some(FinalAnswerFormat::RawValue),
            FinishRule::Value,
            false,
            true,
        ),
        (
            Some(FinalAnswerFormat::Markdown),
            FinishRule::Value,
            true,
            false,
        ),
        (Some(FinalAnswerFormat::Markdown), rating(), false, false),
        (Some(FinalAnswerFormat::RawValue), rating(), false, false),
        (None, rating(), false, false),
    ] {
        let world = EmbeddingFixture::with_settings(&[finish], |settings| {
            settings.final_answer_format = format;
        });
        let (session, _seen) = world.session(LARGE_CAPACITY).await;
        run(&session, rule.clone()).await;
        let description = finish_description(&world, 0).unwrap();
        let says = [
            description.contains("Markdown"),
            description.contains("plain data"),
        ];
        assert_eq!(
            says,
            [is_markdown, is_raw],
            "{format:?} {rule:?}: {description}"
        );
    }
}

/// A sub-agent has its own task and cannot finish that of its parent.
#[tokio::test]
async fn sub_agents_have_no_finish() {
    let world = EmbeddingFixture::with_sub_agents(
        &[
            &[ModelAct::Delegate("t", true)],
            &[ModelAct::Say("dug")],
            &[ModelAct::CallWith("a", "finish", RIGHT)],
        ],
        |_| {},
    );
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let result = run(&session, rating()).await;
    assert_eq!(
        result.outcome,
        submitted(json!({"rating": "low", "score": 2}))
    );
    assert!(finish_description(&world, 0).is_some());
    assert_eq!(finish_description(&world, 1), None);
    assert!(finish_description(&world, 2).is_some());
}

/// In code mode `finish` is always there. It asks a session of the user for Markdown, and a sub-agent for plain data.
// proves: LASH-122, LASH-123, LASH-116
#[tokio::test(start_paused = true)]
async fn form_of_final_values_depends_on_who_reads_them() {
    let script: [&[ModelAct]; 3] = [
        &[ModelAct::Delegate("d", true)],
        &[ModelAct::Say("dug")],
        &[ModelAct::Say("done")],
    ];
    for format in [None, Some(FinalAnswerFormat::Markdown)] {
        let world = EmbeddingFixture::with_sub_agents(&script, |settings| {
            settings.protocol = Protocol::Code;
            settings.final_answer_format = format;
            // No block is run.
            turnery_code::use_worker("/nowhere");
        });
        let (session, _seen) = world.session(LARGE_CAPACITY).await;
        run(&session, FinishRule::Prose).await;
        let requests = world.model.requests.lock().unwrap();
        let finish = |n: usize| {
            let system = &requests[n].system;
            let start = system.find("def finish(value").expect("the function");
            system[start..].split("def ").nth(1).unwrap().to_owned()
        };
        assert_eq!(requests.len(), 3);
        assert!(requests.iter().all(|request| request.tools.is_empty()));
        assert!(finish(0).contains("Markdown"), "{}", finish(0));
        assert!(
            !finish(1).contains("Markdown") && finish(1).contains("data"),
            "{}",
            finish(1)
        );
        assert!(finish(2).contains("Markdown"));
        drop(requests);
        // An earlier action and its result are text of the history.
        let history = world.model.request(2);
        assert_eq!(history[0], "rate it");
        assert!(history[1].starts_with("Called task with "), "{history:?}");
        assert!(history[2].starts_with("Result of task:"), "{history:?}");
    }
}
