//! Turns what the agent traces into spans and metrics.

use super::{
    conventions::{
        self, AGENT_NAME, AGENT_VERSION, CONVERSATION_ID, ERROR_TYPE, INPUT_MESSAGES, Operation,
        PROVIDER_NAME, REQUEST_MODEL, REQUEST_STREAM, RESPONSE_MODEL, SERVER_ADDRESS, SERVER_PORT,
        error_type, model_attribute, own, provider_name, split_model,
    },
    delivery::Delivery,
    metrics::CallMetrics,
    open_prompt::{OpenPrompt, end_span, set_cancelled, set_error},
};
use opentelemetry::{
    Context, KeyValue,
    propagation::TextMapPropagator as _,
    trace::{Event as SpanEvent, Span as _, SpanKind, Tracer as _},
};
use opentelemetry_sdk::{propagation::TraceContextPropagator, trace::SdkTracer};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};
use turnery_agent::{ModelCallAttempt, PromptStart, TraceSink};
use turnery_engine::{Event, Outcome, PromptId, Response};

/// Returns host and port of the server of a provider.
pub(super) type ServerLookup = Box<dyn Fn(&str) -> Option<(String, u16)> + Send + Sync>;

/// Trace sink that exports spans and metrics.
pub(super) struct SpanSink {
    pub(super) tracer: SdkTracer,
    pub(super) metrics: Option<CallMetrics>,
    pub(super) delivery: Arc<Delivery>,
    pub(super) captures_content: bool,
    /// Span of the process that started this one.
    pub(super) process_parent: Context,
    pub(super) server: ServerLookup,
    pub(super) prompts: Mutex<HashMap<PromptId, OpenPrompt>>,
}

/// Returns the parent that these values of W3C Trace Context name, if they are valid.
pub(super) fn parent_context<'a>(
    values: impl Iterator<Item = (&'a str, &'a str)>,
) -> Option<Context> {
    use opentelemetry::trace::TraceContextExt as _;
    let values: HashMap<String, String> = values
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    let context = TraceContextPropagator::new().extract_with_context(&Context::new(), &values);
    context.span().span_context().is_valid().then_some(context)
}

impl SpanSink {
    fn prompts(&self) -> MutexGuard<'_, HashMap<PromptId, OpenPrompt>> {
        self.prompts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the parent of a prompt: the tool call that started it, else what the client named, else what the
    /// environment named.
    fn prompt_parent(&self, prompt: &PromptStart<'_>) -> Context {
        let spawned_by = prompt.spawned_by.and_then(|spawn| {
            let prompts = self.prompts();
            let mut open = prompts.values();
            open.find_map(|it| it.tool_context(&spawn.loop_id, &spawn.call_id))
        });
        let client = || {
            let entries = prompt.trace.entries();
            parent_context(entries.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))))
        };
        let parent = spawned_by.or_else(client);
        parent.unwrap_or_else(|| self.process_parent.clone())
    }

    /// Returns the attributes of a model call that its span and its metrics share.
    fn call_attributes(&self, call: &ModelCallAttempt) -> Vec<KeyValue> {
        let (requested_provider, model) = split_model(call.requested_model());
        // A fallback of another provider may have answered.
        let answered = call.accepted.then(|| split_model(&call.model));
        let provider = answered.map_or(requested_provider, |(provider, _)| provider);
        let mut attributes = vec![
            Operation::Chat.attribute(),
            KeyValue::new(PROVIDER_NAME, provider_name(provider).to_owned()),
        ];
        attributes.extend(model_attribute(REQUEST_MODEL, model));
        if let Some((_, model)) = answered {
            attributes.extend(model_attribute(RESPONSE_MODEL, model));
        }
        if let Some((host, port)) = (self.server)(provider) {
            attributes.push(KeyValue::new(SERVER_ADDRESS, host));
            attributes.push(KeyValue::new(SERVER_PORT, i64::from(port)));
        }
        attributes
    }

    fn end_call(&self, call: &ModelCallAttempt) {
        let (parent, conversation, (open, input)) = match self.prompts().get_mut(&call.prompt_id) {
            Some(prompt) => (
                prompt.context(),
                prompt.conversation.clone(),
                prompt.take_call(call),
            ),
            None => return,
        };
        let shared = self.call_attributes(call);
        let error = call.error.as_ref().map(|error| error_type(error.kind));
        let started: SystemTime = open.started.unwrap_or_else(|| call.started_at.into());
        let mut attributes = shared.clone();
        attributes.extend([
            conversation,
            KeyValue::new(REQUEST_STREAM, true),
            KeyValue::new(own::CALL_SOURCE, call.source),
        ]);
        attributes.extend(conventions::loop_attribute(&call.loop_id));
        attributes.extend(open.response);
        attributes.extend(input.map(|input| KeyValue::new(INPUT_MESSAGES, input)));
        let usage = call.usage.as_ref();
        attributes.extend(usage.into_iter().flat_map(conventions::usage_attributes));
        let (_, model) = split_model(call.requested_model());
        let mut span = self
            .tracer
            .span_builder(Operation::Chat.span_name(model))
            .with_kind(SpanKind::Client)
            .with_start_time(started)
            .with_attributes(attributes)
            .start_with_context(&self.tracer, &parent);
        for retry in open.retries {
            span.add_event_with_timestamp(retry.name, retry.timestamp, retry.attributes);
        }
        match &error {
            Some(kind) => set_error(&mut span, kind.clone()),
            None if call.accepted => {}
            None => set_cancelled(&mut span),
        }
        end_span(span, &self.delivery);
        if let Some(metrics) = &self.metrics {
            let duration = started.elapsed().unwrap_or(call.duration);
            let error = error.map(|kind| KeyValue::new(ERROR_TYPE, kind));
            self.delivery.note_measurement();
            metrics.record(duration, usage, shared, error);
        }
    }
}

