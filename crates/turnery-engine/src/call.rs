//! Tool calls: definitions, requests, results, and how clients display them.

use crate::{CallId, Content, LoopId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use std::{ops::Deref, path::PathBuf, sync::Arc};

/// Tool definition sent to the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Name by which the model calls the tool.
    pub name: String,
    /// Description for the model.
    pub description: String,
    /// JSON Schema of the arguments; must describe an object.
    pub schema: ToolSchema,
}

/// JSON Schema with its serialized text, which every model request includes.
#[derive(Clone, Debug)]
pub struct ToolSchema {
    inner: Arc<(Value, Box<RawValue>)>,
    is_enforced: bool,
}

impl ToolSchema {
    /// Returns the schema, to be enforced by providers that can make a model's arguments fit it (structured output).
    #[must_use]
    pub fn enforced(self) -> Self {
        Self {
            is_enforced: true,
            ..self
        }
    }

    /// Returns the schema as JSON text.
    #[must_use]
    pub fn as_json(&self) -> &str {
        self.inner.1.get()
    }

    /// Returns true if providers should enforce the schema where they can.
    #[must_use]
    pub fn is_enforced(&self) -> bool {
        self.is_enforced
    }
}

impl From<Value> for ToolSchema {
    fn from(schema: Value) -> Self {
        // Serializing a `Value` cannot fail.
        let text = serde_json::value::to_raw_value(&schema);
        let text = text.unwrap_or_else(|_| RawValue::NULL.to_owned());
        Self {
            inner: Arc::new((schema, text)),
            is_enforced: false,
        }
    }
}

impl Deref for ToolSchema {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.inner.0
    }
}

impl PartialEq for ToolSchema {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Serialize for ToolSchema {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.inner.1.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ToolSchema {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

impl ToolSpec {
    /// Creates a tool definition from an object schema.
    pub fn new(name: impl Into<String>, description: impl Into<String>, schema: Value) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            schema: schema.into(),
        }
    }
}

/// Tool call requested by the model, or by another call while that runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolCall {
    /// Unique in the session.
    pub call_id: CallId,
    /// Tool name as the model wrote it.
    pub name: String,
    /// Arguments; a JSON string if the model's text was not valid JSON.
    pub args: Arc<Value>,
    /// Call that requested this one; `None` if the model did (LASH-71).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_call_id: Option<CallId>,
}

impl ToolCall {
    /// Creates a call.
    #[must_use]
    pub fn new(
        call_id: impl Into<CallId>,
        name: impl Into<String>,
        args: impl Into<Arc<Value>>,
    ) -> Self {
        Self {
            call_id: call_id.into(),
            name: name.into(),
            args: args.into(),
            parent_call_id: None,
        }
    }
}

/// How clients display a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallDetail {
    /// One-line title, for example `Read src/main.rs`.
    pub title: String,
    /// Kind of action.
    pub kind: CallKind,
    /// Files that the call touches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<Location>,
    /// Diffs, terminals and content known so far. Always the complete list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
}

impl CallDetail {
    /// Creates a detail with nothing but a title.
    pub(crate) fn with_title(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            ..Self::default()
        }
    }
}

/// Kind of action that a call performs.
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
    /// Fetches remote data.
    Fetch,
    /// Anything else.
    #[default]
    Other,
}

/// File location.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Location {
    /// Absolute path.
    pub path: PathBuf,
    /// Line number, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// Displayable output of a call. Externally tagged, because content has its own `type` field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Artifact {
    /// Text, an image or audio.
    Content(Content),
    /// Change to one file: the text before and after, either the whole file or the part around the change.
    Diff {
        /// Absolute path.
        path: PathBuf,
        /// Text before the change; `None` for a new file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        old: Option<String>,
        /// Text after the change.
        new: String,
        /// Line, from 1, at which both texts start if they cover only a part of the file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from_line: Option<u32>,
    },
    /// Terminal that the client displays live.
    Terminal {
        /// Terminal id assigned by the client.
        terminal_id: String,
    },
}

