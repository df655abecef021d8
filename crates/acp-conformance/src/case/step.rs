//! Defines the steps of a case.

use crate::model::{self, ScriptedResponse};
use serde_json::Value;
use std::time::Duration;

/// Line of a case.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseLine {
    /// 1-based line number.
    pub number: usize,
    /// Text as in the file.
    pub text: String,
    /// Conditions under which the step is performed.
    pub conditions: Vec<LineCondition>,
    /// Time limit set by `within`.
    pub patience: Option<Duration>,
    /// Step to perform.
    pub step: CaseStep,
    /// Ids of the rules that the line checks.
    pub rules: Vec<String>,
}

/// Property of the agent or its profile that a case or a line depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// Path into the agent's capabilities, or into a result if it starts with `initialize.` or `session.`.
    Path(String),
    /// Support for protocol version 2.
    V2,
    /// Presence of a profile, so that prompts reach no model but the fake one.
    Profile,
    /// Profile that points the agent at the fake model.
    Model,
    /// Profile that can start the agent without a model key.
    Keyless,
    /// Tool of this kind.
    Tool(ToolKind),
    /// Captured variable; only valid as a condition of a line.
    Captured(String),
}

/// Kind of tool, by its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolKind {
    /// Reads a file.
    Read,
    /// Writes a file.
    Write,
    /// Runs a command.
    Shell,
    /// Belongs to an MCP server.
    Mcp,
    /// Shows a plan.
    Plan,
    /// Asks the user.
    Ask,
}

impl ToolKind {
    /// All kinds.
    pub(crate) const ALL: [Self; 6] = [
        Self::Read,
        Self::Write,
        Self::Shell,
        Self::Mcp,
        Self::Plan,
        Self::Ask,
    ];

    /// Returns the name used in cases.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Shell => "shell",
            Self::Mcp => "mcp",
            Self::Plan => "plan",
            Self::Ask => "ask",
        }
    }

    /// Returns the effect as a verb phrase, for messages.
    pub(crate) const fn description(self) -> &'static str {
        match self {
            Self::Read => "reads files",
            Self::Write => "writes files",
            Self::Shell => "runs commands",
            Self::Mcp => "belongs to an MCP server",
            Self::Plan => "shows a plan",
            Self::Ask => "asks the user",
        }
    }

    /// Returns true if a script's tool is of this kind. Never true for `mcp`: an agent that does not offer
    /// the tools of a server it was given is at fault, and does not merely lack a tool.
    pub(crate) fn covers(self, tool: &model::ScriptTool) -> bool {
        let edits = self == Self::Write && *tool == model::ScriptTool::Edit;
        edits || tool.to_string() == self.name()
    }
}

/// Condition of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineCondition {
    /// Perform the step only if the need is met.
    If(Need),
    /// Perform the step only if the need is not met.
    Unless(Need),
}

/// Step of a case.
#[derive(Clone, Debug, PartialEq)]
pub enum CaseStep {
    /// Sets the protocol version used by the later steps that build their own requests (`initialize`,
    /// `session`, `load`, `resume`, `prompt`).
    Version(u16),
    /// Sets the client's capabilities.
    Client(Value),
    /// Creates a file: name, text.
    File(String, String),
    /// Creates a folder.
    Folder(String),
    /// Creates a symbolic link: name, target.
    Link(String, String),
    /// Sets the unsaved text of an open file: name, text.
    Buffer(String, String),
    /// Sets a variable.
    Let(String, Value),
    /// Sets a variable to a repeated text: name, count, text.
    Repeat(String, usize, String),
    /// Sets a script of the fake model.
    Model {
        /// Text that identifies the prompts this script is for; `None` for all others.
        prompt: Option<String>,
        /// Responses, one per request.
        answers: Vec<ScriptedResponse>,
    },
    /// Resumes a hanging response of the model.
    ReleaseModel,

    /// Starts the agent.
    Start(StartOptions),
    /// Stops the agent and starts it again.
    Restart(StartOptions),
    /// Closes the agent's stdin.
    Eof,
    /// Closes stdin and checks that the agent exits, with this code if given.
    Exit(Option<i32>),
    /// Checks that the agent exits with stdin still open, with this code if given.
    ExitUnprompted(Option<i32>),
    /// Sends SIGTERM.
    Term,
    /// Sends SIGKILL and waits for the exit.
    Kill,
    /// Stops reading a pipe.
    StopReading(OutputPipe),
    /// Resumes reading stdout.
    ResumeReading,
    /// Closes the reading end of the agent's stdout.
    HangUp,
    /// Checks that no process started by the agent is alive.
    NoOrphans,
    /// Checks that stderr contains (true) or lacks (false) this text.
    Stderr(bool, String),

    /// Sends a line.
    Send {
        /// Line to send.
        text: String,
        /// True if the line may be malformed.
        may_be_invalid: bool,
        /// True to send it in one write with the next.
        joins_next_write: bool,
    },
    /// Sends bytes.
    Raw {
        /// Bytes to send, with `$NAME` substituted.
        bytes: Vec<u8>,
        /// True to send them in one write with the next.
        joins_next_write: bool,
    },
    /// Splits the next write into pieces of this size. Unit: bytes.
    Split(usize),

