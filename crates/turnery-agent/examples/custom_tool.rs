//! Embeds an agent with a custom tool in a program: `cargo run -p turnery-agent --example custom_tool`.

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::{error::Error, io::Write as _, path::Path, sync::Arc};
use turnery_agent::{Agent, ClientPorts, OpenRequest, PromptOptions, Settings};
use turnery_engine::{Content, Outcome, ToolEnvelope, ToolSpec, TurnFinish::AssistantMessage};
use turnery_models::{Model as _, ModelRegistry, Scenario, ScriptedModel};
use turnery_store::MemoryStore;
use turnery_tools::{Tool, ToolCx, Toolbox};

/// Scripted model responses; any model of the registry can be used instead.
const SCRIPT: &str = r#"{"answers": [
    {"steps": [{"tool_call": {"name": "seats", "args": {"tables": 3}}}]},
    {"when": {"last_tool_result_contains": "12 seats"}, "steps": [{"text": "Three tables seat twelve."}]}
]}"#;

/// Returns how many people find a seat.
struct Seats(ToolSpec);

impl Tool for Seats {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }
    fn run<'a>(&'a self, args: &'a Value, _: &'a ToolCx) -> BoxFuture<'a, ToolEnvelope> {
        let seats = args["tables"].as_u64().unwrap_or(0) * 4;
        Box::pin(async move { ToolEnvelope::text(format!("{seats} seats")) })
    }
}

async fn ask(prompt: &str) -> Result<String, Box<dyn Error>> {
    let schema = json!({"type": "object", "properties": {"tables": {"type": "integer"}}});
    let seats = Seats(ToolSpec::new("seats", "How many find a seat.", schema));
    let model = ScriptedModel::new(Scenario::parse(SCRIPT, Path::new("SCRIPT"))?);
    let settings = Settings::new(model.info().name.clone(), "You plan parties.");
    let models = ModelRegistry::new(Vec::new()).with_model(Arc::new(model));
    let tools = Toolbox::coding().and(seats);
    let store = Arc::new(MemoryStore::new());
    let agent = Agent::new(store, Arc::new(models), tools, Arc::new(settings));
    let here = OpenRequest::folder(std::env::current_dir()?);
    let session = agent.create(here, |_| ClientPorts::silent()).await?;
    let ticket = session.prompt(vec![Content::text(prompt)], PromptOptions::default())?;
    match ticket.result().await?.outcome {
        Outcome::Finished(AssistantMessage { text }, _) => Ok(text.to_string()),
        other => Err(format!("the prompt ended early: {other:?}").into()),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let answer = ask("How many people find a seat at three tables?").await?;
    Ok(writeln!(std::io::stdout(), "{answer}")?)
}

#[tokio::test]
async fn tool_result_reaches_the_model() {
    let answer = ask("How many?").await.expect("an answer");
    assert_eq!(answer, "Three tables seat twelve.");
}
