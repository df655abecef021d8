//! Step: what a line of a case can be.

use crate::model::{self, Answer};
use serde_json::Value;
use std::time::Duration;

/// One line of a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// 1-based.
    pub number: usize,
    /// As it stands in the file.
    pub text: String,
    /// When it is done at all.
    pub guards: Vec<Guard>,
    /// Its patience, if it has its own.
    pub within: Option<Duration>,
    /// What it does.
    pub step: Step,
    /// The rules that it checks.
    pub rules: Vec<String>,
}

/// Something that an agent, or what is known about it, may lack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// A path into the agent's capabilities, or from `initialize.` or `session.` on into those results.
    Path(String),
    /// It speaks the second version.
    V2,
    /// There is a profile: a prompt goes to no model but the fake one.
    Profile,
    /// It can be pointed at the fake model.
    Model,
    /// It can be started without a key for its model.
    Keyless,
    /// It has such a tool.
    Tool(Tool),
    /// This was captured; only before a step.
    Captured(String),
}

/// A tool by what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Reads a file.
    Read,
    /// Writes a file.
    Write,
    /// Runs a command.
    Shell,
    /// One of an MCP server.
    Mcp,
    /// Shows a plan.
    Plan,
    /// Asks the user.
    Ask,
}

impl Tool {
    /// All of them.
    pub(crate) const ALL: [Self; 6] = [
        Self::Read,
        Self::Write,
        Self::Shell,
        Self::Mcp,
        Self::Plan,
        Self::Ask,
    ];

    /// What a case calls it.
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

    /// What it does, in words.
    pub(crate) const fn does(self) -> &'static str {
        match self {
            Self::Read => "reads files",
            Self::Write => "writes files",
            Self::Shell => "runs commands",
            Self::Mcp => "belongs to an MCP server",
            Self::Plan => "shows a plan",
            Self::Ask => "asks the user",
        }
    }

    /// Whether a script means it by this. `mcp` never: a server that the agent was told of and has not got is
    /// the agent's fault, and not something that it need not have.
    pub(crate) fn is_meant_by(self, tool: &model::Tool) -> bool {
        let edits = self == Self::Write && *tool == model::Tool::Edit;
        edits || tool.to_string() == self.name()
    }
}

/// Whether a line is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Only with this.
    If(Need),
    /// Only without it.
    Unless(Need),
}

