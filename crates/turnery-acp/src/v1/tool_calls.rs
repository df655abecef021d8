//! Tracks the tool calls of the running loop and encodes their v1 updates.

use crate::{
    v1::{output_preview::OutputPreview, tool_call_view},
    view::{code_fence, meta::turnery_meta, tool_call},
};
use agent_client_protocol_schema::v1::{
    Meta, SessionUpdate, ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields,
};
use serde_json::{Value, json};
use std::collections::HashMap;
use turnery_engine::{
    Artifact, CallDetail, CallId, Disposition, EventKind, LoopId, SessionId, Timestamp,
    ToolCall as EngineCall, ToolControl, ToolEnvelope,
};
use turnery_tools::UpdatePlan;

/// Calls that have not ended, by id.
#[derive(Debug, Default)]
pub(crate) struct ToolCallsV1(HashMap<CallId, OpenCallV1>);

#[derive(Debug)]
struct OpenCallV1 {
    request: EngineCall,
    detail: CallDetail,
    /// Latest progress text.
    progress: Option<String>,
    preview: OutputPreview,
    /// Child session that works for the call.
    child_session: Option<SessionId>,
}

/// End of a call.
#[derive(Debug)]
pub(crate) struct CallEndV1<'a> {
    envelope: &'a ToolEnvelope,
    disposition: Disposition,
    child_loop_id: Option<&'a LoopId>,
}

impl<'a> CallEndV1<'a> {
    /// Extracts the end of a call from a `ToolExecutionEnd` event.
    pub(crate) fn from_event(kind: &'a EventKind) -> Option<Self> {
        let EventKind::ToolExecutionEnd {
            envelope,
            disposition,
            child_loop_id,
            ..
        } = kind
        else {
            return None;
        };
        Some(Self {
            envelope,
            disposition: *disposition,
            child_loop_id: child_loop_id.as_ref(),
        })
    }
}

impl ToolCallsV1 {
    /// Registers a call without sending anything: replayed calls are shown when they end. Plan calls are
    /// omitted, since the plan has its own update (PLAN-2).
    pub(crate) fn register(&mut self, request: &EngineCall, detail: &CallDetail) {
        if request.name == UpdatePlan::NAME {
            return;
        }
        let call = OpenCallV1 {
            request: request.clone(),
            detail: detail.clone(),
            progress: None,
            preview: OutputPreview::default(),
            child_session: None,
        };
        self.0.insert(request.call_id.clone(), call);
    }

    /// Encodes the first update of a call (TOOL-1, TOOL-10).
    pub(crate) fn encode_call(&self, id: &CallId) -> Option<SessionUpdate> {
        let call = self.0.get(id)?;
        Some(SessionUpdate::ToolCall(call.to_tool_call()))
    }

    /// Encodes the start of execution (TOOL-3).
    pub(crate) fn encode_start(&self, id: &CallId) -> Option<SessionUpdate> {
        let fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
        self.0.contains_key(id).then(|| call_update(id, fields))
    }

    /// Updates how the call is shown; the update holds only changed fields (TOOL-5).
    pub(crate) fn update_detail(
        &mut self,
        id: &CallId,
        detail: &CallDetail,
    ) -> Option<SessionUpdate> {
        let call = self.0.get_mut(id)?;
        let before = &call.detail;
        let mut fields = ToolCallUpdateFields::new();
        if before.title != detail.title {
            fields = fields.title(tool_call::display_title(&detail.title, &call.request.name));
        }
        if before.kind != detail.kind {
            fields = fields.kind(tool_call_view::encode_kind(detail.kind));
        }
        if before.locations != detail.locations {
            fields = fields.locations(tool_call_view::encode_locations(&detail.locations));
        }
        if before.artifacts != detail.artifacts {
            fields = fields.content(tool_call_view::encode_artifacts(&detail.artifacts));
        }
        call.detail = detail.clone();
        (fields != ToolCallUpdateFields::new()).then(|| call_update(id, fields))
    }

