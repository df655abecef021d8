//! Hook: where others may look into a loop and say no (section 6.3). The engine asks; whoever drives it answers.

use crate::{CallId, Content, ContextSize, ToolCall, ToolEnvelope, Usage};

/// Which hooks are there. What is not there is not asked, and costs nothing (LOOP-59).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HookSet {
    /// Input filters.
    pub input: bool,
    /// Before a turn.
    pub before_turn: bool,
    /// After a turn.
    pub after_turn: bool,
    /// Before a tool.
    pub before_tool: bool,
    /// After a tool.
    pub after_tool: bool,
    /// Around a compaction.
    pub compaction: bool,
    /// When an answer ended in an error.
    pub on_error: bool,
    /// After work, before the loop ends.
    pub checkpoint: bool,
}

/// A question to a hook. Answered with [`Input::Hooked`](crate::Input::Hooked).
#[derive(Clone, Debug, PartialEq)]
pub enum Hook {
    /// May this be said to the model? `text` is all text of the user's new messages (UP-7).
    Input {
        /// The text.
        text: String,
    },
    /// May the turn begin? (TURN-23 to 26)
    BeforeTurn {
        /// Its number.
        turn_index: u32,
    },
    /// The turn has ended (TURN-27, TURN-28).
    AfterTurn {
        /// Its number.
        turn_index: u32,
        /// Of the turn.
        usage: Option<Usage>,
    },
    /// May the call run? Permission has been given.
    BeforeTool(ToolCall),
    /// The call has ended.
    AfterTool {
        /// The call.
        call_id: CallId,
        /// Its tool.
        tool_name: String,
        /// What came of it.
        envelope: Box<ToolEnvelope>,
    },
    /// May history be compacted?
    BeforeCompaction(ContextSize),
    /// History has been compacted.
    AfterCompaction {
        /// Before.
        before: ContextSize,
        /// Now.
        after: ContextSize,
    },
    /// The answer ended in an error (LOOP-58, C-28).
    OnError {
        /// What it says.
        message: String,
    },
    /// The model has said all. Is the work done?
    Checkpoint,
}

/// What a hook says. What makes no sense for its hook is taken as `Go`.
#[derive(Clone, Debug, PartialEq)]
pub enum HookVerdict {
    /// Go on.
    Go,
    /// Go on, and tell the model (input filters).
    Warn(String),
    /// No, for this reason. A hook that failed says this too, if it was to be asked before something.
    Stop(String),
    /// Not done yet: go on with this (checkpoint).
    Inject(Vec<Content>),
}
