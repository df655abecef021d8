//! Spans of one running prompt: its own, those of its tool calls, and what is known so far of its model calls.

use super::{
    content,
    conventions::{
        self, ERROR_TYPE, INPUT_MESSAGES, OUTPUT_MESSAGES, Operation, TOOL_CALL_ARGUMENTS,
        TOOL_CALL_ID, TOOL_CALL_RESULT, TOOL_NAME, TOOL_TYPE, error_type, own,
    },
    delivery::Delivery,
};
use opentelemetry::{
    Context, KeyValue,
    trace::{
        Event as SpanEvent, Span as _, SpanContext, SpanKind, Status, TraceContextExt as _,
        Tracer as _,
    },
};
use opentelemetry_sdk::trace::{SdkTracer, Span};
use serde_json::{Value, json};
use std::{collections::HashMap, time::SystemTime};
use turnery_agent::ModelCallAttempt;
use turnery_engine::{
    CallId, Event, EventKind, LoopId, Message, Outcome, Response, ToolEnvelope, ToolErrorKind,
    TurnFinish, render_value,
};

/// Running prompt.
pub(super) struct OpenPrompt {
    span: Span,
    pub(super) conversation: KeyValue,
    tools: HashMap<(LoopId, CallId), Span>,
    calls: HashMap<(LoopId, &'static str), OpenCall>,
    content: Option<CapturedContent>,
}

/// Model call whose last attempt has not ended.
#[derive(Default)]
pub(super) struct OpenCall {
    /// Start of the first attempt that failed.
    pub(super) started: Option<SystemTime>,
    pub(super) retries: Vec<SpanEvent>,
    /// Attributes of the response.
    pub(super) response: Vec<KeyValue>,
}

/// Content that later spans carry.
#[derive(Default)]
struct CapturedContent {
    has_prompt: bool,
    /// Messages that the next call of a loop sends for the first time.
    new_messages: HashMap<LoopId, Vec<Value>>,
    arguments: HashMap<(LoopId, CallId), String>,
}

impl OpenPrompt {
    pub(super) fn new(span: Span, conversation: KeyValue, captures_content: bool) -> Self {
        Self {
            span,
            conversation,
            tools: HashMap::new(),
            calls: HashMap::new(),
            content: captures_content.then(CapturedContent::default),
        }
    }

    /// Returns the context of the prompt's span, as the parent of others.
    pub(super) fn context(&self) -> Context {
        child_context(self.span.span_context())
    }

    /// Returns the context of a running tool call.
    pub(super) fn tool_context(&self, loop_id: &LoopId, call_id: &CallId) -> Option<Context> {
        let span = self.tools.get(&(loop_id.clone(), call_id.clone()))?;
        Some(child_context(span.span_context()))
    }

    pub(super) fn receive_event(&mut self, tracer: &SdkTracer, delivery: &Delivery, event: &Event) {
        match &event.kind {
            EventKind::MessageEnd { message } => {
                self.capture_message(&event.loop_id, &message.message);
            }
            EventKind::ToolCallRequested { call, .. } => {
                if let Some(content) = &mut self.content {
                    let key = (event.loop_id.clone(), call.call_id.clone());
                    let arguments = content::to_text(&call.args);
                    content.arguments.insert(key, arguments);
                }
            }
            EventKind::ToolExecutionStart {
                call_id, tool_name, ..
            } => self.start_tool(tracer, &event.loop_id, call_id, tool_name),
            EventKind::ToolExecutionEnd {
                call_id, envelope, ..
            } => self.end_tool(delivery, &event.loop_id, call_id, envelope),
            EventKind::ParallelStart { .. }
            | EventKind::LoopStart { .. }
            | EventKind::InputRejected { .. }
            | EventKind::TurnStart { .. }
            | EventKind::CompactionStarted { .. }
            | EventKind::CompactionEnded { .. }
            | EventKind::ModelRetried { .. }
            | EventKind::ModelSilent { .. }
            | EventKind::Issue { .. }
            | EventKind::MessageStart { .. }
            | EventKind::Delta { .. }
            | EventKind::UsageReported { .. }
            | EventKind::PermissionRequested { .. }
            | EventKind::PermissionResolved { .. }
            | EventKind::ToolExecutionUpdate { .. }
            | EventKind::ToolExecutionOutput { .. }
            | EventKind::ToolProgress { .. }
            | EventKind::ChildUsageReported { .. }
            | EventKind::FinalValue { .. }
            | EventKind::ToolValue { .. }
            | EventKind::PlanUpdated { .. }
            | EventKind::TurnEnd { .. }
            | EventKind::LoopEnd { .. }
            | EventKind::ParallelEnd { .. } => {}
        }
    }

    fn start_tool(&mut self, tracer: &SdkTracer, loop_id: &LoopId, call_id: &CallId, name: &str) {
        let mut attributes = vec![
            Operation::ExecuteTool.attribute(),
            KeyValue::new(TOOL_NAME, name.to_owned()),
            KeyValue::new(TOOL_CALL_ID, call_id.to_string()),
            KeyValue::new(TOOL_TYPE, "function"),
            self.conversation.clone(),
        ];
        attributes.extend(conventions::loop_attribute(loop_id));
        let key = (loop_id.clone(), call_id.clone());
        let captured = self.content.as_mut();
        if let Some(arguments) = captured.and_then(|it| it.arguments.remove(&key)) {
            attributes.push(KeyValue::new(TOOL_CALL_ARGUMENTS, arguments));
        }
        let span = tracer
            .span_builder(Operation::ExecuteTool.span_name(name))
            .with_kind(SpanKind::Internal)
            .with_attributes(attributes)
            .start_with_context(tracer, &self.context());
        self.tools.insert(key, span);
    }

