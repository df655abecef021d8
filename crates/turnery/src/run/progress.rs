//! Writes progress to stderr: one line for each tool call that starts and one for each that fails.

use crate::terminal_text::{self, Paint, line};
use std::{
    collections::HashMap,
    io::{self, Write},
};
use turnery_engine::{CallId, Disposition, EventKind, PlanEntry, PlanStatus};
use turnery_tools::UpdatePlan;

/// Longest title that is printed. Unit: characters.
const TITLE_WIDTH: usize = 100;

/// Writes progress lines.
#[derive(Debug)]
pub(crate) struct Progress {
    paint: Paint,
    titles: HashMap<CallId, String>,
    /// Last plan that was printed.
    plan: Vec<PlanEntry>,
}

impl Progress {
    pub(crate) fn new(colour: bool) -> Self {
        Self {
            paint: Paint(colour),
            titles: HashMap::new(),
            plan: Vec::new(),
        }
    }

    /// Writes the lines for an event.
    pub(crate) fn write_event(&mut self, kind: &EventKind, err: &mut impl Write) -> io::Result<()> {
        match kind {
            EventKind::ToolCallRequested { call, detail } => {
                let title = match detail.title.as_str() {
                    "" => call.name.as_str(),
                    title => title,
                };
                let title = terminal_text::single_line(title, TITLE_WIDTH);
                self.titles.insert(call.call_id.clone(), title);
                Ok(())
            }
            EventKind::ToolExecutionStart {
                call_id,
                tool_name,
                runs: true,
            } if tool_name != UpdatePlan::NAME => {
                let title = self.title(call_id, tool_name);
                writeln!(err, "{}", self.paint.dim(&format!("• {title}")))
            }
            EventKind::ToolExecutionEnd {
                call_id,
                tool_name,
                envelope,
                disposition,
                child_loop_id: _,
            } => {
                let title = self.title(call_id, tool_name);
                self.titles.remove(call_id);
                let Err(failure) = &envelope.result else {
                    return Ok(());
                };
                let mark = match disposition {
                    Disposition::Denied => "✗ denied:",
                    Disposition::Cancelled => "✗ cancelled:",
                    Disposition::Executed
                    | Disposition::NotFound
                    | Disposition::Invalid
                    | Disposition::Skipped
                    | Disposition::TimedOut => "✗",
                };
                let code = envelope.value.as_ref().map(|value| &value["exit_code"]);
                let why = match code.and_then(|code| code.as_i64()) {
                    Some(code) => format!("exit code {code}"),
                    None => line(strip_title(&failure.message, &title), 4 * TITLE_WIDTH),
                };
                let colon = if why.is_empty() { "" } else { ": " };
                writeln!(err, "{} {title}{colon}{why}", self.paint.red(mark))
            }
            EventKind::PlanUpdated { entries } => {
                for entry in entries.iter().filter(|entry| !self.plan.contains(entry)) {
                    let mark = match entry.status {
                        PlanStatus::Pending => "[ ]",
                        PlanStatus::InProgress => "[>]",
                        PlanStatus::Completed => "[x]",
                    };
                    let text = format!("  {mark} {}", line(&entry.content, TITLE_WIDTH));
                    writeln!(err, "{}", self.paint.dim(&text))?;
                }
                self.plan.clone_from(entries);
                Ok(())
            }
            EventKind::InputRejected { reason } => {
                writeln!(
                    err,
                    "{} {}",
                    self.paint.red("✗"),
                    line(reason, 4 * TITLE_WIDTH)
                )
            }
            EventKind::Issue { text } => {
                writeln!(
                    err,
                    "{} {}",
                    self.paint.red("!"),
                    line(text, 4 * TITLE_WIDTH)
                )
            }
            EventKind::ToolProgress { text, .. } => {
                let text = format!("  {}", line(text, TITLE_WIDTH));
                writeln!(err, "{}", self.paint.dim(&text))
            }
            EventKind::ModelRetried {
                error: fault,
                wait_ms,
                ..
            } => {
                let wait = format!("{}.{} s", wait_ms / 1000, wait_ms % 1000 / 100);
                let why = line(&fault.message, 2 * TITLE_WIDTH);
                let text = format!("• Call the model again in {wait}: {why}");
                writeln!(err, "{}", self.paint.dim(&text))
            }
            EventKind::ModelSilent { silent_ms, .. } => {
                let text = format!("• The model has sent nothing for {} s", silent_ms / 1000);
                writeln!(err, "{}", self.paint.dim(&text))
            }
            EventKind::CompactionStarted { before } => {
                let text = format!(
                    "• Summarise older messages ({} with about {} tokens)",
                    before.messages, before.tokens
                );
                writeln!(err, "{}", self.paint.dim(&text))
            }
            EventKind::CompactionEnded {
                failure: Some(failure),
                ..
            } => {
                let mark = self.paint.red("✗");
                writeln!(err, "{mark} no summary: {}", line(failure, 4 * TITLE_WIDTH))
            }
            EventKind::ToolExecutionStart { .. }
            | EventKind::ParallelStart { .. }
            | EventKind::ParallelEnd { .. }
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
            | EventKind::CompactionEnded { failure: None, .. }
            | EventKind::ChildUsageReported { .. }
            | EventKind::FinalValue { .. }
            | EventKind::ToolValue { .. }
            | EventKind::TurnEnd { .. }
            | EventKind::LoopEnd { .. } => Ok(()),
        }
    }

