//! A refused prompt is not in the next context (PROMPT-9), shown by a model that repeats its input.

use crate::harness::{TestClient, TestEnv, prompt_params, result_of};
use futures_util::future::BoxFuture;
use serde_json::json;
use std::sync::Arc;
use turnery_engine::{Content, ModelDelta, ModelError, ModelStop, Response};
use turnery_models::{Model, ModelEventSender, ModelInfo, ModelRequest};

/// Model that answers with all messages of the request, joined by `|`, and refuses the prompt `bad`. Takes no
/// images.
pub(crate) struct EchoModel(ModelInfo);

impl EchoModel {
    pub(crate) fn new() -> Self {
        Self(ModelInfo {
            name: "test/parrot".parse().expect("a name"),
            display_name: "Parrot".to_owned(),
            context_window: None,
            max_output: 100,
            images: false,
            audio: false,
            documents: false,
            reasoning: false,
            api: "test",
            base_url: None,
        })
    }
}

impl Model for EchoModel {
    fn info(&self) -> &ModelInfo {
        &self.0
    }

    fn call(
        &self,
        request: ModelRequest,
        out: ModelEventSender,
    ) -> BoxFuture<'_, Result<Response, ModelError>> {
        Box::pin(async move {
            let heard: Vec<String> = request.messages.iter().map(|m| m.message.text()).collect();
            let is_bad = heard.last().is_some_and(|text| text == "bad");
            let text = heard.join("|");
            out.send_delta(ModelDelta::Text {
                block: 0,
                text: text.clone(),
            })
            .await;
            Ok(Response {
                content: vec![Content::text(text)],
                stop: if is_bad {
                    ModelStop::Refusal
                } else {
                    ModelStop::EndTurn
                },
                raw_stop: None,
                usage: None,
                model: self.0.name.model.clone(),
                provider: self.0.name.provider.clone(),
                tool_results: Vec::new(),
                request: None,
            })
        })
    }
}

// proves: ACP-7, ACP-11, ACP-45, ACP-57, UP-35, PROMPT-8, PROMPT-9
#[test]
fn refused_prompt_is_not_in_next_context() {
    let world = TestEnv::without_answers();
    let mut client = TestClient::initialized(world.agent_with_model(Arc::new(EchoModel::new())));
    let id = client.new_session(world.new_session_params());
    let mut say = |text: &str| {
        let answer = client.request("session/prompt", prompt_params(&id, text));
        let said: String = client
            .take_updates()
            .iter()
            .filter_map(|update| update["content"]["text"].as_str())
            .collect();
        (result_of(&answer)["stopReason"].clone(), said)
    };
    assert_eq!(say("good"), (json!("end_turn"), "good".to_owned()));
    assert_eq!(say("bad"), (json!("refusal"), "good|good|bad".to_owned()));
    assert_eq!(
        say("fine"),
        (json!("end_turn"), "good|good|fine".to_owned())
    );
}
