//! Lists the tool calls of a session with their status, time and size of the result.

use super::loop_table::serialized_name;
use crate::{
    run::loop_number,
    terminal_text::{first_line, single_line},
};
use serde::Serialize;
use std::{
    io::{self, Write},
    sync::Arc,
};
use turnery_engine::{
    Artifact, CallId, Content, Disposition, EventKind, LoopId, LoopRecord, Timestamp, ToolCall,
    ToolEnvelope,
};

/// Longest name of a tool. Unit: characters.
const NAME_WIDTH: usize = 30;

/// Longest title of a call. Unit: characters.
const TITLE_WIDTH: usize = 80;

/// A tool call, as the events of its loop tell it.
pub(super) struct CallRecord<'a> {
    pub(super) id: &'a CallId,
    pub(super) call: &'a ToolCall,
    pub(super) title: &'a str,
    requested_at: Timestamp,
    end: Option<(Timestamp, &'a ToolEnvelope, Disposition)>,
    /// Diffs and other content to display.
    pub(super) artifacts: &'a [Artifact],
}

impl CallRecord<'_> {
    /// Returns the disposition, `failed` for a call that ran and failed, or `unfinished`.
    fn status(&self) -> String {
        match &self.end {
            None => "unfinished".to_owned(),
            Some((_, envelope, Disposition::Executed)) if envelope.result.is_err() => {
                "failed".to_owned()
            }
            Some((_, _, disposition)) => serialized_name(disposition),
        }
    }

    /// Returns the time that the call took, with waiting for permission. Unit: seconds.
    fn seconds(&self) -> Option<f64> {
        let (ended_at, ..) = self.end?;
        let took = ended_at.signed_duration_since(self.requested_at).to_std();
        Some(took.ok()?.as_secs_f64())
    }

    /// Returns the size of the result for the model. Unit: bytes.
    fn result_bytes(&self) -> Option<usize> {
        let (_, envelope, _) = self.end.as_ref()?;
        Some(match &envelope.result {
            Ok(content) => content.iter().map(content_bytes).sum(),
            Err(error) => error.message.len(),
        })
    }
}

fn content_bytes(item: &Content) -> usize {
    match item {
        Content::Text { text } | Content::Thinking { text, .. } => text.len(),
        Content::Image(image) => image.base64.len(),
        Content::Audio(audio) => audio.base64.len(),
        Content::Document(document) => document.base64.len(),
        Content::ToolCall(call) => call.args.to_string().len(),
        Content::Opaque { value, .. } => value.to_string().len(),
    }
}

/// Returns the tool calls of a loop, in the order in which they were requested.
pub(super) fn tool_calls(record: &LoopRecord) -> Vec<CallRecord<'_>> {
    let mut calls: Vec<CallRecord<'_>> = Vec::new();
    for event in &record.events {
        if let EventKind::ToolCallRequested { call, detail } = &event.kind {
            calls.push(CallRecord {
                id: &call.call_id,
                call,
                title: &detail.title,
                requested_at: event.at,
                end: None,
                artifacts: &detail.artifacts,
            });
        }
        if let EventKind::ToolExecutionEnd {
            call_id,
            envelope,
            disposition,
            ..
        } = &event.kind
            && let Some(call) = calls.iter_mut().rfind(|call| call.id == call_id)
        {
            call.end = Some((event.at, envelope, *disposition));
            if !envelope.artifacts.is_empty() {
                call.artifacts = &envelope.artifacts;
            }
        }
    }
    calls
}

/// Row of `--tools --json`.
#[derive(Serialize)]
struct CallRow<'a> {
    loop_id: &'a LoopId,
    call_id: &'a CallId,
    name: &'a str,
    title: &'a str,
    args: &'a serde_json::Value,
    status: String,
    seconds: Option<f64>,
    result_bytes: Option<usize>,
}

pub(super) fn write_calls(
    loops: &[Arc<LoopRecord>],
    json: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let calls = loops.iter().flat_map(|record| {
        tool_calls(record)
            .into_iter()
            .map(move |call| (record, call))
    });
    if json {
        let rows = calls.map(|(record, call)| CallRow {
            loop_id: &record.loop_id,
            call_id: call.id,
            name: &call.call.name,
            title: call.title,
            args: &call.call.args,
            status: call.status(),
            seconds: call.seconds(),
            result_bytes: call.result_bytes(),
        });
        serde_json::to_writer_pretty(&mut *out, &rows.collect::<Vec<_>>())?;
        return writeln!(out);
    }
    writeln!(out, "loop  status      seconds     result  tool")?;
    for (record, call) in calls {
        let seconds = call.seconds().map(|it| format!("{it:.3}"));
        let bytes = call.result_bytes().map(|it| format!("{it} B"));
        writeln!(
            out,
            "{:>4}  {:<10}  {:>7}  {:>9}  {}  {}",
            loop_number(&record.loop_id),
            call.status(),
            seconds.unwrap_or_default(),
            bytes.unwrap_or_default(),
            first_line(&call.call.name, NAME_WIDTH),
            single_line(call.title, TITLE_WIDTH),
        )?;
    }
    Ok(())
}
