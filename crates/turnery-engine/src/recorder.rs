//! Folds the event stream of a loop into its record. Replaying a stored stream produces an equal record
//! (TURN-5).

use crate::{
    CallId, ChildLoopRef, ChildUsage, CommandJudgement, ConfigSnapshot, Event, EventKind,
    FailedAttempt, LlmMessage, LoopId, LoopRecord, LoopStatus, Message, ParallelGroup, ToolState,
    TurnId, TurnRecord, Usage,
};
use std::sync::Arc;

mod recovery;

pub use recovery::recover_interrupted_loops;

/// Builds the record of one loop from its events.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    record: Option<LoopRecord>,
    /// Also keep streaming events (LOOP-81).
    keep_streaming: bool,
}

impl Recorder {
    /// Creates an empty recorder.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a recorder that also keeps streaming events (LOOP-81).
    #[must_use]
    pub fn with_streaming_events() -> Self {
        Self {
            keep_streaming: true,
            ..Self::default()
        }
    }

    /// Adds one event. Streaming events only leave a gap in `seq` unless they are kept.
    /// The first event must be `LoopStart`, or `ParallelStart` in a group. Events after `LoopEnd` are ignored
    /// (R5), except for `ParallelEnd`.
    pub fn fold(&mut self, event: &Event) {
        let Some(record) = &mut self.record else {
            self.record = open_record(event);
            return;
        };
        let is_left_out = event.kind.is_streaming() && !self.keep_streaming;
        if !is_left_out
            && event.loop_id == record.loop_id
            && accepts_event(record.status, &event.kind)
        {
            append_event(record, event);
        }
    }

    /// Returns the record so far; `None` before the first event. The status is `Pending` between
    /// `ParallelStart` and `LoopStart` (LOOP-50).
    #[must_use]
    pub fn record(&self) -> Option<&LoopRecord> {
        self.record.as_ref()
    }

    /// Returns the record for the commit.
    #[must_use]
    pub fn into_record(self) -> Option<LoopRecord> {
        self.record
    }

    /// Returns the record of a loop whose process terminated: `Aborted` unless `LoopEnd` was seen (LOOP-54).
    /// The record has no outcome, and unfinished calls have no results; [`recover_interrupted_loops`] closes
    /// those first.
    #[must_use]
    pub(crate) fn into_aborted(self) -> Option<LoopRecord> {
        self.record.map(|mut record| {
            if matches!(record.status, LoopStatus::Pending | LoopStatus::Running) {
                record.status = LoopStatus::Aborted;
            }
            record
        })
    }
}

/// Appends an event and applies it to the record.
pub(crate) fn append_event(record: &mut LoopRecord, event: &Event) {
    apply_event(record, event);
    record.events.push(event.clone());
}

/// Removes the state of a tool after a call, which may be large: only the last one is of use.
fn drop_state(events: &mut [Event], of_call: &CallId) {
    for event in events.iter_mut().rev() {
        match &mut event.kind {
            EventKind::ToolExecutionEnd {
                call_id, envelope, ..
            } if call_id == of_call => {
                envelope.state = None;
                break;
            }
            _ => {}
        }
    }
}

fn accepts_event(status: LoopStatus, kind: &EventKind) -> bool {
    match status {
        LoopStatus::Pending => matches!(kind, EventKind::LoopStart { .. }),
        LoopStatus::Running => !matches!(
            kind,
            EventKind::ParallelStart { .. } | EventKind::ParallelEnd { .. }
        ),
        LoopStatus::Completed | LoopStatus::Rejected => {
            matches!(kind, EventKind::ParallelEnd { .. })
        }
        LoopStatus::Aborted => false,
    }
}

/// Creates the record of a loop that was announced or has just started. Off the chain until its end.
fn open_record(event: &Event) -> Option<LoopRecord> {
    let (EventKind::ParallelStart { agent_id, .. } | EventKind::LoopStart { agent_id, .. }) =
        &event.kind
    else {
        return None;
    };
    let mut record = LoopRecord {
        status: LoopStatus::Pending,
        ..LoopRecord::new_running(
            event.session_id.clone(),
            event.loop_id.clone(),
            agent_id.clone(),
            event.at,
        )
    };
    append_event(&mut record, event);
    Some(record)
}

fn apply_loop_start(record: &mut LoopRecord, event: &Event) {
    let EventKind::LoopStart {
        agent_id,
        prompt_id,
        parent_loop_id,
        continuation_kind,
        config,
        tag,
        metadata,
        frame_id,
        frame,
    } = &event.kind
    else {
        return;
    };
    if record.status != LoopStatus::Pending {
        return;
    }
    record.status = LoopStatus::Running;
    record.started_at = event.at;
    record.agent_id.clone_from(agent_id);
    record.prompt_id = Some(prompt_id.clone());
    record.continuation_kind = *continuation_kind;
    record.parent_loop_id.clone_from(parent_loop_id);
    record.config = config.as_deref().cloned();
    record.tag.clone_from(tag);
    record.metadata.clone_from(metadata);
    record.frame_id.clone_from(frame_id);
    record.frame = frame.as_deref().cloned();
}