    /// Appends output. Clients that show the terminal themselves get no preview.
    pub(crate) fn append_output(
        &mut self,
        id: &CallId,
        text: &str,
        at: Timestamp,
    ) -> Option<SessionUpdate> {
        let call = self.0.get_mut(id)?;
        let in_terminal = call.detail.artifacts.iter().any(is_terminal);
        if in_terminal || !call.preview.push(text, at) {
            return None;
        }
        Some(call_update(id, call.running_fields()))
    }

    /// Sets the progress text.
    pub(crate) fn set_progress(&mut self, id: &CallId, text: &str) -> Option<SessionUpdate> {
        let call = self.0.get_mut(id)?;
        call.progress = Some(text.to_owned());
        Some(call_update(id, call.running_fields()))
    }

    /// Sets the child session; reported once.
    pub(crate) fn set_child_session(
        &mut self,
        id: &CallId,
        child: &SessionId,
    ) -> Option<SessionUpdate> {
        let call = self.0.get_mut(id)?;
        if call.child_session.as_ref() == Some(child) {
            return None;
        }
        call.child_session = Some(child.clone());
        let update = ToolCallUpdate::new(id.to_string(), ToolCallUpdateFields::new());
        let update = update.meta(turnery_meta(json!({ "childSessionId": child })));
        Some(SessionUpdate::ToolCallUpdate(update))
    }

    /// Encodes the end of a call: `completed` or `failed`, never another status (TOOL-4, TOOL-11).
    pub(crate) fn encode_end(
        &mut self,
        id: &CallId,
        ended: &CallEndV1<'_>,
    ) -> Option<SessionUpdate> {
        let call = self.0.remove(id)?;
        let envelope = ended.envelope;
        let mut fields = ToolCallUpdateFields::new()
            .status(final_status(envelope))
            .content(call.final_content(ended));
        if !envelope.locations.is_empty() && envelope.locations != call.detail.locations {
            fields = fields.locations(tool_call_view::encode_locations(&envelope.locations));
        }
        let fields = fields.raw_output(raw_output(envelope));
        let update = ToolCallUpdate::new(id.to_string(), fields).meta(call.final_meta(ended));
        Some(SessionUpdate::ToolCallUpdate(update))
    }

    /// Encodes a stored call in its final state (LOAD-7). Its terminal no longer exists (TOOL-9); its output
    /// is in the result.
    pub(crate) fn encode_replayed(
        &mut self,
        id: &CallId,
        ended: &CallEndV1<'_>,
    ) -> Option<SessionUpdate> {
        let mut call = self.0.remove(id)?;
        call.remove_terminals();
        let mut envelope = ended.envelope.clone();
        envelope.artifacts.retain(|artifact| !is_terminal(artifact));
        if !envelope.locations.is_empty() {
            call.detail.locations.clone_from(&envelope.locations);
        }
        let ended = CallEndV1 {
            envelope: &envelope,
            ..*ended
        };
        Some(SessionUpdate::ToolCall(
            call.to_tool_call()
                .status(final_status(&envelope))
                .content(call.final_content(&ended))
                .raw_output(raw_output(&envelope))
                .meta(call.final_meta(&ended)),
        ))
    }

    /// Encodes stored calls that never ended as failed; they must not appear to run (LOAD-7, CANCEL-10).
    pub(crate) fn drain_unfinished(&mut self) -> Vec<SessionUpdate> {
        let mut calls: Vec<OpenCallV1> = self.0.drain().map(|(_, call)| call).collect();
        calls.iter_mut().for_each(OpenCallV1::remove_terminals);
        calls.sort_by(|a, b| a.request.call_id.cmp(&b.request.call_id));
        calls
            .iter()
            .map(|call| SessionUpdate::ToolCall(call.to_tool_call().status(ToolCallStatus::Failed)))
            .collect()
    }
}

impl OpenCallV1 {
    fn remove_terminals(&mut self) {
        self.detail
            .artifacts
            .retain(|artifact| !is_terminal(artifact));
    }

    fn to_tool_call(&self) -> ToolCall {
        let title = tool_call::display_title(&self.detail.title, &self.request.name);
        ToolCall::new(self.request.call_id.to_string(), title)
            .name(self.request.name.clone())
            .kind(tool_call_view::encode_kind(self.detail.kind))
            .content(tool_call_view::encode_artifacts(&self.detail.artifacts))
            .locations(tool_call_view::encode_locations(&self.detail.locations))
            .raw_input(tool_call::raw_value(&self.request.args))
    }

