//! Constructors of the events that the encoders are tested with. Every call has the id `c1`.

use serde_json::Value;
use std::sync::Arc;
use turnery_engine::{
    CallDetail, CallId, ConfigSnapshot, ContinuationKind, Disposition, EventKind, LlmMessage,
    Message, MessageId, ModelDelta, Outcome, PromptId, ToolCall, ToolEnvelope, TurnStop, Usage,
};

pub(crate) fn call_id() -> CallId {
    CallId::from("c1")
}

/// Returns the start of a prompt's first loop.
pub(crate) fn loop_start(config: Option<ConfigSnapshot>) -> EventKind {
    EventKind::LoopStart {
        agent_id: "a".to_owned(),
        prompt_id: PromptId::from("p1"),
        parent_loop_id: None,
        continuation_kind: ContinuationKind::Initial,
        config: config.map(Box::new),
        tag: None,
        metadata: None,
        frame_id: None,
        frame: None,
    }
}

pub(crate) fn loop_end(outcome: Outcome) -> EventKind {
    EventKind::LoopEnd {
        outcome,
        usage: Usage::default(),
        rejection: None,
    }
}

pub(crate) fn loop_cancelled() -> EventKind {
    loop_end(Outcome::Stopped(TurnStop::Cancelled))
}

pub(crate) fn text_delta(message_id: &str, text: &str) -> EventKind {
    EventKind::Delta {
        message_id: MessageId::from(message_id),
        delta: ModelDelta::Text {
            block: 0,
            text: text.to_owned(),
        },
    }
}

pub(crate) fn message_end(id: &str, message: Message) -> EventKind {
    EventKind::MessageEnd {
        message: Arc::new(LlmMessage {
            message_id: MessageId::from(id),
            turn_id: None,
            message,
        }),
    }
}

pub(crate) fn call_requested(name: &str, args: Value, detail: CallDetail) -> EventKind {
    EventKind::ToolCallRequested {
        call: ToolCall::new(call_id(), name, args),
        detail,
    }
}

pub(crate) fn call_started(name: &str, runs: bool) -> EventKind {
    EventKind::ToolExecutionStart {
        call_id: call_id(),
        tool_name: name.to_owned(),
        runs,
    }
}

pub(crate) fn call_updated(detail: CallDetail) -> EventKind {
    EventKind::ToolExecutionUpdate {
        call_id: call_id(),
        detail,
    }
}

pub(crate) fn call_printed(text: &str) -> EventKind {
    EventKind::ToolExecutionOutput {
        call_id: call_id(),
        text: text.to_owned(),
    }
}

pub(crate) fn call_ended(
    name: &str,
    envelope: ToolEnvelope,
    disposition: Disposition,
) -> EventKind {
    EventKind::ToolExecutionEnd {
        call_id: call_id(),
        tool_name: name.to_owned(),
        envelope,
        disposition,
        child_loop_id: None,
    }
}
