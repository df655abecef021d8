//! Calls: the tool calls of the running loop, as upserts (V2-12). What is not said stays as it is.

use super::{shown, terminal};
use crate::{
    news::meta,
    shown::{raw, title},
    update::UpdateWriter,
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

/// The calls that have not ended.
#[derive(Debug, Default)]
pub(super) struct Calls(HashMap<CallId, Call>);

#[derive(Debug)]
struct Call {
    asked: ToolCall,
    detail: CallDetail,
    /// How far it says it is.
    progress: Option<String>,
    runs: bool,
    terminal: Option<terminal::Shown>,
    /// The session that works for it.
    child: Option<SessionId>,
}

/// How a call ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended<'a> {
    pub(super) envelope: &'a ToolEnvelope,
    pub(super) disposition: Disposition,
    pub(super) child_loop_id: Option<&'a LoopId>,
}

impl Calls {
    /// The model asked for a call. Nothing is sent yet: a replayed call is shown when it has ended. A plan is
    /// shown as a plan only, so its call is left out.
    pub(super) fn begin(&mut self, asked: &ToolCall, detail: &CallDetail) {
        if asked.name == UpdatePlan::NAME {
            return;
        }
        let call = Call {
            asked: asked.clone(),
            detail: detail.clone(),
            progress: None,
            runs: false,
            terminal: None,
            child: None,
        };
        self.0.insert(asked.call_id.clone(), call);
    }

    /// The first report of a call.
    pub(super) fn announce(&self, id: &CallId, to: &mut UpdateWriter) {
        if let Some(call) = self.0.get(id) {
            say(call.announced().status(ToolCallStatus::Pending), to);
        }
    }

    /// Whether the client is told of this call, and it has not ended.
    pub(super) fn has(&self, id: &CallId) -> bool {
        self.0.contains_key(id)
    }

    /// The call really begins.
    pub(super) fn running(&mut self, id: &CallId, to: &mut UpdateWriter) {
        if let Some(call) = self.0.get_mut(id) {
            call.runs = true;
            say(patch(id).status(ToolCallStatus::InProgress), to);
        }
    }

    /// The call is to be shown in another way; only what has changed is said, and a list that has
    /// become empty is cleared.
    pub(super) fn shows(&mut self, id: &CallId, detail: &CallDetail, to: &mut UpdateWriter) {
        let Some(call) = self.0.get_mut(id) else {
            return;
        };
        let before = std::mem::replace(&mut call.detail, detail.clone());
        let mut update = patch(id);
        if before.title != detail.title {
            update = update.title(call.title());
        }
        if before.kind != detail.kind {
            update = update.kind(shown::kind(detail.kind));
        }
        if before.locations != detail.locations {
            update = update.locations(shown::locations(&detail.locations));
        }
        if before.artifacts != detail.artifacts {
            update = update.content(call.under_way());
        }
        if update != patch(id) {
            say(update, to);
        }
    }

    /// The same, for a time that is over: nothing is said until the call's end.
    pub(super) fn showed(&mut self, id: &CallId, detail: &CallDetail) {
        if let Some(call) = self.0.get_mut(id) {
            call.detail = detail.clone();
        }
    }

    /// The call printed something: into a terminal of its own, which is opened for the first of it.
    pub(super) fn printed(&mut self, id: &CallId, text: &str, to: &mut UpdateWriter) {
        let Some(call) = self.0.get_mut(id) else {
            return;
        };
        if call.terminal.is_none() {
            let command = call.asked.args.get("command").and_then(Value::as_str);
            call.terminal = Some(terminal::Shown::open(id, command, to));
            say(patch(id).content(call.under_way()), to);
        }
        if let Some(terminal) = &call.terminal {
            terminal.printed(text, to);
        }
    }

    /// The call says how far it is.
    pub(super) fn progressed(&mut self, id: &CallId, text: &str, to: &mut UpdateWriter) {
        if let Some(call) = self.0.get_mut(id) {
            call.progress = Some(text.to_owned());
            say(patch(id).content(call.under_way()), to);
        }
    }

    /// Another session works for the call. True the first time.
    pub(super) fn has_child(&mut self, id: &CallId, child: &SessionId) -> bool {
        self.0
            .get_mut(id)
            .is_some_and(|call| call.child.replace(child.clone()).as_ref() != Some(child))
    }