    /// Returns the content of a running call: its artifacts, progress text and output preview.
    fn running_fields(&self) -> ToolCallUpdateFields {
        let mut content = tool_call_view::encode_artifacts(&self.detail.artifacts);
        if let Some(progress) = &self.progress {
            content.push(tool_call_view::text_block(progress).into());
        }
        let printed = self.preview.text();
        if !printed.is_empty() && !self.detail.artifacts.iter().any(is_terminal) {
            content.push(tool_call_view::text_block(&code_fence::fence_output(&printed)).into());
        }
        ToolCallUpdateFields::new().content(content)
    }

    /// Returns the content of an ended call: the tool's artifacts, else its result; a terminal stays visible.
    /// A cancellation is always stated, since v1 has no status for it (C-24).
    fn final_content(&self, ended: &CallEndV1<'_>) -> Vec<ToolCallContent> {
        let envelope = ended.envelope;
        let own = !envelope.artifacts.is_empty();
        let mut content = if own {
            tool_call_view::encode_artifacts(&envelope.artifacts)
        } else {
            let kept = self.detail.artifacts.iter();
            let kept: Vec<_> = kept.filter(|item| is_terminal(item)).cloned().collect();
            tool_call_view::encode_artifacts(&kept)
        };
        match &envelope.result {
            Ok(result) if content.is_empty() => {
                content = tool_call_view::encode_result(result, self.detail.kind);
            }
            Ok(_) => {}
            Err(failure) if !own => {
                content.push(tool_call_view::text_block(&failure.message).into())
            }
            Err(_) => {}
        }
        let failure = envelope.result.as_ref().err();
        let says_so = !own && failure.is_some_and(|failure| failure.message.contains("cancelled"));
        if ended.disposition == Disposition::Cancelled && !says_so {
            content.push(tool_call_view::text_block("cancelled").into());
        }
        content
    }

    /// Returns facts that v1 has no field for.
    fn final_meta(&self, ended: &CallEndV1<'_>) -> Option<Meta> {
        let mut members = serde_json::Map::new();
        if ended.disposition != Disposition::Executed {
            members.insert("disposition".to_owned(), json!(ended.disposition));
        }
        if let Some(child) = ended.child_loop_id {
            members.insert("childLoopId".to_owned(), json!(child));
        }
        let session = ended.child_loop_id.map(LoopId::session_id);
        if let Some(session) = session.as_ref().or(self.child_session.as_ref()) {
            members.insert("childSessionId".to_owned(), json!(session));
        }
        (!members.is_empty()).then(|| turnery_meta(Value::Object(members)))
    }
}

fn is_terminal(artifact: &Artifact) -> bool {
    match artifact {
        Artifact::Terminal { .. } => true,
        Artifact::Content(_) | Artifact::Diff { .. } => false,
    }
}

/// Returns the final status. A call that ends its loop with an error has failed, whatever else it reports (row
/// 15).
fn final_status(envelope: &ToolEnvelope) -> ToolCallStatus {
    let fatal = match envelope.control.as_deref() {
        Some(ToolControl::Fail | ToolControl::FailWith(_)) => true,
        Some(
            ToolControl::Finish(_)
            | ToolControl::Submit(_)
            | ToolControl::SubmitError(_)
            | ToolControl::SwitchFrame { .. },
        )
        | None => false,
    };
    match fatal || envelope.result.is_err() {
        true => ToolCallStatus::Failed,
        false => ToolCallStatus::Completed,
    }
}

fn raw_output(envelope: &ToolEnvelope) -> Option<Value> {
    match (&envelope.value, &envelope.result) {
        (Some(value), _) => tool_call::raw_value(value),
        (None, Err(failure)) => Some(json!({ "error": failure })),
        (None, Ok(_)) => None,
    }
}

fn call_update(id: &CallId, fields: ToolCallUpdateFields) -> SessionUpdate {
    SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id.to_string(), fields))
}
