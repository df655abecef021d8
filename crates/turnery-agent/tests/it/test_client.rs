//! Client of the test fixture.

use crate::fixture::CallCounter;
use futures_util::future::BoxFuture;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};
use tokio::sync::Notify;
use turnery_agent::{Client, PermissionAnswer, PermissionRequest};

/// Client that gives scripted answers in order, and then those of [`answer`](TestClient::answer).
#[derive(Default)]
pub(crate) struct TestClient {
    pub(crate) answers: Mutex<VecDeque<PermissionAnswer>>,
    /// How long each answer takes.
    pub(crate) delay: Mutex<std::time::Duration>,
    pub(crate) asked: Mutex<Vec<PermissionRequest>>,
    pub(crate) was_asked: Notify,
    answer_added: Notify,
    /// Open questions.
    pub(crate) open_questions: Arc<Mutex<usize>>,
}

impl Client for TestClient {
    fn request_permission(&self, ask: PermissionRequest) -> BoxFuture<'_, PermissionAnswer> {
        Box::pin(async move {
            let _open = CallCounter::new(&self.open_questions);
            self.asked.lock().unwrap().push(ask);
            self.was_asked.notify_one();
            let delay = *self.delay.lock().unwrap();
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            loop {
                let answer = self.answers.lock().unwrap().pop_front();
                match answer {
                    Some(answer) => return answer,
                    None => self.answer_added.notified().await,
                }
            }
        })
    }
}

impl TestClient {
    /// Answers the open question, which has no answer yet.
    pub(crate) fn answer(&self, answer: PermissionAnswer) {
        self.answers.lock().unwrap().push_back(answer);
        self.answer_added.notify_one();
    }
}