/// Applies the selection of a winner (LOOP-73, LOOP-74, LOOP-77): only the winner is on the chain.
fn apply_parallel_end(
    record: &mut LoopRecord,
    winner: &LoopId,
    usage: Usage,
    judge: Option<&String>,
    command: Option<&CommandJudgement>,
) {
    let first = record.events.first().map(|event| &event.kind);
    let Some(EventKind::ParallelStart { loop_ids: ids, .. }) = first else {
        return;
    };
    let Some(place) = ids.iter().position(|id| id == winner) else {
        return;
    };
    let is_selected = record.loop_id == *winner;
    record.parallel_group = Some(ParallelGroup {
        all_loop_ids: ids.clone(),
        selected_loop_id: winner.clone(),
        selected_config_index: u32::try_from(place).unwrap_or(u32::MAX),
        evaluation_usage: usage,
        judge: judge.cloned(),
        command: command.cloned().map(Box::new),
        is_selected,
    });
    record.on_chain &= is_selected;
}

fn apply_event(record: &mut LoopRecord, event: &Event) {
    match &event.kind {
        EventKind::TurnStart { trigger } => record.turns.push(TurnRecord {
            turn_id: TurnId {
                loop_id: record.loop_id.clone(),
                turn_index: event.turn_index.unwrap_or_default(),
            },
            triggered_by: *trigger,
            usage: None,
            input_messages: Vec::new(),
            output_message: None,
            tool_results: Vec::new(),
            started_at: event.at,
            ended_at: None,
        }),
        EventKind::MessageEnd { message } => add_message(record, message),
        EventKind::UsageReported { usage, cumulative } => {
            record.usage = *cumulative;
            if let Some(turn) = record.turns.last_mut() {
                turn.usage = *usage;
            }
        }
        EventKind::TurnEnd { .. } => {
            if let Some(turn) = record.turns.last_mut() {
                turn.ended_at = Some(event.at);
            }
        }
        EventKind::LoopEnd {
            outcome,
            usage,
            rejection,
        } => {
            record.status = match rejection {
                Some(_) => LoopStatus::Rejected,
                None => LoopStatus::Completed,
            };
            record.outcome = Some(outcome.clone());
            record.on_chain = rejection.is_none() && outcome.stays_in_conversation();
            record.usage = *usage;
            record.rejection.clone_from(rejection);
            record.ended_at = Some(event.at);
        }
        EventKind::CompactionEnded { block, usage, .. } => {
            if block.is_some() {
                record.compaction_block.clone_from(block);
            }
            if let Some(usage) = usage {
                *record.compaction_usage.get_or_insert_default() += *usage;
            }
        }
        EventKind::ModelRetried { attempt, error, .. } => record.attempts.push(FailedAttempt {
            turn_index: event.turn_index.unwrap_or_default(),
            attempt: *attempt,
            error: error.clone(),
        }),
        EventKind::Issue { text } => record.issues.push(text.clone()),
        EventKind::ChildUsageReported { child, .. } => {
            ChildUsage::update_totals(&mut record.children_usage, child);
        }
        EventKind::ToolExecutionEnd {
            call_id,
            tool_name,
            child_loop_id,
            envelope,
            ..
        } => {
            let link = child_loop_id.as_ref().map(|child_loop_id| ChildLoopRef {
                tool_call_id: call_id.clone(),
                tool_name: tool_name.clone(),
                child_session_id: child_loop_id.session_id(),
                child_loop_id: child_loop_id.clone(),
            });
            record.child_loop_refs.extend(link);
            if let Some(state) = &envelope.state {
                let (call_id, state) = (call_id.clone(), Arc::clone(state));
                let state = ToolState { call_id, state };
                let replaced = record.tool_states.insert(tool_name.clone(), state);
                if let Some(replaced) = replaced {
                    drop_state(&mut record.events, &replaced.call_id);
                }
            }
        }
        EventKind::LoopStart { .. } => apply_loop_start(record, event),
        EventKind::ParallelEnd {
            winner,
            evaluation_usage,
            judge,
            command,
        } => apply_parallel_end(
            record,
            winner,
            *evaluation_usage,
            judge.as_ref(),
            command.as_deref(),
        ),
        EventKind::ParallelStart { .. }
        | EventKind::CompactionStarted { .. }
        | EventKind::ModelSilent { .. }
        | EventKind::ToolProgress { .. }
        | EventKind::FinalValue { .. }
        | EventKind::ToolValue { .. }
        | EventKind::InputRejected { .. }
        | EventKind::MessageStart { .. }
        | EventKind::Delta { .. }
        | EventKind::ToolCallRequested { .. }
        | EventKind::PermissionRequested { .. }
        | EventKind::PermissionResolved { .. }
        | EventKind::ToolExecutionStart { .. }
        | EventKind::ToolExecutionUpdate { .. }
        | EventKind::ToolExecutionOutput { .. }
        | EventKind::PlanUpdated { .. } => {}
    }
}

/// Stores a message once; its turn refers to it by id (C-13, D-4).
fn add_message(record: &mut LoopRecord, message: &Arc<LlmMessage>) {
    record.messages.push(Arc::clone(message));
    if record.config.is_none() {
        record.config = config_from_message(&message.message);
    }
    if message.turn_id.is_none() {
        return;
    }
    let Some(turn) = record.turns.last_mut() else {
        return;
    };
    let id = message.message_id.clone();
    match &message.message {
        Message::System { .. } | Message::User { .. } => turn.input_messages.push(id),
        Message::Assistant { .. } => turn.output_message = Some(id),
        Message::ToolResult { .. } => turn.tool_results.push(id),
    }
}

/// Derives the model configuration from the first response if the host did not set one (LOOP-31).
fn config_from_message(message: &Message) -> Option<ConfigSnapshot> {
    match message {
        Message::Assistant {
            model, provider, ..
        } => Some(ConfigSnapshot {
            model: model.clone(),
            provider: provider.clone(),
            ..ConfigSnapshot::default()
        }),
        Message::System { .. } | Message::User { .. } | Message::ToolResult { .. } => None,
    }
}
