//! Checks the events between `TurnStart` and `TurnEnd`.

use super::call_tracker::CallTracker;
use super::{Oracle, ensure::ensure};
use crate::{
    CallId, Event, EventKind, LlmMessage, Message, MessageId, MessageStop, ToolCall, Usage,
};

/// Progress of a turn.
#[derive(Clone, Debug)]
pub(super) struct TurnProgress {
    part: TurnPart,
    is_compacted: bool,
    usage: Option<Usage>,
    calls: CallTracker,
}

#[derive(Clone, Debug)]
enum TurnPart {
    /// Inputs may follow, then a compaction or the response.
    Inputs,
    Compacting,
    /// The model call is running; its response must follow.
    AwaitingResponse,
    Message {
        id: MessageId,
        is_streamed: bool,
        /// True if the message may be an input.
        may_be_input: bool,
    },
    Answered,
    Calls,
    Result {
        id: MessageId,
        due: (CallId, bool),
    },
    /// A final value was shown; only the end of the turn may follow.
    FinalValue,
}

/// Final value shown in a turn.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum FinalValue {
    Submitted(serde_json::Value),
    Tool(String, serde_json::Value),
}

impl TurnProgress {
    pub(super) fn new() -> Self {
        Self {
            part: TurnPart::Inputs,
            is_compacted: false,
            usage: None,
            calls: CallTracker::new(&[]),
        }
    }
}

impl Oracle {
    /// Checks an event inside a turn. Returns the turn unless it has ended.
    pub(super) fn observe_in_turn(
        &mut self,
        mut turn: TurnProgress,
        event: &Event,
    ) -> Result<Option<TurnProgress>, String> {
        turn.part = match (turn.part, &event.kind) {
            (
                part @ (TurnPart::Inputs | TurnPart::AwaitingResponse),
                EventKind::MessageStart { message_id },
            ) => {
                self.register_message(message_id)?;
                TurnPart::Message {
                    id: message_id.clone(),
                    is_streamed: false,
                    may_be_input: matches!(part, TurnPart::Inputs),
                }
            }
            (TurnPart::Inputs | TurnPart::AwaitingResponse, EventKind::ModelRetried { .. }) => {
                TurnPart::AwaitingResponse
            }
            (
                TurnPart::Inputs | TurnPart::AwaitingResponse,
                EventKind::CompactionStarted { .. },
            ) => {
                ensure(!turn.is_compacted, || {
                    "TURN-57: two compactions in a turn".to_owned()
                })?;
                turn.is_compacted = true;
                TurnPart::Compacting
            }
            (TurnPart::Compacting, EventKind::CompactionEnded { block, failure, .. }) => {
                ensure(block.is_some() != failure.is_some(), || {
                    format!("UP-10: a block and a failure, or neither: {:?}", event.kind)
                })?;
                TurnPart::AwaitingResponse
            }
            (
                TurnPart::Message {
                    id, may_be_input, ..
                },
                EventKind::Delta { message_id, .. },
            ) => {
                ensure(id == *message_id, || {
                    format!("TURN-51: a delta for {message_id:?}")
                })?;
                TurnPart::Message {
                    id,
                    is_streamed: true,
                    may_be_input,
                }
            }
            (
                TurnPart::Message {
                    id,
                    is_streamed: streamed,
                    may_be_input,
                },
                EventKind::MessageEnd { message },
            ) => {
                self.check_message_end(message, &id, true)?;
                match &message.message {
                    Message::Assistant { usage, .. } => {
                        turn.usage = *usage;
                        turn.calls = self.observe_response(message)?;
                        TurnPart::Answered
                    }
                    Message::User { .. } | Message::System { .. } if may_be_input && !streamed => {
                        TurnPart::Inputs
                    }
                    other => return Err(format!("TURN-57: among the inputs came {other:?}")),
                }
            }
            (TurnPart::Answered, EventKind::UsageReported { usage, cumulative }) => {
                ensure(*usage == turn.usage, || {
                    format!("I2: reported {usage:?}, the message has {:?}", turn.usage)
                })?;
                self.usage += usage.unwrap_or_default();
                ensure(*cumulative == self.usage, || {
                    format!("I4: cumulative {cumulative:?}, the sum is {:?}", self.usage)
                })?;
                TurnPart::Calls
            }
            (TurnPart::Answered, kind) => return Err(format!("I4: no usage before {kind:?}")),
            (TurnPart::Calls, EventKind::MessageStart { message_id }) => {
                self.register_message(message_id)?;
                TurnPart::Result {
                    id: message_id.clone(),
                    due: turn.calls.due_result()?,
                }
            }
            (TurnPart::Result { id, due }, EventKind::MessageEnd { message }) => {
                self.check_message_end(message, &id, true)?;
                turn.calls.deliver_result(id, &due, &message.message)?;
                TurnPart::Calls
            }
            (TurnPart::Calls, EventKind::FinalValue { value }) => {
                turn.calls.check_done()?;
                self.final_value = Some(FinalValue::Submitted(value.clone()));
                TurnPart::FinalValue
            }
            (TurnPart::Calls, EventKind::ToolValue { tool_name, value }) => {
                turn.calls.check_done()?;
                ensure(turn.calls.has_tool(tool_name), || {
                    format!("LASH-64: a value of {tool_name}, which was not called")
                })?;
                self.final_value = Some(FinalValue::Tool(tool_name.clone(), value.clone()));
                TurnPart::FinalValue
            }
            (
                TurnPart::Calls | TurnPart::FinalValue,
                EventKind::TurnEnd {
                    usage,
                    tool_results,
                },
            ) => {
                turn.calls.check_done()?;
                ensure(*tool_results == turn.calls.results, || {
                    format!("TURN-49: {tool_results:?} are not {:?}", turn.calls.results)
                })?;
                ensure(*usage == turn.usage, || {
                    format!("I2: TurnEnd has {usage:?}, the message {:?}", turn.usage)
                })?;
                return Ok(None);
            }
            (TurnPart::Calls, kind) => {
                if let EventKind::ToolCallRequested { call, .. } = kind
                    && call.parent_call_id.is_some()
                {
                    self.register_call(call)?;
                }
                turn.calls.observe(kind)?;
                TurnPart::Calls
            }
            (part, kind) => return Err(format!("R1: in {part:?} came {kind:?}")),
        };
        Ok(Some(turn))
    }

    fn register_call(&mut self, call: &ToolCall) -> Result<(), String> {
        ensure(self.call_ids.insert(call.call_id.clone()), || {
            format!("R2: {:?} twice", call.call_id)
        })
    }

    fn observe_response(&mut self, message: &LlmMessage) -> Result<CallTracker, String> {
        let calls: Vec<_> = message.message.calls().cloned().collect();
        for call in &calls {
            self.register_call(call)?;
        }
        if let Message::Assistant { stop, .. } = &message.message {
            self.last_stop = Some(*stop);
            ensure(calls.is_empty() || *stop == MessageStop::ToolUse, || {
                format!("D-16: calls in a message that stopped with {stop:?}")
            })?;
        }
        Ok(CallTracker::new(&calls))
    }
}
