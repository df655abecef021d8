//! Makes the record of a loop whose process ended before the commit, from its journal (S5).

use super::{Recorder, stays};
use crate::{
    CallDetail, CallId, ContextSize, Event, EventKind, LlmMessage, LoopId, LoopRecord, LoopStatus,
    Message, MessageId, MessageStop, SessionId, Timestamp, ToolCall, TurnId, Usage, Verdict,
    context::is_whole, tool_message,
};
use open_calls::{OpenCall, OpenCalls};
use std::sync::Arc;

mod open_calls;

#[cfg(test)]
pub(crate) use open_calls::visits as call_visits;

const NOTICE: &str = "This prompt was interrupted: turnery ended before it was finished and stored. \
     Calls with a result were done. Calls marked as interrupted may or may not have had effects; \
     check before relying on them or repeating them.";

const NO_SUMMARY: &str = "interrupted: turnery ended before the summary was made";

/// Returns the record of a loop that was interrupted and ran alone: see [`interrupted_loops`].
#[must_use]
pub fn interrupted(events: &[Event]) -> Option<LoopRecord> {
    interrupted_loops(&[events]).pop()
}

/// Returns the records of loops that were interrupted, given the journalled events of each, in order.
///
/// Everything left open is closed: each call gets an end and a result that says whether it was
/// running, and the turn ends. A loop with settled messages stays in the conversation and ends with a
/// notice to the model; one without any message does not. Of a parallel group one stays: the winner, if the
/// journal names it, else the first in the group's order that can. There is no record of a journal that
/// does not begin with `LoopStart` or `ParallelStart`. `LoopEnd` and `ParallelEnd` are left out, since
/// the commit they need was not made (R4); still, a loop whose `LoopEnd` says that it was refused, rejected
/// or stopped by a plugin does not stay in the conversation (UP-35).
#[must_use]
pub fn interrupted_loops<J: AsRef<[Event]>>(journals: &[J]) -> Vec<LoopRecord> {
    let read = |journal: &J| Closing::read(journal.as_ref());
    let all: Vec<Closing> = journals.iter().filter_map(read).collect();
    let stand: Vec<bool> = all
        .iter()
        .map(|closing| closing.can_stand() && closing.is_chosen(&all))
        .collect();
    let closed = all.into_iter().zip(stand);
    closed
        .filter_map(|(closing, stands)| closing.finish(stands))
        .collect()
}

/// Follows a journal and knows what is still open.
struct Closing {
    recorder: Recorder,
    /// Position of the event seen or added last.
    last: Position,
    /// How many messages have begun; the next id is made from it.
    messages: u64,
    /// A message that has begun and is not settled.
    open_message: Option<MessageId>,
    /// The size before a compaction that has not ended.
    compacting: Option<ContextSize>,
    turn: Option<OpenTurn>,
    /// Whether the loop ended in a way that keeps it out of the conversation.
    is_dropped: bool,
    /// The loops that it was tried beside, itself among them.
    group: Vec<LoopId>,
    /// The one of them that won.
    winner: Option<LoopId>,
}

/// A turn that has not ended.
struct OpenTurn {
    index: u32,
    answered: bool,
    /// The usage of an answer that was not reported yet.
    unreported: Option<Option<Usage>>,
    calls: OpenCalls,
}

/// Where the next event goes.
struct Position {
    session_id: SessionId,
    loop_id: LoopId,
    seq: u64,
    at: Timestamp,
}

impl Position {
    fn of(event: &Event) -> Self {
        Self {
            session_id: event.session_id.clone(),
            loop_id: event.loop_id.clone(),
            seq: event.seq,
            at: event.at,
        }
    }
}

impl Closing {
    fn read(events: &[Event]) -> Option<Self> {
        let mut closing = Self::new(events.first()?);
        for event in events {
            if let EventKind::LoopEnd {
                outcome,
                detail,
                rejection,
                ..
            } = &event.kind
            {
                closing.is_dropped |= rejection.is_some() || !stays(outcome, detail.as_ref());
            } else if let EventKind::ParallelEnd { winner, .. } = &event.kind {
                closing.winner = Some(winner.clone());
            } else {
                closing.see(event);
            }
        }
        Some(closing)
    }

    fn new(first: &Event) -> Self {
        let mut group = Vec::new();
        if let EventKind::ParallelStart { loop_ids, .. } = &first.kind {
            group.clone_from(loop_ids);
        }
        Self {
            group,
            winner: None,
            recorder: Recorder::new(),
            last: Position::of(first),
            messages: 0,
            open_message: None,
            compacting: None,
            turn: None,
            is_dropped: false,
        }
    }

