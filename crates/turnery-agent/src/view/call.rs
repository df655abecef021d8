//! Tracks the tool calls of the running loop.

use super::ViewChange;
use std::{borrow::Cow, collections::HashMap};
use turnery_engine::{
    Artifact, CallDetail, CallId, Disposition, EventKind, Location, LoopId, SessionId, ToolCall,
    ToolControl, ToolEnvelope,
};

/// Tool call that is being shown.
#[derive(Debug)]
pub struct CallView {
    /// Request of the model.
    pub request: ToolCall,
    /// Title, kind, locations and artifacts.
    pub detail: CallDetail,
    /// Latest progress text.
    pub progress: Option<String>,
    /// True once the call runs.
    pub is_running: bool,
    /// Child session that works for the call.
    pub child_session: Option<SessionId>,
}

/// End of a call.
#[derive(Clone, Copy, Debug)]
pub struct CallEnd<'a> {
    /// Result of the call.
    pub envelope: &'a ToolEnvelope,
    /// How the call ended.
    pub disposition: Disposition,
    /// Loop that the call ran in a child session.
    pub child_loop_id: Option<&'a LoopId>,
}

/// Calls that have not ended, by id.
#[derive(Debug, Default)]
pub(super) struct OpenCalls(HashMap<CallId, CallView>);

impl OpenCalls {
    pub(super) fn insert(&mut self, request: &ToolCall, detail: &CallDetail) -> &CallView {
        let call = CallView {
            request: request.clone(),
            detail: detail.clone(),
            progress: None,
            is_running: false,
            child_session: None,
        };
        let entry = self.0.entry(request.call_id.clone());
        entry.insert_entry(call).into_mut()
    }

    pub(super) fn get_mut(&mut self, id: &CallId) -> Option<&mut CallView> {
        self.0.get_mut(id)
    }

    /// Removes the call that an event ends.
    pub(super) fn end<'a>(&mut self, kind: &'a EventKind) -> Option<(CallView, CallEnd<'a>)> {
        let EventKind::ToolExecutionEnd {
            call_id,
            envelope,
            disposition,
            child_loop_id,
            ..
        } = kind
        else {
            return None;
        };
        let end = CallEnd {
            envelope,
            disposition: *disposition,
            child_loop_id: child_loop_id.as_ref(),
        };
        Some((self.0.remove(call_id)?, end))
    }

    /// Replaces the details of a call and shows the change.
    pub(super) fn show_detail(
        &mut self,
        id: &CallId,
        detail: &CallDetail,
        show: &mut impl FnMut(ViewChange<'_>),
    ) {
        if let Some(call) = self.0.get_mut(id) {
            let before = &std::mem::replace(&mut call.detail, detail.clone());
            show(ViewChange::CallChanged { call, before });
        }
    }

    /// Sets the child session of a call; returns the call if the child session is new.
    pub(super) fn set_child_session(
        &mut self,
        id: &CallId,
        child: &SessionId,
    ) -> Option<&CallView> {
        let call = self.0.get_mut(id)?;
        if call.child_session.as_ref() == Some(child) {
            return None;
        }
        call.child_session = Some(child.clone());
        Some(call)
    }

    /// Shows stored calls that never ended; they must not appear to run (LOAD-7, CANCEL-10).
    pub(super) fn show_unfinished(&mut self, show: &mut impl FnMut(ViewChange<'_>)) {
        let mut calls: Vec<CallView> = self.0.drain().map(|(_, call)| call).collect();
        calls.sort_by(|a, b| a.request.call_id.cmp(&b.request.call_id));
        for mut call in calls {
            call.remove_terminals();
            let call = &call;
            show(ViewChange::CallStored { call, end: None });
        }
    }
}

impl CallView {
    /// Returns the id of the call.
    #[must_use]
    pub fn id(&self) -> &CallId {
        &self.request.call_id
    }

    /// Returns the title, or the tool's name if the title is empty.
    #[must_use]
    pub fn title(&self) -> &str {
        match self.detail.title.as_str() {
            "" => &self.request.name,
            title => title,
        }
    }

    /// Returns true if the call itself is shown. A change of the plan is shown as [`ViewChange::Plan`] instead
    /// (PLAN-2).
    #[must_use]
    pub fn is_shown(&self) -> bool {
        turnery_tools::is_shown(&self.request.name)
    }

    /// Returns true if the client shows the output of the call in a terminal of its own.
    #[must_use]
    pub fn has_client_terminal(&self) -> bool {
        self.client_terminals().next().is_some()
    }

    /// Returns the terminals of the client that show the output of the call.
    pub fn client_terminals(&self) -> impl Iterator<Item = &Artifact> {
        let artifacts = self.detail.artifacts.iter();
        artifacts.filter(|artifact| is_terminal(artifact))
    }

    /// Shows a stored call in its final state (LOAD-7). Its terminal no longer exists (TOOL-9); its output is in
    /// the result.
    pub(super) fn show_stored(mut self, end: CallEnd<'_>, show: &mut impl FnMut(ViewChange<'_>)) {
        self.remove_terminals();
        let mut envelope = Cow::Borrowed(end.envelope);
        if envelope.artifacts.iter().any(is_terminal) {
            let artifacts = &mut envelope.to_mut().artifacts;
            artifacts.retain(|artifact| !is_terminal(artifact));
        }
        if let Some(locations) = end.changed_locations(&self) {
            self.detail.locations = locations.to_owned();
        }
        let envelope = &envelope;
        show(ViewChange::CallStored {
            call: &self,
            end: Some(CallEnd { envelope, ..end }),
        });
    }

    fn remove_terminals(&mut self) {
        self.detail
            .artifacts
            .retain(|artifact| !is_terminal(artifact));
    }
}

impl<'a> CallEnd<'a> {
    /// Returns true if the call failed. A call that ends its loop with an error has failed, whatever else it
    /// reports.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        let is_fatal = match self.envelope.control.as_deref() {
            Some(ToolControl::Fail | ToolControl::FailWith(_)) => true,
            Some(
                ToolControl::Finish(_)
                | ToolControl::Submit(_)
                | ToolControl::SubmitError(_)
                | ToolControl::SwitchFrame { .. },
            )
            | None => false,
        };
        is_fatal || self.envelope.result.is_err()
    }

    /// Returns true if the result has artifacts besides terminals of the client.
    #[must_use]
    pub fn has_own_artifacts(&self) -> bool {
        self.envelope.artifacts.iter().any(|it| !is_terminal(it))
    }

    /// Returns the locations that the result reports, if they differ from those shown.
    #[must_use]
    pub fn changed_locations(&self, call: &CallView) -> Option<&'a [Location]> {
        let locations = &self.envelope.locations;
        let is_changed = !locations.is_empty() && *locations != call.detail.locations;
        is_changed.then_some(locations)
    }
}

fn is_terminal(artifact: &Artifact) -> bool {
    match artifact {
        Artifact::Terminal { .. } => true,
        Artifact::Content(_) | Artifact::Diff { .. } => false,
    }
}
