//! Tracks the tool calls of the running loop and encodes them as upserts (V2-12). Omitted fields keep their
//! values.

use super::{call_terminal, tool_call_view};
use crate::{
    transport::update_writer::UpdateWriter,
    view::{
        meta::turnery_meta,
        tool_call::{display_title, raw_value},
    },
};
use agent_client_protocol_schema::v2::{
    Meta, SessionUpdate, ToolCallContent, ToolCallStatus, ToolCallUpdate,
};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use turnery_engine::{
    Artifact, CallDetail, CallId, Disposition, LoopId, SessionId, ToolCall, ToolControl,
    ToolEnvelope,
};
use turnery_tools::UpdatePlan;

/// Calls that have not ended, by id.
#[derive(Debug, Default)]
pub(super) struct ToolCallsV2(HashMap<CallId, OpenCallV2>);

#[derive(Debug)]
struct OpenCallV2 {
    request: ToolCall,
    detail: CallDetail,
    /// Latest progress text.
    progress: Option<String>,
    is_running: bool,
    terminal: Option<call_terminal::CallTerminal>,
    /// Child session that works for the call.
    child_session: Option<SessionId>,
}

/// End of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallEndV2<'a> {
    pub(super) envelope: &'a ToolEnvelope,
    pub(super) disposition: Disposition,
    pub(super) child_loop_id: Option<&'a LoopId>,
}

impl ToolCallsV2 {
    /// Registers a call without sending anything: replayed calls are shown when they end. Plan calls are
    /// omitted, since the plan has its own update.
    pub(super) fn register(&mut self, request: &ToolCall, detail: &CallDetail) {
        if request.name == UpdatePlan::NAME {
            return;
        }
        let call = OpenCallV2 {
            request: request.clone(),
            detail: detail.clone(),
            progress: None,
            is_running: false,
            terminal: None,
            child_session: None,
        };
        self.0.insert(request.call_id.clone(), call);
    }

    /// Writes the first update of a call.
    pub(super) fn encode_call(&self, id: &CallId, to: &mut UpdateWriter) {
        if let Some(call) = self.0.get(id) {
            write_update(call.to_update().status(ToolCallStatus::Pending), to);
        }
    }

    /// Returns true if the call is registered and has not ended.
    pub(super) fn contains(&self, id: &CallId) -> bool {
        self.0.contains_key(id)
    }

    /// Writes the start of execution.
    pub(super) fn encode_start(&mut self, id: &CallId, to: &mut UpdateWriter) {
        if let Some(call) = self.0.get_mut(id) {
            call.is_running = true;
            write_update(empty_update(id).status(ToolCallStatus::InProgress), to);
        }
    }

    /// Updates how the call is shown. The update holds only changed fields; a list that became empty is
    /// cleared.
    pub(super) fn update_detail(
        &mut self,
        id: &CallId,
        detail: &CallDetail,
        to: &mut UpdateWriter,
    ) {
        let Some(call) = self.0.get_mut(id) else {
            return;
        };
        let before = std::mem::replace(&mut call.detail, detail.clone());
        let mut update = empty_update(id);
        if before.title != detail.title {
            update = update.title(call.display_title());
        }
        if before.kind != detail.kind {
            update = update.kind(tool_call_view::encode_kind(detail.kind));
        }
        if before.locations != detail.locations {
            update = update.locations(tool_call_view::encode_locations(&detail.locations));
        }
        if before.artifacts != detail.artifacts {
            update = update.content(call.running_content());
        }
        if update != empty_update(id) {
            write_update(update, to);
        }
    }

    /// Like `update_detail`, but for a stored call: nothing is sent before its end.
    pub(super) fn replay_detail(&mut self, id: &CallId, detail: &CallDetail) {
        if let Some(call) = self.0.get_mut(id) {
            call.detail = detail.clone();
        }
    }

    /// Writes output to the call's terminal, which the first output opens.
    pub(super) fn append_output(&mut self, id: &CallId, text: &str, to: &mut UpdateWriter) {
        let Some(call) = self.0.get_mut(id) else {
            return;
        };
        if call.terminal.is_none() {
            let command = call.request.args.get("command").and_then(Value::as_str);
            call.terminal = Some(call_terminal::CallTerminal::open(id, command, to));
            write_update(empty_update(id).content(call.running_content()), to);
        }
        if let Some(terminal) = &call.terminal {
            terminal.write_output(text, to);
        }
    }

    /// Sets the progress text.
    pub(super) fn set_progress(&mut self, id: &CallId, text: &str, to: &mut UpdateWriter) {
        if let Some(call) = self.0.get_mut(id) {
            call.progress = Some(text.to_owned());
            write_update(empty_update(id).content(call.running_content()), to);
        }
    }

    /// Sets the child session; returns true the first time.
    pub(super) fn set_child_session(&mut self, id: &CallId, child: &SessionId) -> bool {
        self.0
            .get_mut(id)
            .is_some_and(|call| call.child_session.replace(child.clone()).as_ref() != Some(child))
    }

    /// Writes the end of a call with its final status (V2-12). Returns true if the call ran.
    pub(super) fn encode_end(
        &mut self,
        id: &CallId,
        ended: CallEndV2<'_>,
        to: &mut UpdateWriter,
    ) -> bool {
        let Some(call) = self.0.remove(id) else {
            return false;
        };
        if let Some(terminal) = &call.terminal {
            terminal.write_exit(ended.envelope, to);
        }
        write_update(call.encode_final(empty_update(id), ended), to);
        call.is_running
    }

