//! Defines the `Model` trait, its requests and its events.

use crate::model_name::ModelName;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::sync::mpsc;
pub use turnery_engine::ToolChoice;
use turnery_engine::{
    ConfigSnapshot, LlmMessage, Message, MessageId, ModelDelta, ModelError, Response,
    ResponseLimits, SessionId, ToolSpec,
};

/// A model that can be called. Dropping the future of a call closes its connection at once.
pub trait Model: Send + Sync + 'static {
    /// Returns the facts about the model.
    fn info(&self) -> &ModelInfo;

    /// Calls the model. Sends deltas to `out` in order as they arrive, and returns the settled response.
    ///
    /// The response contains everything that was sent as deltas. A stream that ends without the API's terminal
    /// event is an error, never a response (C-31). Retries happen inside the call, and only before the first
    /// delta is sent (R9).
    fn call(
        &self,
        request: ModelRequest,
        out: ModelEventSender,
    ) -> BoxFuture<'_, Result<Response, ModelError>>;
}

/// Facts about a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelInfo {
    /// Name as the user writes it: `provider/model`.
    pub name: ModelName,
    /// Name for display.
    pub display_name: String,
    /// Size of the context window. Unit: tokens; `None` if unknown.
    pub context_window: Option<u32>,
    /// Largest response. Unit: tokens.
    pub max_output: u32,
    /// True if the model accepts images.
    pub images: bool,
    /// True if the model accepts audio.
    pub audio: bool,
    /// True if the model accepts documents (PDF).
    pub documents: bool,
    /// True if the model can reason.
    pub reasoning: bool,
    /// API of the model: `anthropic_messages`, `openai_chat_completions`, `openai_responses`,
    /// `gemini_generate_content`, `offline` or `scripted`.
    pub api: &'static str,
    /// Base URL without credentials.
    pub base_url: Option<String>,
}

impl ModelInfo {
    /// Creates the facts of a model that accepts and returns only text and has no known limits.
    #[must_use]
    pub fn new(name: ModelName, api: &'static str) -> Self {
        Self {
            display_name: name.model.clone(),
            name,
            context_window: None,
            max_output: u32::MAX,
            images: false,
            audio: false,
            documents: false,
            reasoning: false,
            api,
            base_url: None,
        }
    }

    /// Returns the configuration that is stored with each loop. Contains no secret.
    #[must_use]
    pub fn snapshot(&self, thinking: Thinking, temperature: Option<f32>) -> ConfigSnapshot {
        ConfigSnapshot {
            model: self.name.model.clone(),
            provider: self.name.provider.clone(),
            config_id: Some(self.name.loop_id_segment()),
            name: Some(self.display_name.clone()),
            api: Some(self.api.to_owned()),
            base_url: self.base_url.clone(),
            reasoning: Some(self.reasoning),
            context_window: self.context_window,
            max_tokens: Some(self.max_output),
            thinking_level: Some(thinking.as_str().to_owned()),
            temperature,
            ..ConfigSnapshot::default()
        }
    }
}

/// Parameters of one call.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// Id of the session, which is a stable key for the provider's cache.
    pub session_id: SessionId,
    /// System prompt and instructions.
    pub system: Arc<str>,
    /// Conversation. Shared with the session: drop it once it is serialized.
    pub messages: Arc<Vec<Arc<LlmMessage>>>,
    /// Available tools.
    pub tools: Arc<[ToolSpec]>,
    /// Constraint on the calls of the response.
    pub tool_choice: ToolChoice,
    /// Thinking level.
    pub thinking: Thinking,
    /// Sampling temperature; `None` leaves it to the provider. Omitted if the model accepts none while
    /// thinking.
    pub temperature: Option<f32>,
    /// Limits of the response. A response is stopped with [`ModelErrorKind::AnswerLimit`] as soon as it
    /// exceeds a limit, so memory use stays bounded.
    ///
    /// [`ModelErrorKind::AnswerLimit`]: turnery_engine::ModelErrorKind::AnswerLimit
    pub answer_limits: ResponseLimits,
}

impl ModelRequest {
    /// Returns true if the response may call the tool with this name.
    #[must_use]
    pub fn can_call(&self, tool: &str) -> bool {
        self.callable_tools().iter().any(|it| it.name == tool)
    }

    /// Returns the tools that the response may call.
    #[must_use]
    pub fn callable_tools(&self) -> &[ToolSpec] {
        match self.tool_choice {
            ToolChoice::Auto | ToolChoice::Required => &self.tools,
            ToolChoice::None => &[],
        }
    }

