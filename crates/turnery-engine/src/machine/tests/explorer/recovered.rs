//! Checks what a session keeps of a loop whose host ended at any moment, and that the session can go on from there.

use super::ExplorerState;
use crate::{
    CallId, Event, EventKind, LlmMessage, LoopRecord, Message, Outcome, ProviderFailure,
    ToolEnvelope, TurnStop, Verdict,
    context::{ContextView, loop_chain},
    oracle::{check_history, check_record, ensure::ensure},
    recover_interrupted_loops,
};
use std::{collections::BTreeMap, sync::Arc};

impl ExplorerState {
    /// Checks recovery from the journal of this state, cut after each of the events of the last input.
    pub(super) fn can_be_resumed(&self) -> Result<(), String> {
        (self.journalled_before + 1..=self.journal.len())
            .try_for_each(|until| check_recovery(&self.journal[..until]))
            .map_err(|why| format!("S5: {why}"))
    }
}

/// Facts about a call in the journal.
#[derive(Default)]
struct CallTrace<'e> {
    runs: bool,
    denial: Option<&'e str>,
    end: Option<&'e ToolEnvelope>,
}

fn check_recovery(journal: &[Event]) -> Result<(), String> {
    let mut recovered = recover_interrupted_loops(&[journal]);
    ensure(recovered.len() == 1, || {
        format!("{} records of one loop", recovered.len())
    })?;
    let record = recovered.remove(0);
    check_record(&record)?;
    let told = messages(journal);
    let kept = record.messages.get(..told.len());
    ensure(
        kept.is_some_and(|kept| kept.iter().eq(told.iter().copied())),
        || format!("{told:?} became {:?}", record.messages),
    )?;
    check_calls(journal, &record)?;
    let reported = told.iter().filter_map(|it| match &it.message {
        Message::Assistant { usage, .. } => usage.as_ref(),
        Message::System { .. } | Message::User { .. } | Message::ToolResult { .. } => None,
    });
    let reported: u64 = reported.map(|usage| usage.input).sum();
    ensure(record.usage.input == reported, || {
        format!("{reported} tokens became {:?}", record.usage)
    })?;
    let stays = is_recoverable(journal);
    ensure(record.on_chain == stays, || {
        format!("the loop stays: {}, not {stays}", record.on_chain)
    })?;
    let last = record.messages.last().map(|last| &last.message);
    let is_notice = matches!(last, Some(Message::System { text }) if text.contains("interrupted"));
    ensure(is_notice == stays, || {
        format!("the model is told of the interruption: {is_notice}, not {stays}")
    })?;
    let tip = record.loop_id.clone();
    let view = ContextView::from_chain(&loop_chain(&[Arc::new(record)], Some(&tip)));
    check_history(view.messages())
}

/// Returns true if the loop of a journal stays in the conversation: something is there to go on from, and its end,
/// if there was one, was neither a rejection nor a refusal.
pub(super) fn is_recoverable(journal: &[Event]) -> bool {
    let is_excluded = journal.iter().any(|event| {
        let EventKind::LoopEnd { outcome, .. } = &event.kind else {
            return false;
        };
        matches!(
            outcome,
            Outcome::Stopped(
                TurnStop::InvalidInput { .. }
                    | TurnStop::PluginAbort { .. }
                    | TurnStop::ProviderError(ProviderFailure::Refused)
            )
        )
    });
    let has_block = journal.iter().any(|event| {
        matches!(
            event.kind,
            EventKind::CompactionEnded { block: Some(_), .. }
        )
    });
    !is_excluded && (has_block || !messages(journal).is_empty())
}

/// Returns the complete messages of a journal.
fn messages(journal: &[Event]) -> Vec<&Arc<LlmMessage>> {
    let messages = journal.iter().filter_map(|event| match &event.kind {
        EventKind::MessageEnd { message } => Some(message),
        _ => None,
    });
    messages.collect()
}

/// Checks what the model is told of each call: its result, that it was denied, that it may have had effects, or that
/// it did not run.
fn check_calls(journal: &[Event], record: &LoopRecord) -> Result<(), String> {
    let traces = trace_calls(journal);
    for message in &record.messages {
        let Message::ToolResult { call_id, .. } = &message.message else {
            continue;
        };
        let unknown = CallTrace::default();
        let trace = traces.get(call_id).unwrap_or(&unknown);
        let expected = match (trace.end, trace.denial) {
            (Some(end), _) => match &end.result {
                Ok(content) => crate::message::join_text(content),
                Err(error) => error.message.clone(),
            },
            (None, Some(denial)) => denial.to_owned(),
            (None, None) if trace.runs => "may or may not have had effects".to_owned(),
            (None, None) => "not run".to_owned(),
        };
        let told = message.message.text();
        ensure(told.contains(&expected), || {
            format!("{call_id:?}: {told:?} instead of {expected:?}")
        })?;
    }
    Ok(())
}

fn trace_calls(journal: &[Event]) -> BTreeMap<&CallId, CallTrace<'_>> {
    let mut traces: BTreeMap<&CallId, CallTrace<'_>> = BTreeMap::new();
    for event in journal {
        match &event.kind {
            EventKind::ToolExecutionStart { call_id, runs, .. } => {
                traces.entry(call_id).or_default().runs = *runs;
            }
            EventKind::PermissionResolved {
                call_id,
                verdict: Verdict::Deny(why),
            } => traces.entry(call_id).or_default().denial = Some(why),
            EventKind::ToolExecutionEnd {
                call_id, envelope, ..
            } => traces.entry(call_id).or_default().end = Some(envelope),
            _ => {}
        }
    }
    traces
}
