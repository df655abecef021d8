//! Embeds an agent with a tool that implements `Tool` itself, and a scripted model:
//! `cargo run -p turnery-sdk --example custom_tool`. A tool of one function, and a provider's model, are in
//! `custom_agent`.

use std::{error::Error, io::Write as _, path::Path};
use turnery_sdk::{
    BoxFuture,
    engine::ToolSpec,
    models::{Scenario, ScriptedModel},
    prelude::*,
};

/// Scripted model responses; any other model can be used instead.
const SCRIPT: &str = r#"{"answers": [
    {"steps": [{"tool_call": {"name": "seats", "args": {"tables": 3}}}]},
    {"when": {"last_tool_result_contains": "12 seats"}, "steps": [{"text": "Three tables seat twelve."}]}
]}"#;

/// Tool that counts the seats at a number of tables.
struct Seats(ToolSpec);

impl Tool for Seats {
    fn spec(&self) -> ToolSpec {
        self.0.clone()
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
    let agent = AgentBuilder::with_model(model)
        .system("You plan parties.")
        .tools(Toolbox::coding())
        .tool(seats)
        .build();
    let folder = std::env::current_dir()?;
    let session = agent.new_session().folder(folder).open().await?;
    let output = session.new_prompt(prompt).run().await?;
    let ended_early = || format!("the prompt ended early: {:?}", output.result.outcome);
    Ok(output.text().ok_or_else(ended_early)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let answer = block_on(ask("How many people find a seat at three tables?"))?;
    Ok(writeln!(std::io::stdout(), "{answer}")?)
}

#[tokio::test]
async fn tool_result_reaches_the_model() {
    let answer = ask("How many?").await.expect("an answer");
    assert_eq!(answer, "Three tables seat twelve.");
}