    /// Writes a stored call, whole, in its final state. Its terminal no longer exists; its output is in the
    /// result.
    pub(super) fn encode_replayed(
        &mut self,
        id: &CallId,
        ended: CallEndV2<'_>,
        to: &mut UpdateWriter,
    ) {
        if let Some(call) = self.0.remove(id) {
            write_update(call.encode_final(call.to_update(), ended), to);
        }
    }

    /// Writes stored calls that never ended as ended; they must not appear to run.
    pub(super) fn encode_unfinished(&mut self, to: &mut UpdateWriter) {
        let mut calls: Vec<OpenCallV2> = self.0.drain().map(|(_, call)| call).collect();
        calls.sort_by(|a, b| a.request.call_id.cmp(&b.request.call_id));
        for call in calls {
            write_update(call.to_update().status(ToolCallStatus::Failed), to);
        }
    }
}

impl OpenCallV2 {
    fn display_title(&self) -> String {
        display_title(&self.detail.title, &self.request.name)
    }

    fn to_update(&self) -> ToolCallUpdate {
        let mut update = empty_update(&self.request.call_id)
            .name(self.request.name.clone())
            .title(self.display_title())
            .kind(tool_call_view::encode_kind(self.detail.kind));
        let content = tool_call_view::encode_artifacts(&self.detail.artifacts);
        if !content.is_empty() {
            update = update.content(content);
        }
        if !self.detail.locations.is_empty() {
            update = update.locations(tool_call_view::encode_locations(&self.detail.locations));
        }
        match raw_value(&self.request.args) {
            Some(args) => update.raw_input(args),
            None => update,
        }
    }

    /// Returns the content of a running call: its artifacts, progress text and terminal.
    fn running_content(&self) -> Vec<ToolCallContent> {
        let mut content = tool_call_view::encode_artifacts(&self.detail.artifacts);
        if let Some(progress) = &self.progress {
            content.push(tool_call_view::text_block(progress.as_str()).into());
        }
        content.extend(
            self.terminal
                .as_ref()
                .map(call_terminal::CallTerminal::content),
        );
        content
    }

    fn encode_final(&self, update: ToolCallUpdate, ended: CallEndV2<'_>) -> ToolCallUpdate {
        let mut update = update
            .status(final_status(ended))
            .content(self.final_content(ended));
        let locations = &ended.envelope.locations;
        if !locations.is_empty() && *locations != self.detail.locations {
            update = update.locations(tool_call_view::encode_locations(locations));
        }
        if let Some(output) = raw_output(ended.envelope) {
            update = update.raw_output(output);
        }
        match self.final_meta(ended) {
            Some(meta) => update.meta(meta),
            None => update,
        }
    }

    /// Returns the content of an ended call: artifacts and terminal, else the result. A failure is always
    /// stated.
    fn final_content(&self, ended: CallEndV2<'_>) -> Vec<ToolCallContent> {
        let artifacts = &ended.envelope.artifacts;
        let mut content = tool_call_view::encode_artifacts(artifacts);
        let own = artifacts.iter().any(|it| !is_terminal(it));
        content.extend(
            self.terminal
                .as_ref()
                .map(call_terminal::CallTerminal::content),
        );
        match &ended.envelope.result {
            Ok(result) if content.is_empty() => {
                content = tool_call_view::encode_result(result, self.detail.kind)
            }
            Ok(_) => {}
            Err(_) if own => {}
            // The terminal already shows the output; the last line says how the command ended.
            Err(failure) => {
                let message = match &self.terminal {
                    Some(_) => failure.message.lines().next_back().unwrap_or_default(),
                    None => &failure.message,
                };
                content.push(tool_call_view::text_block(message).into());
            }
        }
        content
    }

    /// Returns facts that v2 has no field for.
    fn final_meta(&self, ended: CallEndV2<'_>) -> Option<Meta> {
        let mut members = Map::new();
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

/// Returns the final status. A call that ends its loop with an error has failed, whatever else it reports.
fn final_status(ended: CallEndV2<'_>) -> ToolCallStatus {
    let fatal = match ended.envelope.control.as_deref() {
        Some(ToolControl::Fail | ToolControl::FailWith(_)) => true,
        Some(
            ToolControl::Finish(_)
            | ToolControl::Submit(_)
            | ToolControl::SubmitError(_)
            | ToolControl::SwitchFrame { .. },
        )
        | None => false,
    };
    match ended.disposition {
        Disposition::Cancelled => ToolCallStatus::Cancelled,
        Disposition::Executed
        | Disposition::NotFound
        | Disposition::Invalid
        | Disposition::Denied
        | Disposition::Skipped
        | Disposition::TimedOut => match fatal || ended.envelope.result.is_err() {
            true => ToolCallStatus::Failed,
            false => ToolCallStatus::Completed,
        },
    }
}

fn raw_output(envelope: &ToolEnvelope) -> Option<Value> {
    match (&envelope.value, &envelope.result) {
        (Some(value), _) => raw_value(value),
        (None, Err(failure)) => Some(json!({ "error": failure })),
        (None, Ok(_)) => None,
    }
}

fn empty_update(id: &CallId) -> ToolCallUpdate {
    ToolCallUpdate::new(id.as_str())
}

fn write_update(update: ToolCallUpdate, to: &mut UpdateWriter) {
    to.write_update(&SessionUpdate::ToolCallUpdate(update));
}

/// Writes an update that holds only the child session of a call.
pub(super) fn write_child_session(id: &CallId, child: &SessionId, to: &mut UpdateWriter) {
    write_update(
        empty_update(id).meta(turnery_meta(json!({ "childSessionId": child }))),
        to,
    );
}
