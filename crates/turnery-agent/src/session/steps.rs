//! Steps: the effects of a loop that wait their turn, in order, until the client has taken those before them.

use super::gate::Question;
use std::{
    collections::{HashMap, VecDeque},
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
///
/// An answer with very many calls makes the queue long, so forgetting a call looks at its own step only:
/// the step leaves an empty place, which is skipped when its turn comes.
#[derive(Default)]
pub(crate) struct Steps {
    /// `None` is the place of a forgotten step.
    queue: VecDeque<Option<Step>>,
    /// Number of the step at the front, counted from the first step ever pushed.
    front: u64,
    /// Numbers of the waiting `Gate` or `Ask` steps, by call.
    gates: HashMap<CallId, u64>,
    /// Numbers of the waiting `Run` steps, by call.
    runs: HashMap<CallId, u64>,
    /// Number of forgotten steps in the queue.
    forgotten: usize,
}

impl Steps {
    pub(crate) fn push(&mut self, step: Step) {
        let number = self.front + self.queue.len() as u64;
        match &step {
            Step::Gate(call) => {
                self.gates.insert(call.call_id.clone(), number);
            }
            Step::Ask(question) => {
                self.gates.insert(question.ask.call_id.clone(), number);
            }
            Step::Run(call) => {
                self.runs.insert(call.call_id.clone(), number);
            }
            Step::Show(_)
            | Step::Info
            | Step::CallModel { .. }
            | Step::Hook(_)
            | Step::Compact(_)
            | Step::Finish(_) => {}
        }
        self.queue.push_back(Some(step));
    }

    /// Removes the first step; `None` if the queue is empty.
    fn pop(&mut self) -> Option<Step> {
        let step = self.queue.pop_front()?;
        visit();
        self.front += 1;
        match &step {
            None => self.forgotten -= 1,
            Some(Step::Gate(call)) => {
                self.gates.remove(&call.call_id);
            }
            Some(Step::Ask(question)) => {
                self.gates.remove(&question.ask.call_id);
            }
            Some(Step::Run(call)) => {
                self.runs.remove(&call.call_id);
            }
            Some(
                Step::Show(_)
                | Step::Info
                | Step::CallModel { .. }
                | Step::Hook(_)
                | Step::Compact(_)
                | Step::Finish(_),
            ) => {}
        }
        step
    }

    /// True while tools and models may be listened to.
    pub(crate) fn few(&self) -> bool {
        self.queue.len() - self.forgotten < FEW || faulty!(ListenAlways)
    }

    /// Show what can be shown; ready with the first step that is something else.
    pub(crate) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        shown: &mut Shown<'_>,
        info: &turnery_store::SessionInfo,
    ) -> Poll<Step> {
        if faulty!(AnswerBeforeEvents) && matches!(self.queue.back(), Some(Some(Step::Finish(_)))) {
            while self.queue.len() > 1 {
                self.pop();
            }
        }
        loop {
            while let Some(None) = self.queue.front() {
                self.pop();
            }
            match self.queue.front() {
                None | Some(None) => {
                    // The last one was given to the sink just now, and nothing else may come for long.
                    let _ = shown.poll_idle(cx);
                    return Poll::Pending;
                }
                Some(Some(Step::Show(_) | Step::Info)) => {
                    if shown.poll_room(cx).is_pending() {
                        return Poll::Pending;
                    }
                }
                Some(Some(
                    Step::CallModel { .. }
                    | Step::Hook(_)
                    | Step::Compact(_)
                    | Step::Gate(_)
                    | Step::Ask(_)
                    | Step::Run(_)
                    | Step::Finish(_),
                )) => {
                    if shown.poll_idle(cx).is_pending() {
                        return Poll::Pending;
                    }
                }
            }
            match self.pop() {
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
        self.forget_all(|step| matches!(step, Step::CallModel { .. }));
    }

    /// The hooks are not to be asked after all.
    pub(crate) fn forget_hook(&mut self) {
        self.forget_all(|step| matches!(step, Step::Hook(_)));
    }

    /// Nothing is to be summarised after all.
    pub(crate) fn forget_compaction(&mut self) {
        self.forget_all(|step| matches!(step, Step::Compact(_)));
    }

    /// The call is not to be judged after all.
    pub(crate) fn forget_gate(&mut self, call_id: &CallId) {
        if let Some(number) = self.gates.remove(call_id) {
            self.forget(number);
        }
    }

    /// The call is not to run after all. True if it had not begun.
    pub(crate) fn forget_run(&mut self, call_id: &CallId) -> bool {
        match self.runs.remove(call_id) {
            Some(number) => self.forget(number),
            None => false,
        }
    }

    /// Empties the place of a step; false if the step is not in the queue.
    fn forget(&mut self, number: u64) -> bool {
        visit();
        let place = number.checked_sub(self.front).map(usize::try_from);
        let Some(Ok(place)) = place else { return false };
        let step = self.queue.get_mut(place).and_then(Option::take);
        self.forgotten += usize::from(step.is_some());
        step.is_some()
    }

    /// Looks through the whole queue: for steps of which a turn has one.
    fn forget_all(&mut self, is_meant: impl Fn(&Step) -> bool) {
        for place in &mut self.queue {
            visit();
            if place.take_if(|step| is_meant(step)).is_some() {
                self.forgotten += 1;
            }
        }
    }
}

#[cfg(test)]
thread_local! {
    static VISITS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts a look at a place of the queue, for the tests that bound the work of a cancel.
fn visit() {
    #[cfg(test)]
    VISITS.with(|visits| visits.set(visits.get() + 1));
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn call(at: usize) -> ToolCall {
        ToolCall {
            call_id: format!("c{at}").into(),
            name: "tool".to_owned(),
            args: Arc::new(serde_json::Value::Null),
        }
    }

    /// Looks at places when `count` waiting calls are forgotten, each of them alone.
    fn visits_of_forgetting(count: usize) -> u64 {
        let mut steps = Steps::default();
        for at in 0..count {
            steps.push(Step::Info);
            steps.push(Step::Gate(call(at)));
            steps.push(Step::Run(call(at)));
        }
        let before = VISITS.with(std::cell::Cell::get);
        for at in 0..count {
            let call_id = call(at).call_id;
            steps.forget_gate(&call_id);
            assert!(steps.forget_run(&call_id));
            assert!(!steps.forget_run(&call_id));
        }
        let mut left = 0;
        while !steps.queue.is_empty() {
            left += usize::from(steps.pop().is_some());
        }
        assert_eq!((left, steps.forgotten), (count, 0));
        VISITS.with(std::cell::Cell::get) - before
    }

    // proves: ACP-51
    #[test]
    fn forgetting_many_calls_is_linear() {
        let (few, many) = (visits_of_forgetting(500), visits_of_forgetting(5_000));
        assert!(many <= few * 11, "{few} looks became {many}");
    }

    #[test]
    fn forgotten_run_is_found_after_others_left() {
        let mut steps = Steps::default();
        for at in 0..3 {
            steps.push(Step::Run(call(at)));
        }
        assert!(matches!(steps.pop(), Some(Step::Run(call)) if call.call_id == "c0".into()));
        assert!(!steps.forget_run(&"c0".into()));
        assert!(steps.forget_run(&"c2".into()));
        assert!(matches!(steps.pop(), Some(Step::Run(call)) if call.call_id == "c1".into()));
        assert!(steps.pop().is_none());
        assert!(steps.queue.is_empty());
    }

    #[test]
    fn forgotten_steps_leave_room_for_others() {
        let mut steps = Steps::default();
        for at in 0..FEW {
            steps.push(Step::Gate(call(at)));
        }
        assert!(!steps.few());
        steps.forget_gate(&"c1".into());
        assert!(steps.few());
    }
}
