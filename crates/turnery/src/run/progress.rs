//! Writes progress to stderr: a line for each tool call that starts, reports progress or fails, for each
//! changed plan entry, and for each compaction and notice.

use crate::terminal_text::{self, Paint, first_line};
use std::{
    collections::HashMap,
    io::{self, Write},
};
use turnery_agent::view::{CallEnd, CallView, Notice, ViewChange};
use turnery_engine::{CallId, Disposition, PlanEntry, PlanStatus};

/// Longest title that is printed. Unit: characters.
const TITLE_WIDTH: usize = 100;

/// Writes progress lines.
#[derive(Debug)]
pub(crate) struct ProgressWriter {
    paint: Paint,
    titles: HashMap<CallId, String>,
    /// Last plan that was printed.
    plan: Vec<PlanEntry>,
}

impl ProgressWriter {
    pub(crate) fn new(colour: bool) -> Self {
        Self {
            paint: Paint(colour),
            titles: HashMap::new(),
            plan: Vec::new(),
        }
    }

    /// Writes the lines for a change.
    pub(crate) fn write_change(
        &mut self,
        change: &ViewChange<'_>,
        err: &mut impl Write,
    ) -> io::Result<()> {
        match change {
            ViewChange::CallRequested(call) => {
                let title = terminal_text::single_line(call.title(), TITLE_WIDTH);
                self.titles.insert(call.id().clone(), title);
                Ok(())
            }
            ViewChange::CallStarted(call) if call.is_shown() => {
                let title = self.call_title(call);
                writeln!(err, "{}", self.paint.dim(&format!("• {title}")))
            }
            ViewChange::CallEnded { call, end } => self.write_end(call, end, err),
            ViewChange::Plan { entries, .. } => {
                for entry in entries.iter().filter(|entry| !self.plan.contains(entry)) {
                    let mark = match entry.status {
                        PlanStatus::Pending => "[ ]",
                        PlanStatus::InProgress => "[>]",
                        PlanStatus::Completed => "[x]",
                    };
                    let text = format!("  {mark} {}", first_line(&entry.content, TITLE_WIDTH));
                    writeln!(err, "{}", self.paint.dim(&text))?;
                }
                self.plan = entries.to_vec();
                Ok(())
            }
            ViewChange::CallProgressed(call) => {
                let text = call.progress.as_deref().unwrap_or_default();
                let text = format!("  {}", first_line(text, TITLE_WIDTH));
                writeln!(err, "{}", self.paint.dim(&text))
            }
            ViewChange::CompactionStarted { before, .. } => {
                let text = format!(
                    "• Summarise older messages ({} with about {} tokens)",
                    before.messages, before.tokens
                );
                writeln!(err, "{}", self.paint.dim(&text))
            }
            ViewChange::CompactionEnded {
                failure: Some(failure),
                ..
            } => {
                let mark = self.paint.red("✗");
                writeln!(
                    err,
                    "{mark} no summary: {}",
                    first_line(failure, 4 * TITLE_WIDTH)
                )
            }
            ViewChange::Notice(notice) => self.write_notice(notice, err),
            ViewChange::CallStarted(_)
            | ViewChange::LoopStarted
            | ViewChange::Lineage(_)
            | ViewChange::Text { .. }
            | ViewChange::Message { .. }
            | ViewChange::Value { .. }
            | ViewChange::CallChanged { .. }
            | ViewChange::CallPrinted { .. }
            | ViewChange::CallDelegated { .. }
            | ViewChange::CallStored { .. }
            | ViewChange::QuestionAsked
            | ViewChange::QuestionAnswered
            | ViewChange::Usage(_)
            | ViewChange::CompactionEnded { failure: None, .. }
            | ViewChange::LoopEnded(_)
            | ViewChange::SessionInfo { .. }
            | ViewChange::PromptEnded(_) => Ok(()),
        }
    }

    /// Writes a line for a call that failed.
    fn write_end(
        &mut self,
        call: &CallView,
        end: &CallEnd<'_>,
        err: &mut impl Write,
    ) -> io::Result<()> {
        let title = self.call_title(call);
        self.titles.remove(call.id());
        let Err(failure) = &end.envelope.result else {
            return Ok(());
        };
        let mark = match end.disposition {
            Disposition::Denied => "✗ denied:",
            Disposition::Cancelled => "✗ cancelled:",
            Disposition::Executed
            | Disposition::NotFound
            | Disposition::Invalid
            | Disposition::Skipped
            | Disposition::TimedOut => "✗",
        };
        let code = end.envelope.value.as_ref().map(|value| &value["exit_code"]);
        let why = match code.and_then(|code| code.as_i64()) {
            Some(code) => format!("exit code {code}"),
            None => first_line(strip_title(&failure.message, &title), 4 * TITLE_WIDTH),
        };
        let colon = if why.is_empty() { "" } else { ": " };
        writeln!(err, "{} {title}{colon}{why}", self.paint.red(mark))
    }