    fn end_tool(
        &mut self,
        delivery: &Delivery,
        loop_id: &LoopId,
        call_id: &CallId,
        envelope: &ToolEnvelope,
    ) {
        let key = (loop_id.clone(), call_id.clone());
        let Some(mut span) = self.tools.remove(&key) else {
            return;
        };
        match &envelope.result {
            Ok(_) => {}
            Err(error) if error.kind == ToolErrorKind::Cancelled => set_cancelled(&mut span),
            Err(error) => set_error(&mut span, error_type(error.kind)),
        }
        if self.content.is_some() {
            let result = content::result_text(envelope);
            span.set_attribute(KeyValue::new(TOOL_CALL_RESULT, result));
        }
        end_span(span, delivery);
    }

    fn capture_message(&mut self, loop_id: &LoopId, message: &Message) {
        let Some(content) = &mut self.content else {
            return;
        };
        let messages = content.new_messages.entry(loop_id.clone()).or_default();
        content::push_input(messages, message);
        if let (Message::User { .. }, false, Some(prompt)) =
            (message, content.has_prompt, messages.last())
        {
            content.has_prompt = true;
            let prompt = json!([prompt]).to_string();
            self.span
                .set_attribute(KeyValue::new(INPUT_MESSAGES, prompt));
        }
    }

    /// Keeps the attributes of a response for the span of its call.
    pub(super) fn receive_response(&mut self, call: &ModelCallAttempt, response: &Response) {
        let reason = conventions::finish_reason(response.stop);
        let reasons = opentelemetry::Array::String(vec![reason.into()]);
        let reasons = KeyValue::new(
            conventions::FINISH_REASONS,
            opentelemetry::Value::Array(reasons),
        );
        let key = (call.loop_id.clone(), call.source);
        let open = self.calls.entry(key).or_default();
        open.response.push(reasons);
        if self.content.is_some() {
            let output = content::output(&response.content, reason).to_string();
            open.response.push(KeyValue::new(OUTPUT_MESSAGES, output));
        }
    }

    /// Keeps an attempt that is followed by another one.
    pub(super) fn receive_retry(&mut self, call: &ModelCallAttempt, retry: SpanEvent) {
        let key = (call.loop_id.clone(), call.source);
        let open = self.calls.entry(key).or_default();
        open.started.get_or_insert(call.started_at.into());
        open.retries.push(retry);
    }

    /// Returns what is known of a call that has ended, and the messages that it has sent for the first time.
    pub(super) fn take_call(&mut self, call: &ModelCallAttempt) -> (OpenCall, Option<String>) {
        let open = self.calls.remove(&(call.loop_id.clone(), call.source));
        let is_turn = call.source == turnery_engine::usage::source::TURN;
        let content = self.content.as_mut().filter(|_| is_turn);
        let messages = content.and_then(|content| content.new_messages.remove(&call.loop_id));
        let messages = messages.map(|messages| Value::Array(messages).to_string());
        (open.unwrap_or_default(), messages)
    }

    /// Ends the spans that are open.
    pub(super) fn end(mut self, delivery: &Delivery, outcome: Option<&Outcome>) {
        for (_, mut tool) in self.tools {
            set_cancelled(&mut tool);
            end_span(tool, delivery);
        }
        let (name, error) = match outcome {
            Some(outcome) => conventions::describe_outcome(outcome),
            None => ("failed", Some("_OTHER".to_owned())),
        };
        self.span.set_attribute(KeyValue::new(own::OUTCOME, name));
        if let Some(error) = error {
            set_error(&mut self.span, error);
        }
        if let (Some(_), Some(Outcome::Finished(finish, _))) = (&self.content, outcome) {
            let text = match finish {
                TurnFinish::AssistantMessage { text } => text.to_string(),
                TurnFinish::FinalValue { value } | TurnFinish::ToolValue { value, .. } => {
                    render_value(value)
                }
            };
            let content = [turnery_engine::Content::text(text)];
            let output = content::output(&content, "stop").to_string();
            self.span
                .set_attribute(KeyValue::new(OUTPUT_MESSAGES, output));
        }
        end_span(self.span, delivery);
    }
}

/// Returns a context with this parent.
fn child_context(parent: &SpanContext) -> Context {
    Context::new().with_remote_span_context(parent.clone())
}

/// Marks a span as failed. The message of the error is content, so only its type is exported.
pub(super) fn set_error(span: &mut Span, kind: String) {
    span.set_attribute(KeyValue::new(ERROR_TYPE, kind));
    span.set_status(Status::error(""));
}

/// Marks a span as cancelled, which is no error.
pub(super) fn set_cancelled(span: &mut Span) {
    span.set_attribute(KeyValue::new(own::OUTCOME, "cancelled"));
}

/// Ends a span, and counts it if it is exported.
pub(super) fn end_span(mut span: Span, delivery: &Delivery) {
    if span.span_context().is_sampled() {
        delivery.count_ended_span();
    }
    span.end();
}
