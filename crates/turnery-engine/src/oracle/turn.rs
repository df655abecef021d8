//! Turn: the part of the grammar that lies between `TurnStart` and `TurnEnd`.

use super::{Oracle, ensure};
use crate::{
    CallId, Disposition, Event, EventKind, Message, MessageId, MessageStop, Usage, Verdict,
};

/// How far a turn has come.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    part: Part,
    usage: Option<Usage>,
    asked_for: Vec<CallId>,
    requested: usize,
    done: usize,
    results: Vec<MessageId>,
}

#[derive(Clone, Debug)]
enum Part {
    /// Inputs may come, and the answer must.
    Opening,
    Message {
        id: MessageId,
        streamed: bool,
    },
    Answered,
    /// Between calls, or before the end.
    Idle,
    Asked,
    Resolved(Verdict),
    Running {
        runs: bool,
        denied: bool,
    },
    /// The bracket is closed; its result must follow.
    Ended {
        is_error: bool,
    },
    Result {
        id: MessageId,
        is_error: bool,
    },
}

impl Turn {
    pub(super) fn new() -> Self {
        Self {
            part: Part::Opening,
            usage: None,
            asked_for: Vec::new(),
            requested: 0,
            done: 0,
            results: Vec::new(),
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
        let due = turn.asked_for.get(turn.done).cloned();
        let is_due = |call_id: &CallId| {
            ensure(due.as_ref() == Some(call_id), || {
                format!("R2: {call_id:?} where {due:?} is due")
            })
        };
        let all_requested = turn.requested == turn.asked_for.len();
        turn.part = match (turn.part, &event.kind) {
            (Part::Opening, EventKind::MessageStart { message_id }) => {
                self.new_message(message_id)?;
                Part::Message {
                    id: message_id.clone(),
                    streamed: false,
                }
            }
            (Part::Message { id, .. }, EventKind::Delta { message_id, .. }) => {
                ensure(id == *message_id, || {
                    format!("TURN-51: a delta for {message_id:?}")
                })?;
                Part::Message { id, streamed: true }
            }
            (Part::Message { id, streamed }, EventKind::MessageEnd { message }) => {
                self.settled(message, &id, true)?;
                match &message.message {
                    Message::Assistant { stop, usage, .. } => {
                        self.last_stop = Some(*stop);
                        turn.usage = *usage;
                        for call in message.message.calls() {
                            ensure(self.call_ids.insert(call.call_id.clone()), || {
                                format!("R2: {:?} twice", call.call_id)
                            })?;
                            turn.asked_for.push(call.call_id.clone());
                        }
                        ensure(
                            turn.asked_for.is_empty() || *stop == MessageStop::ToolUse,
                            || format!("D-16: calls in a message that stopped with {stop:?}"),
                        )?;
                        Part::Answered
                    }
                    Message::User { .. } | Message::System { .. } if !streamed => Part::Opening,
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
                Part::Idle
            }
            (Part::Answered, kind) => return Err(format!("I4: no usage before {kind:?}")),
            (Part::Idle, EventKind::ToolCallRequested { call, .. }) => {
                let next = turn.asked_for.get(turn.requested);
                ensure(next == Some(&call.call_id), || {
                    format!("ACP-22: {:?} announced where {next:?} is due", call.call_id)
                })?;
                turn.requested += 1;
                Part::Idle
            }
            (Part::Idle, EventKind::PermissionRequested { call_id, .. }) if all_requested => {
                is_due(call_id)?;
                Part::Asked
            }
            (Part::Asked, EventKind::PermissionResolved { call_id, verdict }) => {
                is_due(call_id)?;
                Part::Resolved(verdict.clone())
            }
            (
                part @ (Part::Idle | Part::Resolved(_)),
                EventKind::ToolExecutionStart { call_id, runs, .. },
            ) => {
                ensure(all_requested, || {
                    "ACP-22: a call before all were announced".to_owned()
                })?;
                is_due(call_id)?;
                let allowed = match &part {
                    Part::Resolved(verdict) => *runs == (*verdict == Verdict::Allow),
                    Part::Opening
                    | Part::Message { .. }
                    | Part::Answered
                    | Part::Idle
                    | Part::Asked
                    | Part::Running { .. }
                    | Part::Ended { .. }
                    | Part::Result { .. } => true,
                };
                ensure(allowed, || {
                    format!("ACP-32: {call_id:?} has runs {runs} after {part:?}")
                })?;
                Part::Running {
                    runs: *runs,
                    denied: matches!(part, Part::Resolved(Verdict::Deny(_))),
                }
            }
            (
                part @ Part::Running { runs: true, .. },
                EventKind::ToolExecutionUpdate { call_id, .. }
                | EventKind::ToolExecutionOutput { call_id, .. },
            ) => {
                is_due(call_id)?;
                part
            }
            (part @ Part::Running { runs: true, .. }, EventKind::PlanUpdated { .. }) => part,
            (
                Part::Running { runs, denied },
                EventKind::ToolExecutionEnd {
                    call_id,
                    envelope,
                    disposition,
                    ..
                },
            ) => {
                is_due(call_id)?;
                let fits = match disposition {
                    Disposition::Executed => runs,
                    Disposition::Cancelled | Disposition::TimedOut => true,
                    Disposition::Denied => !runs,
                    Disposition::NotFound | Disposition::Invalid | Disposition::Skipped => !runs,
                };
                ensure(
                    fits && (!denied || *disposition == Disposition::Denied),
                    || {
                        format!(
                            "R2: {call_id:?} is {disposition:?} with runs {runs}, denied {denied}"
                        )
                    },
                )?;
                Part::Ended {
                    is_error: envelope.result.is_err(),
                }
            }
            (Part::Ended { is_error }, EventKind::MessageStart { message_id }) => {
                self.new_message(message_id)?;
                Part::Result {
                    id: message_id.clone(),
                    is_error,
                }
            }
            (Part::Ended { .. }, kind) => {
                return Err(format!("R2: {due:?} has no result before {kind:?}"));
            }
            (Part::Result { id, is_error }, EventKind::MessageEnd { message }) => {
                self.settled(message, &id, true)?;
                let fits = match &message.message {
                    Message::ToolResult {
                        call_id,
                        is_error: said,
                        ..
                    } => due.as_ref() == Some(call_id) && *said == is_error,
                    Message::System { .. } | Message::User { .. } | Message::Assistant { .. } => {
                        false
                    }
                };
                ensure(fits, || format!("R2: {message:?} is no result of {due:?}"))?;
                turn.done += 1;
                turn.results.push(id);
                Part::Idle
            }
            (
                Part::Idle,
                EventKind::TurnEnd {
                    usage,
                    tool_results,
                },
            ) => {
                ensure(due.is_none() && all_requested, || {
                    format!("R2: {due:?} has no bracket at TurnEnd")
                })?;
                ensure(*tool_results == turn.results, || {
                    format!("TURN-49: {tool_results:?} are not {:?}", turn.results)
                })?;
                ensure(*usage == turn.usage, || {
                    format!("I2: TurnEnd has {usage:?}, the message {:?}", turn.usage)
                })?;
                return Ok(None);
            }
            (part, kind) => return Err(format!("R1: in {part:?} came {kind:?}")),
        };
        Ok(Some(turn))
    }
}
