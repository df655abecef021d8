//! Replay: a skill is written as one straight function, run again from its start at every call of the
//! model. A tool call that the history answers returns at once; the first one that it does not answer
//! halts the skill and goes out. So nothing is kept between calls.

use crate::ModelRequest;
use serde_json::{Value, json};
use std::collections::HashMap;
use turnery_engine::{CallId, Content, Message, ToolSpec};

/// No answer takes more tool calls than this.
const MOST_CALLS: usize = 60;

/// Builds take long. Unit: milliseconds.
const COMMAND_TIMEOUT: u64 = 600_000;

/// Why a skill does not go on now.
pub(super) enum Halt {
    /// These calls must be made first.
    Ask(Vec<(&'static str, Value)>),
    /// It ends here, with this to say.
    Stop(String),
}

/// What a tool gave back.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// The result as text, or why it failed.
    pub(super) text: String,
    /// It failed, was refused, or was cut short.
    pub(super) failed: bool,
}

impl Seen {
    /// Why it failed, to stand behind what was not done.
    pub(super) fn why(&self) -> &str {
        let text = self.text.trim();
        text.strip_prefix("the call was not allowed: ")
            .unwrap_or(text)
    }

    /// The person or the policy said no.
    pub(super) fn denied(&self) -> bool {
        let text = self.text.to_lowercase();
        self.failed
            && [
                "denied",
                "denies",
                "refused",
                "not allowed",
                "not permitted",
                "permission",
                "rejected",
                "declined",
                "plan mode",
                "skipped",
                "cancelled",
            ]
            .iter()
            .any(|word| text.contains(word))
    }
}

/// The conversation since the last message of the user, as a skill sees it.
pub(super) struct Replay<'a> {
    prompt: String,
    has_picture: bool,
    tools: &'a [ToolSpec],
    done: Vec<(String, Seen)>,
    next: usize,
    text: String,
}

impl<'a> Replay<'a> {
    pub(super) fn new(request: &'a ModelRequest) -> Self {
        let messages = &request.messages;
        let last = messages
            .iter()
            .rposition(|kept| matches!(kept.message, Message::User { .. }));
        let since = last.map_or(&[][..], |at| &messages[at..]);
        let mut results: HashMap<&CallId, Seen> = since
            .iter()
            .filter_map(|kept| match &kept.message {
                Message::ToolResult {
                    call_id, is_error, ..
                } => Some((
                    call_id,
                    Seen {
                        text: kept.message.text(),
                        failed: *is_error,
                    },
                )),
                Message::System { .. } | Message::User { .. } | Message::Assistant { .. } => None,
            })
            .collect();
        let done = since
            .iter()
            .flat_map(|kept| kept.message.calls())
            .map(|call| {
                let seen = results.remove(&call.call_id).unwrap_or_else(|| Seen {
                    text: "the call was cancelled: it has no result".to_owned(),
                    failed: true,
                });
                (call.name.clone(), seen)
            })
            .collect();
        let is_picture = |content: &Content| matches!(content, Content::Image(_));
        let has_picture = since.first().is_some_and(|kept| match &kept.message {
            Message::User { content } => content.iter().any(is_picture),
            Message::System { .. } | Message::Assistant { .. } | Message::ToolResult { .. } => {
                false
            }
        });
        Self {
            has_picture,
            prompt: since
                .first()
                .map(|kept| kept.message.text())
                .unwrap_or_default(),
            tools: &request.tools,
            done,
            next: 0,
            text: String::new(),
        }
    }

    /// There is a picture in the prompt.
    pub(super) fn has_picture(&self) -> bool {
        self.has_picture
    }

    pub(super) fn prompt(&self) -> &str {
        &self.prompt
    }

    /// What is to be said now. What was said before an answered call has been said then.
    pub(super) fn say(&mut self, text: impl AsRef<str>) {
        self.text.push_str(text.as_ref());
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    pub(super) fn has(&self, tool: &str) -> bool {
        self.tools.iter().any(|spec| spec.name == tool)
    }

    /// Make these calls and go on with what came of them, in order.
    pub(super) fn calls(&mut self, calls: Vec<(&'static str, Value)>) -> Result<Vec<Seen>, Halt> {
        if let Some((tool, _)) = calls.iter().find(|(tool, _)| !self.has(tool)) {
            return Err(Halt::Stop(format!(
                "That needs the tool `{tool}`, which is not on offer in this session."
            )));
        }
        if calls.is_empty() {
            return Ok(Vec::new());
        }
        let done = self.done.get(self.next..).unwrap_or(&[]);
        if done.is_empty() {
            if self.next + calls.len() > MOST_CALLS {
                return Err(Halt::Stop(format!(
                    "I stop here: this took {} tool calls already. Ask for a smaller part of it.",
                    self.next
                )));
            }
            return Err(Halt::Ask(calls));
        }
        let seen = calls
            .iter()
            .enumerate()
            .map(|(at, (tool, _))| match done.get(at) {
                Some((name, seen)) if name == tool => seen.clone(),
                Some(_) | None => Seen {
                    text: "the call was skipped".to_owned(),
                    failed: true,
                },
            })
            .collect();
        self.next += calls.len();
        self.text.clear();
        Ok(seen)
    }

    /// Make one call.
    pub(super) fn call(&mut self, tool: &'static str, args: Value) -> Result<Seen, Halt> {
        let mut seen = self.calls(vec![(tool, args)])?;
        Ok(seen.pop().unwrap_or(Seen {
            text: String::new(),
            failed: true,
        }))
    }

    /// Make one call without which there is nothing to tell.
    pub(super) fn must(&mut self, tool: &'static str, args: Value) -> Result<String, Halt> {
        let seen = self.call(tool, args)?;
        if !seen.failed {
            return Ok(seen.text);
        }
        let why = seen.why();
        Err(Halt::Stop(if seen.denied() {
            format!("I stopped, because `{tool}` was not allowed: {why}")
        } else {
            format!("I stopped, because `{tool}` failed: {why}")
        }))
    }

    /// Run a command: what it printed, and its exit code if it came to its end.
    pub(super) fn shell(&mut self, command: &str) -> Result<(String, Option<i32>), Halt> {
        let args = json!({"command": command, "timeout_ms": COMMAND_TIMEOUT});
        let seen = self.call("shell", args)?;
        let (printed, code) = super::output::shell(&seen.text);
        if seen.failed && code.is_none() {
            let why = seen.why();
            return Err(Halt::Stop(if seen.denied() {
                format!("I did not run `{command}`, because it was not allowed: {why}")
            } else {
                format!("`{command}` did not come to its end: {why}")
            }));
        }
        Ok((printed.to_owned(), code))
    }

    /// Show the plan, with the first `done` steps completed. Left out when plans are not on offer.
    pub(super) fn plan(&mut self, steps: &[String], done: usize) -> Result<(), Halt> {
        if !self.has("update_plan") {
            return Ok(());
        }
        let said = std::mem::take(&mut self.text);
        let entries: Vec<Value> = steps
            .iter()
            .enumerate()
            .map(|(at, content)| {
                let status = match at.cmp(&done) {
                    std::cmp::Ordering::Less => "completed",
                    std::cmp::Ordering::Equal => "in_progress",
                    std::cmp::Ordering::Greater => "pending",
                };
                json!({"content": content, "priority": "medium", "status": status})
            })
            .collect();
        self.call("update_plan", json!({ "entries": entries }))?;
        self.text = said;
        Ok(())
    }
}