    /// Sends `initialize`, with this JSON merged over the default params, and waits for the response.
    Initialize(Option<Value>),
    /// Sends `authenticate`, if the profile requires a login that has not been done yet.
    Login,
    /// Sends `session/new` and waits for the response: variable that receives the session id, JSON merged
    /// over the default params.
    Session(String, Option<Value>),
    /// Sends `session/load` and waits for the response: variable that holds the session id, JSON merged over
    /// the default params.
    Load(String, Option<Value>),
    /// Sends `session/resume` and waits for the response: variable that holds the session id, JSON merged
    /// over the default params.
    Resume(String, Option<Value>),
    /// Sends `session/prompt`.
    Prompt {
        /// Prompt content.
        content: PromptContent,
        /// Variable that holds the session id.
        session: String,
        /// Variable that holds the request id.
        name: String,
        /// True if the params may be invalid.
        may_be_invalid: bool,
        /// True to send it in one write with the next.
        joins_next_write: bool,
    },
    /// Sends `session/cancel` for the session of this variable.
    Cancel(String),
    /// Sends a request.
    Call {
        /// Method name.
        method: String,
        /// Params; `null` sends none.
        params: Value,
        /// Variable that holds the request id.
        name: String,
        /// True if the params may be invalid.
        may_be_invalid: bool,
        /// Expected response, if the step waits for one.
        expected: Option<ExpectedResponse>,
    },
    /// Sends a notification.
    Notify {
        /// Method name.
        method: String,
        /// Params; `null` sends none.
        params: Value,
        /// True if the params may be invalid.
        may_be_invalid: bool,
    },
    /// Sends a request of an unknown method and waits for the response.
    Probe,
    /// Sends two probes with a pause in between.
    Quiet,

    /// Checks the response to a request.
    ExpectResponse(String, ExpectedResponse),
    /// Checks the next line.
    Next(Value),
    /// Waits for the next line that matches.
    Until(Value),
    /// Marks the first line that the following checks look at.
    Mark,
    /// Checks that no line since the mark matches.
    No(Value),
    /// Checks that a line since the mark matches.
    Some(Value),
    /// Captures from a line since the mark, if one matches.
    CaptureIfAny(Value),
    /// Checks how many lines since the mark match.
    Count(CountRange, Value),
    /// Checks that lines since the mark match in this order.
    Order(Vec<Value>),
    /// Checks the message text since the mark.
    MessageText {
        /// Author of the messages.
        author: ChunkAuthor,
        /// Text to look for.
        text: String,
        /// Variable that holds the session id.
        session: String,
        /// True if the text must be missing.
        is_negated: bool,
    },
    /// Checks that a value matches a pattern.
    Value(Value, Value),
    /// Checks that a file has exactly this text.
    FileEquals(String, String),
    /// Checks that a file contains this text.
    FileContains(String, String),
    /// Checks that a file has the text it was created with.
    FileUnchanged(String),
    /// Checks that a file does not exist.
    FileAbsent(String),

    /// Sets how permission requests are answered.
    Permission(PermissionAnswer),
    /// Sets how elicitations are answered.
    Elicitation(ElicitationAnswer),
    /// Sets how requests of a method are answered.
    Answer(String, ResponseMode),

    /// Checks that the last model request contains (true) or lacks (false) this text.
    ModelRequestText(bool, String),
    /// Checks the number of model requests.
    ModelRequestCount(CountRange),
    /// Checks that the agent has closed the stream of an unfinished model response.
    ModelStreamClosed,
}

/// Options for starting the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartOptions {
    /// True to start without a model key.
    pub is_keyless: bool,
    /// Working directory; `None` is the agent's home.
    pub folder: Option<String>,
    /// Additional environment variables.
    pub variables: Vec<(String, String)>,
}

/// Output pipe of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputPipe {
    /// Protocol messages.
    Stdout,
    /// Logs.
    Stderr,
}

/// Content of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub enum PromptContent {
    /// One text block.
    Text(String),
    /// Content blocks, sent verbatim.
    Blocks(Value),
}

/// Expected response to a request.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpectedResponse {
    /// Result that matches.
    Result(Value),
    /// Error that matches.
    Error(Value),
    /// Any result or error.
    Any,
}

/// Inclusive range of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountRange {
    /// Lower bound.
    pub min: usize,
    /// Upper bound; `None` is unbounded.
    pub max: Option<usize>,
}

/// Author of message chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkAuthor {
    /// `agent_message_chunk`.
    Agent,
    /// `agent_thought_chunk`.
    Thought,
    /// `user_message_chunk`.
    User,
}

/// Answer to permission requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermissionAnswer {
    /// Option of kind `allow_once`.
    AllowOnce,
    /// Option of kind `allow_always`.
    AllowAlways,
    /// Option of kind `reject_once`.
    RejectOnce,
    /// Option of kind `reject_always`.
    RejectAlways,
    /// Outcome `cancelled`.
    Cancelled,
    /// Option that was not offered.
    UnknownOption,
    /// Outcome that does not exist.
    UnknownOutcome,
    /// Error response.
    Error,
    /// No answer until the setting changes.
    Never,
    /// Answer sent by the case.
    ByHand,
}

/// Answer to elicitations.
#[derive(Clone, Debug, PartialEq)]
pub enum ElicitationAnswer {
    /// Acceptance with this content.
    Accept(Value),
    /// Acceptance with this value in each field of the form.
    AcceptEach(Value),
    /// Action `decline`.
    Decline,
    /// Action `cancel`.
    Cancel,
    /// Action that does not exist.
    UnknownAction,
    /// Error response.
    Error,
    /// Answer sent by the case.
    ByHand,
}

/// Way of answering the requests of a method.
#[derive(Clone, Debug, PartialEq)]
pub enum ResponseMode {
    /// The client's own answer.
    ByItself,
    /// Answer sent by the case.
    ByHand,
    /// Error with this code.
    Error(i64),
    /// This result.
    With(Value),
}
