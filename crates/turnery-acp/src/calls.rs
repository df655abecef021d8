//! Calls: the tool calls of the running loop, as the client has been told of them.

use crate::{preview::Preview, shown};
use agent_client_protocol_schema::v1::{
    SessionUpdate, ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use serde_json::{Value, json};
use std::collections::HashMap;
use turnery_engine::{
    Artifact, CallDetail, CallId, Timestamp, ToolCall as EngineCall, ToolEnvelope,
};

/// The calls that have not ended.
#[derive(Debug, Default)]
pub(crate) struct Calls(HashMap<CallId, Call>);

#[derive(Debug)]
struct Call {
    asked: EngineCall,
    detail: CallDetail,
    preview: Preview,
}

impl Calls {
    /// The model asked for a call. Nothing is sent yet: a replayed call is shown when it has ended.
    pub(crate) fn begin(&mut self, asked: &EngineCall, detail: &CallDetail) {
        let call = Call {
            asked: asked.clone(),
            detail: detail.clone(),
            preview: Preview::default(),
        };
        self.0.insert(asked.call_id.clone(), call);
    }

    /// The first report of a call (TOOL-1, TOOL-10).
    pub(crate) fn announce(&self, id: &CallId) -> Option<SessionUpdate> {
        let call = self.0.get(id)?;
        Some(SessionUpdate::ToolCall(call.announced()))
    }

    /// The call really begins (TOOL-3).
    pub(crate) fn running(id: &CallId) -> SessionUpdate {
        update(
            id,
            ToolCallUpdateFields::new().status(ToolCallStatus::InProgress),
        )
    }

    /// The call is to be shown in another way; only what has changed is said (TOOL-5).
    pub(crate) fn shows(&mut self, id: &CallId, detail: &CallDetail) -> Option<SessionUpdate> {
        let call = self.0.get_mut(id)?;
        let before = &call.detail;
        let mut fields = ToolCallUpdateFields::new();
        if before.title != detail.title {
            fields = fields.title(detail.title.clone());
        }
        if before.kind != detail.kind {
            fields = fields.kind(shown::kind(detail.kind));
        }
        if before.locations != detail.locations {
            fields = fields.locations(shown::locations(&detail.locations));
        }
        if before.artifacts != detail.artifacts {
            fields = fields.content(shown::artifacts(&detail.artifacts));
        }
        call.detail = detail.clone();
        (fields != ToolCallUpdateFields::new()).then(|| update(id, fields))
    }

    /// The call printed something. A client that shows the terminal itself needs no preview.
    pub(crate) fn printed(
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
        let mut content = shown::artifacts(&call.detail.artifacts);
        content.push(shown::text_block(&shown::fenced(&call.preview.text())).into());
        Some(update(id, ToolCallUpdateFields::new().content(content)))
    }

    /// The call has ended: `completed` or `failed`, never anything else (TOOL-4, TOOL-11).
    pub(crate) fn end(&mut self, id: &CallId, envelope: &ToolEnvelope) -> Option<SessionUpdate> {
        let call = self.0.remove(id)?;
        let mut fields = ToolCallUpdateFields::new()
            .status(status(envelope))
            .content(call.final_content(envelope));
        if !envelope.locations.is_empty() && envelope.locations != call.detail.locations {
            fields = fields.locations(shown::locations(&envelope.locations));
        }
        Some(update(id, fields.raw_output(raw_output(envelope))))
    }

    /// A call of an earlier time, in its final state (LOAD-7). Its terminal is long gone (TOOL-9): what
    /// was printed there is in the result.
    pub(crate) fn replayed(
        &mut self,
        id: &CallId,
        envelope: &ToolEnvelope,
    ) -> Option<SessionUpdate> {
        let mut call = self.0.remove(id)?;
        call.forget_terminals();
        let mut envelope = envelope.clone();
        envelope.artifacts.retain(|artifact| !is_terminal(artifact));
        if !envelope.locations.is_empty() {
            call.detail.locations.clone_from(&envelope.locations);
        }
        let content = call.final_content(&envelope);
        Some(SessionUpdate::ToolCall(
            call.announced()
                .status(status(&envelope))
                .content(content)
                .raw_output(raw_output(&envelope)),
        ))
    }

    /// What an earlier time left unfinished: it must not look as if it ran (LOAD-7, CANCEL-10).
    pub(crate) fn unfinished(&mut self) -> Vec<SessionUpdate> {
        let mut calls: Vec<Call> = self.0.drain().map(|(_, call)| call).collect();
        calls.iter_mut().for_each(Call::forget_terminals);
        calls.sort_by(|a, b| a.asked.call_id.cmp(&b.asked.call_id));
        calls
            .iter()
            .map(|call| SessionUpdate::ToolCall(call.announced().status(ToolCallStatus::Failed)))
            .collect()
    }
}

impl Call {
    fn forget_terminals(&mut self) {
        self.detail
            .artifacts
            .retain(|artifact| !is_terminal(artifact));
    }

    fn announced(&self) -> ToolCall {
        let title = match self.detail.title.as_str() {
            "" => self.asked.name.clone(),
            title => title.to_owned(),
        };
        ToolCall::new(self.asked.call_id.to_string(), title)
            .name(self.asked.name.clone())
            .kind(shown::kind(self.detail.kind))
            .content(shown::artifacts(&self.detail.artifacts))
            .locations(shown::locations(&self.detail.locations))
            .raw_input(shown::raw(&self.asked.args))
    }

    /// What the tool wants shown, else its result; a terminal stays in view.
    fn final_content(&self, envelope: &ToolEnvelope) -> Vec<ToolCallContent> {
        if !envelope.artifacts.is_empty() {
            return shown::artifacts(&envelope.artifacts);
        }
        let terminals: Vec<Artifact> = self
            .detail
            .artifacts
            .iter()
            .filter(|artifact| is_terminal(artifact))
            .cloned()
            .collect();
        let mut content = shown::artifacts(&terminals);
        match &envelope.result {
            Ok(_) if !content.is_empty() => {}
            Ok(result) => content.extend(shown::result(result, self.detail.kind)),
            Err(failure) => content.push(shown::text_block(&failure.message).into()),
        }
        content
    }
}

fn is_terminal(artifact: &Artifact) -> bool {
    match artifact {
        Artifact::Terminal { .. } => true,
        Artifact::Content(_) | Artifact::Diff { .. } => false,
    }
}

fn status(envelope: &ToolEnvelope) -> ToolCallStatus {
    match envelope.result {
        Ok(_) => ToolCallStatus::Completed,
        Err(_) => ToolCallStatus::Failed,
    }
}

fn raw_output(envelope: &ToolEnvelope) -> Option<Value> {
    match (&envelope.value, &envelope.result) {
        (Some(value), _) => shown::raw(value),
        (None, Err(failure)) => Some(json!({ "error": failure })),
        (None, Ok(_)) => None,
    }
}

fn update(id: &CallId, fields: ToolCallUpdateFields) -> SessionUpdate {
    SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id.to_string(), fields))
}