    /// The call has ended: in a final status, which says all there is to say of how (V2-12). True if
    /// it ran.
    pub(super) fn end(&mut self, id: &CallId, ended: Ended<'_>, to: &mut UpdateWriter) -> bool {
        let Some(call) = self.0.remove(id) else {
            return false;
        };
        if let Some(terminal) = &call.terminal {
            terminal.exited(ended.envelope, to);
        }
        say(call.finished(patch(id), ended), to);
        call.runs
    }

    /// A call of an earlier time, whole, in its final state. Its terminal is gone: what was printed
    /// there is in the result.
    pub(super) fn replayed(&mut self, id: &CallId, ended: Ended<'_>, to: &mut UpdateWriter) {
        if let Some(call) = self.0.remove(id) {
            say(call.finished(call.announced(), ended), to);
        }
    }

    /// What an earlier time left unfinished: it must not look as if it ran.
    pub(super) fn unfinished(&mut self, to: &mut UpdateWriter) {
        let mut calls: Vec<Call> = self.0.drain().map(|(_, call)| call).collect();
        calls.sort_by(|a, b| a.asked.call_id.cmp(&b.asked.call_id));
        for call in calls {
            say(call.announced().status(ToolCallStatus::Failed), to);
        }
    }
}

impl Call {
    fn title(&self) -> String {
        title(&self.detail.title, &self.asked.name)
    }

    fn announced(&self) -> ToolCallUpdate {
        let mut update = patch(&self.asked.call_id)
            .name(self.asked.name.clone())
            .title(self.title())
            .kind(shown::kind(self.detail.kind));
        let content = shown::artifacts(&self.detail.artifacts);
        if !content.is_empty() {
            update = update.content(content);
        }
        if !self.detail.locations.is_empty() {
            update = update.locations(shown::locations(&self.detail.locations));
        }
        match raw(&self.asked.args) {
            Some(args) => update.raw_input(args),
            None => update,
        }
    }

    /// What a running call has to show: its own, how far it is, its terminal.
    fn under_way(&self) -> Vec<ToolCallContent> {
        let mut content = shown::artifacts(&self.detail.artifacts);
        if let Some(progress) = &self.progress {
            content.push(shown::text_block(progress.as_str()).into());
        }
        content.extend(self.terminal.as_ref().map(terminal::Shown::content));
        content
    }

    fn finished(&self, update: ToolCallUpdate, ended: Ended<'_>) -> ToolCallUpdate {
        let mut update = update.status(status(ended)).content(self.result(ended));
        let locations = &ended.envelope.locations;
        if !locations.is_empty() && *locations != self.detail.locations {
            update = update.locations(shown::locations(locations));
        }
        if let Some(output) = raw_output(ended.envelope) {
            update = update.raw_output(output);
        }
        match self.meta(ended) {
            Some(meta) => update.meta(meta),
            None => update,
        }
    }

    /// What the tool wants shown, and its terminal; else its result. A failure is always said.
    fn result(&self, ended: Ended<'_>) -> Vec<ToolCallContent> {
        let artifacts = &ended.envelope.artifacts;
        let mut content = shown::artifacts(artifacts);
        let own = artifacts.iter().any(|it| !is_terminal(it));
        content.extend(self.terminal.as_ref().map(terminal::Shown::content));
        match &ended.envelope.result {
            Ok(result) if content.is_empty() => content = shown::result(result, self.detail.kind),
            Ok(_) => {}
            Err(_) if own => {}
            // What was printed is in the terminal already; how it ended is the last line.
            Err(failure) => {
                let said = match &self.terminal {
                    Some(_) => failure.message.lines().next_back().unwrap_or_default(),
                    None => &failure.message,
                };
                content.push(shown::text_block(said).into());
            }
        }
        content
    }

    /// What the wire has no word for.
    fn meta(&self, ended: Ended<'_>) -> Option<Meta> {
        let mut told = Map::new();
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

/// A call that ends its loop with an error has failed too, whatever it says besides.
fn status(ended: Ended<'_>) -> ToolCallStatus {
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
        (Some(value), _) => raw(value),
        (None, Err(failure)) => Some(json!({ "error": failure })),
        (None, Ok(_)) => None,
    }
}

fn patch(id: &CallId) -> ToolCallUpdate {
    ToolCallUpdate::new(id.as_str())
}

fn say(update: ToolCallUpdate, to: &mut UpdateWriter) {
    to.update(&SessionUpdate::ToolCallUpdate(update));
}

/// Only its metadata: which session works for a call.
pub(super) fn child_of(id: &CallId, child: &SessionId, to: &mut UpdateWriter) {
    say(patch(id).meta(meta(json!({ "childSessionId": child }))), to);
}
