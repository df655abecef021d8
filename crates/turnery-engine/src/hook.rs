//! Hook requests and verdicts: the points at which a host can inspect or veto the work of a loop. The engine
//! emits requests; the host runs the hooks and feeds back their verdicts.

use crate::{CallId, Content, ContextSize, ToolCall, ToolEnvelope, Usage};

/// Set of installed hooks. The engine emits no requests for absent hooks (LOOP-59).
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
    /// Before a failed loop ends.
    pub on_error: bool,
    /// Before the loop finishes.
    pub checkpoint: bool,
}

/// Request to a hook, answered with [`Input::HookAnswered`](crate::Input::HookAnswered).
#[derive(Clone, Debug, PartialEq)]
pub enum HookRequest {
    /// May these user messages be sent to the model? `text` is all text of the new messages (UP-7).
    Input {
        /// Text of the messages.
        text: String,
    },
    /// May the turn start? (TURN-23 to TURN-26)
    BeforeTurn {
        /// Index of the turn.
        turn_index: u32,
    },
    /// The turn has ended (TURN-27, TURN-28).
    AfterTurn {
        /// Index of the turn.
        turn_index: u32,
        /// Usage of the turn.
        usage: Option<Usage>,
    },
    /// May the call run? Sent after permission was granted.
    BeforeTool(ToolCall),
    /// The call has ended.
    AfterTool {
        /// Call id.
        call_id: CallId,
        /// Tool name.
        tool_name: String,
        /// Result of the call.
        envelope: Box<ToolEnvelope>,
    },
    /// May history be compacted?
    BeforeCompaction(ContextSize),
    /// History has been compacted.
    AfterCompaction {
        /// Size before the compaction.
        before: ContextSize,
        /// Size after the compaction.
        after: ContextSize,
    },
    /// The loop has failed (C-28): a response ended in an error (LOOP-58), a requested compaction failed, or
    /// a tool's decision could not be carried out.
    OnError {
        /// Error message.
        message: String,
    },
    /// The model has finished. Is the work done?
    Checkpoint,
}

/// Verdict of a hook. A verdict that does not apply to the request counts as `Continue`.
#[derive(Clone, Debug, PartialEq)]
pub enum HookVerdict {
    /// Continue.
    Continue,
    /// Continue, and append a warning for the model (input filters).
    Warn(String),
    /// Stop, with a reason. Also the verdict of a failed hook if the hook could veto.
    Stop(String),
    /// Continue with another turn and this input (checkpoint).
    Inject(Vec<Content>),
}