/// Result of a tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolEnvelope {
    /// Content for the model, or the error.
    pub result: Result<Vec<Content>, ToolError>,
    /// Structured result for hosts; absent if `result` contains everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Artifacts to display. Always the complete list; empty means that clients display `result`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// Locations that the call touched; empty means the announced ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<Location>,
    /// Side effects that the tool requests from the host (JIDO-76), which gets them once the loop is stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Value>,
    /// Decision of the tool about the loop; `None` lets the model continue (UP-21).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Box<ToolControl>>,
    /// Loop that the call ran in a child session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_loop_id: Option<LoopId>,
    /// State from which the tool continues after this call, also when the session is opened again. Stored with
    /// the call; no client shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Arc<str>>,
}

impl ToolEnvelope {
    /// Creates a successful result with one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::ok(vec![Content::text(text)])
    }

    /// Creates a successful result.
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
            state: None,
        }
    }

    /// Creates a failed result.
    pub fn failed(kind: ToolErrorKind, message: impl Into<String>) -> Self {
        Self {
            result: Err(ToolError::new(kind, message)),
            ..Self::ok(Vec::new())
        }
    }
}

/// Decision of a tool about the loop that called it (UP-21). Applied once all calls of the turn have ended;
/// the first in call order wins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ToolControl {
    /// Finishes the loop with a value of the tool (LASH-7).
    Finish(Value),
    /// Finishes the loop with a value submitted by the model (LASH-6).
    Submit(Value),
    /// Stops the loop: the model cannot recover from the failure (LASH-22, C-5).
    Fail,
    /// Stops the loop with an error submitted by the model (LASH-26).
    SubmitError(Value),
    /// Stops the loop with an error that the tool declared final (LASH-27).
    FailWith(Value),
    /// Continues the session in a new frame with a new task (LASH-12).
    SwitchFrame {
        /// Task of the new frame.
        task: String,
    },
}

/// Error of a tool call. The message is for both the model and the user: what failed, where, and what to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[error("{message}")]
pub struct ToolError {
    /// Kind of error.
    pub kind: ToolErrorKind,
    /// One or two sentences.
    pub message: String,
    /// Additional data for hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

impl ToolError {
    /// Creates an error without details.
    pub fn new(kind: ToolErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            details: None,
        }
    }
}

/// Kind of a tool error (JIDO-65, JIDO-68, UP-23).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ToolErrorKind {
    /// The tool does not exist.
    NotFound,
    /// The tool exceeded its time limit.
    Timeout,
    /// The arguments do not match the schema or are invalid.
    Validation,
    /// The user or the policy denied the call.
    Denied,
    /// The call was skipped because something else took precedence.
    Skipped,
    /// The call was cancelled.
    Cancelled,
    /// The tool itself failed unexpectedly.
    Exception,
    /// The tool ran and reported an error.
    ExecutionError,
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Disposition {
    /// The tool ran.
    Executed,
    /// The tool does not exist.
    NotFound,
    /// The arguments were rejected before the tool ran.
    Invalid,
    /// Permission was denied.
    Denied,
    /// The call was skipped.
    Skipped,
    /// The call was cancelled before or while it ran.
    Cancelled,
    /// The tool exceeded its time limit.
    TimedOut,
}

/// Permission decision for a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The call may run.
    Allow,
    /// The call may not run; the reason is sent to the model.
    Deny(String),
    /// The user cancelled the whole prompt instead of deciding.
    Cancelled,
}

/// Entry of the model's plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanEntry {
    /// Description of the task.
    pub content: String,
    /// Priority.
    #[serde(default)]
    pub priority: PlanPriority,
    /// Status.
    #[serde(default)]
    pub status: PlanStatus,
}

/// Priority of a plan entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlanPriority {
    /// High priority.
    High,
    /// Medium priority.
    #[default]
    Medium,
    /// Low priority.
    Low,
}

/// Status of a plan entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// Not started.
    #[default]
    Pending,
    /// In progress.
    InProgress,
    /// Completed.
    Completed,
}
