//! An agent with one tool of its own: `ANTHROPIC_API_KEY=... cargo run -p turnery-sdk --example custom_agent`.

use turnery_sdk::prelude::*;

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "turnery_sdk::serde")]
#[schemars(crate = "turnery_sdk::schemars")]
struct SeatsArgs {
    /// Number of tables.
    tables: u32,
}

async fn ask(question: &str) -> Result<Option<String>, Box<dyn std::error::Error>> {
    let seats = async |args: SeatsArgs, _| ToolEnvelope::text(format!("{} seats", 4 * args.tables));
    let agent = AgentBuilder::new("anthropic/claude-sonnet-4-6")?
        .system("You plan parties.")
        .tool(FunctionTool::new("seats", "Counts seats at tables.", seats))
        .build();
    let session = agent.session("party-42").open().await?;
    Ok(session.new_prompt(question).run().await?.text())
}

#[expect(clippy::print_stdout, reason = "this is the program's output")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let answer = block_on(ask("How many people find a seat at three tables?"))?;
    println!("{}", answer.unwrap_or_default());
    Ok(())
}

#[cfg(test)]
mod tests;
