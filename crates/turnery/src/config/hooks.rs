//! Parses `[[hooks]]`: the command to run, and when.

use super::{
    providers::resolve_program,
    reader::{Section, expected, number, text},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{fmt, path::Path, time::Duration};
use toml::de::DeValue;
use turnery_tools::Shell;

/// Timeout of a command without its own `timeout`.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// When a hook is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HookPoint {
    /// Before anything else of a prompt. A stop leaves no trace of it.
    BeforeLoop,
    /// Something is about to be said to the model. A stop refuses it, a warning is added to it.
    Input,
    /// Before each call of the model. A stop ends the prompt.
    BeforeTurn,
    /// After each call of the model, and the tools that it asked for.
    AfterTurn,
    /// Before a call of a tool that may run. A stop denies it, and the model is told why.
    BeforeTool,
    /// After a call of a tool.
    AfterTool,
    /// Before older messages are summarised. A stop leaves them as they are.
    BeforeCompaction,
    /// After older messages were summarised.
    AfterCompaction,
    /// The model's answer ended in an error.
    OnError,
    /// The model has said all. An inject makes it go on, a stop ends the prompt as a failure.
    Checkpoint,
    /// The prompt is over and stored.
    AfterLoop,
}

impl HookPoint {
    pub(crate) const ALL: [Self; 11] = [
        Self::BeforeLoop,
        Self::Input,
        Self::BeforeTurn,
        Self::AfterTurn,
        Self::BeforeTool,
        Self::AfterTool,
        Self::BeforeCompaction,
        Self::AfterCompaction,
        Self::OnError,
        Self::Checkpoint,
        Self::AfterLoop,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::BeforeLoop => "before_loop",
            Self::Input => "input",
            Self::BeforeTurn => "before_turn",
            Self::AfterTurn => "after_turn",
            Self::BeforeTool => "before_tool",
            Self::AfterTool => "after_tool",
            Self::BeforeCompaction => "before_compaction",
            Self::AfterCompaction => "after_compaction",
            Self::OnError => "on_error",
            Self::Checkpoint => "checkpoint",
            Self::AfterLoop => "after_loop",
        }
    }

    fn is_tool_point(self) -> bool {
        matches!(self, Self::BeforeTool | Self::AfterTool)
    }
}

/// A `[[hooks]]` table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HookEntry {
    /// Point at which the command runs.
    pub(crate) on: HookPoint,
    /// Program and arguments; `sh -c` and the line if a command line was written.
    pub(crate) command: Vec<String>,
    /// Tools that the hook applies to; all tools if empty.
    pub(crate) tools: Vec<String>,
    /// Time limit of one run.
    pub(crate) timeout: Duration,
}

impl fmt::Display for HookEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = match self.command.as_slice() {
            [sh, dash_c, line] if sh == "sh" && dash_c == "-c" => line.clone(),
            words => words.join(" "),
        };
        write!(
            f,
            "{} {:?}",
            self.on.as_str(),
            crate::terminal_text::line(&line, 60)
        )
    }
}

/// Reads a `[[hooks]]` table of the file `config`; returns `None` if `on` or `command` is missing.
pub(super) fn read_entry(section: &mut Section<'_, '_>, config: &Path) -> Option<HookEntry> {
    let on = section.get("on", |value| point(&text(value)?));
    let command = section.get("command", |value| command(value, config));
    let tools = section.list("tools", |value| check_tool_name(text(value)?));
    let timeout = section.get("timeout", number).map(Duration::from_secs);
    for key in ["on", "command"] {
        if !section.has(key) {
            section.wrong(&format!("{key} is missing"));
        }
    }
    if on.is_some_and(|on| !on.is_tool_point()) && section.has("tools") {
        section.wrong("tools is for before_tool and after_tool only");
    }
    Some(HookEntry {
        on: on?,
        command: command?,
        tools,
        timeout: timeout.unwrap_or(DEFAULT_TIMEOUT),
    })
}

fn point(word: &str) -> Result<HookPoint, String> {
    let points = HookPoint::ALL;
    let found = points.into_iter().find(|point| point.as_str() == word);
    found.ok_or_else(|| {
        let names = points.map(HookPoint::as_str);
        let others = super::reader::alternatives(word, &names);
        format!("{word:?} is no hook; write {others}")
    })
}

/// Returns the program and its arguments. A relative program path is resolved against the folder of `config`, never
/// against a session's folder, whose files belong to the project.
fn command(value: &DeValue<'_>, config: &Path) -> Result<Vec<String>, String> {
    let mut words = match value.as_array() {
        None => match value.as_str() {
            Some(line) if !line.trim().is_empty() => vec!["sh".into(), "-c".into(), line.into()],
            Some(_) => Vec::new(),
            None => return Err(expected("a text or a list of texts", value)),
        },
        Some(items) => items
            .iter()
            .map(|item| text(item.get_ref()))
            .collect::<Result<Vec<_>, _>>()?,
    };
    match words.first_mut() {
        Some(name) if !name.is_empty() => {
            *name = resolve_program(std::mem::take(name), config);
            Ok(words)
        }
        Some(_) | None => Err("there is no command in it".to_owned()),
    }
}

/// Checks that the tool exists: a hook for a misspelt tool would never run.
fn check_tool_name(name: String) -> Result<String, String> {
    let toolbox = crate::app::toolbox(Shell::hiding([]));
    let names: Vec<&str> = toolbox.names().collect();
    // Tools of MCP servers are only known once the servers are connected.
    let of_server =
        name.starts_with("mcp__") || ["list_mcp_resources", "read_mcp_resource"].contains(&&*name);
    match of_server || names.contains(&&*name) {
        true => Ok(name),
        false => Err(format!(
            "{name:?} is no tool; write {}",
            super::reader::alternatives(&name, &names)
        )),
    }
}
