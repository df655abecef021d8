//! An agent in your own program, with a tool of your own. Run it with
//! `cargo run -p turnery-agent --example custom_tool`.

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::{error::Error, io::Write as _, path::Path, path::PathBuf, sync::Arc};
use turnery_agent::{
    Agent, CancellationToken, OpenRequest, Ports, Projects, Settings, SettingsError, Silent,
};
use turnery_engine::{
    CallDetail, Content, Limits, Outcome, ToolEnvelope, ToolFailure, ToolSpec, TurnFinish,
};
use turnery_models::{Catalogue, Model as _, Scenario, Scripted, Thinking};
use turnery_store::MemoryStore;
use turnery_tools::{Access, Mode, Prepared, Tool, ToolCx, Toolbox, Workspace};

/// What the model says: any model of the catalogue takes its place.
const SCRIPT: &str = r#"{"answers": [
    {"steps": [{"tool_call": {"name": "seats", "args": {"tables": 3}}}]},
    {"when": {"last_tool_result_contains": "12 seats"}, "steps": [{"text": "Three tables seat twelve."}]}
]}"#;

/// Says how many people find a seat.
struct Seats(ToolSpec);

impl Tool for Seats {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }
    fn describe(&self, _: &Value, _: &Workspace) -> CallDetail {
        CallDetail::default()
    }
    fn prepare<'a>(
        &'a self,
        args: &'a Value,
        cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<Prepared, ToolFailure>> {
        // It touches nothing, so nobody is asked.
        let access = Access::Nothing;
        let detail = self.describe(args, &cx.workspace);
        Box::pin(async move { Ok(Prepared { access, detail }) })
    }
    fn run<'a>(&'a self, args: &'a Value, _: &'a ToolCx) -> BoxFuture<'a, ToolEnvelope> {
        let seats = args["tables"].as_u64().unwrap_or(0) * 4;
        Box::pin(async move { ToolEnvelope::text(format!("{seats} seats")) })
    }
}

/// The same settings in every folder.
struct Fixed(Settings);

impl Projects for Fixed {
    fn settings(&self, _: &[PathBuf]) -> Result<Settings, SettingsError> {
        Ok(self.0.clone())
    }
}

async fn ask(prompt: &str) -> Result<String, Box<dyn Error>> {
    let model = Scripted::new(Scenario::parse(SCRIPT, Path::new("SCRIPT"))?);
    let settings = Settings {
        model: model.info().name.clone(),
        mode: Mode::Ask,
        allow: Vec::new(),
        deny: Vec::new(),
        limits: Limits::default(),
        thinking: Thinking::Default,
        system: "You plan parties.".into(),
    };
    let coding = Toolbox::coding();
    let mut tools: Vec<Arc<dyn Tool>> = vec![Arc::new(Seats(ToolSpec {
        name: "seats".to_owned(),
        description: "How many people find a seat.".to_owned(),
        schema: Arc::new(json!({"type": "object", "properties": {"tables": {"type": "integer"}}})),
    }))];
    tools.extend(
        coding
            .specs()
            .iter()
            .filter_map(|spec| coding.get(&spec.name).cloned()),
    );
    let agent = Agent::new(
        Arc::new(MemoryStore::new()),
        Arc::new(Catalogue::new(Vec::new()).with_model(Arc::new(model))),
        Toolbox::new(tools),
        Arc::new(Fixed(settings)),
    );
    let here = OpenRequest {
        cwd: std::env::current_dir()?,
        roots: Vec::new(),
    };
    let ports = Ports::local(Arc::new(Silent), Box::new(Silent));
    let session = agent.create(here, |_| ports).await?;
    let prompt = vec![Content::text(prompt)];
    let ticket = session.start(prompt, CancellationToken::new())?;
    let answer = match ticket.result().await?.outcome {
        Outcome::Finished(TurnFinish::AssistantMessage { text }) => text,
        other => return Err(format!("the prompt ended early: {other:?}").into()),
    };
    session.close().await;
    Ok(answer)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let answer = ask("How many people find a seat at three tables?").await?;
    writeln!(std::io::stdout(), "{answer}")?;
    Ok(())
}

#[tokio::test]
async fn the_tool_is_called_and_the_model_sees_what_it_said() {
    let answer = ask("How many?").await.expect("an answer");
    assert_eq!(answer, "Three tables seat twelve.");
}
