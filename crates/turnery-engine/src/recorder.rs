//! Recorder: a pure fold over the event stream. Replaying a stored stream gives an equal record (TURN-5).

use crate::{
    Attempt, ChildLoopRef, ChildUsage, ConfigSnapshot, Detail, Event, EventKind, LlmMessage,
    LoopId, LoopRecord, LoopStatus, Message, Outcome, ParallelGroup, Turn, TurnId, TurnStop, Usage,
};
use std::sync::Arc;

mod interrupted;

#[cfg(test)]
pub(crate) use interrupted::call_visits;
pub use interrupted::{interrupted, interrupted_loops};

/// Folds the events of one loop into its record.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    record: Option<LoopRecord>,
    /// Keep streaming events too (LOOP-81).
    keeps_streaming: bool,
}

impl Recorder {
    /// A recorder that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One that keeps streaming events too (LOOP-81).
    #[must_use]
    pub fn keeping_streaming() -> Self {
        Self {
            keeps_streaming: true,
            ..Self::default()
        }
    }

    /// Take in one event. Unless they are kept, streaming fragments leave no trace but the gap in `seq`.
    /// The first one must be `LoopStart`, or the `ParallelStart` of a group. Whatever follows `LoopEnd`
    /// is left out (R5), but for the end of the group.
    pub fn fold(&mut self, event: &Event) {
        let Some(record) = &mut self.record else {
            self.record = open(event);
            return;
        };
        let is_left_out = event.kind.is_streaming() && !self.keeps_streaming;
        if !is_left_out && event.loop_id == record.loop_id && fits(record.status, &event.kind) {
            push(record, event);
        }
    }

    /// The record so far; `None` before its first event. `Pending` from the announcement of its group to
    /// its `LoopStart` (LOOP-50).
    #[must_use]
    pub fn record(&self) -> Option<&LoopRecord> {
        self.record.as_ref()
    }

    /// The record, for the commit.
    #[must_use]
    pub fn into_record(self) -> Option<LoopRecord> {
        self.record
    }

    /// The record of a loop whose process went away: `Aborted` unless its `LoopEnd` was seen
    /// (LOOP-54). It has no outcome, and calls that never ended have no results; [`interrupted()`]
    /// closes those first.
    #[must_use]
    pub(crate) fn aborted(self) -> Option<LoopRecord> {
        self.record.map(|mut record| {
            if matches!(record.status, LoopStatus::Pending | LoopStatus::Running) {
                record.status = LoopStatus::Aborted;
            }
            record
        })
    }
}

/// Take in an event that fits.
pub(crate) fn push(record: &mut LoopRecord, event: &Event) {
    apply(record, event);
    record.events.push(event.clone());
}

fn fits(status: LoopStatus, kind: &EventKind) -> bool {
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

/// The record of a loop that was announced or has just begun. Off the chain until its end says otherwise.
fn open(event: &Event) -> Option<LoopRecord> {
    let (EventKind::ParallelStart { agent_id, .. } | EventKind::LoopStart { agent_id, .. }) =
        &event.kind
    else {
        return None;
    };
    let mut record = LoopRecord {
        status: LoopStatus::Pending,
        ..LoopRecord::begun(
            event.session_id.clone(),
            event.loop_id.clone(),
            agent_id.clone(),
            event.at,
        )
    };
    push(&mut record, event);
    Some(record)
}

fn begin(record: &mut LoopRecord, event: &Event) {
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

/// The loop's group has its winner (LOOP-73, LOOP-74, LOOP-77). Nobody but that one is on the chain.
fn conclude(record: &mut LoopRecord, winner: &LoopId, usage: Usage, judge: Option<&String>) {
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
        is_selected,
    });
    record.on_chain &= is_selected;
}

fn apply(record: &mut LoopRecord, event: &Event) {
    match &event.kind {
        EventKind::TurnStart { trigger } => record.turns.push(Turn {
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
        EventKind::MessageEnd { message } => keep(record, message),
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
            detail,
            usage,
            rejection,
        } => {
            record.status = match rejection {
                Some(_) => LoopStatus::Rejected,
                None => LoopStatus::Completed,
            };
            record.outcome = Some(outcome.clone());
            record.detail.clone_from(detail);
            record.on_chain = rejection.is_none() && stays(outcome, detail.as_ref());
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
        EventKind::ModelRetried { attempt, fault, .. } => record.attempts.push(Attempt {
            turn_index: event.turn_index.unwrap_or_default(),
            attempt: *attempt,
            fault: fault.clone(),
        }),
        EventKind::Issue { text } => record.issues.push(text.clone()),
        EventKind::ChildUsageReported { child, .. } => spend(&mut record.children_usage, child),
        EventKind::ToolExecutionEnd {
            call_id,
            tool_name,
            child_loop_id: Some(child_loop_id),
            ..
        } => record.child_loop_refs.push(ChildLoopRef {
            tool_call_id: call_id.clone(),
            tool_name: tool_name.clone(),
            child_session_id: child_loop_id.session(),
            child_loop_id: child_loop_id.clone(),
        }),
        EventKind::LoopStart { .. } => begin(record, event),
        EventKind::ParallelEnd {
            winner,
            evaluation_usage,
            judge,
        } => conclude(record, winner, *evaluation_usage, judge.as_ref()),
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
        | EventKind::ToolExecutionEnd { .. }
        | EventKind::PlanUpdated { .. } => {}
    }
}

/// The latest of each session, source and model (UP-19).
fn spend(totals: &mut Vec<ChildUsage>, child: &ChildUsage) {
    let key = |it: &ChildUsage| (it.session_id.clone(), it.source.clone(), it.model.clone());
    match totals.iter_mut().find(|it| key(it) == key(child)) {
        Some(total) => total.clone_from(child),
        None => totals.push(child.clone()),
    }
}

/// Keep a message once; its turn only refers to it (C-13, D-4).
fn keep(record: &mut LoopRecord, message: &Arc<LlmMessage>) {
    record.messages.push(Arc::clone(message));
    if record.config.is_none() {
        record.config = config_of(&message.message);
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

/// What the first answer tells of the model, when nobody said (LOOP-31).
fn config_of(message: &Message) -> Option<ConfigSnapshot> {
    match message {
        Message::Assistant {
            model, provider, ..
        } => Some(ConfigSnapshot {
            model: model.clone(),
            provider: provider.clone(),
            config_id: None,
            name: None,
            api: None,
            base_url: None,
            reasoning: None,
            context_window: None,
            max_tokens: None,
            thinking_level: None,
            temperature: None,
        }),
        Message::System { .. } | Message::User { .. } | Message::ToolResult { .. } => None,
    }
}

/// Whether the next prompt sees a loop that ended so (section 7, UP-35).
pub(crate) fn stays(outcome: &Outcome, detail: Option<&Detail>) -> bool {
    match outcome {
        Outcome::Finished(_) | Outcome::FrameSwitch { .. } => true,
        Outcome::Stopped(stop) => match stop {
            TurnStop::InvalidInput | TurnStop::PluginAbort => false,
            TurnStop::ProviderError => detail != Some(&Detail::Refusal),
            TurnStop::Cancelled
            | TurnStop::Incomplete
            | TurnStop::MaxTurns
            | TurnStop::ToolFailure
            | TurnStop::RuntimeError
            | TurnStop::SubmittedError { .. }
            | TurnStop::ToolError { .. } => true,
        },
    }
}
