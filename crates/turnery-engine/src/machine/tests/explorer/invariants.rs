//! Invariants that must hold for every sequence of inputs. Each violation names its invariant.

use super::inputs::FRAGMENT;
use super::simulated_host::{SimulatedCall, SimulatedHost, UserInputFate};
use crate::{
    CallId, ContinuationKind, Effect, Event, EventKind, HookRequest, Input, LimitKind, LlmMessage,
    LoopFinish, Message, MessageStop, Outcome, ProviderFailure, Termination, ToolControl,
    ToolEnvelope, TurnFinish, TurnStop,
    message::join_text,
    oracle::{Oracle, check_history, ensure::ensure},
};
use std::sync::Arc;

/// Checks the invariants of one run.
#[derive(Clone, Debug)]
pub(super) struct InvariantChecker {
    oracle: Oracle,
    messages: Vec<Arc<LlmMessage>>,
    sealed_event: Option<Event>,
    stored: bool,
    published: bool,
    /// True if work was interrupted.
    is_cut_off: bool,
    /// Stop reason of the last response.
    last_stop: Option<MessageStop>,
    /// Number of errors reported to hooks.
    error_reports: u32,
    /// True if a standalone compaction failed.
    compaction_failed: bool,
}

fn check_budget(host: &SimulatedHost, what: &str) -> Result<(), String> {
    ensure(!host.is_budget_spent, || {
        format!("UP-1: {what} is called beyond the limits")
    })
}

impl InvariantChecker {
    pub(super) fn new() -> Self {
        Self {
            oracle: Oracle::for_live_stream(),
            messages: Vec::new(),
            sealed_event: None,
            stored: false,
            published: false,
            is_cut_off: false,
            last_stop: None,
            error_reports: 0,
            compaction_failed: false,
        }
    }

    pub(super) fn observe_input(&mut self, input: &Input) {
        self.stored |= matches!(input, Input::Committed);
    }

    /// Checks one effect and applies it to the host.
    pub(super) fn check_effect(
        &mut self,
        host: &mut SimulatedHost,
        effect: Effect,
    ) -> Result<(), String> {
        let late = matches!(effect, Effect::ReturnUndelivered(_));
        ensure(!host.is_over || late, || {
            format!("nothing after Finish: {effect:?}")
        })?;
        let halted = host.is_halted();
        let nothing_starts =
            |what: &str| ensure(!halted, || format!("nothing starts once halted: {what}"));
        match effect {
            Effect::Emit(event) => self.check_event(host, &event)?,
            Effect::Publish(event) => {
                ensure(self.stored, || "R4: LoopEnd before Committed".to_owned())?;
                self.published = true;
                self.check_event(host, &event)?;
            }
            Effect::CallModel { turn_index, .. } => {
                nothing_starts("the model")?;
                check_budget(host, "the model")?;
                let last = self.messages.last().map(|message| &message.message);
                ensure(!matches!(last, Some(Message::Assistant { .. })), || {
                    "UP-33: the model is called again without a reminder".to_owned()
                })?;
                host.model = Some(turn_index);
                host.deltas = 0;
            }
            Effect::StopModel => {
                // Otherwise the model is stopped because of its own response.
                self.is_cut_off |= halted;
                let was = host.model.take();
                ensure(was.is_some(), || {
                    "only a running model is stopped".to_owned()
                })?;
            }
            Effect::RunHook(hook) => {
                if can_veto(&hook) {
                    nothing_starts("a hook")?;
                }
                if matches!(hook, HookRequest::OnError { .. }) {
                    ensure(!halted, || {
                        "C-28: an error is reported once halted".to_owned()
                    })?;
                    self.error_reports += 1;
                }
                ensure(host.hook.is_none(), || {
                    format!("one hook at a time: {hook:?} beside {:?}", host.hook)
                })?;
                host.hook = Some(hook);
            }
            Effect::CancelHook => {
                let hook = host.hook.take();
                self.is_cut_off |= hook.as_ref().is_some_and(can_veto);
                ensure(hook.is_some(), || {
                    "only a hook that is asked is stopped".to_owned()
                })?;
            }
            Effect::Compact { .. } => {
                nothing_starts("a summary")?;
                check_budget(host, "a summary")?;
                host.compacting = true;
            }
            Effect::StopCompaction => {
                self.is_cut_off = true;
                host.compacting = false;
            }
            Effect::Gate(call) => {
                nothing_starts("a call")?;
                let before = host.calls.get(call.call_id.as_str());
                ensure(before.is_none(), || format!("gated twice: {call:?}"))?;
                let steered = host.user_inputs.get("steer") == Some(&UserInputFate::Waiting);
                ensure(!host.is_response_oversized, || {
                    format!("UP-1: an oversized response runs {call:?}")
                })?;
                ensure(!steered, || format!("UP-5: {call:?} begins though steered"))?;
                host.set_call_state(call.call_id.as_str(), SimulatedCall::Gated);
            }
            Effect::CancelGate(call_id) => {
                // Otherwise the call that requested it has ended.
                self.is_cut_off |= halted;
                host.set_call_state(call_id.as_str(), SimulatedCall::Over);
            }
            Effect::RunTool(call) => {
                nothing_starts("a call")?;
                check_can_run(host, &call.call_id)?;
                let (stopped, words) = (false, 0);
                host.set_call_state(
                    call.call_id.as_str(),
                    SimulatedCall::Running { stopped, words },
                );
            }
            Effect::StopTool(call_id) => {
                if let Some(SimulatedCall::Running { stopped, .. }) =
                    host.calls.get_mut(call_id.as_str())
                {
                    *stopped = true;
                }
            }
            Effect::AbortTool(call_id) => {
                host.set_call_state(call_id.as_str(), SimulatedCall::Over);
                host.nested.remove(call_id.as_str());
            }
            Effect::ReturnResults { parent, results } => {
                check_results(host, &parent, &results)?;
                host.nested.remove(parent.as_str());
            }
            Effect::StartGrace => {
                let is_unaware =
                    |state| matches!(state, SimulatedCall::Running { stopped: false, .. });
                let unaware = host.calls_where(is_unaware);
                ensure(unaware.is_empty(), || {
                    format!("every running call is told to stop: {unaware:?}")
                })?;
                host.grace_started = true;
            }
            Effect::ReturnUndelivered(words) => {
                let text = join_text(&words);
                let waiting = host.user_inputs.get(text.as_str()) == Some(&UserInputFate::Waiting);
                ensure(waiting, || format!("no message is lost: {text} comes back"))?;
                host.set_fate(&text, UserInputFate::Returned);
            }
            Effect::Commit(event) => self.check_commit(host, event)?,
            Effect::Finish(finish) => self.check_finish(host, &finish)?,
        }
        Ok(())
    }

