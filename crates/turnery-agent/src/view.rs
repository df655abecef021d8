//! Reduces the events of a session to changes of what its user is shown. Front ends encode or print the changes
//! instead of interpreting events.

mod call;
mod change;
mod notice;
mod prompt_usage;
mod session_cost;

pub use call::{CallEnd, CallView};
pub use change::{ChunkAuthor, ContextUsage, LoopLineage, MessageState, ViewChange};
pub use notice::Notice;
pub use prompt_usage::PromptUsage;
pub use session_cost::{CURRENCY, SessionCost};

use crate::client::OutboxItem;
use call::OpenCalls;
use serde_json::Value;
use turnery_engine::{
    Event, EventKind, LoopId, Message, MessageId, ModelDelta, Usage, render_value,
};

/// View of one session: remembers what was shown of the running loop.
#[derive(Debug, Default)]
pub struct SessionView {
    calls: OpenCalls,
    /// Message whose text was streamed; its end must not repeat the text.
    streamed_message: Option<MessageId>,
    /// True once the running loop's value was shown; the end of the loop must not repeat it.
    is_value_shown: bool,
    /// Id of the running compaction.
    running_compaction: Option<String>,
    /// Size of the model's context window, if known. Unit: tokens.
    context_window: Option<u32>,
    context_tokens: Option<u64>,
    prompt_usage: PromptUsage,
    session_cost: SessionCost,
}

impl SessionView {
    /// Creates the view of a session; `session_cost` is the cost of the session so far.
    #[must_use]
    pub fn new(session_cost: SessionCost) -> Self {
        Self {
            session_cost,
            ..Self::default()
        }
    }

    /// Returns the cost of the session.
    pub fn session_cost_mut(&mut self) -> &mut SessionCost {
        &mut self.session_cost
    }

