//! Defines what a session shares with its candidates and child sessions.

use super::{
    RememberedApprovals, SessionOptions,
    budget::Budget,
    effect_delivery::EffectOutbox,
    price::{UnknownPriceError, known_price},
};
use crate::{client::Client, finish::FinalAnswerFormat, settings::Settings, trace_sink::Tracer};
use std::sync::Arc;
use tokio::sync::watch;
use turnery_engine::{Limits, Price};
use turnery_models::{Model, ModelRegistry};
use turnery_store::Store;
use turnery_tools::{Policy, Toolbox, Workspace};

/// Environment in which a session's loops run. Candidates and child sessions start with a copy, in which they
/// may replace the model and the client but never allow more than the session does.
#[derive(Clone)]
pub(crate) struct SessionEnv {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) models: Arc<ModelRegistry>,
    /// Tools that can be called now.
    pub(crate) toolbox: Toolbox,
    pub(crate) workspace: Arc<Workspace>,
    /// Answers permission requests and questions.
    pub(crate) client: Arc<dyn Client>,
    pub(crate) settings: Settings,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) policy: Policy,
    pub(crate) tracer: Tracer,
    /// Approvals of the session that the user sees: its own, or its topmost parent's.
    pub(crate) approvals: RememberedApprovals,
    /// Options of the session, for its candidates: their mode is no more permissive than its own, even if that becomes
    /// stricter while they run.
    pub(crate) session_options: Option<watch::Receiver<SessionOptions>>,
    /// Environment variables hidden from programs, in addition to the usual ones.
    pub(crate) hidden_env: Arc<[String]>,
    /// Number of parent sessions.
    pub(crate) depth: u8,
    /// Budget shared with the parent's prompt; `None` if each prompt has its own.
    pub(crate) budget: Option<Budget>,
    /// Outbox of the session that the user sees; `None` if nobody receives effects.
    pub(crate) effect_outbox: Option<EffectOutbox>,
}

impl SessionEnv {
    /// Adds all approvals remembered so far to the policy, and applies the session's mode to a candidate.
    pub(crate) fn update_policy(&mut self) {
        self.approvals.apply_to(&mut self.policy);
        if let Some(options) = &self.session_options {
            let mode = options.borrow().mode;
            if self.policy.mode.is_more_permissive_than(mode) {
                self.policy.mode = mode;
            }
        }
    }

    /// Returns the usual form of final values (LASH-121 to LASH-123).
    pub(crate) fn final_answer_format(&self) -> FinalAnswerFormat {
        let usual = match self.depth {
            0 => FinalAnswerFormat::Markdown,
            1.. => FinalAnswerFormat::RawValue,
        };
        self.settings.final_answer_format.unwrap_or(usual)
    }

    /// Returns the price of a model's tokens, if known.
    pub(crate) fn price(&self, model: &dyn Model) -> Option<Price> {
        let known = known_price(&self.models, &model.info().name);
        known.ok().or(self.settings.price)
    }

    /// Like [`price`](Self::price), but fails if the cost is limited and the price is unknown.
    pub(crate) fn price_for_limits(
        &self,
        limits: &Limits,
        model: &dyn Model,
    ) -> Result<Option<Price>, UnknownPriceError> {
        match self.price(model) {
            None if limits.cost.is_some() => {
                let model = model.info().name.clone();
                Err(UnknownPriceError { model })
            }
            price => Ok(price),
        }
    }
}
