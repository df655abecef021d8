//! Tool calls: what the model asks for, how it is shown, and what comes back.

use crate::{CallId, Content, LoopId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use std::{ops::Deref, path::PathBuf, sync::Arc};

/// A tool as the model is told of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name the model calls it by.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of its arguments: an object schema.
    pub schema: Schema,
}

/// A JSON Schema. Its text is kept beside it, since every model request has it in.
#[derive(Clone, Debug)]
pub struct Schema(Arc<(Value, Box<RawValue>)>);

impl From<Value> for Schema {
    fn from(schema: Value) -> Self {
        // A value can always be written.
        let text = serde_json::value::to_raw_value(&schema);
        let text = text.unwrap_or_else(|_| RawValue::NULL.to_owned());
        Self(Arc::new((schema, text)))
    }
}

impl Deref for Schema {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0.0
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Serialize for Schema {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.1.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

impl ToolSpec {
    /// A tool with this object schema.
    pub fn new(name: impl Into<String>, description: impl Into<String>, schema: Value) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            schema: schema.into(),
        }
    }
}

/// One request of the model to use a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolCall {
    /// Unique in the session.
    pub call_id: CallId,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The arguments; a JSON string when what the model wrote was not JSON.
    pub args: Arc<Value>,
}

/// How a call is shown to a person.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallDetail {
    /// One line, for example `Read src/main.rs`.
    pub title: String,
    /// What sort of thing it does.
    pub kind: CallKind,
    /// Files it touches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<Location>,
    /// What can be shown beforehand or is known by now: a diff, a terminal, text. The whole list, each time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
}

/// What sort of thing a call does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    /// Reads files or data.
    Read,
    /// Changes files.
    Edit,
    /// Removes files.
    Delete,
    /// Moves or renames files.
    Move,
    /// Searches.
    Search,
    /// Runs a command.
    Execute,
    /// Plans or reasons.
    Think,
    /// Gets something from elsewhere.
    Fetch,
    /// Anything else.
    #[default]
    Other,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Location {
    /// Absolute.
    pub path: PathBuf,
    /// 1-based.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// Something that a call has to show. Not tagged from within: content has a `type` of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Artifact {
    /// Text, an image or audio.
    Content(Content),
    /// A change to one file: the texts before and after, whole or the part around the change.
    Diff {
        /// Absolute.
        path: PathBuf,
        /// `None` for a new file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        old: Option<String>,
        /// The text afterwards.
        new: String,
        /// The line at which the two texts begin, from 1, if they are only a part of the file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from_line: Option<u32>,
    },
    /// A terminal that the client shows live.
    Terminal {
        /// The client's id for it.
        terminal_id: String,
    },
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolEnvelope {
    /// The result for the model, or the failure.
    pub result: Result<Vec<Content>, ToolFailure>,
    /// Structured result for hosts; absent when the content says all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// What to show a person. The whole list; empty means: show the result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// Places it touched; empty means: as announced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<Location>,
    /// Side effects that the tool asks the host for (JIDO-76); none of the built-in tools has any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Value>,
    /// What the call decides about its loop; none lets the model go on (UP-21).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Box<ToolControl>>,
    /// The loop that it ran in a child session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_loop_id: Option<LoopId>,
}

impl ToolEnvelope {
    /// A success that says `text`.
    pub fn text(text: impl Into<String>) -> Self {
        Self::ok(vec![Content::text(text)])
    }

    /// A success.
    #[must_use]
    pub fn ok(content: Vec<Content>) -> Self {
        Self {
            result: Ok(content),
            value: None,
            artifacts: Vec::new(),
            locations: Vec::new(),
            effects: Vec::new(),
            control: None,
            child_loop_id: None,
        }
    }

    /// A failure.
    pub fn failed(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            result: Err(ToolFailure {
                kind,
                message: message.into(),
                details: None,
            }),
            ..Self::ok(Vec::new())
        }
    }
}

/// What a tool decides about the loop that called it (UP-21). It takes effect once all calls of the
/// turn have ended; the first in call order wins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ToolControl {
    /// The loop is finished, with this value of the tool (LASH-7).
    Finish(Value),
    /// The loop is finished, with this value that the model submitted (LASH-6).
    Submit(Value),
    /// The loop is stopped: this failure is not for the model to mend (LASH-22, C-5).
    Fail,
    /// The loop is stopped, with an error that the model submitted (LASH-26).
    SubmitError(Value),
    /// The loop is stopped, with an error that the tool declared final (LASH-27).
    FailWith(Value),
    /// The session goes on in a fresh frame with this task (LASH-12).
    SwitchFrame {
        /// What the new frame is to do.
        task: String,
    },
}

/// Why a call failed. The message is for the model and for people: what, where, what to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[error("{message}")]
pub struct ToolFailure {
    /// The sort of failure.
    pub kind: FailureKind,
    /// One or two sentences.
    pub message: String,
    /// More, for hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

/// The sort of a tool's failure (JIDO-65, JIDO-68, UP-23).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// No such tool.
    NotFound,
    /// It ran too long.
    Timeout,
    /// The arguments do not fit the schema, or make no sense.
    Validation,
    /// The person or the policy said no.
    Denied,
    /// Not run, because something else came first.
    Skipped,
    /// Cut short by a cancel.
    Cancelled,
    /// The tool broke.
    Exception,
    /// The tool ran and reports that it could not do it.
    ExecutionError,
}

/// How an execution came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Disposition {
    /// It ran.
    Executed,
    /// No such tool.
    NotFound,
    /// The arguments were refused before it ran.
    Invalid,
    /// Not permitted.
    Denied,
    /// Skipped.
    Skipped,
    /// Cancelled, before or while it ran.
    Cancelled,
    /// Ran too long.
    TimedOut,
}

/// The answer to the question whether a call may run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It may.
    Allow,
    /// It may not; the model is told why.
    Deny(String),
    /// The person cancelled the whole prompt instead of answering.
    Cancelled,
}

/// One entry of the plan that the model keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanEntry {
    /// What is to be done.
    pub content: String,
    /// How much it matters.
    #[serde(default)]
    pub priority: PlanPriority,
    /// How far it is.
    #[serde(default)]
    pub status: PlanStatus,
}

/// How much a plan entry matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlanPriority {
    /// First.
    High,
    /// As usual.
    #[default]
    Medium,
    /// Last.
    Low,
}

/// How far a plan entry is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// Not begun.
    #[default]
    Pending,
    /// Being done.
    InProgress,
    /// Done.
    Completed,
}
