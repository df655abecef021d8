//! The trait that every model API is behind, and what goes in and out.

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use tokio::sync::mpsc;
use turnery_engine::{
    AnswerLimits, ConfigSnapshot, Content, LlmMessage, Message, MessageId, ModelDelta, ModelFault,
    Response, SessionId, ToolSpec,
};

/// A model that can be called. Dropping the future of a call drops its connection at once.
pub trait Model: Send + Sync + 'static {
    /// What it is.
    fn info(&self) -> &ModelInfo;

    /// Call it. Fragments go to `out` as they come, in order, and the settled answer is the result.
    ///
    /// The answer holds all that the fragments said. A stream that ends without the API's terminal
    /// event is a fault, never an answer (C-31). Retries happen inside, and only while no fragment
    /// has been sent (R9).
    fn call(
        &self,
        request: ModelRequest,
        out: DeltaSender,
    ) -> BoxFuture<'_, Result<Response, ModelFault>>;
}

/// What a model is.
#[derive(Clone, Debug)]
pub struct ModelInfo {
    /// `provider/model`, as a person writes it.
    pub name: ModelName,
    /// For people.
    pub display_name: String,
    /// How much it can take in. Unit: tokens; `None` when unknown.
    pub context_window: Option<u32>,
    /// How much it may answer. Unit: tokens.
    pub max_output: u32,
    /// Whether it takes pictures.
    pub images: bool,
    /// Whether it takes recordings.
    pub audio: bool,
    /// Whether it reasons.
    pub reasoning: bool,
    /// `anthropic_messages`, `openai_chat_completions`, `offline`, `scripted`.
    pub api: &'static str,
    /// Without credentials.
    pub base_url: Option<String>,
}

pub use crate::catalogue::ModelName;

impl ModelInfo {
    /// The identity that is kept with each loop. Holds no secret.
    #[must_use]
    pub fn snapshot(&self, thinking: Thinking, temperature: Option<f32>) -> ConfigSnapshot {
        ConfigSnapshot {
            model: self.name.model.clone(),
            provider: self.name.provider.clone(),
            config_id: Some(self.name.segment()),
            name: Some(self.display_name.clone()),
            api: Some(self.api.to_owned()),
            base_url: self.base_url.clone(),
            reasoning: Some(self.reasoning),
            context_window: self.context_window,
            max_tokens: Some(self.max_output),
            thinking_level: Some(thinking.as_str().to_owned()),
            temperature,
        }
    }
}

/// One call.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// The session: a stable key for the provider's cache.
    pub session_id: SessionId,
    /// System prompt and instructions.
    pub system: Arc<str>,
    /// The conversation. Shared with the session: drop it once it is serialised.
    pub messages: Arc<Vec<Arc<LlmMessage>>>,
    /// Tools on offer; empty for a reply that must be prose.
    pub tools: Arc<[ToolSpec]>,
    /// How much it is to think.
    pub thinking: Thinking,
    /// Sampling temperature; none leaves it to the provider. Left out where a model that thinks takes none.
    pub temperature: Option<f32>,
    /// How long the answer may be. A longer one is a fault ([`FaultKind::AnswerLimit`]) as soon as it
    /// exceeds a bound, so that it never has to be held.
    ///
    /// [`FaultKind::AnswerLimit`]: turnery_engine::FaultKind::AnswerLimit
    pub answer: AnswerLimits,
}

impl ModelRequest {
    /// One question without history and without tools, under these instructions.
    #[must_use]
    pub fn question(
        session_id: SessionId,
        instructions: &str,
        message_id: &str,
        text: String,
        thinking: Thinking,
    ) -> Self {
        let message = LlmMessage {
            message_id: MessageId::from(message_id),
            turn_id: None,
            message: Message::User {
                content: vec![Content::text(text)],
            },
        };
        Self {
            session_id,
            system: Arc::from(instructions),
            messages: Arc::new(vec![Arc::new(message)]),
            tools: Arc::new([]),
            thinking,
            temperature: None,
            answer: AnswerLimits::default(),
        }
    }
}

/// How much a model is to think before it answers.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Thinking {
    /// As the model does by itself.
    #[default]
    Default,
    /// Not at all.
    Off,
    /// A little.
    Low,
    /// More.
    Medium,
    /// Much.
    High,
}

impl Thinking {
    /// The word for it in configuration and on the wire.
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

/// What a call tells before it ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// A fragment of the answer.
    Delta(ModelDelta),
    /// An attempt failed before its first fragment, and is made again (R9).
    Retry(Retry),
    /// No content has come for a while; the call goes on.
    Silent(Silent),
}

/// A call that brings no content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silent {
    /// Since the last content, or since the attempt began.
    pub length: Duration,
    /// Whether bytes came since the last notice, such as pings.
    pub is_connected: bool,
}

/// A failed attempt that is made again, inside one call (UP-8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The attempt that failed, from 1.
    pub attempt: u32,
    /// How.
    pub fault: ModelFault,
    /// How long until the next one.
    pub wait: Duration,
}

/// Where fragments go: a bounded queue, so a slow client slows the provider's stream.
#[derive(Clone, Debug)]
pub struct DeltaSender(mpsc::Sender<Told>);

impl DeltaSender {
    /// A queue of `room` fragments.
    #[must_use]
    pub fn new(room: usize) -> (Self, mpsc::Receiver<Told>) {
        let (sender, receiver) = mpsc::channel(room);
        (Self(sender), receiver)
    }

    /// Send one fragment; waits for room. Nobody listening any more is not an error: the caller is
    /// about to be dropped.
    pub async fn send(&self, delta: ModelDelta) {
        let _ = self.0.send(Told::Delta(delta)).await;
    }

    /// Tells of a silence, unless the listener is busy: the silence is over for it anyway.
    pub fn silent(&self, silent: Silent) {
        let _ = self.0.try_send(Told::Silent(silent));
    }

    /// Tell of an attempt that failed, before waiting to make it again.
    pub async fn retry(&self, retry: Retry) {
        let _ = self.0.send(Told::Retry(retry)).await;
    }
}
