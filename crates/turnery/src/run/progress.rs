//! Progress: one line on stderr for each call that begins, and one for how it ended.

use crate::show::{Paint, line};
use std::{
    collections::HashMap,
    io::{self, Write},
};
use turnery_engine::{CallId, Disposition, EventKind, PlanStatus};

/// Longest title that is shown. Unit: characters.
const WIDTH: usize = 100;

/// Writes progress lines.
#[derive(Debug)]
pub(crate) struct Progress {
    paint: Paint,
    titles: HashMap<CallId, String>,
}

impl Progress {
    pub(crate) fn new(colour: bool) -> Self {
        Self {
            paint: Paint(colour),
            titles: HashMap::new(),
        }
    }

    /// Write what this event says.
    pub(crate) fn show(&mut self, kind: &EventKind, err: &mut impl Write) -> io::Result<()> {
        match kind {
            EventKind::ToolCallRequested { call, detail } => {
                let title = match detail.title.as_str() {
                    "" => call.name.as_str(),
                    title => title,
                };
                self.titles.insert(call.call_id.clone(), line(title, WIDTH));
                Ok(())
            }
            EventKind::ToolExecutionStart {
                call_id,
                tool_name,
                runs: true,
            } => {
                let title = self.title(call_id, tool_name);
                writeln!(err, "{}", self.paint.dim(&format!("• {title}")))
            }
            EventKind::ToolExecutionEnd {
                call_id,
                tool_name,
                envelope,
                disposition,
            } => {
                let title = self.title(call_id, tool_name);
                self.titles.remove(call_id);
                let mark = match (&envelope.result, disposition) {
                    (Ok(_), _) => return writeln!(err, "{} {title}", self.paint.green("✓")),
                    (Err(_), Disposition::Denied) => "✗ denied:",
                    (Err(_), Disposition::Cancelled) => "✗ cancelled:",
                    (
                        Err(_),
                        Disposition::Executed
                        | Disposition::NotFound
                        | Disposition::Invalid
                        | Disposition::Skipped
                        | Disposition::TimedOut,
                    ) => "✗",
                };
                let why = envelope
                    .result
                    .as_ref()
                    .err()
                    .map(|failure| line(&failure.message, 4 * WIDTH))
                    .unwrap_or_default();
                writeln!(err, "{} {title}: {why}", self.paint.red(mark))
            }
            EventKind::PlanUpdated { entries } => {
                for entry in entries {
                    let mark = match entry.status {
                        PlanStatus::Pending => "[ ]",
                        PlanStatus::InProgress => "[>]",
                        PlanStatus::Completed => "[x]",
                    };
                    let text = format!("  {mark} {}", line(&entry.content, WIDTH));
                    writeln!(err, "{}", self.paint.dim(&text))?;
                }
                Ok(())
            }
            EventKind::InputRejected { reason } => {
                writeln!(err, "{} {}", self.paint.red("✗"), line(reason, 4 * WIDTH))
            }
            EventKind::ToolExecutionStart { runs: false, .. }
            | EventKind::LoopStart { .. }
            | EventKind::TurnStart { .. }
            | EventKind::MessageStart { .. }
            | EventKind::Delta { .. }
            | EventKind::MessageEnd { .. }
            | EventKind::UsageReported { .. }
            | EventKind::PermissionRequested { .. }
            | EventKind::PermissionResolved { .. }
            | EventKind::ToolExecutionUpdate { .. }
            | EventKind::ToolExecutionOutput { .. }
            | EventKind::TurnEnd { .. }
            | EventKind::LoopEnd { .. } => Ok(()),
        }
    }

    fn title(&self, call_id: &CallId, tool_name: &str) -> String {
        self.titles
            .get(call_id)
            .cloned()
            .unwrap_or_else(|| line(tool_name, WIDTH))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use turnery_engine::{CallDetail, FailureKind, ToolCall, ToolEnvelope};

    fn requested(id: &str, title: &str) -> EventKind {
        EventKind::ToolCallRequested {
            call: ToolCall {
                call_id: id.into(),
                name: "shell".to_owned(),
                args: Arc::new(serde_json::json!({})),
            },
            detail: CallDetail {
                title: title.to_owned(),
                ..CallDetail::default()
            },
        }
    }

    fn start(id: &str, runs: bool) -> EventKind {
        EventKind::ToolExecutionStart {
            call_id: id.into(),
            tool_name: "shell".to_owned(),
            runs,
        }
    }

    fn end(id: &str, envelope: ToolEnvelope, disposition: Disposition) -> EventKind {
        EventKind::ToolExecutionEnd {
            call_id: id.into(),
            tool_name: "shell".to_owned(),
            envelope,
            disposition,
        }
    }

    #[test]
    fn a_call_that_runs_has_two_lines_and_one_that_does_not_has_one() {
        let mut progress = Progress::new(false);
        let mut err = Vec::new();
        let denied = ToolEnvelope::failed(FailureKind::Denied, "no --allow for it");
        for event in [
            requested("a", "Read src/main.rs"),
            requested("b", "Run rm\u{1b}[8m -rf"),
            start("a", true),
            end("a", ToolEnvelope::text("fn main"), Disposition::Executed),
            start("b", false),
            end("b", denied, Disposition::Denied),
        ] {
            progress.show(&event, &mut err).unwrap();
        }
        assert_eq!(
            String::from_utf8(err).unwrap(),
            "• Read src/main.rs\n✓ Read src/main.rs\n\
             ✗ denied: Run rm\u{fffd}[8m -rf: no --allow for it\n"
        );
    }
}