    fn check_event(&mut self, host: &mut SimulatedHost, event: &Event) -> Result<(), String> {
        if let EventKind::ToolExecutionStart {
            call_id,
            runs: false,
            ..
        } = &event.kind
            && host.calls.get(call_id.as_str()) == Some(&SimulatedCall::Allowed)
        {
            host.set_call_state(call_id.as_str(), SimulatedCall::Over);
        }
        let alone = host.scenario.spec().continuation_kind == ContinuationKind::Compaction;
        if let EventKind::CompactionEnded { failure, .. } = &event.kind {
            self.compaction_failed = alone && failure.is_some() && !host.is_halted();
        }
        if let EventKind::MessageEnd { message } = &event.kind {
            match &message.message {
                Message::User { .. } => {
                    let text = message.message.text();
                    let by_itself = self.last_stop == Some(MessageStop::Stop);
                    ensure(!text.starts_with("follow") || by_itself, || {
                        format!("UP-6: a follow-up after {:?}", self.last_stop)
                    })?;
                    host.set_fate(&text, UserInputFate::Delivered);
                }
                Message::Assistant { stop, .. } => {
                    self.last_stop = Some(*stop);
                    let shown = FRAGMENT.repeat(usize::from(host.deltas));
                    ensure(
                        !host.is_response_cut_off || message.message.text() == shown,
                        || format!("UP-1: what was shown is kept: {message:?} of {shown}"),
                    )?;
                }
                Message::System { .. } | Message::ToolResult { .. } => {}
            }
            self.messages.push(Arc::clone(message));
        }
        self.oracle.observe(event)
    }

