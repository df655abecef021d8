//! Tests of prompts that end with a value.

use crate::{fixture::World, toy::ToyStep};
use std::path::Path;
use turnery_sdk::{
    FinalAnswerFormat, Protocol,
    models::{Scenario, ScriptedModel},
    prelude::*,
};

const SCRIPT: &str = r#"{"answers": [
    {"steps": [{"text": "It is low."}]},
    {"steps": [{"tool_call": {"name": "finish", "args": {"value": {"rating": 5}}}}]},
    {"steps": [{"tool_call": {"name": "finish", "args": {"value": {"rating": "low"}}}}]}
]}"#;

fn agent(script: &str) -> Agent {
    let scenario = Scenario::parse(script, Path::new("SCRIPT")).unwrap();
    AgentBuilder::with_model(ScriptedModel::new(scenario)).build()
}

/// The value arrives on the stream first, then as the outcome.
// proves: LASH-63, LASH-117, LASH-119, LASH-120, LASH-47
#[tokio::test]
async fn value_that_fits_the_schema_ends_the_prompt() {
    let session = agent(SCRIPT).new_session().open().await.unwrap();
    let schema = json!({
        "type": "object",
        "properties": {"rating": {"type": "string", "pattern": "^(low|high)$"}},
        "required": ["rating"],
        "additionalProperties": false
    });
    let prompt = session.new_prompt("Rate it.").require_finish_schema(schema);
    let output = prompt.unwrap().run().await.unwrap();
    let value = json!({"rating": "low"});
    assert_eq!(output.value(), Some(&value));
    let told = |activity: &PromptActivity| match &activity.event {
        ActivityEvent::FinalValue { value, .. } => Some(Value::clone(value)),
        _ => None,
    };
    let values: Vec<Value> = output.activities.iter().filter_map(told).collect();
    assert_eq!(values, [value]);
}

/// Prose ends a prompt that allows it, and is not a value; so does a value.
// proves: LASH-115, LASH-118
#[tokio::test]
async fn prose_ends_a_prompt_that_allows_it() {
    let session = agent(SCRIPT).new_session().open().await.unwrap();
    let prompt = || session.new_prompt("Rate it.").allow_prose_or_finish();
    let output = prompt().run().await.unwrap();
    assert_eq!(output.text().as_deref(), Some("It is low."));
    assert_eq!(output.value(), None);
    let output = prompt().run().await.unwrap();
    assert_eq!(output.value(), Some(&json!({"rating": 5})));
}

/// Any value will do without a schema; an unusable schema is an error before anything begins.
// proves: LASH-117, LASH-121
#[tokio::test]
async fn any_value_ends_a_prompt_without_schema() {
    let agent = agent(SCRIPT);
    let session = agent.new_session();
    let session = session.final_answer_format(FinalAnswerFormat::RawValue);
    let session = session.open().await.unwrap();
    let unusable = session
        .new_prompt("Rate it.")
        .require_finish_schema(json!({"type": 1}));
    assert!(unusable.is_err());
    assert!(session.records().await.unwrap().is_empty());
    let output = session.new_prompt("Rate it.").require_finish();
    let output = output.run().await.unwrap();
    assert_eq!(output.value(), Some(&json!({"rating": 5})));
}

/// The form of values is the session's own choice, which goes before the agent's.
// proves: LASH-121
#[tokio::test(start_paused = true)]
async fn form_of_values_is_an_option_of_the_session() {
    use FinalAnswerFormat::{Markdown, RawValue};
    for (of_agent, of_session, is_data) in [
        (Markdown, Some(RawValue), true),
        (Markdown, None, false),
        (RawValue, Some(Markdown), false),
        (RawValue, None, true),
    ] {
        let world = World::with_settings(vec![vec![ToyStep::Call("a", "finish")]], |settings| {
            settings.final_answer_format = Some(of_agent);
        });
        let mut session = world.agent.new_session();
        if let Some(format) = of_session {
            session = session.final_answer_format(format);
        }
        let session = session.open().await.unwrap();
        let _ = session.new_prompt("Rate it.").require_finish().run().await;
        let requests = world.toy.requests.lock().unwrap();
        let tools = &requests.last().unwrap().tools;
        let finish = tools.iter().find(|tool| tool.name == "finish").unwrap();
        let asks_for_data = finish.description.contains("plain data");
        let asks_for_markdown = finish.description.contains("Markdown");
        assert_eq!(
            (asks_for_data, asks_for_markdown),
            (is_data, !is_data),
            "{finish:?}"
        );
    }
}

/// A program without an interpreter is told so before the prompt begins.
// proves: UP-33
#[tokio::test]
async fn code_mode_without_interpreter_is_an_error() {
    let session = agent(SCRIPT).new_session().open().await.unwrap();
    let prompt = session.new_prompt("Rate it.").protocol(Protocol::Code);
    let error = prompt.run().await.unwrap_err().to_string();
    assert!(error.contains("`turnery_sdk::code::init()`"), "{error}");
    assert_eq!(session.records().await.unwrap(), []);
}
