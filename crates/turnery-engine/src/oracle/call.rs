//! Call: the part of the grammar that is about the calls of a turn. Calls that run beside each other
//! interleave; each one's own events keep their order, brackets open and results come in call order (R3).

use super::ensure;
use crate::{CallId, Disposition, EventKind, Message, MessageId, ToolCall, Verdict};

/// The calls of one turn.
#[derive(Clone, Debug)]
pub(super) struct Calls {
    calls: Vec<Call>,
    requested: usize,
    /// Told, and so in call order.
    pub(super) results: Vec<MessageId>,
}

#[derive(Clone, Debug)]
struct Call {
    id: CallId,
    name: String,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    Wanted,
    Asked,
    Resolved(Verdict),
    Open {
        runs: bool,
        verdict: Option<Verdict>,
    },
    Ended {
        is_error: bool,
    },
}

impl Calls {
    pub(super) fn new(calls: &[ToolCall]) -> Self {
        let call = |call: &ToolCall| Call {
            id: call.call_id.clone(),
            name: call.name.clone(),
            state: State::Wanted,
        };
        Self {
            calls: calls.iter().map(call).collect(),
            requested: 0,
            results: Vec::new(),
        }
    }

    pub(super) fn has_tool(&self, name: &str) -> bool {
        self.calls.iter().any(|call| call.name == name)
    }

    /// Nothing is left to be done: every call was announced, bracketed, and told.
    pub(super) fn done(&self) -> Result<(), String> {
        ensure(self.results.len() == self.calls.len(), || {
            format!("R2: not all done at the end: {:?}", self.calls)
        })
    }

    fn find(&mut self, id: &CallId) -> Result<&mut Call, String> {
        let found = self.calls.iter_mut().find(|call| call.id == *id);
        found.ok_or_else(|| format!("R2: {id:?} was not asked for"))
    }

    /// All are announced, and those before this one have begun (R3).
    fn in_order(&self, id: &CallId) -> Result<(), String> {
        ensure(self.requested == self.calls.len(), || {
            "ACP-22: a call before all were announced".to_owned()
        })?;
        let begun = |call: &Call| matches!(call.state, State::Open { .. } | State::Ended { .. });
        let next = self.calls.iter().find(|call| !begun(call));
        ensure(next.is_some_and(|call| call.id == *id), || {
            format!("R3: {id:?} where {next:?} is due")
        })
    }

    /// The call whose result is due, with what it came to.
    pub(super) fn due(&self) -> Result<(CallId, bool), String> {
        match self.calls.get(self.results.len()) {
            Some(Call {
                id,
                state: State::Ended { is_error },
                ..
            }) => Ok((id.clone(), *is_error)),
            other => Err(format!("R2: a message where {other:?} is under way")),
        }
    }

    /// A result has been told.
    pub(super) fn told(
        &mut self,
        id: MessageId,
        due: &(CallId, bool),
        message: &Message,
    ) -> Result<(), String> {
        let fits = match message {
            Message::ToolResult {
                call_id, is_error, ..
            } => (call_id, is_error) == (&due.0, &due.1),
            Message::System { .. } | Message::User { .. } | Message::Assistant { .. } => false,
        };
        ensure(fits, || format!("R2: {message:?} is no result of {due:?}"))?;
        self.results.push(id);
        Ok(())
    }

    /// Take in an event about a call.
    pub(super) fn see(&mut self, kind: &EventKind) -> Result<(), String> {
        match kind {
            EventKind::ToolCallRequested { call, .. } => {
                let next = self.calls.get(self.requested).map(|call| &call.id);
                ensure(next == Some(&call.call_id), || {
                    format!("ACP-22: {:?} announced where {next:?} is due", call.call_id)
                })?;
                self.requested += 1;
            }
            EventKind::PermissionRequested { call_id, .. } => {
                self.in_order(call_id)?;
                let call = self.find(call_id)?;
                ensure(matches!(call.state, State::Wanted), || {
                    format!("ACP-32: asked about {call:?}")
                })?;
                call.state = State::Asked;
            }
            EventKind::PermissionResolved { call_id, verdict } => {
                let call = self.find(call_id)?;
                ensure(matches!(call.state, State::Asked), || {
                    format!("ACP-32: an answer about {call:?}")
                })?;
                call.state = State::Resolved(verdict.clone());
            }
            EventKind::ToolExecutionStart { call_id, runs, .. } => {
                self.in_order(call_id)?;
                let call = self.find(call_id)?;
                let verdict = match &call.state {
                    State::Wanted => None,
                    State::Resolved(verdict) => Some(verdict.clone()),
                    State::Asked | State::Open { .. } | State::Ended { .. } => {
                        return Err(format!("R1: {call:?} begins"));
                    }
                };
                let allowed = verdict.as_ref().is_none_or(|it| *it == Verdict::Allow);
                ensure(allowed || !runs, || format!("ACP-32: {call:?} runs"))?;
                let runs = *runs;
                call.state = State::Open { runs, verdict };
            }
            EventKind::ToolExecutionUpdate { call_id, .. }
            | EventKind::ToolExecutionOutput { call_id, .. }
            | EventKind::ToolProgress { call_id, .. }
            | EventKind::ChildUsageReported { call_id, .. } => {
                let call = self.find(call_id)?;
                ensure(matches!(call.state, State::Open { runs: true, .. }), || {
                    format!("R1: {call:?} says {kind:?}")
                })?;
            }
            EventKind::PlanUpdated { .. } => {
                let open = |call: &Call| matches!(call.state, State::Open { runs: true, .. });
                ensure(self.calls.iter().any(open), || {
                    "R1: a plan of no call".to_owned()
                })?;
            }
            EventKind::ToolExecutionEnd {
                call_id,
                tool_name,
                envelope,
                disposition,
                child_loop_id,
            } => {
                let call = self.find(call_id)?;
                let State::Open { runs, verdict } = &call.state else {
                    return Err(format!("R1: {call:?} ends"));
                };
                ensure(fits(*disposition, *runs, verdict.as_ref()), || {
                    format!("R2: {call:?} is {disposition:?}")
                })?;
                ensure(*tool_name == call.name, || {
                    format!("LASH-62: {call:?} ends as {tool_name}")
                })?;
                ensure(*child_loop_id == envelope.child_loop_id, || {
                    format!("TURN-45: {call:?} names {child_loop_id:?}")
                })?;
                let is_error = envelope.result.is_err();
                call.state = State::Ended { is_error };
            }
            other => return Err(format!("R1: among the calls came {other:?}")),
        }
        Ok(())
    }
}

fn fits(disposition: Disposition, runs: bool, verdict: Option<&Verdict>) -> bool {
    match verdict {
        Some(Verdict::Deny(_)) => disposition == Disposition::Denied && !runs,
        Some(Verdict::Allow) | Some(Verdict::Cancelled) | None => match disposition {
            Disposition::Executed => runs,
            Disposition::Cancelled | Disposition::TimedOut => true,
            Disposition::Denied
            | Disposition::NotFound
            | Disposition::Invalid
            | Disposition::Skipped => !runs,
        },
    }
}