    /// Applies an item and passes each change of the view to `show`, in order.
    pub fn apply(&mut self, item: OutboxItem<'_>, show: &mut impl FnMut(ViewChange<'_>)) {
        match item {
            OutboxItem::Live(event) => self.apply_live(event, show),
            OutboxItem::Replay(event) => self.apply_stored(event, show),
            OutboxItem::Info { title, updated_at } => {
                show(ViewChange::SessionInfo { title, updated_at });
            }
            // Only now is the cost of the session known.
            OutboxItem::ReplayEnd => self.show_usage(show),
            OutboxItem::PromptEnd(end) => show(ViewChange::PromptEnded(end)),
        }
    }

    fn apply_live(&mut self, event: &Event, show: &mut impl FnMut(ViewChange<'_>)) {
        match &event.kind {
            EventKind::Delta { message_id, delta } => self.apply_delta(message_id, delta, show),
            EventKind::MessageEnd { message } => {
                let was_streamed =
                    self.streamed_message.take().as_ref() == Some(&message.message_id);
                let state = match was_streamed {
                    true => MessageState::Streamed,
                    false => MessageState::New,
                };
                if let Message::Assistant {
                    provider, model, ..
                } = &message.message
                {
                    self.session_cost.set_answering_model(provider, model);
                }
                show(ViewChange::Message { message, state });
            }
            EventKind::ToolCallRequested { call, detail } => {
                show(ViewChange::CallRequested(self.calls.insert(call, detail)));
            }
            EventKind::PermissionRequested { call_id, detail } => {
                self.calls.show_detail(call_id, detail, show);
                show(ViewChange::QuestionAsked);
            }
            EventKind::PermissionResolved { .. } => show(ViewChange::QuestionAnswered),
            EventKind::ToolExecutionUpdate { call_id, detail } => {
                self.calls.show_detail(call_id, detail, show);
            }
            EventKind::ToolExecutionStart { call_id, runs, .. } => {
                if *runs && let Some(call) = self.calls.get_mut(call_id) {
                    call.is_running = true;
                    show(ViewChange::CallStarted(call));
                }
            }
            EventKind::ToolExecutionOutput { call_id, text } => {
                if let Some(call) = self.calls.get_mut(call_id) {
                    let at = event.at;
                    show(ViewChange::CallPrinted { call, text, at });
                }
            }
            EventKind::ToolProgress { call_id, text } => {
                if let Some(call) = self.calls.get_mut(call_id) {
                    call.progress = Some(text.clone());
                    show(ViewChange::CallProgressed(call));
                }
            }
            EventKind::ToolExecutionEnd { .. } => {
                if let Some((call, end)) = self.calls.end(&event.kind) {
                    show(ViewChange::CallEnded { call: &call, end });
                }
            }
            EventKind::PlanUpdated { entries } => show(ViewChange::Plan {
                session_id: &event.session_id,
                entries,
            }),
            EventKind::LoopStart { .. } => {
                show(ViewChange::LoopStarted);
                self.begin_loop(event, show);
            }
            EventKind::UsageReported { usage, cumulative } => {
                self.record_turn(usage.as_ref(), *cumulative);
                self.session_cost.record_call(usage.as_ref());
                self.show_usage(show);
            }
            EventKind::ChildUsageReported { call_id, child } => {
                if let Some(call) = self.calls.set_child_session(call_id, &child.session_id) {
                    let child_session = &child.session_id;
                    show(ViewChange::CallDelegated {
                        call,
                        child_session,
                    });
                }
                self.prompt_usage.record_child(child);
                self.session_cost.record_child(child);
                self.show_usage(show);
            }
            EventKind::CompactionStarted { before } => {
                let id = self.running_compaction.insert(compaction_id(event));
                let before = *before;
                show(ViewChange::CompactionStarted { id, before });
            }
            EventKind::CompactionEnded {
                block,
                after,
                failure,
                usage,
            } => {
                self.session_cost.record_call(usage.as_ref());
                let id = self.running_compaction.take();
                show(ViewChange::CompactionEnded {
                    id: &id.unwrap_or_else(|| compaction_id(event)),
                    block: block.as_ref(),
                    failure: failure.as_deref(),
                });
                self.context_tokens = Some(after.tokens);
                self.show_usage(show);
            }
            // The cost of rejected candidates is not in the events.
            EventKind::ParallelEnd { .. } => self.session_cost.invalidate(),
            EventKind::ModelRetried {
                attempt,
                error,
                wait_ms,
            } => show(ViewChange::Notice(Notice::Retry {
                attempt: *attempt,
                error,
                wait_ms: *wait_ms,
            })),
            EventKind::ModelSilent {
                silent_ms,
                is_connected,
            } => show(ViewChange::Notice(Notice::Silence {
                silent_ms: *silent_ms,
                is_connected: *is_connected,
            })),
            EventKind::Issue { text } => show(ViewChange::Notice(Notice::Issue(text))),
            EventKind::InputRejected { reason } => {
                show(ViewChange::Notice(Notice::InputRejected(reason)));
            }
            EventKind::FinalValue { value } | EventKind::ToolValue { value, .. } => {
                self.show_value(value, &event.loop_id, show);
            }
            EventKind::LoopEnd { outcome, .. } => {
                if let Some(value) = outcome.value() {
                    self.show_value(value, &event.loop_id, show);
                }
                if let Some(limit) = outcome.limit() {
                    show(ViewChange::Notice(Notice::LimitReached(&limit.text)));
                }
                show(ViewChange::LoopEnded(outcome));
            }
            EventKind::TurnStart { .. }
            | EventKind::MessageStart { .. }
            | EventKind::ParallelStart { .. }
            | EventKind::TurnEnd { .. } => {}
        }
    }

    /// Applies a stored event. Streamed text is shown as whole messages, calls in their final state (LOAD-1,
    /// LOAD-7); notices are omitted (LOAD-6).
    fn apply_stored(&mut self, event: &Event, show: &mut impl FnMut(ViewChange<'_>)) {
        match &event.kind {
            EventKind::MessageEnd { message } => {
                let state = MessageState::Stored;
                show(ViewChange::Message { message, state });
            }
            EventKind::ToolCallRequested { call, detail } => {
                self.calls.insert(call, detail);
            }
            EventKind::PermissionRequested { call_id, detail }
            | EventKind::ToolExecutionUpdate { call_id, detail } => {
                if let Some(call) = self.calls.get_mut(call_id) {
                    call.detail.clone_from(detail);
                }
            }
            EventKind::ToolExecutionEnd { .. } => {
                if let Some((call, end)) = self.calls.end(&event.kind) {
                    call.show_stored(end, show);
                }
            }
            EventKind::LoopStart { .. } => self.begin_loop(event, show),
            EventKind::UsageReported { usage, cumulative } => {
                self.record_turn(usage.as_ref(), *cumulative);
            }
            EventKind::ChildUsageReported { call_id, child } => {
                self.calls.set_child_session(call_id, &child.session_id);
                self.prompt_usage.record_child(child);
            }
            EventKind::CompactionStarted { .. } => {
                self.running_compaction = Some(compaction_id(event));
            }
            EventKind::CompactionEnded { block, after, .. } => {
                let id = self.running_compaction.take();
                if block.is_some() {
                    show(ViewChange::CompactionEnded {
                        id: &id.unwrap_or_else(|| compaction_id(event)),
                        block: block.as_ref(),
                        failure: None,
                    });
                }
                self.context_tokens = Some(after.tokens);
            }
            EventKind::PlanUpdated { .. }
            | EventKind::FinalValue { .. }
            | EventKind::ToolValue { .. } => self.apply_live(event, show),
            EventKind::LoopEnd { outcome, .. } => {
                self.calls.show_unfinished(show);
                if let Some(value) = outcome.value() {
                    self.show_value(value, &event.loop_id, show);
                }
                self.show_usage(show);
            }
            EventKind::Delta { .. }
            | EventKind::ToolExecutionStart { .. }
            | EventKind::ToolExecutionOutput { .. }
            | EventKind::ToolProgress { .. }
            | EventKind::InputRejected { .. }
            | EventKind::ModelRetried { .. }
            | EventKind::ModelSilent { .. }
            | EventKind::Issue { .. }
            | EventKind::TurnStart { .. }
            | EventKind::MessageStart { .. }
            | EventKind::PermissionResolved { .. }
            | EventKind::ParallelStart { .. }
            | EventKind::ParallelEnd { .. }
            | EventKind::TurnEnd { .. } => {}
        }
    }

    /// Shows a fragment of a message. This is the hot path: nothing is copied.
    fn apply_delta(
        &mut self,
        message_id: &MessageId,
        delta: &ModelDelta,
        show: &mut impl FnMut(ViewChange<'_>),
    ) {
        let (author, block, text) = match delta {
            ModelDelta::Text { block, text } => (ChunkAuthor::Agent, *block, text),
            ModelDelta::Thinking { block, text } => (ChunkAuthor::Thought, *block, text),
            ModelDelta::ToolCallArgs { .. } => return,
        };
        show(ViewChange::Text {
            author,
            message_id,
            block,
            text,
        });
        if self.streamed_message.as_ref() != Some(message_id) {
            self.streamed_message = Some(message_id.clone());
        }
    }

    fn begin_loop(&mut self, event: &Event, show: &mut impl FnMut(ViewChange<'_>)) {
        let EventKind::LoopStart {
            prompt_id, config, ..
        } = &event.kind
        else {
            return;
        };
        self.is_value_shown = false;
        self.context_window = config.as_ref().and_then(|config| config.context_window);
        self.prompt_usage.begin_loop(prompt_id);
        self.session_cost.begin_loop(config.as_deref());
        if let Some(lineage) = LoopLineage::from_event(event) {
            show(ViewChange::Lineage(lineage));
        }
    }

    /// Shows the value that a program or tool ended the loop with, once.
    fn show_value(
        &mut self,
        value: &Value,
        loop_id: &LoopId,
        show: &mut impl FnMut(ViewChange<'_>),
    ) {
        if std::mem::replace(&mut self.is_value_shown, true) {
            return;
        }
        let text = &render_value(value);
        if !text.is_empty() {
            show(ViewChange::Value { loop_id, text });
        }
    }

    fn record_turn(&mut self, usage: Option<&Usage>, cumulative: Usage) {
        if let Some(usage) = usage {
            self.context_tokens = Some(usage.context_tokens());
        }
        self.prompt_usage.record_turn(cumulative);
    }

    /// Shows context usage if both numbers are known (USAGE-1). Usage of child sessions does not count towards
    /// the context; it is reported separately.
    fn show_usage(&self, show: &mut impl FnMut(ViewChange<'_>)) {
        if let (Some(used), Some(window)) = (self.context_tokens, self.context_window) {
            show(ViewChange::Usage(ContextUsage {
                used,
                size: used.max(u64::from(window)),
                session_cost: &self.session_cost,
                prompt_usage: &self.prompt_usage,
            }));
        }
    }
}

/// Returns the id of a compaction that starts with this event; the same live and replayed (COMP-2).
fn compaction_id(event: &Event) -> String {
    format!("{}.{}", event.loop_id, event.seq)
}
