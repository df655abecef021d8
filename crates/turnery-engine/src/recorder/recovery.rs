//! Recovers the records of loops whose process ended before the commit, from their journals (S5).

use super::Recorder;
use crate::{
    CallDetail, CallId, ContextSize, Event, EventKind, LlmMessage, LoopId, LoopRecord, LoopStatus,
    Message, MessageId, MessageStop, SessionId, Timestamp, ToolCall, TurnId, Usage, Verdict,
    context::has_all_results, tool_message,
};
use open_calls::{OpenCall, OpenCalls};
use std::sync::Arc;

mod open_calls;

const INTERRUPTED_NOTICE: &str = "This prompt was interrupted: turnery ended before it was finished and stored. \
     Calls with a result were done. Calls marked as interrupted may or may not have had effects; \
     check before relying on them or repeating them.";

const COMPACTION_INTERRUPTED: &str = "interrupted: turnery ended before the summary was made";

/// Returns the records of interrupted loops, given the journalled events of each, in order.
///
/// Everything left open is closed: each call gets an end and a result that says whether the call was running,
/// and the turn ends. A loop with complete messages stays in the conversation and ends with a notice to the
/// model; a loop without messages does not. Of a parallel group only one loop stays: the winner, if a journal
/// names it, else the first eligible loop in the group's order. Journals that do not begin with `LoopStart`
/// or `ParallelStart` give no record. `LoopEnd` and `ParallelEnd` are omitted, since their commit did not
/// happen (R4); even so, a loop whose `LoopEnd` reports a rejection or a stop by a plugin does not stay in
/// the conversation (UP-35).
#[must_use]
pub fn recover_interrupted_loops<J: AsRef<[Event]>>(journals: &[J]) -> Vec<LoopRecord> {
    let read = |journal: &J| JournalRecovery::from_journal(journal.as_ref());
    let all: Vec<JournalRecovery> = journals.iter().filter_map(read).collect();
    let stay: Vec<bool> = all
        .iter()
        .map(|recovery| recovery.can_stay() && recovery.is_selected(&all))
        .collect();
    let closed = all.into_iter().zip(stay);
    closed
        .filter_map(|(recovery, stays)| recovery.into_record(stays))
        .collect()
}

/// Replays a journal and tracks what is still open.
struct JournalRecovery {
    recorder: Recorder,
    /// Position of the last event replayed or added.
    position: EventPosition,
    /// Number of messages started; the next message id derives from it.
    message_count: u64,
    /// Id of a message that was started but not ended.
    open_message: Option<MessageId>,
    /// Size before a compaction that has not ended.
    open_compaction: Option<ContextSize>,
    turn: Option<OpenTurn>,
    /// True if the loop's end excludes it from the conversation.
    is_excluded: bool,
    /// Loops of the parallel group, including this one.
    group: Vec<LoopId>,
    /// Winner of the group.
    winner: Option<LoopId>,
}

/// Turn that has not ended.
struct OpenTurn {
    index: u32,
    is_answered: bool,
    /// Usage of a response that was not reported yet.
    unreported_usage: Option<Option<Usage>>,
    calls: OpenCalls,
}

/// Position of an event in the stream.
struct EventPosition {
    session_id: SessionId,
    loop_id: LoopId,
    seq: u64,
    at: Timestamp,
}

impl EventPosition {
    fn of_event(event: &Event) -> Self {
        Self {
            session_id: event.session_id.clone(),
            loop_id: event.loop_id.clone(),
            seq: event.seq,
            at: event.at,
        }
    }
}

