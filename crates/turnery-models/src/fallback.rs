//! Lets another model make a call for which the chosen one is not available.

use crate::{
    model::{Model, ModelEventSender, ModelInfo, ModelRequest, RetryNotice},
    model_name::ModelName,
    model_registry::ModelRegistry,
};
use futures_util::future::BoxFuture;
use std::{sync::Arc, time::Duration};
use turnery_engine::{ModelError, ModelErrorKind, Response};

/// A model with the fallbacks that the user configured. Its facts are those of the first model.
pub(crate) struct FallbackModel {
    pub(crate) first: Arc<dyn Model>,
    /// Models to try after `first`, in order.
    pub(crate) rest: Vec<ModelName>,
    pub(crate) registry: Arc<ModelRegistry>,
    /// True if the cost is limited: a model without a known price is passed over then.
    pub(crate) needs_price: bool,
}

impl Model for FallbackModel {
    fn info(&self) -> &ModelInfo {
        self.first.info()
    }

    fn call(
        &self,
        request: ModelRequest,
        out: ModelEventSender,
    ) -> BoxFuture<'_, Result<Response, ModelError>> {
        Box::pin(async move {
            let mut model = Arc::clone(&self.first);
            let mut rest = self.rest.iter();
            let mut out = out;
            loop {
                let error = match model.call(request.clone(), out.clone()).await {
                    Ok(response) => return Ok(response),
                    Err(error) => error,
                };
                // Deltas that were shown cannot be withdrawn (R9).
                if out.has_sent_delta() || !is_helped_by_another_model(&error) {
                    return Err(error);
                }
                let Some(next) = rest.find_map(|name| self.usable_model(name)) else {
                    return Err(error);
                };
                let name = next.info().name.clone();
                // The notice tells the user.
                tracing::info!("{} {name} takes over.", error.message);
                let attempt = out.attempts() + 1;
                out = out.counting_from(attempt);
                out.send_retry(RetryNotice {
                    attempt: 0,
                    error: ModelError {
                        message: format!("{} {name} takes over.", error.message),
                        ..error
                    },
                    wait: Duration::ZERO,
                    takeover: Some(name),
                })
                .await;
                model = next;
            }
        })
    }
}

impl FallbackModel {
    /// Returns the model if it can be called: it exists, its key is there, and its price is known if it must be.
    fn usable_model(&self, name: &ModelName) -> Option<Arc<dyn Model>> {
        let lacks_price = self.needs_price && self.registry.price(name).is_none();
        if lacks_price || self.registry.require_key(name).is_err() {
            tracing::debug!(%name, lacks_price, "fallback is passed over");
            return None;
        }
        self.registry.model(name).ok()
    }
}

/// Returns true if the error is about the provider or the model and not about the request: it is unavailable, busy or
/// unreachable after all retries, or refuses the key, the account or the model.
fn is_helped_by_another_model(error: &ModelError) -> bool {
    match error.kind {
        ModelErrorKind::Network
        | ModelErrorKind::Protocol
        | ModelErrorKind::Unfinished
        | ModelErrorKind::RateLimit
        | ModelErrorKind::Overloaded
        | ModelErrorKind::Timeout
        | ModelErrorKind::Auth => true,
        ModelErrorKind::BadRequest => error.is_about_model,
        ModelErrorKind::ContextOverflow | ModelErrorKind::AnswerLimit => false,
    }
}
