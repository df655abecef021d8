//! Asks the session's user about the calls of a candidate.

use crate::client::{Client, PermissionAnswer, PermissionRequest};
use futures_util::future::BoxFuture;
use std::{sync::Arc, time::Duration};
use tokio::{sync::Mutex, time::Instant};
use turnery_engine::{CallId, LoopId, SessionId};
use turnery_models::MissingKeyError;

/// Forwards the permission requests of a candidate, one at a time among all candidates, and names it in them. Calls get
/// the id of its loop, because candidates may use the same ids.
pub(super) struct CandidateClient {
    pub(super) client: Arc<dyn Client>,
    /// As in `candidate 2 (openai/gpt-5)`.
    pub(super) label: String,
    pub(super) loop_id: LoopId,
    /// Held while a question is open; total time of the questions so far.
    pub(super) questions: Arc<Mutex<Duration>>,
}

impl Client for CandidateClient {
    fn request_permission(&self, ask: PermissionRequest) -> BoxFuture<'_, PermissionAnswer> {
        Box::pin(async move {
            let mut total = self.questions.lock().await;
            let began = Instant::now();
            let mut ask = ask;
            ask.detail.title = format!("{}: {}", self.label, ask.detail.title);
            ask.call_id = CallId::from(format!("{}/{}", self.loop_id, ask.call_id));
            let answer = self.client.request_permission(ask).await;
            *total += began.elapsed();
            answer
        })
    }

    fn request_key(&self, session: SessionId, missing: MissingKeyError) -> BoxFuture<'_, ()> {
        self.client.request_key(session, missing)
    }
}
