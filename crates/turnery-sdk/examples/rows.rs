//! Renders a screen of rows from the activities of a prompt: items with the same correlation id update the
//! same row, whatever comes between them. Run it with `cargo run -p turnery-sdk --example rows`.

use std::{
    error::Error,
    io::Write as _,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};
use turnery_sdk::{
    BoxFuture, CorrelationId,
    models::{Scenario, ScriptedModel},
    prelude::*,
    render_value,
};

/// Scripted model responses; any model of the registry can be used instead.
const SCRIPT: &str = r#"{"answers": [
    {"steps": [
        {"thinking": ["I shall ", "look first."]},
        {"text": ["Let me ", "look."]},
        {"tool_call": {"id": "1", "name": "list_dir", "args": {"path": "."}}},
        {"tool_call": {"id": "2", "name": "read_file", "args": {"path": "no-such-file"}}}
    ]},
    {"steps": [{"text": "That is all there is."}], "usage": {"input": 12, "output": 5}}
]}"#;

/// Rows of the screen, from the top.
#[derive(Default)]
struct Rows(Mutex<Vec<(CorrelationId, String)>>);

/// Change to the text of a row.
enum RowChange {
    Append(String),
    Draw(String),
}

impl Rows {
    fn apply(&self, activity: &PromptActivity) {
        let stroke = match &activity.event {
            ActivityEvent::AssistantProseDelta { text } => RowChange::Append(text.to_string()),
            ActivityEvent::ReasoningDelta { text } => RowChange::Append(text.to_string()),
            ActivityEvent::ToolCallStarted { name, args, .. } => {
                RowChange::Draw(format!("… {name} {args}"))
            }
            // Enough to draw the whole row, also for a reader that missed the start.
            ActivityEvent::ToolCallCompleted { name, output, .. } => {
                let mark = if output.is_error { "✗" } else { "✓" };
                let text = output.text();
                RowChange::Draw(format!(
                    "{mark} {name}: {}",
                    text.lines().next().unwrap_or("")
                ))
            }
            ActivityEvent::FinalValue { value } | ActivityEvent::ToolValue { value, .. } => {
                RowChange::Draw(render_value(value))
            }
            ActivityEvent::Error { text } => RowChange::Draw(format!("! {text}")),
            // Future versions may add more kinds.
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
            RowChange::Append(text) => rows[place].1.push_str(&text),
            RowChange::Draw(text) => rows[place].1 = text,
        }
    }

    fn lines(&self) -> Vec<String> {
        let rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rows.iter().map(|(_, text)| text.clone()).collect()
    }
}

impl ActivitySink for Rows {
    fn emit(&self, activity: PromptActivity) -> BoxFuture<'_, ()> {
        self.apply(&activity);
        Box::pin(std::future::ready(()))
    }
}

async fn ask(folder: &Path, prompt: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let model = ScriptedModel::new(Scenario::parse(SCRIPT, Path::new("SCRIPT"))?);
    let agent = AgentBuilder::with_model(model)
        .system("You look around.")
        .tools(Toolbox::coding())
        .build();
    let session = agent.new_session().folder(folder).open().await?;
    let rows = Arc::new(Rows::default());
    let prompt = session.new_prompt(prompt);
    prompt
        .stream_to(Arc::clone(&rows) as Arc<dyn ActivitySink>)
        .await?;
    session.close().await;
    Ok(rows.lines())
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::current_dir()?;
    for line in block_on(ask(&folder, "What is here?"))? {
        writeln!(std::io::stdout(), "{line}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnery_engine::{
        Disposition, Event, EventKind, PlanEntry, PlanPriority, PlanStatus, ToolEnvelope,
    };
    use turnery_sdk::Projection;

    // proves: LASH-46, LASH-55, LASH-72, LASH-76, LASH-45
    #[tokio::test]
    async fn each_block_and_call_has_its_row() {
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

    fn apply_event(rows: &Rows, kind: EventKind) {
        let event = Event {
            session_id: "s".into(),
            loop_id: "s.m.1".into(),
            seq: 0,
            turn_index: None,
            at: "2026-11-21T08:00:00Z".parse().unwrap(),
            kind,
        };
        rows.apply(&Projection::default().project(&event).unwrap());
    }

    // proves: LASH-62
    #[test]
    fn call_end_alone_draws_its_row() {
        let rows = Rows::default();
        let call = EventKind::ToolExecutionEnd {
            call_id: "c".into(),
            tool_name: "look".to_owned(),
            envelope: ToolEnvelope::text("found\nit"),
            disposition: Disposition::Executed,
            child_loop_id: None,
        };
        apply_event(&rows, call);
        assert_eq!(rows.lines(), ["✓ look: found"]);
    }

    // proves: LASH-67
    #[test]
    fn unknown_event_draws_nothing() {
        let rows = Rows::default();
        let entries = vec![PlanEntry {
            content: "look".to_owned(),
            priority: PlanPriority::High,
            status: PlanStatus::Pending,
        }];
        apply_event(&rows, EventKind::PlanUpdated { entries });
        assert!(rows.lines().is_empty());
    }
}
