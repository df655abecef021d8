//! Steps: the effects of a loop that wait their turn, in order, until the client has taken those before them.

use super::gate::Question;
use std::{
    collections::VecDeque,
    task::{Context, Poll},
};
use turnery_engine::{CallId, Content, ContextSize, Effect, Event, Finish, Hook, ToolCall};

use crate::{Item, sink::Shown};

/// How many steps may wait before tools and models are no longer listened to.
const FEW: usize = 8;

/// One thing to be done in its turn.
#[expect(
    clippy::large_enum_variant,
    reason = "events are most of them; a box would cost an allocation per delta"
)]
pub(crate) enum Step {
    /// Show an event.
    Show(Event),
    /// Show the session's title.
    Info,
    /// Call the model.
    CallModel { tools: bool },
    /// Ask the hooks.
    Hook(Hook),
    /// Summarise older messages.
    Compact(ContextSize),
    /// Find out whether a call may run.
    Gate(ToolCall),
    /// Ask the person.
    Ask(Box<Question>),
    /// Run a call.
    Run(ToolCall),
    /// The loop is over.
    Finish(Finish),
}

/// Steps in order.
#[derive(Default)]
pub(crate) struct Steps(VecDeque<Step>);

impl Steps {
    pub(crate) fn push(&mut self, step: Step) {
        self.0.push_back(step);
    }

    /// True while tools and models may be listened to.
    pub(crate) fn few(&self) -> bool {
        self.0.len() < FEW || faulty!(ListenAlways)
    }

    /// Show what can be shown; ready with the first step that is something else.
    pub(crate) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        shown: &mut Shown<'_>,
        info: &turnery_store::SessionInfo,
    ) -> Poll<Step> {
        if faulty!(AnswerBeforeEvents) && matches!(self.0.back(), Some(Step::Finish(_))) {
            self.0.drain(..self.0.len() - 1);
        }
        loop {
            match self.0.front() {
                None => {
                    // The last one was given to the sink just now, and nothing else may come for long.
                    let _ = shown.poll_idle(cx);
                    return Poll::Pending;
                }
                Some(Step::Show(_) | Step::Info) => {
                    if shown.poll_room(cx).is_pending() {
                        return Poll::Pending;
                    }
                }
                Some(
                    Step::CallModel { .. }
                    | Step::Hook(_)
                    | Step::Compact(_)
                    | Step::Gate(_)
                    | Step::Ask(_)
                    | Step::Run(_)
                    | Step::Finish(_),
                ) => {
                    if shown.poll_idle(cx).is_pending() {
                        return Poll::Pending;
                    }
                }
            }
            match self.0.pop_front() {
                Some(Step::Show(event)) => shown.push(Item::Live(&event)),
                Some(Step::Info) => shown.push(Item::Info {
                    title: info.title.as_deref(),
                    updated_at: info.updated_at,
                }),
                Some(other) => return Poll::Ready(other),
                None => return Poll::Pending,
            }
        }
    }

    /// The model is not to be called after all.
    pub(crate) fn forget_model(&mut self) {
        self.0
            .retain(|step| !matches!(step, Step::CallModel { .. }));
    }

    /// The hooks are not to be asked after all.
    pub(crate) fn forget_hook(&mut self) {
        self.0.retain(|step| !matches!(step, Step::Hook(_)));
    }

    /// Nothing is to be summarised after all.
    pub(crate) fn forget_compaction(&mut self) {
        self.0.retain(|step| !matches!(step, Step::Compact(_)));
    }

    /// The call is not to be judged after all.
    pub(crate) fn forget_gate(&mut self, call_id: &CallId) {
        self.0.retain(|step| match step {
            Step::Gate(call) => call.call_id != *call_id,
            Step::Ask(question) => question.ask.call_id != *call_id,
            Step::Show(_)
            | Step::Info
            | Step::CallModel { .. }
            | Step::Hook(_)
            | Step::Compact(_)
            | Step::Run(_)
            | Step::Finish(_) => true,
        });
    }

    /// The call is not to run after all. True if it had not begun.
    pub(crate) fn forget_run(&mut self, call_id: &CallId) -> bool {
        let before = self.0.len();
        self.0
            .retain(|step| !matches!(step, Step::Run(call) if call.call_id == *call_id));
        self.0.len() < before
    }
}

/// What to do with an effect: now, or in its turn.
#[expect(
    clippy::large_enum_variant,
    reason = "moved once, at once; a box would cost an allocation per delta"
)]
pub(crate) enum Sorted {
    /// In its turn.
    Later(Step),
    /// Now: stopping never waits behind a slow client.
    Now(Urgent),
}

/// What is done at once.
pub(crate) enum Urgent {
    StopModel,
    StopHook,
    StopCompaction,
    Withdraw(CallId),
    StopTool(CallId),
    AbortTool(CallId),
    StartGrace,
    /// Words for the next loop.
    Unheard(Vec<Content>),
    /// Storing does not depend on the client (LASH-85).
    Commit(Box<Event>),
}

/// Sort an effect. Events have been folded by then.
pub(crate) fn sort(effect: Effect) -> Sorted {
    match effect {
        Effect::Emit(event) | Effect::Publish(event) => Sorted::Later(Step::Show(event)),
        Effect::CallModel { tools, .. } => Sorted::Later(Step::CallModel { tools }),
        Effect::Gate(call) => Sorted::Later(Step::Gate(call)),
        Effect::Run(call) => Sorted::Later(Step::Run(call)),
        Effect::Finish(finish) => Sorted::Later(Step::Finish(finish)),
        Effect::Hook(hook) => Sorted::Later(Step::Hook(hook)),
        Effect::Compact(before) => Sorted::Later(Step::Compact(before)),
        Effect::StopHook => Sorted::Now(Urgent::StopHook),
        Effect::StopCompaction => Sorted::Now(Urgent::StopCompaction),
        Effect::Unheard(words) => Sorted::Now(Urgent::Unheard(words)),
        Effect::StopModel => Sorted::Now(Urgent::StopModel),
        Effect::Withdraw(call_id) => Sorted::Now(Urgent::Withdraw(call_id)),
        Effect::StopTool(call_id) => Sorted::Now(Urgent::StopTool(call_id)),
        Effect::AbortTool(call_id) => Sorted::Now(Urgent::AbortTool(call_id)),
        Effect::StartGrace => Sorted::Now(Urgent::StartGrace),
        Effect::Commit(event) => Sorted::Now(Urgent::Commit(Box::new(event))),
    }
}
