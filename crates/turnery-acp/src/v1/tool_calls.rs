//! Encodes the tool calls of the running loop.

use crate::{
    v1::{artifacts::encode_artifacts, output_preview::OutputPreview, shared},
    view::{
        code_fence::fence_output,
        tool_call::{
            call_end_meta, call_meta, child_session_meta, display_title, raw_output, raw_value,
        },
    },
};
use agent_client_protocol_schema::v1::{
    SessionUpdate, ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use std::collections::HashMap;
use turnery_agent::view::{CallEnd, CallView};
use turnery_engine::{CallDetail, CallId, Disposition, SessionId, Timestamp};

/// Encoder of tool calls. Remembers the output of running calls.
#[derive(Debug, Default)]
pub(super) struct ToolCallEncoderV1 {
    previews: HashMap<CallId, OutputPreview>,
}

impl ToolCallEncoderV1 {
    /// Encodes the first update of a call (TOOL-1, TOOL-10).
    pub(super) fn encode_requested(&mut self, call: &CallView) -> SessionUpdate {
        self.previews.remove(call.id());
        SessionUpdate::ToolCall(encode_call(call))
    }

    /// Encodes the start of execution (TOOL-3).
    pub(super) fn encode_started(&self, call: &CallView) -> SessionUpdate {
        call_update(
            call,
            ToolCallUpdateFields::new().status(ToolCallStatus::InProgress),
        )
    }

    /// Encodes new details; the update holds only changed fields (TOOL-5).
    pub(super) fn encode_changed(
        &self,
        call: &CallView,
        before: &CallDetail,
    ) -> Option<SessionUpdate> {
        let detail = &call.detail;
        let mut fields = ToolCallUpdateFields::new();
        if before.title != detail.title {
            fields = fields.title(display_title(&detail.title, &call.request.name));
        }
        if before.kind != detail.kind {
            fields = fields.kind(shared::encode_kind(detail.kind));
        }
        if before.locations != detail.locations {
            fields = fields.locations(shared::encode_locations(&detail.locations));
        }
        if before.artifacts != detail.artifacts {
            fields = fields.content(encode_artifacts(&detail.artifacts));
        }
        (fields != ToolCallUpdateFields::new()).then(|| call_update(call, fields))
    }

    /// Encodes output. Clients that show the terminal themselves get no preview.
    pub(super) fn encode_output(
        &mut self,
        call: &CallView,
        text: &str,
        at: Timestamp,
    ) -> Option<SessionUpdate> {
        if call.has_client_terminal() {
            return None;
        }
        if !self.previews.contains_key(call.id()) {
            self.previews
                .insert(call.id().clone(), OutputPreview::default());
        }
        let preview = self.previews.get_mut(call.id())?;
        preview.push(text, at).then(|| self.encode_progress(call))
    }

    /// Encodes the content of a running call: its artifacts, progress text and output preview.
    pub(super) fn encode_progress(&self, call: &CallView) -> SessionUpdate {
        let mut content = encode_artifacts(&call.detail.artifacts);
        if let Some(progress) = &call.progress {
            content.push(shared::text_block(progress).into());
        }
        let preview = self.previews.get(call.id());
        let printed = preview.map(OutputPreview::text).unwrap_or_default();
        if !printed.is_empty() && !call.has_client_terminal() {
            content.push(shared::text_block(fence_output(&printed)).into());
        }
        call_update(call, ToolCallUpdateFields::new().content(content))
    }

    /// Encodes a child session.
    pub(super) fn encode_child(&self, call: &CallView, child: &SessionId) -> SessionUpdate {
        let update = ToolCallUpdate::new(call.id().to_string(), ToolCallUpdateFields::new());
        SessionUpdate::ToolCallUpdate(update.meta(child_session_meta(child)))
    }

    /// Encodes the end of a call: `completed` or `failed`, never another status (TOOL-4, TOOL-11).
    pub(super) fn encode_end(&mut self, call: &CallView, end: &CallEnd<'_>) -> SessionUpdate {
        self.previews.remove(call.id());
        let mut fields = ToolCallUpdateFields::new()
            .status(final_status(end))
            .content(final_content(call, end));
        if let Some(locations) = end.changed_locations(call) {
            fields = fields.locations(shared::encode_locations(locations));
        }
        let fields = fields.raw_output(raw_output(end.envelope));
        let update = ToolCallUpdate::new(call.id().to_string(), fields);
        SessionUpdate::ToolCallUpdate(update.meta(call_end_meta(call, end)))
    }

    /// Encodes a stored call in its final state (LOAD-7); one without an end has failed.
    pub(super) fn encode_stored(
        &self,
        call: &CallView,
        end: Option<&CallEnd<'_>>,
    ) -> SessionUpdate {
        let stored = encode_call(call);
        SessionUpdate::ToolCall(match end {
            Some(end) => stored
                .status(final_status(end))
                .content(final_content(call, end))
                .raw_output(raw_output(end.envelope))
                .meta(call_end_meta(call, end)),
            None => stored.status(ToolCallStatus::Failed),
        })
    }
}

fn encode_call(call: &CallView) -> ToolCall {
    let title = display_title(&call.detail.title, &call.request.name);
    ToolCall::new(call.id().to_string(), title)
        .name(call.request.name.clone())
        .kind(shared::encode_kind(call.detail.kind))
        .content(encode_artifacts(&call.detail.artifacts))
        .locations(shared::encode_locations(&call.detail.locations))
        .raw_input(raw_value(&call.request.args))
        .meta(call_meta(call))
}

/// Returns the content of an ended call: the tool's artifacts, else its result; a terminal stays visible. A
/// cancellation is always stated, since v1 has no status for it (C-24).
fn final_content(call: &CallView, end: &CallEnd<'_>) -> Vec<ToolCallContent> {
    let envelope = end.envelope;
    let own = !envelope.artifacts.is_empty();
    let mut content = if own {
        encode_artifacts(&envelope.artifacts)
    } else {
        let terminals: Vec<_> = call.client_terminals().cloned().collect();
        encode_artifacts(&terminals)
    };
    match &envelope.result {
        Ok(result) if content.is_empty() => {
            content = shared::encode_result(result, call.detail.kind);
        }
        Ok(_) => {}
        Err(failure) if !own => content.push(shared::text_block(&failure.message).into()),
        Err(_) => {}
    }
    let failure = envelope.result.as_ref().err();
    let says_so = !own && failure.is_some_and(|failure| failure.message.contains("cancelled"));
    if end.disposition == Disposition::Cancelled && !says_so {
        content.push(shared::text_block("cancelled").into());
    }
    content
}

fn final_status(end: &CallEnd<'_>) -> ToolCallStatus {
    match end.has_failed() {
        true => ToolCallStatus::Failed,
        false => ToolCallStatus::Completed,
    }
}

fn call_update(call: &CallView, fields: ToolCallUpdateFields) -> SessionUpdate {
    SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(call.id().to_string(), fields))
}
