//! Changes an option of a session: stored first, so that a change that cannot be stored does not take effect.

use super::{
    SessionOptions, command::OptionChange, conversation::Conversation, env::SessionEnv,
    errors::SetOptionError,
};
use crate::code_mode::Protocol;
use futures_util::future::BoxFuture;
use std::{
    future::ready,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::sync::{oneshot, watch};
use turnery_models::{Model, Thinking};
use turnery_store::{SessionPatch, StoreError};
use turnery_tools::Mode;

/// Option change that takes effect once it is stored.
pub(crate) struct PendingOptionChange {
    option: ResolvedOption,
    stored: BoxFuture<'static, Result<(), StoreError>>,
    reply: oneshot::Sender<Result<(), SetOptionError>>,
}

/// New value of an option.
pub(crate) enum ResolvedOption {
    Mode(Mode),
    Model(Arc<dyn Model>),
    /// The current model, with what is known of it now.
    ReloadedModel(Arc<dyn Model>),
    Title(String),
    Thinking(Thinking),
    Protocol(Protocol),
}

impl PendingOptionChange {
    /// Starts to store a change; `None` if it is invalid, which the sender is told. Other session data in the
    /// store is not read: another handle may have changed it, and only a claim may pick that up.
    pub(crate) fn begin(
        change: OptionChange,
        env: &SessionEnv,
        conversation: &Conversation,
        reply: oneshot::Sender<Result<(), SetOptionError>>,
    ) -> Option<Self> {
        let resolved = match change {
            OptionChange::Mode(mode) => Ok(ResolvedOption::Mode(mode)),
            OptionChange::Model(name) => env.models.model(&name).map(ResolvedOption::Model),
            OptionChange::ReloadModel => {
                let model = env.models.model(&env.model.info().name);
                model.map(ResolvedOption::ReloadedModel)
            }
            OptionChange::Title(title) => Ok(ResolvedOption::Title(title)),
            OptionChange::Thinking(thinking) => Ok(ResolvedOption::Thinking(thinking)),
            OptionChange::Protocol(protocol) => Ok(ResolvedOption::Protocol(protocol)),
        };
        let option = match resolved {
            Ok(option) => option,
            Err(unknown) => {
                let _ = reply.send(Err(unknown.into()));
                return None;
            }
        };
        let mut patch = SessionPatch::default();
        match &option {
            ResolvedOption::Mode(mode) => patch.mode = Some(mode.as_str().to_owned()),
            ResolvedOption::Model(model) => patch.model = Some(model.info().name.to_string()),
            // Its name is stored already, or another handle has stored a newer choice.
            ResolvedOption::ReloadedModel(_) => {
                return Some(Self {
                    option,
                    stored: Box::pin(ready(Ok(()))),
                    reply,
                });
            }
            ResolvedOption::Title(title) => patch.title = Some(Some(title.clone())),
            ResolvedOption::Thinking(thinking) => {
                patch.thinking = Some(thinking.as_str().to_owned())
            }
            ResolvedOption::Protocol(protocol) => {
                patch.protocol = Some(protocol.as_str().to_owned())
            }
        }
        let (store, id) = (Arc::clone(&env.store), conversation.info.id.clone());
        Some(Self {
            option,
            stored: Box::pin(async move { store.patch(&id, patch).await.map(drop) }),
            reply,
        })
    }

    /// Resolves when the change is stored, or could not be.
    pub(crate) fn poll_stored(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StoreError>> {
        self.stored.as_mut().poll(cx)
    }

    /// Applies a change that is stored, and notifies the sender.
    pub(crate) fn finish(
        self,
        stored: Result<(), StoreError>,
        env: &mut SessionEnv,
        conversation: &mut Conversation,
        options: &watch::Sender<SessionOptions>,
    ) {
        if stored.is_ok() {
            self.option.apply(env, conversation, options);
        }
        let _ = self.reply.send(stored.map_err(SetOptionError::from));
    }
}

impl ResolvedOption {
    fn apply(
        self,
        env: &mut SessionEnv,
        conversation: &mut Conversation,
        options: &watch::Sender<SessionOptions>,
    ) {
        match self {
            Self::Mode(mode) => {
                env.policy.mode = mode;
                options.send_modify(|options| options.mode = mode);
            }
            Self::Model(model) | Self::ReloadedModel(model) => {
                env.model = model;
                let info = Arc::new(env.model.info().clone());
                options.send_modify(|options| options.model = info);
            }
            Self::Title(title) => conversation.info.title = Some(title),
            Self::Thinking(thinking) => {
                env.settings.thinking = thinking;
                options.send_modify(|options| options.thinking = thinking);
            }
            Self::Protocol(protocol) => {
                env.settings.protocol = protocol;
                options.send_modify(|options| options.protocol = protocol);
            }
        }
    }
}
