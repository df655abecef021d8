//! Checks the events of a turn's calls. Events of parallel calls may interleave; those of each call keep
//! their order, and start events and results are in call order (R3). Nested calls begin and end while their
//! parent runs, and have no result message.

use super::ensure::ensure;
use crate::{CallId, Disposition, EventKind, Message, MessageId, ToolCall, Verdict};

/// Calls of one turn.
#[derive(Clone, Debug)]
pub(super) struct CallTracker {
    calls: Vec<TrackedCall>,
    requested_count: usize,
    nested: Vec<NestedCall>,
    /// Parent of the nested call that the last event announced.
    announcing: Option<CallId>,
    /// Ids of the result messages, in call order.
    pub(super) results: Vec<MessageId>,
}

#[derive(Clone, Debug)]
struct TrackedCall {
    id: CallId,
    name: String,
    state: TrackedCallState,
}

#[derive(Clone, Debug)]
struct NestedCall {
    parent: CallId,
    /// Index among the nested calls of the first one announced together with this one.
    batch_start: usize,
    call: TrackedCall,
}

#[derive(Clone, Debug)]
enum TrackedCallState {
    Requested,
    AwaitingPermission,
    Resolved(Verdict),
    Open {
        runs: bool,
        verdict: Option<Verdict>,
    },
    Ended {
        is_error: bool,
    },
}

impl CallTracker {
    pub(super) fn new(calls: &[ToolCall]) -> Self {
        Self {
            calls: calls.iter().map(TrackedCall::new).collect(),
            requested_count: 0,
            nested: Vec::new(),
            announcing: None,
            results: Vec::new(),
        }
    }

    fn all(&self) -> impl Iterator<Item = &TrackedCall> {
        let nested = self.nested.iter().map(|nested| &nested.call);
        self.calls.iter().chain(nested)
    }

    pub(super) fn has_tool(&self, name: &str) -> bool {
        self.all().any(|call| call.name == name)
    }

    /// Checks that every call was announced, started, ended, and has its result in history.
    pub(super) fn check_done(&self) -> Result<(), String> {
        ensure(self.results.len() == self.calls.len(), || {
            format!("R2: not all done at the end: {:?}", self.calls)
        })
    }

    fn find(&mut self, id: &CallId) -> Result<&mut TrackedCall, String> {
        let nested = self.nested.iter_mut().map(|nested| &mut nested.call);
        let found = self.calls.iter_mut().chain(nested).find(|it| it.id == *id);
        found.ok_or_else(|| format!("R2: {id:?} was not asked for"))
    }

    /// Checks a nested call that is announced: its parent runs.
    fn announce_nested(&mut self, call: &ToolCall, parent: &CallId) -> Result<(), String> {
        let is_running = |it: &TrackedCall| it.id == *parent && it.is_running();
        ensure(self.all().any(is_running), || {
            format!(
                "LASH-71: {:?} is nested in {parent:?}, which does not run",
                call.call_id
            )
        })?;
        let batch_start = match (&self.announcing, self.nested.last()) {
            (Some(last), Some(previous)) if last == parent => previous.batch_start,
            _ => self.nested.len(),
        };
        self.nested.push(NestedCall {
            parent: parent.clone(),
            batch_start,
            call: TrackedCall::new(call),
        });
        self.announcing = Some(parent.clone());
        Ok(())
    }

    /// Checks that all calls are announced and that the calls before this one have started (R3).
    fn check_order(&self, id: &CallId) -> Result<(), String> {
        if let Some(at) = self.nested.iter().position(|nested| nested.call.id == *id) {
            let siblings = &self.nested[self.nested[at].batch_start..at];
            let waiting = siblings.iter().find(|nested| !nested.call.has_begun());
            return ensure(waiting.is_none(), || {
                format!("R3: {id:?} where {waiting:?} is due")
            });
        }
        ensure(self.requested_count == self.calls.len(), || {
            "ACP-22: a call before all were announced".to_owned()
        })?;
        let next = self.calls.iter().find(|call| !call.has_begun());
        ensure(next.is_some_and(|call| call.id == *id), || {
            format!("R3: {id:?} where {next:?} is due")
        })
    }

    /// Returns the call whose result is due, and whether its result is an error.
    pub(super) fn due_result(&self) -> Result<(CallId, bool), String> {
        match self.calls.get(self.results.len()) {
            Some(TrackedCall {
                id,
                state: TrackedCallState::Ended { is_error },
                ..
            }) => Ok((id.clone(), *is_error)),
            other => Err(format!("R2: a message where {other:?} is under way")),
        }
    }

