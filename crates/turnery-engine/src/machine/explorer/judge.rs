//! Judge: the invariants that must hold whatever the world does. Each complaint names its own.

use super::moves::FRAGMENT;
use super::world::{CallState, Fate, World};
use crate::{
    CallId, ContinuationKind, Detail, Effect, Event, EventKind, Finish, Hook, Input, LimitKind,
    LlmMessage, Message, MessageStop, Outcome, ToolControl, TurnFinish, TurnStop,
    message::joined_text,
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
    /// Work was broken off.
    cut: bool,
    /// Why the last answer stopped.
    last_stop: Option<MessageStop>,
    /// How often somebody was told of an error.
    told: u32,
    /// A compaction of its own has failed.
    not_compacted: bool,
}

fn within_limits(world: &World, what: &str) -> Result<(), String> {
    ensure(!world.spent, || {
        format!("UP-1: {what} is called beyond the limits")
    })
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
            cut: false,
            last_stop: None,
            told: 0,
            not_compacted: false,
        }
    }

    pub(super) fn hear(&mut self, input: &Input) {
        self.stored |= matches!(input, Input::Committed);
    }

    /// Judge one effect, and let the world carry it out.
    pub(super) fn see(&mut self, world: &mut World, effect: Effect) -> Result<(), String> {
        let late = matches!(effect, Effect::Unheard(_));
        ensure(!world.over || late, || {
            format!("nothing after Finish: {effect:?}")
        })?;
        let halted = world.halted();
        let nothing_starts =
            |what: &str| ensure(!halted, || format!("nothing starts once halted: {what}"));
        match effect {
            Effect::Emit(event) => self.event(world, &event)?,
            Effect::Publish(event) => {
                ensure(self.stored, || "R4: LoopEnd before Committed".to_owned())?;
                self.published = true;
                self.event(world, &event)?;
            }
            Effect::CallModel { turn_index, .. } => {
                nothing_starts("the model")?;
                within_limits(world, "the model")?;
                world.model = Some(turn_index);
                world.deltas = 0;
            }
            Effect::StopModel => {
                // Else it is stopped because of its own answer.
                self.cut |= halted;
                let was = world.model.take();
                ensure(was.is_some(), || {
                    "only a running model is stopped".to_owned()
                })?;
            }
            Effect::Hook(hook) => {
                if asks_for_leave(&hook) {
                    nothing_starts("a hook")?;
                }
                if matches!(hook, Hook::OnError { .. }) {
                    ensure(!halted, || "C-28: told of an error once halted".to_owned())?;
                    self.told += 1;
                }
                ensure(world.hook.is_none(), || {
                    format!("one hook at a time: {hook:?} beside {:?}", world.hook)
                })?;
                world.hook = Some(hook);
            }
            Effect::StopHook => {
                let hook = world.hook.take();
                self.cut |= hook.as_ref().is_some_and(asks_for_leave);
                ensure(hook.is_some(), || {
                    "only a hook that is asked is stopped".to_owned()
                })?;
            }
            Effect::Compact(_) => {
                nothing_starts("a summary")?;
                within_limits(world, "a summary")?;
                world.compacting = true;
            }
            Effect::StopCompaction => {
                self.cut = true;
                world.compacting = false;
            }
            Effect::Gate(call) => {
                nothing_starts("a call")?;
                let before = world.calls.get(call.call_id.as_str());
                ensure(before.is_none(), || format!("gated twice: {call:?}"))?;
                let steered = world.words.get("steer") == Some(&Fate::Waiting);
                ensure(!world.overrun, || {
                    format!("UP-1: an answer beyond its bounds runs {call:?}")
                })?;
                ensure(!steered, || format!("UP-5: {call:?} begins though steered"))?;
                world.set(call.call_id.as_str(), CallState::Gated);
            }
            Effect::Withdraw(call_id) => {
                self.cut = true;
                world.set(call_id.as_str(), CallState::Over);
            }
            Effect::Run(call) => {
                nothing_starts("a call")?;
                may_run(world, &call.call_id)?;
                let (stopped, words) = (false, 0);
                world.set(call.call_id.as_str(), CallState::Running { stopped, words });
            }
            Effect::StopTool(call_id) => {
                if let Some(CallState::Running { stopped, .. }) =
                    world.calls.get_mut(call_id.as_str())
                {
                    *stopped = true;
                }
            }
            Effect::AbortTool(call_id) => world.set(call_id.as_str(), CallState::Over),
            Effect::StartGrace => world.grace = true,
            Effect::Unheard(words) => {
                let text = joined_text(&words);
                let waiting = world.words.get(text.as_str()) == Some(&Fate::Waiting);
                ensure(waiting, || format!("no word is lost: {text} comes back"))?;
                world.fate(&text, Fate::Returned);
            }
            Effect::Commit(event) => self.commit(world, event)?,
            Effect::Finish(finish) => self.finish(world, &finish)?,
        }
        Ok(())
    }

    fn event(&mut self, world: &mut World, event: &Event) -> Result<(), String> {
        if let EventKind::ToolExecutionStart {
            call_id,
            runs: false,
            ..
        } = &event.kind
            && world.calls.get(call_id.as_str()) == Some(&CallState::Allowed)
        {
            world.set(call_id.as_str(), CallState::Over);
        }
        let alone = world.scene.spec().continuation_kind == ContinuationKind::Compaction;
        if let EventKind::CompactionEnded { failure, .. } = &event.kind {
            self.not_compacted = alone && failure.is_some() && !world.halted();
        }
        if let EventKind::MessageEnd { message } = &event.kind {
            match &message.message {
                Message::User { .. } => {
                    let text = message.message.text();
                    let by_itself = self.last_stop == Some(MessageStop::Stop);
                    ensure(!text.starts_with("follow") || by_itself, || {
                        format!("UP-6: a follow-up after {:?}", self.last_stop)
                    })?;
                    world.fate(&text, Fate::Heard);
                }
                Message::Assistant { stop, .. } => {
                    self.last_stop = Some(*stop);
                    let shown = FRAGMENT.repeat(usize::from(world.deltas));
                    ensure(!world.is_cut || message.message.text() == shown, || {
                        format!("UP-1: what came so far is kept: {message:?} of {shown}")
                    })?;
                }
                Message::System { .. } | Message::ToolResult { .. } => {}
            }
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
        let must = self.cut && world.time_up && !world.cancelled && world.controls.is_empty();
        ensure(by_time || !must, || {
            format!("UP-1: time was up, detail {detail:?}")
        })?;
        ensure(world.time_up || !by_time, || {
            "UP-1: time was not up".to_owned()
        })?;
        let by_others = matches!(
            detail,
            Some(Detail::Limit {
                kind: LimitKind::Tokens,
                ..
            })
        );
        ensure(world.spent || !by_others, || {
            "UP-1: others had not spent the tokens".to_owned()
        })?;
        let by_size = matches!(
            detail,
            Some(Detail::Limit {
                kind: LimitKind::Answer,
                ..
            })
        );
        ensure(by_size == world.overrun || world.cancelled, || {
            format!("UP-1: an answer beyond its bounds ends as {detail:?}")
        })?;
        self.told_of_error(world, outcome)?;
        decided(world, outcome)?;
        world.commit = true;
        world.sealed = true;
        self.sealed = Some(event);
        Ok(())
    }

    /// C-28: of an answer or a loop that failed somebody is told once, of nothing else ever.
    fn told_of_error(&self, world: &World, outcome: &Outcome) -> Result<(), String> {
        let failed = self.last_stop == Some(MessageStop::Error)
            || *outcome == Outcome::Stopped(TurnStop::RuntimeError);
        // A cancel may come between the news that there is no summary and the end.
        let most = u32::from(failed || self.not_compacted);
        let least = u32::from(failed);
        let wanted = world.scene.spec().hooks.on_error;
        ensure(!wanted || (least..=most).contains(&self.told), || {
            format!(
                "C-28: told {} times of {outcome:?} after {:?}",
                self.told, self.last_stop
            )
        })
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
                Some(Detail::Rejection { reason }) => format!("rejected {reason}"),
                Some(Detail::Runtime { message }) => format!("hook {message}"),
                Some(Detail::Continued { .. }) | None => format!("{outcome:?}"),
            },
            Finish::Lost(fault) => format!("lost {fault:?}"),
        };
        world.over = true;
        world.sealed = true;
        let waiting = world.words.iter().find(|(_, fate)| **fate == Fate::Waiting);
        ensure(waiting.is_none(), || {
            format!("no word is lost: {waiting:?}")
        })
    }
}

