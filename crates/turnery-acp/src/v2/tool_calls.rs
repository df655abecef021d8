//! Encodes the tool calls of the running loop as upserts (V2-12). Omitted fields keep their values.

use super::{artifacts::encode_artifacts, call_terminal::CallTerminal, shared};
use crate::{
    transport::update_writer::UpdateWriter,
    view::tool_call::{
        call_end_meta, call_meta, child_session_meta, display_title, raw_output, raw_value,
    },
};
use agent_client_protocol_schema::v2::{
    SessionUpdate, ToolCallContent, ToolCallStatus, ToolCallUpdate,
};
use serde_json::Value;
use std::collections::HashMap;
use turnery_agent::view::{CallEnd, CallView};
use turnery_engine::{CallDetail, CallId, Disposition, SessionId};

/// Encoder of tool calls. Remembers the terminals of running calls.
#[derive(Debug, Default)]
pub(super) struct ToolCallEncoderV2 {
    terminals: HashMap<CallId, CallTerminal>,
}

impl ToolCallEncoderV2 {
    /// Writes the first update of a call.
    pub(super) fn write_requested(&mut self, call: &CallView, to: &mut UpdateWriter) {
        self.terminals.remove(call.id());
        write_update(encode_call(call).status(ToolCallStatus::Pending), to);
    }

    /// Writes the start of execution.
    pub(super) fn write_started(&self, call: &CallView, to: &mut UpdateWriter) {
        write_update(empty_update(call).status(ToolCallStatus::InProgress), to);
    }

    /// Writes new details. The update holds only changed fields; a list that became empty is cleared.
    pub(super) fn write_changed(
        &self,
        call: &CallView,
        before: &CallDetail,
        to: &mut UpdateWriter,
    ) {
        let detail = &call.detail;
        let mut update = empty_update(call);
        if before.title != detail.title {
            update = update.title(display_title(&detail.title, &call.request.name));
        }
        if before.kind != detail.kind {
            update = update.kind(shared::encode_kind(detail.kind));
        }
        if before.locations != detail.locations {
            update = update.locations(shared::encode_locations(&detail.locations));
        }
        if before.artifacts != detail.artifacts {
            update = update.content(self.running_content(call));
        }
        if update != empty_update(call) {
            write_update(update, to);
        }
    }

    /// Writes output to the call's terminal, which the first output opens.
    pub(super) fn write_output(&mut self, call: &CallView, text: &str, to: &mut UpdateWriter) {
        if !self.terminals.contains_key(call.id()) {
            let command = call.request.args.get("command").and_then(Value::as_str);
            let terminal = CallTerminal::open(call.id(), command, to);
            self.terminals.insert(call.id().clone(), terminal);
            self.write_progress(call, to);
        }
        if let Some(terminal) = self.terminals.get(call.id()) {
            terminal.write_output(text, to);
        }
    }

    /// Writes the content of a running call.
    pub(super) fn write_progress(&self, call: &CallView, to: &mut UpdateWriter) {
        write_update(empty_update(call).content(self.running_content(call)), to);
    }

    /// Writes a child session.
    pub(super) fn write_child(&self, call: &CallView, child: &SessionId, to: &mut UpdateWriter) {
        write_update(empty_update(call).meta(child_session_meta(child)), to);
    }

    /// Writes the end of a call with its final status (V2-12).
    pub(super) fn write_end(&mut self, call: &CallView, end: &CallEnd<'_>, to: &mut UpdateWriter) {
        let terminal = self.terminals.remove(call.id());
        if let Some(terminal) = &terminal {
            terminal.write_exit(end.envelope, to);
        }
        write_update(
            with_end(empty_update(call), call, end, terminal.as_ref()),
            to,
        );
    }

    /// Writes a stored call, whole, in its final state; one without an end has failed. Its terminal no longer
    /// exists; its output is in the result.
    pub(super) fn write_stored(
        &self,
        call: &CallView,
        end: Option<&CallEnd<'_>>,
        to: &mut UpdateWriter,
    ) {
        let stored = encode_call(call);
        let stored = match end {
            Some(end) => with_end(stored, call, end, None),
            None => stored.status(ToolCallStatus::Failed),
        };
        write_update(stored, to);
    }

    /// Returns the content of a running call: its artifacts, progress text and terminal.
    fn running_content(&self, call: &CallView) -> Vec<ToolCallContent> {
        let mut content = encode_artifacts(&call.detail.artifacts);
        if let Some(progress) = &call.progress {
            content.push(shared::text_block(progress.as_str()).into());
        }
        let terminal = self.terminals.get(call.id());
        content.extend(terminal.map(CallTerminal::content));
        content
    }
}

fn encode_call(call: &CallView) -> ToolCallUpdate {
    let detail = &call.detail;
    let mut update = empty_update(call)
        .name(call.request.name.clone())
        .title(display_title(&detail.title, &call.request.name))
        .kind(shared::encode_kind(detail.kind));
    let content = encode_artifacts(&detail.artifacts);
    if !content.is_empty() {
        update = update.content(content);
    }
    if !detail.locations.is_empty() {
        update = update.locations(shared::encode_locations(&detail.locations));
    }
    if let Some(args) = raw_value(&call.request.args) {
        update = update.raw_input(args);
    }
    match call_meta(call) {
        Some(meta) => update.meta(meta),
        None => update,
    }
}

/// Adds the end of a call to its update.
fn with_end(
    update: ToolCallUpdate,
    call: &CallView,
    end: &CallEnd<'_>,
    terminal: Option<&CallTerminal>,
) -> ToolCallUpdate {
    let mut update = update
        .status(final_status(end))
        .content(final_content(call, end, terminal));
    if let Some(locations) = end.changed_locations(call) {
        update = update.locations(shared::encode_locations(locations));
    }
    if let Some(output) = raw_output(end.envelope) {
        update = update.raw_output(output);
    }
    match call_end_meta(call, end) {
        Some(meta) => update.meta(meta),
        None => update,
    }
}

/// Returns the content of an ended call: artifacts and terminal, else the result. A failure is always stated.
fn final_content(
    call: &CallView,
    end: &CallEnd<'_>,
    terminal: Option<&CallTerminal>,
) -> Vec<ToolCallContent> {
    let mut content = encode_artifacts(&end.envelope.artifacts);
    let own = end.has_own_artifacts();
    content.extend(terminal.map(CallTerminal::content));
    match &end.envelope.result {
        Ok(result) if content.is_empty() => {
            content = shared::encode_result(result, call.detail.kind);
        }
        Ok(_) => {}
        Err(_) if own => {}
        // The terminal already shows the output; the last line says how the command ended.
        Err(failure) => {
            let message = match terminal {
                Some(_) => failure.message.lines().next_back().unwrap_or_default(),
                None => &failure.message,
            };
            content.push(shared::text_block(message).into());
        }
    }
    content
}

fn final_status(end: &CallEnd<'_>) -> ToolCallStatus {
    match end.disposition {
        Disposition::Cancelled => ToolCallStatus::Cancelled,
        Disposition::Executed
        | Disposition::NotFound
        | Disposition::Invalid
        | Disposition::Denied
        | Disposition::Skipped
        | Disposition::TimedOut => match end.has_failed() {
            true => ToolCallStatus::Failed,
            false => ToolCallStatus::Completed,
        },
    }
}

fn empty_update(call: &CallView) -> ToolCallUpdate {
    ToolCallUpdate::new(call.id().as_str())
}

fn write_update(update: ToolCallUpdate, to: &mut UpdateWriter) {
    to.write_update(&SessionUpdate::ToolCallUpdate(update));
}
