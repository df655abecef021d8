//! Defines the interfaces to the client of a session: permission requests, questions and events.

use crate::{
    ask_user::{UserAnswer, UserQuestion},
    session::{PromptError, PromptResult},
    view::SessionCost,
};
use futures_util::future::BoxFuture;
use std::{
    future::ready,
    sync::Arc,
    task::{Context, Poll},
};
use turnery_engine::{CallDetail, CallId, Event, SessionId, Timestamp};
use turnery_models::MissingKeyError;
use turnery_tools::{Files, LocalFiles, Rule, Terminals};

/// Interfaces that a session needs from its client.
pub struct ClientPorts {
    /// Answers permission requests and questions.
    pub client: Arc<dyn Client>,
    /// Receives events.
    pub outbox: Box<dyn Outbox>,
    /// Access to text files: on disk, or through the editor.
    pub files: Arc<dyn Files>,
    /// Terminals provided by the client.
    pub terminals: Option<Arc<dyn Terminals>>,
}

impl ClientPorts {
    /// Combines a client and an outbox with local files.
    #[must_use]
    pub fn local(client: Arc<dyn Client>, outbox: Box<dyn Outbox>) -> Self {
        Self {
            client,
            outbox,
            files: Arc::new(LocalFiles),
            terminals: None,
        }
    }

    /// Creates ports with local files and a [`SilentClient`].
    #[must_use]
    pub fn silent() -> Self {
        Self::local(Arc::new(SilentClient), Box::new(SilentClient))
    }
}

/// Interactive side of a session: answers permission requests and questions.
pub trait Client: Send + Sync + 'static {
    /// Asks whether a tool call may run. May wait indefinitely; dropping the future cancels the request.
    fn request_permission(&self, ask: PermissionRequest) -> BoxFuture<'_, PermissionAnswer>;

    /// Returns true if the client can show questions of the model. If not, the model is not offered the
    /// `ask_user` tool.
    fn can_answer_questions(&self) -> bool {
        false
    }

    /// Asks the user a question of the model. May wait indefinitely; dropping the future cancels the
    /// question.
    fn answer_question(&self, _question: UserQuestion) -> BoxFuture<'_, UserAnswer> {
        Box::pin(async { UserAnswer::NoAnswer("nobody is there to ask".to_owned()) })
    }

    /// Reports that the next model call needs a missing key. The client may let the user enter the key out of
    /// band, invisible to session and model. Resolves when there is nothing more to wait for; the model call
    /// then looks the key up itself. Dropping the future cancels the request.
    fn request_key(&self, _session: SessionId, _missing: MissingKeyError) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }
}

/// Request for permission to run a tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct PermissionRequest {
    /// The session.
    pub session_id: SessionId,
    /// The call.
    pub call_id: CallId,
    /// The tool's name.
    pub tool_name: String,
    /// The arguments as the model gave them.
    pub args: Arc<serde_json::Value>,
    /// Presentation of the call, with a diff if available.
    pub detail: CallDetail,
    /// Possible choices: at most one of each kind, with unique ids.
    pub options: Vec<PermissionChoice>,
    /// Rule that "always allow" adds; `None` if no rule can express the call.
    pub rule: Option<Rule>,
}

/// Choice offered by a permission request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionChoice {
    /// Id of the choice.
    pub id: String,
    /// Button label, for example `Always allow "cargo test"`.
    pub name: String,
    /// Meaning of the choice.
    pub kind: PermissionChoiceKind,
}

/// Meaning of a permission choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermissionChoiceKind {
    /// Allows this call.
    AllowOnce,
    /// Allows this call and, for the rest of the session, all similar ones.
    AllowAlways,
    /// Rejects this call; the turn continues.
    RejectOnce,
    /// Rejects this call and, for the rest of the session, all similar ones.
    RejectAlways,
}

/// Answer to a permission request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermissionAnswer {
    /// Id of the chosen option. An unknown id rejects the call.
    Selected(String),
    /// The user cancelled the prompt.
    Cancelled,
    /// No usable answer: the call is rejected. The text gives the reason.
    NoAnswer(String),
}

/// Ordered output of one session. A full outbox applies backpressure to the session.
pub trait Outbox: Send + 'static {
    /// Resolves when one more item may be pushed, or when the receiver is gone.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()>;

    /// Pushes one item. Must follow a [`poll_ready`](Self::poll_ready) that was ready. Uses up the reserved
    /// slot even if this outbox ignores the item.
    fn push(&mut self, item: OutboxItem<'_>);

    /// Releases a reserved slot that is not needed. Called when a session becomes idle, so that an outbox on
    /// a shared queue does not hold a slot meanwhile.
    fn release_slot(&mut self) {}

    /// Returns the session cost that this outbox shows. [`Agent::open`](crate::Agent::open) adds the cost of the stored
    /// prompts.
    fn session_cost_mut(&mut self) -> Option<&mut SessionCost> {
        None
    }

    /// Returns true if the client accepts prompts that it has not sent, which
    /// [`Settings::runs_queued_prompts`](crate::Settings::runs_queued_prompts) asks for.
    fn shows_other_prompts(&self) -> bool {
        true
    }

    /// Returns true if this outbox wants [`OutboxItem::PromptEnd`]. Callers that await prompt handles do not need
    /// it.
    fn wants_prompt_end(&self) -> bool {
        false
    }
}

/// Item pushed to an outbox.
#[derive(Clone, Copy, Debug)]
pub enum OutboxItem<'a> {
    /// An event of a running loop.
    Live(&'a Event),
    /// A stored event, replayed while a session is loaded. Events of the
    /// [`EventKind::TRANSIENT_KINDS`](turnery_engine::EventKind::TRANSIENT_KINDS) are omitted: the text of a
    /// message is in its `MessageEnd`.
    Replay(&'a Event),
    /// The title or the time of last activity changed.
    Info {
        /// Title of the session.
        title: Option<&'a str>,
        /// Time of last activity.
        updated_at: Timestamp,
    },
    /// All [`Replay`](Self::Replay) items were pushed.
    ReplayEnd,
    /// A prompt ended; no more of its items follow. Pushed only if [`Outbox::wants_prompt_end`] returns true.
    PromptEnd(&'a Result<PromptResult, PromptError>),
}

/// Client without a user: calls that the policy does not allow are rejected, and output is discarded.
#[derive(Clone, Copy, Debug, Default)]
pub struct SilentClient;

impl Client for SilentClient {
    fn request_permission(&self, _ask: PermissionRequest) -> BoxFuture<'_, PermissionAnswer> {
        Box::pin(async { PermissionAnswer::NoAnswer("nobody is there to ask".to_owned()) })
    }
}

impl Outbox for SilentClient {
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }
    fn push(&mut self, _item: OutboxItem<'_>) {}
}
