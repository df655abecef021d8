//! Queues the effects of a loop in order, until the client has taken the events before them.

use super::{gate::PendingPermission, output::SessionOutput};
use crate::client::OutboxItem;
use std::{
    collections::{HashMap, VecDeque},
    task::{Context, Poll},
};
use turnery_engine::{CallId, ContextSize, Event, HookRequest, LoopFinish, ToolCall, ToolChoice};

/// Number of queued effects at which tools and models are no longer read.
const MAX_QUEUED_EFFECTS: usize = 8;

/// Effect that waits for its turn.
#[expect(
    clippy::large_enum_variant,
    reason = "events are most of them; a box would cost an allocation per delta"
)]
pub(crate) enum QueuedEffect {
    /// Shows an event.
    ShowEvent(Event),
    /// Shows the session's title.
    ShowInfo,
    /// Calls the model.
    CallModel { tool_choice: ToolChoice },
    /// Asks the hooks.
    RunHook(HookRequest),
    /// Summarizes older messages.
    Compact {
        before: ContextSize,
        has_overflowed: bool,
    },
    /// Decides whether a call may run.
    JudgeCall(ToolCall),
    /// Asks the user.
    RequestPermission(Box<PendingPermission>),
    /// Runs a call.
    RunTool(ToolCall),
    /// Ends the loop.
    Finish(LoopFinish),
}

/// Queued effects in order.
///
/// A response with very many calls makes the queue long, so cancelling a call touches only its own slot: the
/// slot becomes empty and is skipped in its turn.
#[derive(Default)]
pub(crate) struct EffectQueue {
    /// `None` is an empty slot of a cancelled effect.
    queue: VecDeque<Option<QueuedEffect>>,
    /// Number of the effect at the front, counted from the first one ever pushed.
    front: u64,
    /// Sequence numbers of the queued `JudgeCall` and `RequestPermission` effects, by call.
    gates: HashMap<CallId, u64>,
    /// Sequence numbers of the queued `RunTool` effects, by call.
    runs: HashMap<CallId, u64>,
    /// Number of empty slots in the queue.
    cleared: usize,
}

impl EffectQueue {
    pub(crate) fn push(&mut self, effect: QueuedEffect) {
        let number = self.front + self.queue.len() as u64;
        if let Some((numbers, call_id)) = self.numbers_of(&effect) {
            numbers.insert(call_id.clone(), number);
        }
        self.queue.push_back(Some(effect));
    }

    /// Removes the first effect; `None` if the queue is empty.
    fn pop(&mut self) -> Option<QueuedEffect> {
        let effect = self.queue.pop_front()?;
        count_visit();
        self.front += 1;
        match &effect {
            None => self.cleared -= 1,
            Some(effect) => {
                if let Some((numbers, call_id)) = self.numbers_of(effect) {
                    numbers.remove(call_id);
                }
            }
        }
        effect
    }