    /// Checks a result message.
    pub(super) fn deliver_result(
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

    /// Checks an event of a call.
    pub(super) fn observe(&mut self, kind: &EventKind) -> Result<(), String> {
        if let EventKind::ToolCallRequested { call, .. } = kind
            && let Some(parent) = &call.parent_call_id
        {
            return self.announce_nested(call, parent);
        }
        self.announcing = None;
        match kind {
            EventKind::ToolCallRequested { call, .. } => {
                let next = self.calls.get(self.requested_count).map(|call| &call.id);
                ensure(next == Some(&call.call_id), || {
                    format!("ACP-22: {:?} announced where {next:?} is due", call.call_id)
                })?;
                self.requested_count += 1;
            }
            EventKind::PermissionRequested { call_id, .. } => {
                self.check_order(call_id)?;
                let call = self.find(call_id)?;
                ensure(matches!(call.state, TrackedCallState::Requested), || {
                    format!("ACP-32: asked about {call:?}")
                })?;
                call.state = TrackedCallState::AwaitingPermission;
            }
            EventKind::PermissionResolved { call_id, verdict } => {
                let call = self.find(call_id)?;
                ensure(
                    matches!(call.state, TrackedCallState::AwaitingPermission),
                    || format!("ACP-32: an answer about {call:?}"),
                )?;
                call.state = TrackedCallState::Resolved(verdict.clone());
            }
            EventKind::ToolExecutionStart {
                call_id,
                tool_name,
                runs,
            } => {
                self.check_order(call_id)?;
                let call = self.find(call_id)?;
                ensure(*tool_name == call.name, || {
                    format!("TURN-40: {call:?} begins as {tool_name}")
                })?;
                let verdict = match &call.state {
                    TrackedCallState::Requested => None,
                    TrackedCallState::Resolved(verdict) => Some(verdict.clone()),
                    TrackedCallState::AwaitingPermission
                    | TrackedCallState::Open { .. }
                    | TrackedCallState::Ended { .. } => {
                        return Err(format!("R1: {call:?} begins"));
                    }
                };
                let allowed = verdict.as_ref().is_none_or(|it| *it == Verdict::Allow);
                ensure(allowed || !runs, || format!("ACP-32: {call:?} runs"))?;
                let runs = *runs;
                call.state = TrackedCallState::Open { runs, verdict };
            }
            EventKind::ToolExecutionUpdate { call_id, .. }
            | EventKind::ToolExecutionOutput { call_id, .. }
            | EventKind::ToolProgress { call_id, .. }
            | EventKind::ChildUsageReported { call_id, .. } => {
                let call = self.find(call_id)?;
                ensure(call.is_running(), || format!("R1: {call:?} says {kind:?}"))?;
            }
            EventKind::PlanUpdated { .. } => {
                ensure(self.all().any(TrackedCall::is_running), || {
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
                let mut nested = self.nested.iter();
                let open = nested.find(|it| it.parent == *call_id && !it.call.has_ended());
                ensure(open.is_none(), || {
                    format!("R1: {call_id:?} ends before {open:?}")
                })?;
                let call = self.find(call_id)?;
                let TrackedCallState::Open { runs, verdict } = &call.state else {
                    return Err(format!("R1: {call:?} ends"));
                };
                ensure(
                    fits_disposition(*disposition, *runs, verdict.as_ref()),
                    || format!("R2: {call:?} is {disposition:?}"),
                )?;
                ensure(*tool_name == call.name, || {
                    format!("LASH-62: {call:?} ends as {tool_name}")
                })?;
                ensure(*child_loop_id == envelope.child_loop_id, || {
                    format!("TURN-45: {call:?} names {child_loop_id:?}")
                })?;
                let is_error = envelope.result.is_err();
                call.state = TrackedCallState::Ended { is_error };
            }
            other => return Err(format!("R1: among the calls came {other:?}")),
        }
        Ok(())
    }
}

impl TrackedCall {
    fn new(call: &ToolCall) -> Self {
        Self {
            id: call.call_id.clone(),
            name: call.name.clone(),
            state: TrackedCallState::Requested,
        }
    }

    fn is_running(&self) -> bool {
        matches!(self.state, TrackedCallState::Open { runs: true, .. })
    }

    fn has_begun(&self) -> bool {
        matches!(self.state, TrackedCallState::Open { .. }) || self.has_ended()
    }

    fn has_ended(&self) -> bool {
        matches!(self.state, TrackedCallState::Ended { .. })
    }
}

fn fits_disposition(disposition: Disposition, runs: bool, verdict: Option<&Verdict>) -> bool {
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
