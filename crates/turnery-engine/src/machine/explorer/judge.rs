//! Judge: the invariants that must hold whatever the world does. Each complaint names its own.

use super::world::{CallState, World};
use crate::{
    CallId, Detail, Effect, Event, EventKind, Finish, Input, LimitKind, LlmMessage, Outcome,
    TurnStop,
    oracle::{Oracle, check_history},
};
use std::sync::Arc;

/// What has been seen of one run.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    oracle: Oracle,
    messages: Vec<Arc<LlmMessage>>,
    sealed: Option<Event>,
    stored: bool,
    published: bool,
}

fn ensure(holds: bool, complaint: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(complaint()) }
}

impl Judge {
    pub(super) fn new() -> Self {
        Self {
            oracle: Oracle::live(),
            messages: Vec::new(),
            sealed: None,
            stored: false,
            published: false,
        }
    }

    pub(super) fn hear(&mut self, input: &Input) {
        self.stored |= matches!(input, Input::Committed);
    }

    /// Judge one effect, and let the world carry it out.
    pub(super) fn see(&mut self, world: &mut World, effect: Effect) -> Result<(), String> {
        ensure(!world.over, || format!("nothing after Finish: {effect:?}"))?;
        let halted = world.cancelled || world.time_up || world.lane_lost;
        let nothing_starts =
            |what: &CallId| ensure(!halted, || format!("nothing starts once halted: {what:?}"));
        match effect {
            Effect::Emit(event) => self.event(&event)?,
            Effect::Publish(event) => {
                ensure(self.stored, || "R4: LoopEnd before Committed".to_owned())?;
                self.published = true;
                self.event(&event)?;
            }
            Effect::CallModel { turn_index, .. } => {
                ensure(!halted, || {
                    "nothing starts once halted: the model".to_owned()
                })?;
                world.model = Some(turn_index);
                world.deltas = 0;
            }
            Effect::StopModel => {
                let was = world.model.take();
                ensure(was.is_some(), || {
                    "only a running model is stopped".to_owned()
                })?;
            }
            Effect::Gate(call) => {
                nothing_starts(&call.call_id)?;
                let before = world.calls.get(call.call_id.as_str());
                ensure(before.is_none(), || format!("gated twice: {call:?}"))?;
                world.set(&call.call_id, CallState::Gated);
            }
            Effect::Withdraw(call_id) => world.set(&call_id, CallState::Over),
            Effect::Run(call) => {
                nothing_starts(&call.call_id)?;
                let before = world.calls.get(call.call_id.as_str());
                ensure(before == Some(&CallState::Allowed), || {
                    format!("ACP-32: {:?} runs, but was {before:?}", call.call_id)
                })?;
                let (stopped, words) = (false, 0);
                world.set(&call.call_id, CallState::Running { stopped, words });
            }
            Effect::StopTool(call_id) => {
                if let Some(CallState::Running { stopped, .. }) =
                    world.calls.get_mut(call_id.as_str())
                {
                    *stopped = true;
                }
            }
            Effect::AbortTool(call_id) => world.set(&call_id, CallState::Over),
            Effect::StartGrace => world.grace = true,
            Effect::Hook(_)
            | Effect::StopHook
            | Effect::Compact(_)
            | Effect::StopCompaction
            | Effect::Unheard(_) => {}
            Effect::Commit(event) => self.commit(world, event)?,
            Effect::Finish(finish) => self.finish(world, &finish)?,
        }
        Ok(())
    }

    fn event(&mut self, event: &Event) -> Result<(), String> {
        if let EventKind::MessageEnd { message } = &event.kind {
            self.messages.push(Arc::clone(message));
        }
        self.oracle.see(event)
    }

    fn commit(&mut self, world: &mut World, event: Event) -> Result<(), String> {
        ensure(self.sealed.is_none(), || "at most one Commit".to_owned())?;
        ensure(!world.lane_lost, || "no Commit without the lane".to_owned())?;
        nothing_runs(world)?;
        self.oracle.closed()?;
        check_history(&self.messages)?;
        let EventKind::LoopEnd {
            outcome, detail, ..
        } = &event.kind
        else {
            return Err(format!("R4: a Commit of {event:?}"));
        };
        let is_cancelled = *outcome == Outcome::Stopped(TurnStop::Cancelled);
        ensure(is_cancelled == world.cancelled, || {
            format!(
                "ACP-52: cancelled is {}, outcome {outcome:?}",
                world.cancelled
            )
        })?;
        let by_time = matches!(
            detail,
            Some(Detail::Limit {
                kind: LimitKind::Duration,
                ..
            })
        );
        ensure(by_time == (world.time_up && !world.cancelled), || {
            format!("UP-1: time up is {}, detail {detail:?}", world.time_up)
        })?;
        world.commit = true;
        world.sealed = true;
        self.sealed = Some(event);
        Ok(())
    }

    fn finish(&mut self, world: &mut World, finish: &Finish) -> Result<(), String> {
        nothing_runs(world)?;
        self.oracle.closed()?;
        check_history(&self.messages)?;
        let sealed = self.sealed.as_ref().map(|event| &event.kind);
        let fits = match (finish, sealed) {
            (
                Finish::Done { outcome, .. },
                Some(EventKind::LoopEnd {
                    outcome: stored, ..
                }),
            ) => self.stored && self.published && outcome == stored,
            (Finish::Done { .. }, _) => false,
            (Finish::Lost(_), _) => !self.stored && !self.published,
        };
        ensure(fits, || format!("R4: {finish:?} after {self:?}"))?;
        world.ending = match finish {
            Finish::Done {
                outcome: Outcome::Finished(_),
                ..
            } => "finished".to_owned(),
            Finish::Done {
                outcome, detail, ..
            } => match detail {
                Some(Detail::Limit { kind, .. }) => format!("limit {kind:?}"),
                Some(Detail::Provider { kind, .. }) => format!("provider {kind:?}"),
                Some(Detail::Refusal) => "refusal".to_owned(),
                Some(
                    Detail::Rejection { .. } | Detail::Runtime { .. } | Detail::Continued { .. },
                )
                | None => format!("{outcome:?}"),
            },
            Finish::Lost(fault) => format!("lost {fault:?}"),
        };
        world.over = true;
        world.sealed = true;
        Ok(())
    }
}

fn nothing_runs(world: &World) -> Result<(), String> {
    ensure(world.model.is_none(), || {
        "the model is stopped in the end".to_owned()
    })?;
    let asked = world.busy(|state| matches!(state, CallState::Gated | CallState::Asked));
    ensure(asked.is_empty(), || {
        format!("asks are withdrawn in the end: {asked:?}")
    })?;
    let running =
        world.busy(|state| matches!(state, CallState::Allowed | CallState::Running { .. }));
    ensure(running.is_empty(), || {
        format!("nothing runs in the end: {running:?}")
    })
}