/// Whether a hook may say no; the others are only told.
fn asks_for_leave(hook: &Hook) -> bool {
    match hook {
        Hook::Input { .. }
        | Hook::BeforeTurn { .. }
        | Hook::BeforeTool(_)
        | Hook::BeforeCompaction(_)
        | Hook::Checkpoint => true,
        Hook::AfterTurn { .. }
        | Hook::AfterTool { .. }
        | Hook::AfterCompaction { .. }
        | Hook::OnError { .. } => false,
    }
}

/// It was allowed, and all that run, it included, may run beside each other.
fn may_run(world: &World, call_id: &CallId) -> Result<(), String> {
    let before = world.calls.get(call_id.as_str());
    ensure(before == Some(&CallState::Allowed), || {
        format!("ACP-32: {call_id:?} runs, but was {before:?}")
    })?;
    let running = world.running();
    let parallel = |id: &&str| world.scene.is_parallel(id);
    let fits = running.is_empty()
        || (parallel(&call_id.as_str())
            && running.iter().all(parallel)
            && running.len() < world.scene.spec().parallel);
    ensure(fits, || format!("C-6: {call_id:?} runs beside {running:?}"))
}

/// The first call that decided about the loop, in call order, has its way, but for a halt.
fn decided(world: &World, outcome: &Outcome) -> Result<(), String> {
    let by_call = match world.controls.values().next() {
        _ if world.cancelled => return Ok(()),
        None => return Ok(()),
        Some(ToolControl::Submit(value)) => {
            let value = value.clone();
            Outcome::Finished(TurnFinish::FinalValue { value })
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

fn nothing_runs(world: &World) -> Result<(), String> {
    ensure(world.model.is_none(), || {
        "the model is stopped in the end".to_owned()
    })?;
    ensure(world.hook.is_none(), || {
        format!("hooks are taken back in the end: {:?}", world.hook)
    })?;
    ensure(!world.compacting, || {
        "summaries are dropped in the end".to_owned()
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