    fn check_commit(&mut self, host: &mut SimulatedHost, event: Event) -> Result<(), String> {
        ensure(self.sealed_event.is_none(), || {
            "at most one Commit".to_owned()
        })?;
        ensure(!host.lane_lost, || "no Commit without the lane".to_owned())?;
        check_nothing_runs(host)?;
        self.oracle.check_closed()?;
        check_history(&self.messages)?;
        let EventKind::LoopEnd { outcome, .. } = &event.kind else {
            return Err(format!("R4: a Commit of {event:?}"));
        };
        let is_cancelled = *outcome == Outcome::Stopped(TurnStop::Cancelled);
        ensure(is_cancelled == host.cancelled, || {
            format!(
                "ACP-52: cancelled is {}, outcome {outcome:?}",
                host.cancelled
            )
        })?;
        let limit = outcome.limit();
        let is_by = |kind| limit.is_some_and(|limit| limit.kind == kind);
        let by_time = is_by(LimitKind::Duration);
        let must = self.is_cut_off && host.time_up && !host.cancelled && host.controls.is_empty();
        ensure(by_time || !must, || {
            format!("UP-1: time was up, {outcome:?}")
        })?;
        ensure(host.time_up || !by_time, || {
            "UP-1: time was not up".to_owned()
        })?;
        ensure(host.is_budget_spent || !is_by(LimitKind::Tokens), || {
            "UP-1: others had not spent the tokens".to_owned()
        })?;
        ensure(
            is_by(LimitKind::Answer) == host.is_response_oversized || host.cancelled,
            || format!("UP-1: an oversized response ends as {outcome:?}"),
        )?;
        self.check_error_reports(host, outcome)?;
        check_control(host, outcome)?;
        let is_prose = matches!(
            outcome,
            Outcome::Finished(TurnFinish::AssistantMessage { .. }, _)
        );
        let is_required = host.scenario.spec().termination == Termination::FinishRequired;
        ensure(!(is_prose && is_required), || {
            "LASH-114: prose ends a loop that must finish with a value".to_owned()
        })?;
        host.commit_pending = true;
        host.sealed = true;
        self.sealed_event = Some(event);
        Ok(())
    }

    /// Checks that a failed response or loop is reported exactly once, and nothing else is (C-28).
    fn check_error_reports(&self, host: &SimulatedHost, outcome: &Outcome) -> Result<(), String> {
        let failed = self.last_stop == Some(MessageStop::Error)
            || matches!(outcome, Outcome::Stopped(TurnStop::RuntimeError { .. }));
        // A cancel may arrive between the failure of the summary and the end.
        let most = u32::from(failed || self.compaction_failed);
        let least = u32::from(failed);
        let wanted = host.scenario.spec().hooks.on_error;
        ensure(
            !wanted || (least..=most).contains(&self.error_reports),
            || {
                format!(
                    "C-28: {} reports of errors for {outcome:?} after {:?}",
                    self.error_reports, self.last_stop
                )
            },
        )
    }

    fn check_finish(
        &mut self,
        host: &mut SimulatedHost,
        finish: &LoopFinish,
    ) -> Result<(), String> {
        check_nothing_runs(host)?;
        self.oracle.check_closed()?;
        check_history(&self.messages)?;
        let sealed = self.sealed_event.as_ref().map(|event| &event.kind);
        let fits = match (finish, sealed) {
            (
                LoopFinish::Committed { outcome, .. },
                Some(EventKind::LoopEnd {
                    outcome: stored, ..
                }),
            ) => self.stored && self.published && outcome == stored,
            (LoopFinish::Committed { .. }, _) => false,
            (LoopFinish::CommitFailed(_), _) => !self.stored && !self.published,
        };
        ensure(fits, || format!("R4: {finish:?} after {self:?}"))?;
        host.ending = match finish {
            LoopFinish::Committed {
                outcome: Outcome::Finished(..),
                ..
            } => "finished".to_owned(),
            LoopFinish::Committed {
                outcome: Outcome::Stopped(stop),
                ..
            } => match stop {
                TurnStop::MaxTurns(limit) => format!("limit {:?}", limit.kind),
                TurnStop::ProviderError(ProviderFailure::Failed { kind, .. }) => {
                    format!("provider {kind:?}")
                }
                TurnStop::ProviderError(ProviderFailure::Refused) => "refusal".to_owned(),
                TurnStop::InvalidInput { reason } => format!("rejected {reason}"),
                TurnStop::ToolFailure { message }
                | TurnStop::PluginAbort { reason: message }
                | TurnStop::RuntimeError { message } => format!("hook {message}"),
                TurnStop::Cancelled
                | TurnStop::Incomplete
                | TurnStop::SubmittedError { .. }
                | TurnStop::ToolError { .. } => format!("Stopped({stop:?})"),
            },
            LoopFinish::Committed { outcome, .. } => format!("{outcome:?}"),
            LoopFinish::CommitFailed(error) => format!("lost {error:?}"),
        };
        host.is_over = true;
        host.sealed = true;
        let waiting = host
            .user_inputs
            .iter()
            .find(|(_, fate)| **fate == UserInputFate::Waiting);
        ensure(waiting.is_none(), || {
            format!("no message is lost: {waiting:?}")
        })
    }
}

