//! Defines the `Model` trait, its requests and its events.

use crate::model_name::ModelName;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use tokio::sync::mpsc;
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
#[derive(Clone, Debug)]
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
    /// True if the model can reason.
    pub reasoning: bool,
    /// API of the model: `anthropic_messages`, `openai_chat_completions`, `offline` or `scripted`.
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
    /// Available tools; empty if the response must be prose.
    pub tools: Arc<[ToolSpec]>,
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
}

/// Sender of model events. The queue is bounded, so a slow client slows down the provider's stream.
#[derive(Clone, Debug)]
pub struct ModelEventSender(mpsc::Sender<ModelEvent>);

impl ModelEventSender {
    /// Creates a queue for `room` events.
    #[must_use]
    pub fn new(room: usize) -> (Self, mpsc::Receiver<ModelEvent>) {
        let (sender, receiver) = mpsc::channel(room);
        (Self(sender), receiver)
    }

    /// Sends a delta, waiting for room. A dropped receiver is not an error: the call is about to be dropped
    /// too.
    pub async fn send_delta(&self, delta: ModelDelta) {
        let _ = self.0.send(ModelEvent::Delta(delta)).await;
    }

    /// Reports a silence, unless the queue is full: the receiver is then still busy with earlier events.
    pub fn send_silence(&self, silent: SilenceNotice) {
        let _ = self.0.try_send(ModelEvent::Silence(silent));
    }

    /// Reports a failed attempt before the delay of its retry.
    pub async fn send_retry(&self, retry: RetryNotice) {
        let _ = self.0.send(ModelEvent::Retry(retry)).await;
    }
}
