//! Runs a command as one straight function over several calls of the model. The function starts again
//! at every call; tool calls that the history answers return at once, and the first one that it does
//! not answer interrupts the function and becomes the model's response. No state is kept in between.
//! Also reads results of searches, and formats answers.

use crate::ModelRequest;
use serde_json::{Value, json};
use std::{collections::BTreeSet, vec::IntoIter};
use turnery_engine::{Content, Message};

/// A constant regular expression, compiled once.
macro_rules! pattern {
    ($text:expr) => {{
        static PATTERN: std::sync::LazyLock<regex::Regex> =
            std::sync::LazyLock::new(|| regex::Regex::new($text).expect("a valid pattern"));
        &*PATTERN
    }};
}
pub(super) use pattern;

/// Builds and tests take long. Unit: milliseconds.
const COMMAND_TIMEOUT: u64 = 600_000;

/// Why a command does not go on now.
pub(super) enum Interrupt {
    /// This tool must be called first.
    Call(&'static str, Value),
    /// The command ends early with this answer.
    Stop(String),
}

/// What a command says in the end.
pub(super) type Answer = Result<String, Interrupt>;

/// The messages since the user's last one, as a command sees them.
pub(super) struct Conversation {
    pub(super) prompt: String,
    pub(super) has_image: bool,
    tools: Vec<String>,
    /// Result or error of each call that was made.
    results: IntoIter<Result<String, String>>,
}

impl Conversation {
    pub(super) fn new(request: &ModelRequest) -> Self {
        let (mut prompt, mut has_image, mut results) = (String::new(), false, Vec::new());
        for message in request.messages.iter().map(|it| &it.message) {
            match message {
                Message::User { content } => {
                    prompt = message.text();
                    has_image = content.iter().any(|it| matches!(it, Content::Image(_)));
                    results.clear();
                }
                Message::ToolResult { is_error: true, .. } => results.push(Err(message.text())),
                Message::ToolResult { .. } => results.push(Ok(message.text())),
                Message::System { .. } | Message::Assistant { .. } => {}
            }
        }
        Self {
            prompt,
            has_image,
            tools: request.tools.iter().map(|it| it.name.clone()).collect(),
            results: results.into_iter(),
        }
    }

    /// Calls a tool; the error of the inner result is the tool's own.
    pub(super) fn call(
        &mut self,
        tool: &'static str,
        args: Value,
    ) -> Result<Result<String, String>, Interrupt> {
        match self.results.next() {
            Some(result) => Ok(result),
            None if self.tools.iter().any(|it| it == tool) => Err(Interrupt::Call(tool, args)),
            None => stop(format!("This session has no tool `{tool}`, which I need.")),
        }
    }

    /// Like [`call`](Self::call); an error ends the command with the tool's words.
    pub(super) fn must(&mut self, tool: &'static str, args: Value) -> Answer {
        match self.call(tool, args)? {
            Ok(text) => Ok(text),
            Err(error) => stop(format!("I stopped: {}", error.trim())),
        }
    }

    /// Runs a shell command to its end: what it printed, and its exit code. One that does not run to
    /// its end ends this command too.
    pub(super) fn shell(&mut self, command: &str) -> Result<(String, i64), Interrupt> {
        let args = json!({"command": command, "timeout_ms": COMMAND_TIMEOUT});
        let (Ok(text) | Err(text)) = self.call("shell", args)?;
        // Remarks may follow the line that says how the command ended.
        let end =
            pattern!(r"(?m)^(?:exit code: (-?\d+)|killed by|timed out|cancelled|ended without)");
        if let Some(parts) = end.captures_iter(&text).last()
            && let (Some(line), Some(code)) = (parts.get(0), parts.get(1))
            && let Ok(code) = code.as_str().parse()
        {
            let (printed, remarks) = (&text[..line.start()], &text[line.end()..]);
            return Ok((format!("{printed}{}", remarks.trim_start()), code));
        }
        let end = last_lines(&text, 20);
        stop(format!("`{command}` did not run to its end: {end}"))
    }
}

pub(super) fn stop<T>(text: String) -> Result<T, Interrupt> {
    Err(Interrupt::Stop(text))
}

/// A line that a search found.
#[derive(PartialEq)]
pub(super) struct Hit {
    pub(super) path: String,
    pub(super) text: String,
    /// All of it: `path:line: text`.
    whole: String,
}

/// Result of a search.
pub(super) struct Hits {
    pub(super) hits: Vec<Hit>,
    /// Remarks of the tool, such as that there are more. With any, a count is a lower bound.
    notices: String,
}

impl Hits {
    pub(super) fn parse(found: &str) -> Self {
        let (mut hits, mut notices) = (Vec::new(), String::new());
        for line in found.lines().filter(|line| *line != "[no match]") {
            let whole = line.to_owned();
            match pattern!(r"^(.+?):\d+: ?(.*)$").captures(line) {
                Some(parts) => {
                    let [path, text] = [1, 2].map(|at| parts[at].to_owned());
                    hits.push(Hit { path, text, whole });
                }
                None => notices += &format!("The search says: {line}\n"),
            }
        }
        Self { hits, notices }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.notices.is_empty()
    }

    /// Nothing was found, and nothing can have been missed.
    pub(super) fn is_none(&self) -> bool {
        self.hits.is_empty() && self.is_complete()
    }

    pub(super) fn files(&self) -> BTreeSet<&str> {
        self.hits.iter().map(|hit| hit.path.as_str()).collect()
    }

    /// `3 lines in 2 files`, or `at least 1000 lines in at least 20 files`.
    pub(super) fn count(&self) -> String {
        let least = if self.is_complete() { "" } else { "at least " };
        let (lines, files) = (self.hits.len(), self.files().len());
        let [lines, files] = [count(lines, "line"), count(files, "file")];
        format!("{least}{lines} in {least}{files}")
    }

    /// The first `most` hits, then the notices.
    pub(super) fn list(&self, most: usize) -> String {
        list(self.hits.iter().map(|hit| hit.whole.clone()), most) + &self.notices
    }
}

/// `1 file`, `3 files`.
pub(super) fn count(number: usize, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

/// A code block whose fence is longer than any in `text`; nothing for no text.
pub(super) fn fenced(text: &str) -> String {
    if text.trim().is_empty() {
        return String::new();
    }
    let longest = pattern!("`{3,}").find_iter(text).map(|it| it.len()).max();
    let fence = "`".repeat(longest.map_or(3, |length| length + 1));
    format!("{fence}\n{}\n{fence}\n", text.trim_end())
}

/// At most `most` items as a list, with a line for the others.
pub(super) fn list(items: impl ExactSizeIterator<Item = String>, most: usize) -> String {
    let left = items.len().saturating_sub(most);
    let mut text: String = items.take(most).map(|it| format!("- {it}\n")).collect();
    if left > 0 {
        text += &format!("- … and {left} more of these\n");
    }
    text
}

/// The last lines of a text.
pub(super) fn last_lines(text: &str, most: usize) -> String {
    let lines: Vec<&str> = text.trim().lines().collect();
    lines[lines.len().saturating_sub(most)..].join("\n")
}
