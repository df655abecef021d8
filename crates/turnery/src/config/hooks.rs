//! Reads `[[hooks]]`: the command to run, and when.

use super::{
    providers::resolve_program,
    reader::Document,
    suggestion::alternatives,
    values::{FromText, deserialize_text, parse_named},
};
use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error as _, SeqAccess, Visitor, value::SeqAccessDeserializer},
};
use std::{fmt, num::NonZeroU64, path::Path, time::Duration};
use turnery_agent::NotifyTool;
use turnery_tools::Shell;

/// Timeout of a command without its own `timeout`. Unit: seconds.
const DEFAULT_TIMEOUT: u64 = 60;

/// When a hook is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HookPoint {
    /// Before anything else of a prompt. A stop leaves no trace of it.
    // The default only fills in for a missing key until `HookEntry::check` has reported it.
    #[default]
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

impl FromText for HookPoint {
    fn parse(text: &str) -> Result<Self, String> {
        parse_named(text, "hook", Self::ALL, Self::as_str)
    }
}

/// A command that runs at a point of a prompt, and may stop the prompt, warn, or add text to it. It gets one
/// JSON object on stdin and may answer with one on stdout: see hooks.json.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HookEntry {
    /// When the command runs.
    #[serde(default, deserialize_with = "deserialize_text")]
    pub(crate) on: HookPoint,
    /// A program and its arguments, or a command line for sh. It runs in the session's folder.
    // `sh -c` and the line if a command line is written.
    #[serde(default, deserialize_with = "command_words")]
    #[schemars(with = "HookCommandForm")]
    pub(crate) command: Vec<String>,
    /// Run only for calls of these tools; default: all tools.
    #[serde(default)]
    pub(crate) tools: Vec<String>,
    /// Maximum duration of one run, in seconds; default: 60.
    timeout: Option<NonZeroU64>,
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
            crate::terminal_text::first_line(&line, 60)
        )
    }
}

impl HookEntry {
    /// Returns the time limit of one run.
    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout.map_or(DEFAULT_TIMEOUT, NonZeroU64::get))
    }

    /// Completes the entry at `index` in the file `config`, and reports what is wrong with it. A relative program path
    /// is resolved against the folder of `config`, never against a session's folder, whose files belong to the
    /// project.
    pub(super) fn check(&mut self, index: &str, config: &Path, document: &mut Document<'_>) {
        let path = ["hooks", index];
        if let Some(program) = self.command.first_mut() {
            *program = resolve_program(std::mem::take(program), config);
        }
        for key in ["on", "command"] {
            if !document.is_written(&["hooks", index, key]) {
                document.report(&path, &format!("{key} is missing"));
            }
        }
        document.check_items(&["hooks", index, "tools"], &self.tools, check_tool_name);
        let has_tools = document.is_written(&["hooks", index, "tools"]);
        if has_tools && document.is_valid(&["hooks", index, "on"]) && !self.on.is_tool_point() {
            document.report(&path, "tools is for before_tool and after_tool only");
        }
    }
}

/// A command as it is written.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum HookCommandForm {
    /// For sh.
    Line(#[schemars(length(min = 1))] String),
    /// A program and its arguments.
    Words(#[schemars(length(min = 1))] Vec<String>),
}

impl<'de> Deserialize<'de> for HookCommandForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CommandVisitor)
    }
}

struct CommandVisitor;

impl<'de> Visitor<'de> for CommandVisitor {
    type Value = HookCommandForm;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of texts")
    }

    fn visit_str<E>(self, line: &str) -> Result<HookCommandForm, E> {
        Ok(HookCommandForm::Line(line.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, words: A) -> Result<HookCommandForm, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(words)).map(HookCommandForm::Words)
    }
}

fn command_words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let words = match HookCommandForm::deserialize(deserializer)? {
        HookCommandForm::Line(line) if line.trim().is_empty() => Vec::new(),
        HookCommandForm::Line(line) => vec!["sh".to_owned(), "-c".to_owned(), line],
        HookCommandForm::Words(words) => words,
    };
    match words.first() {
        Some(program) if !program.is_empty() => Ok(words),
        Some(_) | None => Err(D::Error::custom("there is no command in it")),
    }
}

/// Checks that the tool exists: a hook for a misspelt tool would never run.
fn check_tool_name(name: &str) -> Result<(), String> {
    let toolbox = crate::toolbox::toolbox(Shell::hiding([])).with_tool(NotifyTool);
    let names: Vec<&str> = toolbox.names().collect();
    // Tools of MCP servers are only known once the servers are connected.
    let is_served =
        name.starts_with("mcp__") || ["list_mcp_resources", "read_mcp_resource"].contains(&name);
    match is_served || names.contains(&name) {
        true => Ok(()),
        false => Err(format!(
            "{name:?} is no tool; write {}",
            alternatives(name, &names)
        )),
    }
}
