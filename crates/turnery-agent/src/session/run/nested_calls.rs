//! Runs the calls that running tools request.

use super::LoopRun;
use turnery_engine::{CallId, Input, ToolCall, ToolEnvelope};
use turnery_tools::NestedCalls;

impl LoopRun<'_> {
    /// Starts the calls that a running tool requests, with ids that derive from its own.
    pub(super) fn start_nested_calls(&mut self, parent: CallId, nested: NestedCalls) {
        let history = &self.task.conversation.history;
        let mut running = self.work.tools.iter_mut();
        let Some(tool) = running.find(|tool| tool.call_id == parent) else {
            return;
        };
        let requested = nested.calls.into_iter().map(|(name, args)| {
            let call_id = history.nested_call_id(&parent, &mut tool.nested_count);
            ToolCall::new(call_id, name, args)
        });
        let calls: Vec<ToolCall> = requested.collect();
        tool.reply = Some(nested.reply);
        let (toolbox, workspace) = (self.toolbox(), &self.task.env.workspace);
        let announced = calls.iter().map(|call| toolbox.announce(call, workspace));
        let announced = announced.collect();
        self.feed(Input::NestedCalls {
            parent,
            calls,
            announced,
        });
    }

    /// Gives a running tool the results of its nested calls.
    pub(super) fn return_results(&mut self, parent: &CallId, results: Vec<ToolEnvelope>) {
        let mut running = self.work.tools.iter_mut();
        let tool = running.find(|tool| tool.call_id == *parent);
        if let Some(reply) = tool.and_then(|tool| tool.reply.take()) {
            // The tool may have stopped waiting.
            let _ = reply.send(results);
        }
    }
}
