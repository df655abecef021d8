//! Holds the work that a loop has requested and that is in progress: hooks, compaction, permission checks,
//! tools and the model.

use crate::{
    compactor::CompactionOutput,
    hooks::CombinedVerdict,
    session::{
        gate::{CallGate, GateResult},
        running_call::{RunningModel, RunningTool, StreamItem, ToolReport},
    },
};
use futures_util::future::BoxFuture;
use std::{
    collections::{HashMap, HashSet},
    task::{Context, Poll},
};
use turnery_engine::{CallId, ModelError, Response, ToolCall, ToolEnvelope};
use turnery_models::{ModelEvent, ToolChoice};
use turnery_tools::CommandLineLimits;

/// Work of a running loop. At most one hook, compaction, permission check and model call run at a time.
#[derive(Default)]
pub(super) struct RunningWork {
    pub(super) hook: Option<BoxFuture<'static, CombinedVerdict>>,
    pub(super) compaction: Option<BoxFuture<'static, CompactionOutput>>,
    pub(super) gate: Option<CallGate>,
    /// Limits of judged command lines that have not run yet.
    pub(super) line_limits: HashMap<CallId, CommandLineLimits>,
    /// Calls of which the user rejected a nested call.
    pub(super) rejected_parents: HashSet<CallId>,
    pub(super) tools: Vec<RunningTool>,
    /// Pending request for the API key that the next model call needs.
    pub(super) key_wait: Option<KeyWait>,
    pub(super) model: Option<RunningModel>,
}

/// Model call that waits for its API key.
pub(super) struct KeyWait {
    pub(super) tool_choice: ToolChoice,
    pub(super) settled: BoxFuture<'static, ()>,
}

/// Progress or end of some work.
pub(super) enum WorkEvent {
    HookEnded(CombinedVerdict),
    CompactionEnded(CompactionOutput),
    Gate(GateResult),
    /// The wait for a key is over; the call continues.
    KeyWaitEnded(ToolChoice),
    Tool(CallId, StreamItem<ToolReport, ToolEnvelope>),
    Model(StreamItem<ModelEvent, Result<Response, ModelError>>),
}

impl RunningWork {
    /// Returns true if the user rejected another call that the same call requested.
    pub(super) fn is_rejected_sibling(&self, call: &ToolCall) -> bool {
        let mut parents = call.parent_call_id.iter();
        parents.any(|parent| self.rejected_parents.contains(parent))
    }

    /// Polls everything in a fixed order. Tool and model output is read only if `has_room`.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, has_room: bool) -> Poll<WorkEvent> {
        if let Some(hook) = &mut self.hook
            && let Poll::Ready(verdict) = hook.as_mut().poll(cx)
        {
            self.hook = None;
            return Poll::Ready(WorkEvent::HookEnded(verdict));
        }
        if let Some(compaction) = &mut self.compaction
            && let Poll::Ready(output) = compaction.as_mut().poll(cx)
        {
            self.compaction = None;
            return Poll::Ready(WorkEvent::CompactionEnded(output));
        }
        if let Some(gate) = &mut self.gate
            && let Poll::Ready(result) = gate.poll(cx)
        {
            self.gate = None;
            return Poll::Ready(WorkEvent::Gate(result));
        }
        if let Some(wait) = &mut self.key_wait
            && wait.settled.as_mut().poll(cx).is_ready()
        {
            let tool_choice = wait.tool_choice;
            self.key_wait = None;
            return Poll::Ready(WorkEvent::KeyWaitEnded(tool_choice));
        }
        for place in 0..self.tools.len() {
            if let Poll::Ready(item) = self.tools[place].poll(cx, has_room) {
                // Move the tool to the end: a chatty one must not starve the others.
                let tool = self.tools.remove(place);
                let call_id = tool.call_id.clone();
                if let StreamItem::Item(_) = item {
                    self.tools.push(tool);
                }
                return Poll::Ready(WorkEvent::Tool(call_id, item));
            }
        }
        if let Some(model) = &mut self.model
            && let Poll::Ready(item) = model.poll(cx, has_room)
        {
            if let StreamItem::End(_) = item {
                self.model = None;
            }
            return Poll::Ready(WorkEvent::Model(item));
        }
        Poll::Pending
    }

    /// Returns true if this call is a sub-agent that is running.
    pub(super) fn opens_sessions(&self, call_id: &CallId) -> bool {
        self.tools
            .iter()
            .any(|tool| tool.call_id == *call_id && tool.opens_sessions)
    }
}