    /// Creates a request with one question and these instructions, without history or tools.
    #[must_use]
    pub fn single_question(
        session_id: SessionId,
        instructions: &str,
        message_id: &str,
        text: String,
        thinking: Thinking,
    ) -> Self {
        let message = LlmMessage {
            message_id: MessageId::from(message_id),
            turn_id: None,
            message: Message::user(text),
        };
        Self {
            session_id,
            system: Arc::from(instructions),
            messages: Arc::new(vec![Arc::new(message)]),
            tools: Arc::new([]),
            tool_choice: ToolChoice::Auto,
            thinking,
            temperature: None,
            answer_limits: ResponseLimits::default(),
        }
    }
}

/// How much a model thinks before it responds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Thinking {
    /// The default of the model.
    #[default]
    Default,
    /// No thinking.
    Off,
    /// Little thinking.
    Low,
    /// Moderate thinking.
    Medium,
    /// Much thinking.
    High,
}

impl Thinking {
    /// Returns the name used in configuration and on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Off => "off",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// Event of a running call.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelEvent {
    /// A delta of the response.
    Delta(ModelDelta),
    /// An attempt failed before its first delta and will be retried (R9).
    Retry(RetryNotice),
    /// No content has arrived for a while; the call continues.
    Silence(SilenceNotice),
}

/// Notice about a call without new content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SilenceNotice {
    /// Time since the last content, or since the start of the attempt.
    pub length: Duration,
    /// True if bytes without content, such as pings, arrived since the last notice or the last content.
    pub is_connected: bool,
}

/// Notice about a failed attempt that is retried within the call (UP-8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryNotice {
    /// Number of the failed attempt, from 1.
    pub attempt: u32,
    /// Error of the attempt.
    pub error: ModelError,
    /// Delay before the next attempt.
    pub wait: Duration,
    /// Model that makes the next attempt, and the further calls of the prompt, if it is another one.
    pub takeover: Option<ModelName>,
}

/// Sender of model events. The queue is bounded, so a slow client slows down the provider's stream.
#[derive(Clone, Debug)]
pub struct ModelEventSender {
    queue: mpsc::Sender<ModelEvent>,
    /// State of the call, shared by all clones.
    call: Arc<CallState>,
    /// Number of attempts made before those that this sender reports.
    earlier_attempts: u32,
}

#[derive(Debug, Default)]
struct CallState {
    has_sent_delta: AtomicBool,
    /// Number of attempts that were reported as failed.
    attempts: AtomicU32,
}

impl ModelEventSender {
    /// Creates a queue for `room` events.
    #[must_use]
    pub fn new(room: usize) -> (Self, mpsc::Receiver<ModelEvent>) {
        let (queue, receiver) = mpsc::channel(room);
        let sender = Self {
            queue,
            call: Arc::default(),
            earlier_attempts: 0,
        };
        (sender, receiver)
    }

    /// Returns true if a delta of the call was sent.
    pub(crate) fn has_sent_delta(&self) -> bool {
        self.call.has_sent_delta.load(Ordering::Relaxed)
    }

    /// Returns the number of attempts of the call that were reported as failed.
    pub(crate) fn attempts(&self) -> u32 {
        self.call.attempts.load(Ordering::Relaxed)
    }

    /// Returns a sender that numbers attempts from `earlier_attempts` on.
    pub(crate) fn counting_from(self, earlier_attempts: u32) -> Self {
        Self {
            earlier_attempts,
            ..self
        }
    }

    /// Sends a delta, waiting for room. A dropped receiver is not an error: the call is about to be dropped
    /// too.
    pub async fn send_delta(&self, delta: ModelDelta) {
        self.call.has_sent_delta.store(true, Ordering::Relaxed);
        let _ = self.queue.send(ModelEvent::Delta(delta)).await;
    }

    /// Reports a silence, unless the queue is full: the receiver is then still busy with earlier events.
    pub fn send_silence(&self, silent: SilenceNotice) {
        let _ = self.queue.try_send(ModelEvent::Silence(silent));
    }

    /// Reports a failed attempt before the delay of its retry. Its number is that within the call of one model.
    pub async fn send_retry(&self, retry: RetryNotice) {
        let attempt = self.earlier_attempts.saturating_add(retry.attempt);
        self.call.attempts.store(attempt, Ordering::Relaxed);
        let mut notice = RetryNotice { attempt, ..retry };
        // Not stored, so records in memory must not have it either.
        notice.error.is_about_model = false;
        let _ = self.queue.send(ModelEvent::Retry(notice)).await;
    }
}