    fn see(&mut self, event: &Event) {
        self.recorder.fold(event);
        self.last = Position::of(event);
        match &event.kind {
            EventKind::TurnStart { .. } => {
                self.turn = Some(OpenTurn {
                    index: event.turn_index.unwrap_or_default(),
                    answered: false,
                    unreported: None,
                    calls: OpenCalls::default(),
                });
            }
            EventKind::TurnEnd { .. } => self.turn = None,
            EventKind::MessageStart { message_id } => {
                self.open_message = Some(message_id.clone());
                self.messages += 1;
            }
            EventKind::MessageEnd { message } => {
                self.open_message = None;
                self.settled(&message.message);
            }
            EventKind::UsageReported { .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.unreported = None;
                }
            }
            EventKind::CompactionStarted { before } => self.compacting = Some(*before),
            EventKind::CompactionEnded { .. } => self.compacting = None,
            EventKind::ToolCallRequested { call, .. } => self.announced(call),
            EventKind::PermissionRequested { call_id, .. } => {
                self.with_call(call_id, |open| open.asked = true);
            }
            EventKind::PermissionResolved { call_id, verdict } => self.with_call(call_id, |open| {
                open.asked = false;
                if let Verdict::Deny(why) = verdict {
                    open.denied = Some(why.clone());
                }
            }),
            EventKind::ToolExecutionStart { call_id, runs, .. } => {
                self.with_call(call_id, |open| open.started = Some(*runs));
            }
            EventKind::ToolExecutionEnd {
                call_id,
                tool_name,
                envelope,
                ..
            } => self.with_call(call_id, |open| {
                let result = tool_message(call_id.clone(), tool_name.clone(), envelope);
                open.result = Some(result);
            }),
            EventKind::ParallelStart { .. }
            | EventKind::ParallelEnd { .. }
            | EventKind::LoopStart { .. }
            | EventKind::LoopEnd { .. }
            | EventKind::InputRejected { .. }
            | EventKind::Delta { .. }
            | EventKind::ToolExecutionUpdate { .. }
            | EventKind::ToolExecutionOutput { .. }
            | EventKind::PlanUpdated { .. }
            | EventKind::ModelRetried { .. }
            | EventKind::ModelSilent { .. }
            | EventKind::Issue { .. }
            | EventKind::ToolProgress { .. }
            | EventKind::ChildUsageReported { .. }
            | EventKind::FinalValue { .. }
            | EventKind::ToolValue { .. } => {}
        }
    }

    fn settled(&mut self, message: &Message) {
        match message {
            Message::Assistant { usage, .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.answered = true;
                    turn.unreported = Some(*usage);
                    turn.calls = message.calls().map(OpenCall::new).collect();
                }
            }
            Message::ToolResult { call_id, .. } => {
                self.with_call(call_id, |open| open.told = true);
            }
            Message::System { .. } | Message::User { .. } => {}
        }
    }

    /// A call that no message has asked for, since the journal has a hole, is closed all the same.
    fn announced(&mut self, call: &ToolCall) {
        let Some(turn) = &mut self.turn else { return };
        match turn.calls.find(&call.call_id) {
            Some(open) => open.announced = true,
            None => turn.calls.push(OpenCall {
                announced: true,
                wanted: false,
                ..OpenCall::new(call)
            }),
        }
    }

    fn with_call(&mut self, call_id: &CallId, change: impl FnOnce(&mut OpenCall)) {
        if let Some(open) = self.turn.as_mut().and_then(|turn| turn.calls.find(call_id)) {
            change(open);
        }
    }

    /// Whether something was said in the loop that may stay in the conversation.
    fn can_stand(&self) -> bool {
        !self.is_dropped
            && self.recorder.record().is_some_and(|record| {
                record.status == LoopStatus::Running
                    && (!record.messages.is_empty() || record.compaction_block.is_some())
            })
    }

    /// Whether it is the one of its group that may stay.
    fn is_chosen(&self, all: &[Self]) -> bool {
        let own = &self.last.loop_id;
        let of_group = |id: &&LoopId| {
            all.iter()
                .any(|it| it.last.loop_id == **id && it.can_stand())
        };
        // Known from any journal of the group: the others may have been cut or written again without it.
        let mut group = all.iter().filter(|it| it.group == self.group);
        let winner = group.find_map(|it| it.winner.as_ref()).filter(of_group);
        let chosen = winner.or_else(|| self.group.iter().find(of_group));
        chosen.is_none_or(|chosen| chosen == own)
    }

    /// Closes everything that is open; `stands` if the loop stays in the conversation.
    fn finish(mut self, stands: bool) -> Option<LoopRecord> {
        if let Some(before) = self.compacting.take() {
            self.emit(EventKind::CompactionEnded {
                block: None,
                after: before,
                failure: Some(NO_SUMMARY.to_owned()),
                usage: None,
            });
        }
        if let Some(turn) = self.turn.take() {
            self.close_turn(turn);
        }
        if stands {
            let text = NOTICE.to_owned();
            self.say(Message::System { text }, None);
        }
        let mut record = self.recorder.aborted()?;
        // A journal with a hole in it must not make a conversation that no model accepts.
        record.on_chain = stands && is_whole(&record.messages);
        Some(record)
    }

    fn close_turn(&mut self, mut turn: OpenTurn) {
        if !turn.answered {
            self.cut_off_answer(&mut turn);
        }
        if let Some(usage) = turn.unreported {
            let before = self.recorder.record().map(|record| record.usage);
            let mut cumulative = before.unwrap_or_default();
            cumulative += usage.unwrap_or_default();
            self.emit_in(&turn, EventKind::UsageReported { usage, cumulative });
        }
        for at in 0..turn.calls.len() {
            let open = turn.calls.get(at);
            if !open.announced {
                let call = open.call.clone();
                let detail = CallDetail {
                    title: call.name.clone(),
                    ..CallDetail::default()
                };
                self.emit_in(&turn, EventKind::ToolCallRequested { call, detail });
            }
        }
        // A result that has begun comes before anything else ends.
        if self.open_message.is_some()
            && let Some(open) = turn.calls.first_untold()
            && let Some(result) = open.result.take()
        {
            open.told = true;
            self.say(result, Some(turn.index));
        }
        for at in 0..turn.calls.len() {
            let open = turn.calls.get(at);
            if open.result.is_none() && !open.told {
                let result = self.end_call(&turn, open);
                turn.calls.get_mut(at).result = Some(result);
            }
        }
        for at in 0..turn.calls.len() {
            let open = turn.calls.get_mut(at);
            if open.wanted
                && !open.told
                && let Some(result) = open.result.take()
            {
                self.say(result, Some(turn.index));
            }
        }
        let closed = self.recorder.record().and_then(|it| it.turns.last());
        let kind = EventKind::TurnEnd {
            usage: closed.and_then(|turn| turn.usage),
            tool_results: closed.map_or_else(Vec::new, |turn| turn.tool_results.clone()),
        };
        self.emit_in(&turn, kind);
    }

    /// The answer that was on its way: as with a cancel, an empty one takes its place.
    fn cut_off_answer(&mut self, turn: &mut OpenTurn) {
        let config = self.recorder.record().and_then(|it| it.config.as_ref());
        let (model, provider) = config.map_or_else(Default::default, |config| {
            (config.model.clone(), config.provider.clone())
        });
        let message = Message::Assistant {
            content: Vec::new(),
            stop: MessageStop::Aborted,
            model,
            provider,
            usage: None,
            error: None,
        };
        self.say(message, Some(turn.index));
        turn.unreported = Some(None);
    }

    /// Closes a call's bracket; returns what the model is told.
    fn end_call(&mut self, turn: &OpenTurn, open: &OpenCall) -> Message {
        let (call_id, tool_name) = (open.call.call_id.clone(), open.call.name.clone());
        if open.asked {
            let (call_id, verdict) = (call_id.clone(), Verdict::Cancelled);
            self.emit_in(turn, EventKind::PermissionResolved { call_id, verdict });
        }
        if open.started.is_none() {
            let kind = EventKind::ToolExecutionStart {
                call_id: call_id.clone(),
                tool_name: tool_name.clone(),
                runs: false,
            };
            self.emit_in(turn, kind);
        }
        let (envelope, disposition) = open.end();
        let result = tool_message(call_id.clone(), tool_name.clone(), &envelope);
        let kind = EventKind::ToolExecutionEnd {
            call_id,
            tool_name,
            envelope,
            disposition,
            child_loop_id: None,
        };
        self.emit_in(turn, kind);
        result
    }

    /// Settles a message, under the id that has begun already if there is one.
    fn say(&mut self, message: Message, turn_index: Option<u32>) {
        let loop_id = self.last.loop_id.clone();
        let message_id = match self.open_message.take() {
            Some(begun) => begun,
            None => {
                let message_id = MessageId::from(format!("{loop_id}.m{}", self.messages));
                self.messages += 1;
                let kind = EventKind::MessageStart {
                    message_id: message_id.clone(),
                };
                self.add(turn_index, kind);
                message_id
            }
        };
        let turn_id = turn_index.map(|turn_index| TurnId {
            loop_id,
            turn_index,
        });
        let message = Arc::new(LlmMessage {
            message_id,
            turn_id,
            message,
        });
        self.add(turn_index, EventKind::MessageEnd { message });
    }

    /// Adds an event where the loop stands.
    fn emit(&mut self, kind: EventKind) {
        let turn_index = self.turn.as_ref().map(|turn| turn.index);
        self.add(turn_index, kind);
    }

    fn emit_in(&mut self, turn: &OpenTurn, kind: EventKind) {
        self.add(Some(turn.index), kind);
    }

    fn add(&mut self, turn_index: Option<u32>, kind: EventKind) {
        let event = Event {
            session_id: self.last.session_id.clone(),
            loop_id: self.last.loop_id.clone(),
            seq: self.last.seq + 1,
            turn_index,
            at: self.last.at,
            kind,
        };
        self.recorder.fold(&event);
        self.last.seq = event.seq;
    }
}
