//! Calls: the tool calls of the running loop, as the client has been told of them.

use crate::{news::meta, preview::Preview, shown};
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

/// The calls that have not ended.
#[derive(Debug, Default)]
pub(crate) struct Calls(HashMap<CallId, Call>);

#[derive(Debug)]
struct Call {
    asked: EngineCall,
    detail: CallDetail,
    /// How far it says it is.
    progress: Option<String>,
    preview: Preview,
    /// The session that works for it.
    child: Option<SessionId>,
}

/// How a call ended.
#[derive(Debug)]
pub(crate) struct Ended<'a> {
    envelope: &'a ToolEnvelope,
    disposition: Disposition,
    child_loop_id: Option<&'a LoopId>,
}

impl<'a> Ended<'a> {
    /// What a `ToolExecutionEnd` says.
    pub(crate) fn of(kind: &'a EventKind) -> Option<Self> {
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

impl Calls {
    /// The model asked for a call. Nothing is sent yet: a replayed call is shown when it has ended. A plan is
    /// shown as a plan only (PLAN-2), so its call is left out.
    pub(crate) fn begin(&mut self, asked: &EngineCall, detail: &CallDetail) {
        if asked.name == UpdatePlan::NAME {
            return;
        }
        let call = Call {
            asked: asked.clone(),
            detail: detail.clone(),
            progress: None,
            preview: Preview::default(),
            child: None,
        };
        self.0.insert(asked.call_id.clone(), call);
    }

    /// The first report of a call (TOOL-1, TOOL-10).
    pub(crate) fn announce(&self, id: &CallId) -> Option<SessionUpdate> {
        let call = self.0.get(id)?;
        Some(SessionUpdate::ToolCall(call.announced()))
    }

    /// The call really begins (TOOL-3).
    pub(crate) fn running(&self, id: &CallId) -> Option<SessionUpdate> {
        let fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
        self.0.contains_key(id).then(|| update(id, fields))
    }

    /// The call is to be shown in another way; only what has changed is said (TOOL-5).
    pub(crate) fn shows(&mut self, id: &CallId, detail: &CallDetail) -> Option<SessionUpdate> {
        let call = self.0.get_mut(id)?;
        let before = &call.detail;
        let mut fields = ToolCallUpdateFields::new();
        if before.title != detail.title {
            fields = fields.title(shown::title(&detail.title, &call.asked.name));
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
        Some(update(id, call.under_way()))
    }

    /// The call says how far it is.
    pub(crate) fn progressed(&mut self, id: &CallId, text: &str) -> Option<SessionUpdate> {
        let call = self.0.get_mut(id)?;
        call.progress = Some(text.to_owned());
        Some(update(id, call.under_way()))
    }

    /// Another session works for the call: told once.
    pub(crate) fn has_child(&mut self, id: &CallId, child: &SessionId) -> Option<SessionUpdate> {
        let call = self.0.get_mut(id)?;
        if call.child.as_ref() == Some(child) {
            return None;
        }
        call.child = Some(child.clone());
        let told = ToolCallUpdate::new(id.to_string(), ToolCallUpdateFields::new());
        let told = told.meta(meta(json!({ "childSessionId": child })));
        Some(SessionUpdate::ToolCallUpdate(told))
    }

    /// The call has ended: `completed` or `failed`, never anything else (TOOL-4, TOOL-11).
    pub(crate) fn end(&mut self, id: &CallId, ended: &Ended<'_>) -> Option<SessionUpdate> {
        let call = self.0.remove(id)?;
        let envelope = ended.envelope;
        let mut fields = ToolCallUpdateFields::new()
            .status(status(envelope))
            .content(call.final_content(ended));
        if !envelope.locations.is_empty() && envelope.locations != call.detail.locations {
            fields = fields.locations(shown::locations(&envelope.locations));
        }
        let fields = fields.raw_output(raw_output(envelope));
        let told = ToolCallUpdate::new(id.to_string(), fields).meta(call.final_meta(ended));
        Some(SessionUpdate::ToolCallUpdate(told))
    }

    /// A call of an earlier time, in its final state (LOAD-7). Its terminal is long gone (TOOL-9): what
    /// was printed there is in the result.
    pub(crate) fn replayed(&mut self, id: &CallId, ended: &Ended<'_>) -> Option<SessionUpdate> {
        let mut call = self.0.remove(id)?;
        call.forget_terminals();
        let mut envelope = ended.envelope.clone();
        envelope.artifacts.retain(|artifact| !is_terminal(artifact));
        if !envelope.locations.is_empty() {
            call.detail.locations.clone_from(&envelope.locations);
        }
        let ended = Ended {
            envelope: &envelope,
            ..*ended
        };
        Some(SessionUpdate::ToolCall(
            call.announced()
                .status(status(&envelope))
                .content(call.final_content(&ended))
                .raw_output(raw_output(&envelope))
                .meta(call.final_meta(&ended)),
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
        let title = shown::title(&self.detail.title, &self.asked.name);
        ToolCall::new(self.asked.call_id.to_string(), title)
            .name(self.asked.name.clone())
            .kind(shown::kind(self.detail.kind))
            .content(shown::artifacts(&self.detail.artifacts))
            .locations(shown::locations(&self.detail.locations))
            .raw_input(shown::raw(&self.asked.args))
    }

    /// What a running call has to show: its own, how far it is, what it printed.
    fn under_way(&self) -> ToolCallUpdateFields {
        let mut content = shown::artifacts(&self.detail.artifacts);
        if let Some(progress) = &self.progress {
            content.push(shown::text_block(progress).into());
        }
        let printed = self.preview.text();
        if !printed.is_empty() && !self.detail.artifacts.iter().any(is_terminal) {
            content.push(shown::text_block(&shown::fenced(&printed)).into());
        }
        ToolCallUpdateFields::new().content(content)
    }

    /// What the tool wants shown, else its result; a terminal stays in view. That a call was cancelled
    /// is always said: the wire has no status for it (C-24).
    fn final_content(&self, ended: &Ended<'_>) -> Vec<ToolCallContent> {
        let envelope = ended.envelope;
        let own = !envelope.artifacts.is_empty();
        let mut content = if own {
            shown::artifacts(&envelope.artifacts)
        } else {
            let kept = self.detail.artifacts.iter();
            let kept: Vec<_> = kept.filter(|item| is_terminal(item)).cloned().collect();
            shown::artifacts(&kept)
        };
        match &envelope.result {
            Ok(result) if content.is_empty() => {
                content = shown::result(result, self.detail.kind);
            }
            Ok(_) => {}
            Err(failure) if !own => content.push(shown::text_block(&failure.message).into()),
            Err(_) => {}
        }
        let failure = envelope.result.as_ref().err();
        let says_so = !own && failure.is_some_and(|failure| failure.message.contains("cancelled"));
        if ended.disposition == Disposition::Cancelled && !says_so {
            content.push(shown::text_block("cancelled").into());
        }
        content
    }

    /// What the wire has no word for.
    fn final_meta(&self, ended: &Ended<'_>) -> Option<Meta> {
        let mut told = serde_json::Map::new();
        if ended.disposition != Disposition::Executed {
            told.insert("disposition".to_owned(), json!(ended.disposition));
        }
        if let Some(child) = ended.child_loop_id {
            told.insert("childLoopId".to_owned(), json!(child));
        }
        let session = ended.child_loop_id.map(LoopId::session);
        if let Some(session) = session.as_ref().or(self.child.as_ref()) {
            told.insert("childSessionId".to_owned(), json!(session));
        }
        (!told.is_empty()).then(|| meta(Value::Object(told)))
    }
}

fn is_terminal(artifact: &Artifact) -> bool {
    match artifact {
        Artifact::Terminal { .. } => true,
        Artifact::Content(_) | Artifact::Diff { .. } => false,
    }
}

/// A call that ends its loop with an error has failed too, whatever it says besides (row 15).
fn status(envelope: &ToolEnvelope) -> ToolCallStatus {
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
        (Some(value), _) => shown::raw(value),
        (None, Err(failure)) => Some(json!({ "error": failure })),
        (None, Ok(_)) => None,
    }
}

fn update(id: &CallId, fields: ToolCallUpdateFields) -> SessionUpdate {
    SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id.to_string(), fields))
}