/// What a line does.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The macros speak this version from here on.
    Version(u16),
    /// The client's capabilities.
    Client(Value),
    /// A file: name, text.
    File(String, String),
    /// A folder.
    Folder(String),
    /// A symbolic link: name, target.
    Link(String, String),
    /// Unsaved text in the editor: name, text.
    Buffer(String, String),
    /// A variable.
    Let(String, Value),
    /// A variable that holds a text many times: name, times, text.
    Repeat(String, usize, String),
    /// What the fake model says.
    Model {
        /// Only to requests whose prompt holds this.
        prompt: Option<String>,
        /// One for each request.
        answers: Vec<Answer>,
    },
    /// An answer of the model that hangs goes on.
    GoOnTalking,

    /// Start the agent.
    Start(Start),
    /// End it and start it again.
    Restart(Start),
    /// Close its stdin.
    Eof,
    /// It ends, with this code if one is named.
    Exit(Option<i32>),
    /// It ends by itself, its stdin still open, with this code if one is named.
    Gone(Option<i32>),
    /// SIGTERM.
    Term,
    /// SIGKILL.
    Kill,
    /// Do not read this.
    StopReading(Pipe),
    /// Read its stdout again.
    GoOnReading,
    /// Close our end of its stdout.
    HangUp,
    /// Nothing that it started is alive.
    OrphansNone,
    /// Its stderr has, or lacks, this text.
    Stderr(bool, String),

    /// A line.
    Send {
        /// The line.
        text: String,
        /// It may be broken.
        broken: bool,
        /// In one write with the next.
        more: bool,
    },
    /// Bytes.
    Raw {
        /// The bytes; `$NAME` in them is filled in.
        bytes: Vec<u8>,
        /// In one write with the next.
        more: bool,
    },
    /// The next write goes out in pieces of this many bytes.
    Split(usize),

    /// `initialize` and its answer.
    Initialize(Option<Value>),
    /// `authenticate`, if the profile says so and it has not been done.
    Login,
    /// `session/new` and its answer.
    Session(String, Option<Value>),
    /// `session/load` and its answer.
    Load(String, Option<Value>),
    /// `session/resume` and its answer.
    Resume(String, Option<Value>),
    /// `session/prompt`.
    Prompt {
        /// What is said.
        content: Content,
        /// The variable that holds the session.
        session: String,
        /// The name of the request.
        name: String,
        /// It may be wrong.
        broken: bool,
        /// In one write with the next.
        more: bool,
    },
    /// `session/cancel` of this session.
    Cancel(String),
    /// A request.
    Call {
        /// The method.
        method: String,
        /// Its params; `null`: none.
        params: Value,
        /// The name of the request.
        name: String,
        /// It may be wrong.
        broken: bool,
        /// The answer, if it is waited for.
        then: Option<Expect>,
    },
    /// A notification.
    Tell {
        /// The method.
        method: String,
        /// Its params; `null`: none.
        params: Value,
        /// It may be wrong.
        broken: bool,
    },
    /// An unknown request and its answer.
    Probe,
    /// Two probes with a pause between them.
    Quiet,

    /// The answer to a request.
    Answered(String, Expect),
    /// The next line.
    Next(Value),
    /// The next line that fits.
    Until(Value),
    /// Look from here on.
    Mark,
    /// None of the lines fits.
    No(Value),
    /// One of them fits.
    Some(Value),
    /// One of them may fit.
    Maybe(Value),
    /// So many of them fit.
    Count(Range, Value),
    /// There are such lines, in this order.
    Order(Vec<Value>),
    /// What was said holds this text, or does not.
    Said {
        /// Whose words.
        voice: Voice,
        /// The text.
        text: String,
        /// The variable that holds the session.
        session: String,
        /// Or must not hold it.
        not: bool,
    },
    /// A value fits.
    Value(Value, Value),
    /// The file holds just this.
    Read(String, String),
    /// The file holds this somewhere.
    Holds(String, String),
    /// The file is what it was made.
    Same(String),
    /// There is no such file.
    Absent(String),

    /// How permission is given.
    Permission(Permission),
    /// How elicitations are answered.
    Elicitation(Elicitation),
    /// How requests of a method are answered.
    Answer(String, How),

    /// The last request to the model holds this text, or does not.
    Saw(bool, String),
    /// So many requests were made to the model.
    Asked(Range),
    /// The agent let go of an answer of the model that had not ended.
    Dropped,
}

/// How the agent is started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// Without a key for its model.
    pub is_keyless: bool,
    /// The folder it is started in, else its home.
    pub folder: Option<String>,
    /// More variables.
    pub variables: Vec<(String, String)>,
}

/// A pipe out of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pipe {
    /// Its messages.
    Stdout,
    /// Its logs.
    Stderr,
}

/// What a prompt says.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// One block of text.
    Text(String),
    /// Blocks as they are.
    Blocks(Value),
}

/// What an answer must be.
#[derive(Clone, Debug, PartialEq)]
pub enum Expect {
    /// A result that fits.
    Result(Value),
    /// An error that fits.
    Error(Value),
    /// One of both.
    Any,
}

/// From, and up to and with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// At least.
    pub from: usize,
    /// At most.
    pub to: Option<usize>,
}

/// Whose words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voice {
    /// `agent_message_chunk`.
    Agent,
    /// `agent_thought_chunk`.
    Thought,
    /// `user_message_chunk`.
    User,
}

/// How permission is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// The option of this kind.
    AllowOnce,
    /// The option of this kind.
    AllowAlways,
    /// The option of this kind.
    RejectOnce,
    /// The option of this kind.
    RejectAlways,
    /// The outcome `cancelled`.
    Cancelled,
    /// An option that was not offered.
    Unknown,
    /// An outcome that does not exist.
    Strange,
    /// An error.
    Error,
    /// Not until this changes.
    Never,
    /// The case does it.
    ByHand,
}

/// How elicitations are answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Elicitation {
    /// With this content.
    Accept(Value),
    /// With this value in each field of the form.
    AcceptEach(Value),
    /// The user says no.
    Decline,
    /// The user goes away.
    Cancel,
    /// An action that does not exist.
    Strange,
    /// An error.
    Error,
    /// The case does it.
    ByHand,
}

/// How requests of a method are answered.
#[derive(Clone, Debug, PartialEq)]
pub enum How {
    /// As the client does it.
    ByItself,
    /// The case does it.
    ByHand,
    /// With an error of this code.
    Error(i64),
    /// With this result.
    With(Value),
}
