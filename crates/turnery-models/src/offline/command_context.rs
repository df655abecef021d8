//! Runs a command as one sequential function across several model calls. The function restarts at every call;
//! tool calls with results in the history return at once, and the first one without a result interrupts the
//! function and becomes the model's response. No state is kept in between. Also parses search results and
//! formats responses.

use crate::model::ModelRequest;
use serde_json::{Value, json};
use std::{collections::BTreeSet, vec::IntoIter};
use turnery_engine::{Content, Message, ToolSpec};

/// Regular expression from a constant, compiled once.
macro_rules! pattern {
    ($text:expr) => {{
        static PATTERN: std::sync::LazyLock<regex::Regex> =
            std::sync::LazyLock::new(|| regex::Regex::new($text).expect("a valid pattern"));
        &*PATTERN
    }};
}
pub(super) use pattern;

/// Timeout of shell commands, long enough for builds and tests. Unit: milliseconds.
const COMMAND_TIMEOUT_MS: u64 = 600_000;

/// Reason why a command is interrupted.
pub(super) enum Interrupt {
    /// This tool must be called first.
    Call(&'static str, Value),
    /// The command ends early with this response.
    Stop(String),
}

/// Response of a command, or its interruption.
pub(super) type CommandResult = Result<String, Interrupt>;

/// Context of a command: the prompt, the tools, and the results of its calls so far.
pub(super) struct CommandContext {
    pub(super) prompt: String,
    pub(super) has_image: bool,
    tools: Vec<ToolSpec>,
    /// Result or error of each call that was made.
    results: IntoIter<Result<String, String>>,
}

impl CommandContext {
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
            tools: request.callable_tools().to_vec(),
            results: results.into_iter(),
        }
    }

    /// Calls a tool; the inner error is that of the tool.
    pub(super) fn call(
        &mut self,
        tool: &'static str,
        args: Value,
    ) -> Result<Result<String, String>, Interrupt> {
        match self.results.next() {
            Some(result) => Ok(result),
            None if self.tools.iter().any(|it| it.name == tool) => Err(Interrupt::Call(tool, args)),
            None => stop_with(format!("This session has no tool `{tool}`, which I need.")),
        }
    }

    /// Like [`call`](Self::call), but a tool error ends the command with its message.
    pub(super) fn call_or_stop(&mut self, tool: &'static str, args: Value) -> CommandResult {
        let result = self.call(tool, args)?;
        result.or_else(|error| stop_with(format!("I stopped: {}", error.trim())))
    }

    /// Runs the search tool with its maximum number of results.
    pub(super) fn hits(&mut self, mut args: Value, path: &str) -> Result<SearchHits, Interrupt> {
        args["max_results"] = 1000.into();
        args["path"] = path.into();
        Ok(SearchHits::parse(&self.call_or_stop("search", args)?))
    }

    /// Runs a shell command; returns its output and exit code. A command that does not complete ends the
    /// offline command too.
    pub(super) fn run_shell(&mut self, command: &str) -> Result<(String, i64), Interrupt> {
        let args = json!({"command": command, "timeout_ms": COMMAND_TIMEOUT_MS});
        let (Ok(text) | Err(text)) = self.call("shell", args)?;
        // Notices may follow the line with the exit status.
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
        stop_with(format!("`{command}` did not run to its end: {end}"))
    }
}

pub(super) fn stop_with<T>(text: String) -> Result<T, Interrupt> {
    Err(Interrupt::Stop(text))
}

/// A line found by a search.
#[derive(PartialEq)]
pub(super) struct SearchHit {
    pub(super) path: String,
    pub(super) text: String,
    /// Full text: `path:line: text`.
    whole: String,
}

/// Result of a search.
pub(super) struct SearchHits {
    pub(super) hits: Vec<SearchHit>,
    /// Notices of the tool, for example that there are more hits. With any notice, counts are lower bounds.
    pub(super) notices: String,
}

impl SearchHits {
    pub(super) fn parse(found: &str) -> Self {
        let (mut hits, mut notices) = (Vec::new(), String::new());
        for line in found.lines().filter(|line| *line != "[no match]") {
            let whole = line.to_owned();
            match pattern!(r"^(.+?):\d+: ?(.*)$").captures(line) {
                Some(parts) => {
                    let [path, text] = [1, 2].map(|at| parts[at].to_owned());
                    hits.push(SearchHit { path, text, whole });
                }
                None => notices += &format!("The search says: {line}\n"),
            }
        }
        Self { hits, notices }
    }

    /// Returns true if nothing was found and the search was complete.
    pub(super) fn has_no_match(&self) -> bool {
        self.hits.is_empty() && self.notices.is_empty()
    }

    pub(super) fn files(&self) -> BTreeSet<&str> {
        self.hits.iter().map(|hit| hit.path.as_str()).collect()
    }

    /// Formats the count: `3 lines in 2 files`, or `at least 1000 lines in at least 20 files`.
    pub(super) fn count(&self) -> String {
        let is_whole = self.notices.is_empty();
        let least = if is_whole { "" } else { "at least " };
        let (lines, files) = (self.hits.len(), self.files().len());
        let [lines, files] = [count(lines, "line"), count(files, "file")];
        format!("{least}{lines} in {least}{files}")
    }

    /// Formats the first `most` hits and the notices.
    pub(super) fn list(&self, most: usize) -> String {
        list(self.hits.iter().map(|hit| hit.whole.clone()), most) + &self.notices
    }
}

/// Formats a count: `1 file`, `3 files`.
pub(super) fn count(number: usize, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

/// Formats a code block whose fence is longer than any in `text`; empty for an empty text.
pub(super) fn code_block(text: &str) -> String {
    if text.trim().is_empty() {
        return String::new();
    }
    let longest = pattern!("`{3,}").find_iter(text).map(|it| it.len()).max();
    let fence = "`".repeat(longest.map_or(3, |length| length + 1));
    format!("{fence}\n{}\n{fence}\n", text.trim_end())
}

/// Formats at most `most` items as a list, with a line for the omitted ones.
pub(super) fn list(items: impl ExactSizeIterator<Item = String>, most: usize) -> String {
    let left = items.len().saturating_sub(most);
    let mut text: String = items.take(most).map(|it| format!("- {it}\n")).collect();
    if left > 0 {
        text += &format!("- … and {left} more of these\n");
    }
    text
}

pub(super) fn last_lines(text: &str, most: usize) -> String {
    let lines: Vec<&str> = text.trim().lines().collect();
    lines[lines.len().saturating_sub(most)..].join("\n")
}
