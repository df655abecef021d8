//! Tracks which sessions run a prompt or are being loaded.

use super::{messages::session_id, responses::ClientRequest};
use serde_json::Value;

/// Pending requests of the client that let the agent report on a session.
#[derive(Debug, Default)]
pub(super) struct SessionActivity {
    /// Session of each running prompt.
    prompts: Vec<String>,
    /// Session of each pending `session/load`.
    loads: Vec<String>,
}

impl SessionActivity {
    pub(super) fn on_sent(&mut self, message: &Value) {
        let session = || session_id(&message["params"]).to_owned();
        match message["method"].as_str() {
            Some("session/prompt") if message.get("id").is_some() => self.prompts.push(session()),
            Some("session/load") if message.get("id").is_some() => self.loads.push(session()),
            _ => {}
        }
    }

    pub(super) fn on_response(&mut self, request: &ClientRequest) {
        let session = session_id(&request.params);
        match request.method.as_str() {
            "session/prompt" => {
                if let Some(index) = self.prompts.iter().position(|it| it == session) {
                    self.prompts.swap_remove(index);
                }
            }
            "session/load" => self.loads.retain(|loading| loading != session),
            _ => {}
        }
    }

    pub(super) fn is_prompting(&self, session: &str) -> bool {
        self.prompts.iter().any(|prompted| prompted == session)
    }

    pub(super) fn is_loading(&self, session: &str) -> bool {
        self.loads.iter().any(|loading| loading == session)
    }
}
