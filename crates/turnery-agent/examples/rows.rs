//! A screen of rows, drawn from the activities of a prompt: items with the same correlation id are the
//! same row, whatever comes between them. Run it with `cargo run -p turnery-agent --example rows`.

use futures_util::future::BoxFuture;
use std::{
    error::Error,
    io::Write as _,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};
use turnery_agent::{
    ActivitySink, Agent, CorrelationId, OpenRequest, Ports, Settings, Silent, TurnActivity,
    TurnEvent, TurnInput, render,
};
use turnery_models::{Catalogue, Model as _, Scenario, Scripted};
use turnery_store::MemoryStore;
use turnery_tools::Toolbox;

/// What the model says: any model of the catalogue takes its place.
const SCRIPT: &str = r#"{"answers": [
    {"steps": [
        {"thinking": ["I shall ", "look first."]},
        {"text": ["Let me ", "look."]},
        {"tool_call": {"id": "1", "name": "list_dir", "args": {"path": "."}}},
        {"tool_call": {"id": "2", "name": "read_file", "args": {"path": "no-such-file"}}}
    ]},
    {"steps": [{"text": "That is all there is."}], "usage": {"input": 12, "output": 5}}
]}"#;

/// The rows of the screen, from the top.
#[derive(Default)]
struct Rows(Mutex<Vec<(CorrelationId, String)>>);

/// What an activity does to its row.
enum Stroke {
    Append(String),
    Draw(String),
}

impl Rows {
    fn on(&self, activity: &TurnActivity) {
        let stroke = match &activity.event {
            TurnEvent::AssistantProseDelta { text } => Stroke::Append(text.to_string()),
            TurnEvent::ReasoningDelta { text } => Stroke::Append(text.to_string()),
            TurnEvent::ToolCallStarted { name, args, .. } => {
                Stroke::Draw(format!("… {name} {args}"))
            }
            // Enough to draw the whole row, also for whoever came too late for its start.
            TurnEvent::ToolCallCompleted { name, output, .. } => {
                let mark = if output.is_error { "✗" } else { "✓" };
                let text = output.text();
                Stroke::Draw(format!(
                    "{mark} {name}: {}",
                    text.lines().next().unwrap_or("")
                ))
            }
            TurnEvent::FinalValue { value } | TurnEvent::ToolValue { value, .. } => {
                Stroke::Draw(render(value))
            }
            TurnEvent::Error { text } => Stroke::Draw(format!("! {text}")),
            // There may be more kinds one day.
            _ => return,
        };
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = rows
            .iter()
            .position(|(id, _)| *id == activity.correlation_id);
        let place = place.unwrap_or_else(|| {
            rows.push((activity.correlation_id.clone(), String::new()));
            rows.len() - 1
        });
        match stroke {
            Stroke::Append(text) => rows[place].1.push_str(&text),
            Stroke::Draw(text) => rows[place].1 = text,
        }
    }

    fn lines(&self) -> Vec<String> {
        let rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rows.iter().map(|(_, text)| text.clone()).collect()
    }
}

impl ActivitySink for Rows {
    fn emit(&self, activity: TurnActivity) -> BoxFuture<'_, ()> {
        self.on(&activity);
        Box::pin(std::future::ready(()))
    }
}

async fn ask(folder: &Path, prompt: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let model = Scripted::new(Scenario::parse(SCRIPT, Path::new("SCRIPT"))?);
    let settings = Settings::new(model.info().name.clone(), "You look around.");
    let agent = Agent::new(
        Arc::new(MemoryStore::new()),
        Arc::new(Catalogue::new(Vec::new()).with_model(Arc::new(model))),
        Toolbox::coding(),
        Arc::new(settings),
    );
    let here = OpenRequest {
        cwd: folder.to_owned(),
        roots: Vec::new(),
        mcp: Vec::new(),
        instructions: None,
    };
    let ports = Ports::local(Arc::new(Silent), Box::new(Silent));
    let session = agent.create(here, |_| ports).await?;
    let rows = Arc::new(Rows::default());
    let turn = session.turn(TurnInput::text(prompt));
    turn.stream_to(Arc::clone(&rows) as Arc<dyn ActivitySink>)
        .await?;
    session.close().await;
    Ok(rows.lines())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    for line in ask(&std::env::current_dir()?, "What is here?").await? {
        writeln!(std::io::stdout(), "{line}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnery_agent::Projection;
    use turnery_engine::{
        Disposition, Event, EventKind, PlanEntry, PlanPriority, PlanStatus, ToolEnvelope,
    };

    // proves: LASH-46, LASH-55, LASH-72, LASH-76
    #[tokio::test]
    async fn a_row_for_each_block_and_each_call() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.txt"), "a").unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let lines = ask(&folder, "What is here?").await.unwrap();
        assert_eq!(lines.len(), 5, "{lines:#?}");
        assert_eq!(lines[0], "I shall look first.");
        assert_eq!(lines[1], "Let me look.");
        assert!(lines[2].starts_with("✓ list_dir: "), "{}", lines[2]);
        assert!(lines[3].starts_with("✗ read_file: "), "{}", lines[3]);
        assert_eq!(lines[4], "That is all there is.");
    }

    fn shown(rows: &Rows, kind: EventKind) {
        let event = Event {
            session_id: "s".into(),
            loop_id: "s.m.1".into(),
            seq: 0,
            turn_index: None,
            at: "2026-11-21T08:00:00Z".parse().unwrap(),
            kind,
        };
        rows.on(&Projection::default().on(&event).unwrap());
    }

    // proves: LASH-62
    #[test]
    fn the_end_of_a_call_draws_its_row_without_the_start() {
        let rows = Rows::default();
        let call = EventKind::ToolExecutionEnd {
            call_id: "c".into(),
            tool_name: "look".to_owned(),
            envelope: ToolEnvelope::text("found\nit"),
            disposition: Disposition::Executed,
            child_loop_id: None,
        };
        shown(&rows, call);
        assert_eq!(rows.lines(), ["✓ look: found"]);
    }

    // proves: LASH-67
    #[test]
    fn a_kind_that_this_sink_does_not_know_draws_nothing() {
        let rows = Rows::default();
        let entries = vec![PlanEntry {
            content: "look".to_owned(),
            priority: PlanPriority::High,
            status: PlanStatus::Pending,
        }];
        shown(&rows, EventKind::PlanUpdated { entries });
        assert!(rows.lines().is_empty());
    }
}