/// Checks that the results are those of all nested calls, in call order, and that these have ended.
fn check_results(
    host: &SimulatedHost,
    parent: &CallId,
    results: &[ToolEnvelope],
) -> Result<(), String> {
    let nested = host.nested.get(parent.as_str());
    let ids = nested.map_or(&[][..], Vec::as_slice);
    ensure(nested.is_some() && ids.len() == results.len(), || {
        format!("LASH-71: {results:?} are not the results of {nested:?}")
    })?;
    for (id, result) in ids.iter().zip(results) {
        let state = host.calls.get(id.as_str());
        let is_open = state.is_some_and(|state| *state != SimulatedCall::Over);
        let fits = host.results.get(id).is_none_or(|known| known == result);
        ensure(!is_open && fits, || {
            format!("LASH-71: {result:?} is returned for {id}, which is {state:?}")
        })?;
    }
    Ok(())
}

/// Returns true if a hook can veto.
fn can_veto(hook: &HookRequest) -> bool {
    match hook {
        HookRequest::Input { .. }
        | HookRequest::BeforeTurn { .. }
        | HookRequest::BeforeTool(_)
        | HookRequest::BeforeCompaction(_)
        | HookRequest::Checkpoint => true,
        HookRequest::AfterTurn { .. }
        | HookRequest::AfterTool { .. }
        | HookRequest::AfterCompaction { .. }
        | HookRequest::OnError { .. } => false,
    }
}

/// Checks that the call was permitted, and that all running calls, including this one, may run in parallel.
fn check_can_run(host: &SimulatedHost, call_id: &CallId) -> Result<(), String> {
    let before = host.calls.get(call_id.as_str());
    ensure(before == Some(&SimulatedCall::Allowed), || {
        format!("ACP-32: {call_id:?} runs, but was {before:?}")
    })?;
    let mut running = host.running_calls();
    running.retain(|id| !host.awaits_results(id));
    let parallel = |id: &&str| host.scenario.is_parallel(id);
    let fits = running.is_empty()
        || (parallel(&call_id.as_str())
            && running.iter().all(parallel)
            && running.len() < host.scenario.spec().max_parallel_calls);
    ensure(fits, || format!("C-6: {call_id:?} runs beside {running:?}"))
}

/// Checks that the first decision of a call, in call order, determined the outcome, except after a halt.
fn check_control(host: &SimulatedHost, outcome: &Outcome) -> Result<(), String> {
    let by_call = match host.controls.values().next() {
        _ if host.cancelled => return Ok(()),
        None => return Ok(()),
        Some(ToolControl::Submit(value)) => {
            let value = value.clone();
            Outcome::Finished(TurnFinish::FinalValue { value }, outcome.limit().cloned())
        }
        Some(ToolControl::SwitchFrame { task }) => Outcome::FrameSwitch {
            frame_id: "s.cfg.1.f".to_owned(),
            task: task.clone(),
        },
        Some(other) => return Err(format!("no scene has {other:?}")),
    };
    ensure(*outcome == by_call, || {
        format!("UP-21: {outcome:?}, decided was {by_call:?}")
    })
}

fn check_nothing_runs(host: &SimulatedHost) -> Result<(), String> {
    ensure(host.model.is_none(), || {
        "the model is stopped in the end".to_owned()
    })?;
    ensure(host.hook.is_none(), || {
        format!("hooks are cancelled in the end: {:?}", host.hook)
    })?;
    ensure(!host.compacting, || {
        "compactions are stopped in the end".to_owned()
    })?;
    let asked =
        host.calls_where(|state| matches!(state, SimulatedCall::Gated | SimulatedCall::Asked));
    ensure(asked.is_empty(), || {
        format!("permission requests are cancelled in the end: {asked:?}")
    })?;
    let running = host.calls_where(|state| {
        matches!(
            state,
            SimulatedCall::Allowed | SimulatedCall::Running { .. }
        )
    });
    ensure(running.is_empty(), || {
        format!("nothing runs in the end: {running:?}")
    })
}
