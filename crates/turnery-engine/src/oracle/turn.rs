//! Turn: the part of the grammar that lies between `TurnStart` and `TurnEnd`.

use super::call::Calls;
use super::end::Value;
use super::{Oracle, ensure};
use crate::{CallId, Event, EventKind, LlmMessage, Message, MessageId, MessageStop, Usage};

/// How far a turn has come.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    part: Part,
    compacted: bool,
    usage: Option<Usage>,
    calls: Calls,
}

#[derive(Clone, Debug)]
enum Part {
    /// Inputs may come, then room may be made.
    Opening,
    Compacting,
    /// The model is at work: its answer must come.
    Called,
    Message {
        id: MessageId,
        streamed: bool,
        /// It may be an input.
        opening: bool,
    },
    Answered,
    Calls,
    Result {
        id: MessageId,
        due: (CallId, bool),
    },
    /// A value was shown as final: nothing but the end may come.
    Valued,
}

impl Turn {
    pub(super) fn new() -> Self {
        Self {
            part: Part::Opening,
            compacted: false,
            usage: None,
            calls: Calls::new(&[]),
        }
    }
}

impl Oracle {
    /// Take in an event inside a turn. Gives the turn back until it has ended.
    pub(super) fn in_turn(
        &mut self,
        mut turn: Turn,
        event: &Event,
    ) -> Result<Option<Turn>, String> {
        turn.part = match (turn.part, &event.kind) {
            (part @ (Part::Opening | Part::Called), EventKind::MessageStart { message_id }) => {
                self.new_message(message_id)?;
                Part::Message {
                    id: message_id.clone(),
                    streamed: false,
                    opening: matches!(part, Part::Opening),
                }
            }
            (Part::Opening | Part::Called, EventKind::ModelRetried { .. }) => Part::Called,
            (Part::Opening | Part::Called, EventKind::CompactionStarted { .. }) => {
                ensure(!turn.compacted, || {
                    "TURN-57: two compactions in a turn".to_owned()
                })?;
                turn.compacted = true;
                Part::Compacting
            }
            (Part::Compacting, EventKind::CompactionEnded { block, failure, .. }) => {
                ensure(block.is_some() != failure.is_some(), || {
                    format!("UP-10: a block and a failure, or neither: {:?}", event.kind)
                })?;
                Part::Called
            }
            (Part::Message { id, opening, .. }, EventKind::Delta { message_id, .. }) => {
                ensure(id == *message_id, || {
                    format!("TURN-51: a delta for {message_id:?}")
                })?;
                Part::Message {
                    id,
                    streamed: true,
                    opening,
                }
            }
            (
                Part::Message {
                    id,
                    streamed,
                    opening,
                },
                EventKind::MessageEnd { message },
            ) => {
                self.settled(message, &id, true)?;
                match &message.message {
                    Message::Assistant { usage, .. } => {
                        turn.usage = *usage;
                        turn.calls = self.answered(message)?;
                        Part::Answered
                    }
                    Message::User { .. } | Message::System { .. } if opening && !streamed => {
                        Part::Opening
                    }
                    other => return Err(format!("TURN-57: among the inputs came {other:?}")),
                }
            }
            (Part::Answered, EventKind::UsageReported { usage, cumulative }) => {
                ensure(*usage == turn.usage, || {
                    format!("I2: reported {usage:?}, the message has {:?}", turn.usage)
                })?;
                self.usage += usage.unwrap_or_default();
                ensure(*cumulative == self.usage, || {
                    format!("I4: cumulative {cumulative:?}, the sum is {:?}", self.usage)
                })?;
                Part::Calls
            }
            (Part::Answered, kind) => return Err(format!("I4: no usage before {kind:?}")),
            (Part::Calls, EventKind::MessageStart { message_id }) => {
                self.new_message(message_id)?;
                Part::Result {
                    id: message_id.clone(),
                    due: turn.calls.due()?,
                }
            }
            (Part::Result { id, due }, EventKind::MessageEnd { message }) => {
                self.settled(message, &id, true)?;
                turn.calls.told(id, &due, &message.message)?;
                Part::Calls
            }
            (Part::Calls, EventKind::FinalValue { value }) => {
                turn.calls.done()?;
                self.value = Some(Value::Submitted(value.clone()));
                Part::Valued
            }
            (Part::Calls, EventKind::ToolValue { tool_name, value }) => {
                turn.calls.done()?;
                ensure(turn.calls.has_tool(tool_name), || {
                    format!("LASH-64: a value of {tool_name}, which was not called")
                })?;
                self.value = Some(Value::Tool(tool_name.clone(), value.clone()));
                Part::Valued
            }
            (
                Part::Calls | Part::Valued,
                EventKind::TurnEnd {
                    usage,
                    tool_results,
                },
            ) => {
                turn.calls.done()?;
                ensure(*tool_results == turn.calls.results, || {
                    format!("TURN-49: {tool_results:?} are not {:?}", turn.calls.results)
                })?;
                ensure(*usage == turn.usage, || {
                    format!("I2: TurnEnd has {usage:?}, the message {:?}", turn.usage)
                })?;
                return Ok(None);
            }
            (Part::Calls, kind) => {
                turn.calls.see(kind)?;
                Part::Calls
            }
            (part, kind) => return Err(format!("R1: in {part:?} came {kind:?}")),
        };
        Ok(Some(turn))
    }

    fn answered(&mut self, message: &LlmMessage) -> Result<Calls, String> {
        let calls: Vec<_> = message.message.calls().cloned().collect();
        for call in &calls {
            ensure(self.call_ids.insert(call.call_id.clone()), || {
                format!("R2: {:?} twice", call.call_id)
            })?;
        }
        if let Message::Assistant { stop, .. } = &message.message {
            self.last_stop = Some(*stop);
            ensure(calls.is_empty() || *stop == MessageStop::ToolUse, || {
                format!("D-16: calls in a message that stopped with {stop:?}")
            })?;
        }
        Ok(Calls::new(&calls))
    }
}
