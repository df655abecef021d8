//! Implements a custom loop around a model and its tools: call the model, normalize its response, run the
//! tools it requests, add both to the history, repeat. Run it with `cargo run -p turnery-sdk --example
//! tool_loop`.

use std::{error::Error, io::Write as _, path::Path, sync::Arc};
use turnery_sdk::{
    engine::{Message, Response, ResponseOverrides},
    generate,
    models::{Model, Scenario, ScriptedModel},
    prelude::*,
    tools::{ExecuteOptions, ExecuteScope, Workspace, run_tools},
};

/// Scripted model responses; any model of the registry can be used instead.
const SCRIPT: &str = r#"{"answers": [
    {"steps": [{"tool_call": {"name": "multiply", "args": {"a": 6, "b": 7}}}]},
    {"when": {"last_tool_result_contains": "{\"product\":42}"}, "steps": [{"text": "It is 42."}]}
]}"#;

/// Maximum number of model calls.
const MAX_ITERATIONS: u32 = 5;

fn multiply() -> FunctionTool {
    FunctionTool::new(
        "multiply",
        "Multiplies a by b.",
        async |args: Value, _| match (args["a"].as_i64(), args["b"].as_i64()) {
            (Some(a), Some(b)) => Ok(json!({"product": a * b})),
            _ => Err(ToolError::new(
                ToolErrorKind::Validation,
                "a and b must be whole numbers",
            )),
        },
    )
}

async fn tool_loop(
    model: &dyn Model,
    mut history: Vec<Message>,
    tools: &Toolbox,
) -> Result<Response, Box<dyn Error>> {
    let workspace = Arc::new(Workspace::local(std::env::current_dir()?)?);
    let scope = ExecuteScope::new(workspace).with_tools(tools.clone());
    let names: Vec<&str> = tools.names().collect();
    for _ in 0..MAX_ITERATIONS {
        // 1. Call the model.
        let answer = generate(model, &history, tools, &names).await?;
        // 2. Normalize its response. A provider's raw JSON would do as well.
        let response = Response::from_response(answer, ResponseOverrides::default())?;
        // 3. Check whether it requests tools.
        if !response.needs_tools() {
            return Ok(response);
        }
        // 4. Run them.
        let executed = run_tools(&response, &scope, &ExecuteOptions::default()).await;
        // 5. Add the response and the results to the history.
        history.push(executed.assistant_message());
        history.extend(executed.tool_messages());
    }
    Err("max_iterations_reached".into())
}

fn question() -> Vec<Message> {
    vec![
        Message::System {
            text: "You are a calculator. Use the multiply tool.".to_owned(),
        },
        Message::user("What is 6 * 7?"),
    ]
}

fn main() -> Result<(), Box<dyn Error>> {
    let model = ScriptedModel::new(Scenario::parse(SCRIPT, Path::new("SCRIPT"))?);
    let answer = block_on(tool_loop(&model, question(), &multiply().into()))?;
    writeln!(std::io::stdout(), "{}", answer.text())?;
    Ok(())
}

// proves: JIDO-1, JIDO-17, JIDO-31, JIDO-32
#[tokio::test]
async fn model_is_called_until_final_answer() {
    let model =
        ScriptedModel::new(Scenario::parse(SCRIPT, Path::new("SCRIPT")).expect("a scenario"));
    let answer = tool_loop(&model, question(), &multiply().into()).await;
    assert_eq!(answer.expect("an answer").text(), "It is 42.");
}

// proves: JIDO-33
#[tokio::test]
async fn endless_model_stops_at_max_iterations() {
    let script = r#"{"repeat": true, "answers": [
        {"steps": [{"tool_call": {"name": "multiply", "args": {"a": 1, "b": 1}}}]}
    ]}"#;
    let model =
        ScriptedModel::new(Scenario::parse(script, Path::new("SCRIPT")).expect("a scenario"));
    let error = tool_loop(&model, question(), &multiply().into())
        .await
        .expect_err("no answer");
    assert_eq!(error.to_string(), "max_iterations_reached");
}