impl JournalRecovery {
    fn from_journal(events: &[Event]) -> Option<Self> {
        let mut recovery = Self::new(events.first()?);
        for event in events {
            if let EventKind::LoopEnd {
                outcome, rejection, ..
            } = &event.kind
            {
                let is_excluded = rejection.is_some() || !outcome.stays_in_conversation();
                recovery.is_excluded |= is_excluded && !faulty!(RecoverWithoutExcluding);
            } else if let EventKind::ParallelEnd { winner, .. } = &event.kind {
                recovery.winner = Some(winner.clone());
            } else {
                recovery.apply_event(event);
            }
        }
        Some(recovery)
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
            position: EventPosition::of_event(first),
            message_count: 0,
            open_message: None,
            open_compaction: None,
            turn: None,
            is_excluded: false,
        }
    }

    fn apply_event(&mut self, event: &Event) {
        self.recorder.fold(event);
        self.position = EventPosition::of_event(event);
        match &event.kind {
            EventKind::TurnStart { .. } => {
                self.turn = Some(OpenTurn {
                    index: event.turn_index.unwrap_or_default(),
                    is_answered: false,
                    unreported_usage: None,
                    calls: OpenCalls::default(),
                });
            }
            EventKind::TurnEnd { .. } => self.turn = None,
            EventKind::MessageStart { message_id } => {
                self.open_message = Some(message_id.clone());
                self.message_count += 1;
            }
            EventKind::MessageEnd { message } => {
                self.open_message = None;
                self.apply_message_end(&message.message);
            }
            EventKind::UsageReported { .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.unreported_usage = None;
                }
            }
            EventKind::CompactionStarted { before } => self.open_compaction = Some(*before),
            EventKind::CompactionEnded { .. } => self.open_compaction = None,
            EventKind::ToolCallRequested { call, .. } => self.mark_announced(call),
            EventKind::PermissionRequested { call_id, .. } => {
                self.update_call(call_id, |open| open.is_permission_pending = true);
            }
            EventKind::PermissionResolved { call_id, verdict } => {
                self.update_call(call_id, |open| {
                    open.is_permission_pending = false;
                    if let Verdict::Deny(why) = verdict
                        && !faulty!(RecoverWithoutDenial)
                    {
                        open.denial = Some(why.clone());
                    }
                })
            }
            EventKind::ToolExecutionStart { call_id, runs, .. } => {
                self.update_call(call_id, |open| {
                    open.started = Some(*runs && !faulty!(RecoverWithoutStart));
                });
            }
            EventKind::ToolExecutionEnd {
                call_id,
                tool_name,
                envelope,
                ..
            } => self.update_call(call_id, |open| {
                let result = tool_message(call_id.clone(), tool_name.clone(), envelope);
                open.result = (!faulty!(RecoverWithoutEnd)).then_some(result);
            }),
            // Other events open nothing that an interrupted loop has to close.
            _ => {}
        }
    }

    fn apply_message_end(&mut self, message: &Message) {
        match message {
            Message::Assistant { usage, .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.is_answered = true;
                    turn.unreported_usage = Some(*usage);
                    turn.calls = message.calls().map(OpenCall::new).collect();
                }
            }
            Message::ToolResult { call_id, .. } => {
                self.update_call(call_id, |open| {
                    open.is_result_delivered = !faulty!(RecoverResultTwice);
                });
            }
            Message::System { .. } | Message::User { .. } => {}
        }
    }

    /// Marks a call as announced. If the journal has a gap and no message requested the call, it is tracked
    /// and closed all the same.
    fn mark_announced(&mut self, call: &ToolCall) {
        let Some(turn) = &mut self.turn else { return };
        match turn.calls.find(&call.call_id) {
            Some(open) => open.is_announced = true,
            None => turn.calls.push(OpenCall {
                is_announced: true,
                is_requested: false,
                ..OpenCall::new(call)
            }),
        }
    }

    fn update_call(&mut self, call_id: &CallId, change: impl FnOnce(&mut OpenCall)) {
        if let Some(open) = self.turn.as_mut().and_then(|turn| turn.calls.find(call_id)) {
            change(open);
        }
    }

    /// Returns true if the loop may stay in the conversation: it was running, has a complete message or a
    /// compaction block, and its end does not exclude it.
    fn can_stay(&self) -> bool {
        !self.is_excluded
            && self.recorder.record().is_some_and(|record| {
                record.status == LoopStatus::Running
                    && (!record.messages.is_empty() || record.compaction_block.is_some())
            })
    }

    /// Returns true if this loop is the one of its group that may stay.
    fn is_selected(&self, all: &[Self]) -> bool {
        let own = &self.position.loop_id;
        let of_group = |id: &&LoopId| {
            all.iter()
                .any(|it| it.position.loop_id == **id && it.can_stay())
        };
        // Any journal of the group may name the winner; the others may be truncated or rewritten.
        let mut group = all.iter().filter(|it| it.group == self.group);
        let winner = group.find_map(|it| it.winner.as_ref()).filter(of_group);
        let winner = winner.filter(|_| !faulty!(RecoverWithoutWinner));
        let chosen = winner.or_else(|| self.group.iter().find(of_group));
        chosen.is_none_or(|chosen| chosen == own) || faulty!(RecoverAllCandidates)
    }

    /// Closes everything that is open and returns the record; `stays` is true if the loop stays in the
    /// conversation.
    fn into_record(mut self, stays: bool) -> Option<LoopRecord> {
        if let Some(before) = self.open_compaction.take()
            && !faulty!(RecoverWithoutOpenCompaction)
        {
            let turn_index = self.turn.as_ref().map(|turn| turn.index);
            let kind = EventKind::CompactionEnded {
                block: None,
                after: before,
                failure: Some(COMPACTION_INTERRUPTED.to_owned()),
                usage: None,
            };
            self.append_event(turn_index, kind);
        }
        if let Some(turn) = self.turn.take() {
            self.close_turn(turn);
        }
        if stays && !faulty!(RecoverWithoutNotice) {
            let text = INTERRUPTED_NOTICE.to_owned();
            self.emit_message(Message::System { text }, None);
        }
        let mut record = self.recorder.into_aborted()?;
        // A journal with a gap must not produce a conversation that models reject.
        record.on_chain = stays && has_all_results(&record.messages);
        Some(record)
    }

    fn close_turn(&mut self, mut turn: OpenTurn) {
        if !turn.is_answered {
            self.close_unanswered(&mut turn);
        }
        if let Some(usage) = turn.unreported_usage
            && !faulty!(RecoverWithoutUsage)
        {
            let before = self.recorder.record().map(|record| record.usage);
            let mut cumulative = before.unwrap_or_default();
            cumulative += usage.unwrap_or_default();
            self.emit_in_turn(&turn, EventKind::UsageReported { usage, cumulative });
        }
        for at in 0..turn.calls.len() {
            let open = turn.calls.get(at);
            if !open.is_announced {
                let call = open.call.clone();
                let detail = CallDetail::with_title(&call.name);
                self.emit_in_turn(&turn, EventKind::ToolCallRequested { call, detail });
            }
        }
        // End a started result message before anything else.
        if self.open_message.is_some()
            && let Some(open) = turn.calls.first_undelivered()
            && let Some(result) = open.result.take()
        {
            open.is_result_delivered = true;
            self.emit_message(result, Some(turn.index));
        }
        for at in turn.calls.closing_order() {
            let open = turn.calls.get(at);
            if open.result.is_none() && !open.is_result_delivered {
                let result = self.end_call(&turn, open);
                turn.calls.get_mut(at).result = Some(result);
            }
        }
        for at in 0..turn.calls.len() {
            let open = turn.calls.get_mut(at);
            if open.is_requested
                && !open.is_result_delivered
                && let Some(result) = open.result.take()
            {
                self.emit_message(result, Some(turn.index));
            }
        }
        let closed = self.recorder.record().and_then(|it| it.turns.last());
        let kind = EventKind::TurnEnd {
            usage: closed.and_then(|turn| turn.usage),
            tool_results: closed.map_or_else(Vec::new, |turn| turn.tool_results.clone()),
        };
        if !faulty!(RecoverWithoutTurnEnd) {
            self.emit_in_turn(&turn, kind);
        }
    }

    /// Replaces a pending response with an empty one, as a cancel does.
    fn close_unanswered(&mut self, turn: &mut OpenTurn) {
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
            request: None,
        };
        self.emit_message(message, Some(turn.index));
        turn.unreported_usage = Some(None);
    }

    /// Ends a call and returns its result message for the model.
    fn end_call(&mut self, turn: &OpenTurn, open: &OpenCall) -> Message {
        let (call_id, tool_name) = (open.call.call_id.clone(), open.call.name.clone());
        if open.is_permission_pending {
            let (call_id, verdict) = (call_id.clone(), Verdict::Cancelled);
            self.emit_in_turn(turn, EventKind::PermissionResolved { call_id, verdict });
        }
        if open.started.is_none() {
            let kind = EventKind::ToolExecutionStart {
                call_id: call_id.clone(),
                tool_name: tool_name.clone(),
                runs: false,
            };
            self.emit_in_turn(turn, kind);
        }
        let (envelope, disposition) = open.interrupted_result();
        let result = tool_message(call_id.clone(), tool_name.clone(), &envelope);
        let kind = EventKind::ToolExecutionEnd {
            call_id,
            tool_name,
            envelope,
            disposition,
            child_loop_id: None,
        };
        self.emit_in_turn(turn, kind);
        result
    }

    /// Ends a message, using the id of the started message if there is one.
    fn emit_message(&mut self, message: Message, turn_index: Option<u32>) {
        let loop_id = self.position.loop_id.clone();
        let message_id = match self.open_message.take() {
            Some(started) if !faulty!(RecoverWithoutOpenMessage) => started,
            Some(_) | None => {
                let message_id = MessageId::from(format!("{loop_id}.m{}", self.message_count));
                self.message_count += 1;
                let kind = EventKind::MessageStart {
                    message_id: message_id.clone(),
                };
                self.append_event(turn_index, kind);
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
        self.append_event(turn_index, EventKind::MessageEnd { message });
    }

    fn emit_in_turn(&mut self, turn: &OpenTurn, kind: EventKind) {
        self.append_event(Some(turn.index), kind);
    }

    fn append_event(&mut self, turn_index: Option<u32>, kind: EventKind) {
        let event = Event {
            session_id: self.position.session_id.clone(),
            loop_id: self.position.loop_id.clone(),
            seq: self.position.seq + 1,
            turn_index,
            at: self.position.at,
            kind,
        };
        self.recorder.fold(&event);
        self.position.seq = event.seq;
    }
}