    /// Returns the index that an effect is registered in (`gates` or `runs`) and its call id; `None` for
    /// effects that are not registered by call.
    fn numbers_of<'a>(
        &mut self,
        effect: &'a QueuedEffect,
    ) -> Option<(&mut HashMap<CallId, u64>, &'a CallId)> {
        match effect {
            QueuedEffect::JudgeCall(call) => Some((&mut self.gates, &call.call_id)),
            QueuedEffect::RequestPermission(question) => {
                Some((&mut self.gates, &question.request.call_id))
            }
            QueuedEffect::RunTool(call) => Some((&mut self.runs, &call.call_id)),
            QueuedEffect::ShowEvent(_)
            | QueuedEffect::ShowInfo
            | QueuedEffect::CallModel { .. }
            | QueuedEffect::RunHook(_)
            | QueuedEffect::Compact { .. }
            | QueuedEffect::Finish(_) => None,
        }
    }

    /// Returns true if the queue is short enough to read from tools and models.
    pub(crate) fn has_room(&self) -> bool {
        self.queue.len() - self.cleared < MAX_QUEUED_EFFECTS || faulty!(ReadModelWhenFull)
    }

    /// Shows queued events while there is room; resolves with the first other effect.
    pub(crate) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        output: &mut SessionOutput,
        info: &turnery_store::SessionInfo,
    ) -> Poll<QueuedEffect> {
        if faulty!(ResultBeforeEvents)
            && matches!(self.queue.back(), Some(Some(QueuedEffect::Finish(_))))
        {
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
                    // Drive the sink with the last event: nothing else may wake this task for long.
                    let _ = output.poll_idle(cx);
                    return Poll::Pending;
                }
                Some(Some(QueuedEffect::ShowEvent(_) | QueuedEffect::ShowInfo)) => {
                    if output.poll_ready(cx).is_pending() {
                        return Poll::Pending;
                    }
                }
                Some(Some(
                    QueuedEffect::CallModel { .. }
                    | QueuedEffect::RunHook(_)
                    | QueuedEffect::Compact { .. }
                    | QueuedEffect::JudgeCall(_)
                    | QueuedEffect::RequestPermission(_)
                    | QueuedEffect::RunTool(_)
                    | QueuedEffect::Finish(_),
                )) => {
                    if output.poll_idle(cx).is_pending() {
                        return Poll::Pending;
                    }
                }
            }
            match self.pop() {
                Some(QueuedEffect::ShowEvent(event)) => output.push(OutboxItem::Live(&event)),
                Some(QueuedEffect::ShowInfo) => output.push(OutboxItem::Info {
                    title: info.title.as_deref(),
                    updated_at: info.updated_at,
                }),
                Some(other) => return Poll::Ready(other),
                None => return Poll::Pending,
            }
        }
    }

    /// Removes the queued model call.
    pub(crate) fn cancel_model_call(&mut self) {
        self.clear_matching(|effect| matches!(effect, QueuedEffect::CallModel { .. }));
    }

    /// Removes the queued hook request.
    pub(crate) fn cancel_hook(&mut self) {
        self.clear_matching(|effect| matches!(effect, QueuedEffect::RunHook(_)));
    }

    /// Removes the queued compaction.
    pub(crate) fn cancel_compaction(&mut self) {
        self.clear_matching(|effect| matches!(effect, QueuedEffect::Compact { .. }));
    }

    /// Removes the queued permission check of a call.
    pub(crate) fn cancel_gate(&mut self, call_id: &CallId) {
        if let Some(number) = self.gates.remove(call_id) {
            self.clear_slot(number);
        }
    }

    /// Removes the queued run of a call; true if it had not begun.
    pub(crate) fn cancel_tool_run(&mut self, call_id: &CallId) -> bool {
        match self.runs.remove(call_id) {
            Some(number) => self.clear_slot(number),
            None => false,
        }
    }

    /// Empties the slot of an effect; false if the effect is not in the queue.
    fn clear_slot(&mut self, number: u64) -> bool {
        count_visit();
        let place = number.checked_sub(self.front).map(usize::try_from);
        let Some(Ok(place)) = place else { return false };
        let effect = self.queue.get_mut(place).and_then(Option::take);
        self.cleared += usize::from(effect.is_some());
        effect.is_some()
    }

    /// Scans the whole queue, for effects that occur once per turn.
    fn clear_matching(&mut self, is_meant: impl Fn(&QueuedEffect) -> bool) {
        for place in &mut self.queue {
            count_visit();
            if place.take_if(|effect| is_meant(effect)).is_some() {
                self.cleared += 1;
            }
        }
    }
}

#[cfg(test)]
thread_local! {
    static VISITS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts a slot visit, for the tests that bound the work of a cancel.
fn count_visit() {
    #[cfg(test)]
    VISITS.with(|visits| visits.set(visits.get() + 1));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool_call(at: usize) -> ToolCall {
        ToolCall::new(format!("c{at}"), "tool", serde_json::Value::Null)
    }

    /// Returns the slot visits when `count` queued calls are cancelled one by one.
    fn visits_for_cancelling(count: usize) -> u64 {
        let mut queue = EffectQueue::default();
        for at in 0..count {
            queue.push(QueuedEffect::ShowInfo);
            queue.push(QueuedEffect::JudgeCall(tool_call(at)));
            queue.push(QueuedEffect::RunTool(tool_call(at)));
        }
        let before = VISITS.with(std::cell::Cell::get);
        for at in 0..count {
            let call_id = tool_call(at).call_id;
            queue.cancel_gate(&call_id);
            assert!(queue.cancel_tool_run(&call_id));
            assert!(!queue.cancel_tool_run(&call_id));
        }
        let mut left = 0;
        while !queue.queue.is_empty() {
            left += usize::from(queue.pop().is_some());
        }
        assert_eq!((left, queue.cleared), (count, 0));
        VISITS.with(std::cell::Cell::get) - before
    }

    // proves: ACP-51
    #[test]
    fn cancelling_many_calls_is_linear() {
        let (few, many) = (visits_for_cancelling(500), visits_for_cancelling(5_000));
        assert!(many <= few * 11, "{few} looks became {many}");
    }

    #[test]
    fn cancelled_run_is_found_after_pops() {
        let mut queue = EffectQueue::default();
        for at in 0..3 {
            queue.push(QueuedEffect::RunTool(tool_call(at)));
        }
        assert!(
            matches!(queue.pop(), Some(QueuedEffect::RunTool(tool_call)) if tool_call.call_id == "c0".into())
        );
        assert!(!queue.cancel_tool_run(&"c0".into()));
        assert!(queue.cancel_tool_run(&"c2".into()));
        assert!(
            matches!(queue.pop(), Some(QueuedEffect::RunTool(tool_call)) if tool_call.call_id == "c1".into())
        );
        assert!(queue.pop().is_none());
        assert!(queue.queue.is_empty());
    }

    #[test]
    fn cancelled_effects_free_room() {
        let mut queue = EffectQueue::default();
        for at in 0..MAX_QUEUED_EFFECTS {
            queue.push(QueuedEffect::JudgeCall(tool_call(at)));
        }
        assert!(!queue.has_room());
        queue.cancel_gate(&"c1".into());
        assert!(queue.has_room());
    }
}