    fn write_notice(&self, notice: &Notice<'_>, err: &mut impl Write) -> io::Result<()> {
        match notice {
            Notice::InputRejected(reason) => {
                let reason = first_line(reason, 4 * TITLE_WIDTH);
                writeln!(err, "{} {reason}", self.paint.red("✗"))
            }
            Notice::Issue(text) => {
                let text = first_line(text, 4 * TITLE_WIDTH);
                writeln!(err, "{} {text}", self.paint.red("!"))
            }
            Notice::Retry { error, wait_ms, .. } => {
                let wait = format!("{}.{} s", wait_ms / 1000, wait_ms % 1000 / 100);
                let why = first_line(&error.message, 2 * TITLE_WIDTH);
                let text = format!("• Call the model again in {wait}: {why}");
                writeln!(err, "{}", self.paint.dim(&text))
            }
            Notice::Silence { silent_ms, .. } => {
                let text = format!("• The model has sent nothing for {} s", silent_ms / 1000);
                writeln!(err, "{}", self.paint.dim(&text))
            }
            // The result reports the limit.
            Notice::LimitReached(_) => Ok(()),
        }
    }

    /// Returns the title that the call was requested with.
    fn call_title(&self, call: &CallView) -> String {
        let title = self.titles.get(call.id()).cloned();
        title.unwrap_or_else(|| first_line(&call.request.name, TITLE_WIDTH))
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
    use crate::run::output_thread::show_events;

    use turnery_engine::{
        CallDetail, ContextSize, EventKind, ModelError, ModelErrorKind, PlanPriority, ToolCall,
        ToolEnvelope, ToolErrorKind,
    };

    fn requested(id: &str, title: &str) -> EventKind {
        EventKind::ToolCallRequested {
            call: ToolCall::new(id, "shell", serde_json::json!({})),
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

    fn written(events: Vec<EventKind>) -> String {
        let mut progress = ProgressWriter::new(false);
        let mut err = Vec::new();
        show_events(events, |change| {
            progress.write_change(change, &mut err).unwrap();
        });
        String::from_utf8(err).unwrap()
    }

    #[test]
    fn call_has_line_at_start_and_at_failure() {
        let denied = ToolEnvelope::failed(ToolErrorKind::Denied, "no --allow for it");
        let missing = "shell: \"command\" is missing";
        let invalid = ToolEnvelope::failed(ToolErrorKind::Validation, missing);
        let written = written(vec![
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
        ]);
        assert_eq!(
            written,
            "• Read src/main.rs\n\
             ✗ denied: Run rm⟨U+001B⟩[8m -rf: no --allow for it\n\
             • cat ⏎ a\n\
             ✗ shell: \"command\" is missing\n"
        );
    }

    #[test]
    fn other_events_have_their_own_lines() {
        let size = |tokens, messages| ContextSize { tokens, messages };
        let ended = |failure: Option<&str>| EventKind::CompactionEnded {
            block: None,
            after: size(1, 1),
            failure: failure.map(str::to_owned),
            usage: None,
        };
        let written = written(vec![
            EventKind::CompactionStarted {
                before: size(180_000, 40),
            },
            ended(None),
            ended(Some("the model was cut off")),
            EventKind::ModelRetried {
                attempt: 1,
                error: ModelError::new(ModelErrorKind::Overloaded, "529\u{1b}[2J overloaded"),
                wait_ms: 2_340,
            },
            EventKind::ModelSilent {
                silent_ms: 30_900,
                is_connected: true,
            },
            requested("a", "Build"),
            EventKind::ToolProgress {
                call_id: "a".into(),
                text: "3 of 7 crates".to_owned(),
            },
            EventKind::Issue {
                text: "A hook failed.".to_owned(),
            },
        ]);
        assert_eq!(
            written,
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
        let plan = |one, two| EventKind::PlanUpdated {
            entries: vec![entry("look", one), entry("tell", two)],
        };
        let mut call = requested("p", "");
        if let EventKind::ToolCallRequested { call, .. } = &mut call {
            call.name = "update_plan".to_owned();
        }
        let written = written(vec![
            plan(PlanStatus::InProgress, PlanStatus::Pending),
            plan(PlanStatus::Completed, PlanStatus::Pending),
            call,
            EventKind::ToolExecutionStart {
                call_id: "p".into(),
                tool_name: "update_plan".to_owned(),
                runs: true,
            },
        ]);
        assert_eq!(written, "  [>] look\n  [ ] tell\n  [x] look\n");
    }
}