impl TraceSink for SpanSink {
    fn record(&self, call: &ModelCallAttempt) {
        let (Some(wait), Some(error)) = (call.retry_wait, &call.error) else {
            return self.end_call(call);
        };
        let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
        let attributes = vec![
            KeyValue::new(own::ATTEMPT, i64::from(call.attempt)),
            KeyValue::new(ERROR_TYPE, error_type(error.kind)),
            KeyValue::new(own::RETRY_WAIT, wait),
        ];
        if let Some(prompt) = self.prompts().get_mut(&call.prompt_id) {
            let retry = SpanEvent::new(own::RETRY, SystemTime::now(), attributes, 0);
            prompt.receive_retry(call, retry);
        }
    }

    fn receive_response(&self, call: &ModelCallAttempt, response: &Response) {
        if let Some(prompt) = self.prompts().get_mut(&call.prompt_id) {
            prompt.receive_response(call, response);
        }
    }

    fn start_prompt(&self, prompt: &PromptStart<'_>) {
        let parent = self.prompt_parent(prompt);
        let conversation = KeyValue::new(CONVERSATION_ID, prompt.session_id.to_string());
        let agent = prompt.agent_id.to_owned();
        let model = prompt.model.to_string();
        let (provider, model) = split_model(&model);
        let mut attributes = vec![
            Operation::InvokeAgent.attribute(),
            KeyValue::new(AGENT_NAME, agent.clone()),
            KeyValue::new(AGENT_VERSION, env!("CARGO_PKG_VERSION")),
            KeyValue::new(PROVIDER_NAME, provider_name(provider).to_owned()),
            conversation.clone(),
        ];
        attributes.extend(model_attribute(REQUEST_MODEL, model));
        let span = self
            .tracer
            .span_builder(Operation::InvokeAgent.span_name(&agent))
            .with_kind(SpanKind::Internal)
            .with_attributes(attributes)
            .start_with_context(&self.tracer, &parent);
        let open = OpenPrompt::new(span, conversation, self.captures_content);
        self.prompts().insert(prompt.prompt_id.clone(), open);
    }

    fn receive_event(&self, prompt_id: &PromptId, event: &Event) {
        if let Some(prompt) = self.prompts().get_mut(prompt_id) {
            prompt.receive_event(&self.tracer, &self.delivery, event);
        }
    }

    fn end_prompt(&self, prompt_id: &PromptId, outcome: Option<&Outcome>) {
        let ended = self.prompts().remove(prompt_id);
        if let Some(prompt) = ended {
            prompt.end(&self.delivery, outcome);
        }
    }
}