    fn title(&self, call_id: &CallId, tool_name: &str) -> String {
        self.titles
            .get(call_id)
            .cloned()
            .unwrap_or_else(|| line(tool_name, TITLE_WIDTH))
    }
}

/// Removes the tool's name from the start of a message if it repeats the title.
fn strip_title<'m>(message: &'m str, title: &str) -> &'m str {
    let rest = message.strip_prefix(title);
    let rest = rest.and_then(|rest| rest.strip_prefix(": "));
    rest.unwrap_or(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use turnery_engine::{
        CallDetail, ContextSize, ModelError, ModelErrorKind, PlanPriority, ToolCall, ToolEnvelope,
        ToolErrorKind,
    };

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
            child_loop_id: None,
        }
    }

    #[test]
    fn call_has_line_at_start_and_at_failure() {
        let mut progress = Progress::new(false);
        let mut err = Vec::new();
        let denied = ToolEnvelope::failed(ToolErrorKind::Denied, "no --allow for it");
        let missing = "shell: \"command\" is missing";
        let invalid = ToolEnvelope::failed(ToolErrorKind::Validation, missing);
        for event in [
            requested("a", "Read src/main.rs"),
            requested("b", "Run rm\u{1b}[8m -rf"),
            start("a", true),
            end("a", ToolEnvelope::text("fn main"), Disposition::Executed),
            start("b", false),
            end("b", denied, Disposition::Denied),
            requested("c", "cat\na"),
            start("c", true),
            // Arguments that do not match the schema leave a call without a title.
            requested("d", ""),
            start("d", false),
            end("d", invalid, Disposition::Invalid),
        ] {
            progress.write_event(&event, &mut err).unwrap();
        }
        assert_eq!(
            String::from_utf8(err).unwrap(),
            "• Read src/main.rs\n\
             ✗ denied: Run rm⟨U+001B⟩[8m -rf: no --allow for it\n\
             • cat ⏎ a\n\
             ✗ shell: \"command\" is missing\n"
        );
    }

    #[test]
    fn other_events_have_their_own_lines() {
        let mut progress = Progress::new(false);
        let mut err = Vec::new();
        let size = |tokens, messages| ContextSize { tokens, messages };
        let ended = |failure: Option<&str>| EventKind::CompactionEnded {
            block: None,
            after: size(1, 1),
            failure: failure.map(str::to_owned),
            usage: None,
        };
        for event in [
            EventKind::CompactionStarted {
                before: size(180_000, 40),
            },
            ended(None),
            ended(Some("the model was cut off")),
            EventKind::ModelRetried {
                attempt: 1,
                error: ModelError {
                    kind: ModelErrorKind::Overloaded,
                    message: "529\u{1b}[2J overloaded".to_owned(),
                    status: None,
                    retry_after: None,
                },
                wait_ms: 2_340,
            },
            EventKind::ModelSilent {
                silent_ms: 30_900,
                is_connected: true,
            },
            EventKind::ToolProgress {
                call_id: "a".into(),
                text: "3 of 7 crates".to_owned(),
            },
            EventKind::Issue {
                text: "A hook failed.".to_owned(),
            },
        ] {
            progress.write_event(&event, &mut err).unwrap();
        }
        assert_eq!(
            String::from_utf8(err).unwrap(),
            "• Summarise older messages (40 with about 180000 tokens)\n\
             ✗ no summary: the model was cut off\n\
             • Call the model again in 2.3 s: 529⟨U+001B⟩[2J overloaded\n\
             • The model has sent nothing for 30 s\n  \
             3 of 7 crates\n\
             ! A hook failed.\n"
        );
    }

    #[test]
    fn only_changed_plan_entries_are_shown() {
        let entry = |content: &str, status| PlanEntry {
            content: content.to_owned(),
            priority: PlanPriority::Medium,
            status,
        };
        let mut progress = Progress::new(false);
        let mut err = Vec::new();
        for (one, two) in [
            (PlanStatus::InProgress, PlanStatus::Pending),
            (PlanStatus::Completed, PlanStatus::Pending),
        ] {
            let entries = vec![entry("look", one), entry("tell", two)];
            let plan = EventKind::PlanUpdated { entries };
            progress.write_event(&plan, &mut err).unwrap();
        }
        let call = EventKind::ToolExecutionStart {
            call_id: "p".into(),
            tool_name: "update_plan".to_owned(),
            runs: true,
        };
        progress.write_event(&call, &mut err).unwrap();
        assert_eq!(
            String::from_utf8(err).unwrap(),
            "  [>] look\n  [ ] tell\n  [x] look\n"
        );
    }
}
