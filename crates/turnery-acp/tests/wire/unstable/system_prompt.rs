//! `systemPrompt` of a created or opened session: appended, replacing the built-in one, or rejected. A session that is
//! opened with another one keeps its own in its requests, and the model is told the other.

use crate::harness::{TestClient, TestEnv, error_code_of, result_of};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use turnery_engine::{Message, ModelError, Response};
use turnery_models::{Model, ModelEventSender, ModelInfo, ModelRequest, OfflineModel};

/// Beginning of the notice about instructions that differ from the system prompt.
const CHANGED: &str = "The instructions with which this conversation began have changed. Follow these instead from now on:\n\n";

/// System prompt of a request, and what the last notice says instead.
type Instructions = (String, Option<String>);

/// Model that records its instructions and answers like the offline model.
struct SystemPromptRecorder {
    instructions: Arc<Mutex<Vec<Instructions>>>,
    inner: OfflineModel,
}

impl Model for SystemPromptRecorder {
    fn info(&self) -> &ModelInfo {
        self.inner.info()
    }

    fn call(
        &self,
        request: ModelRequest,
        out: ModelEventSender,
    ) -> BoxFuture<'_, Result<Response, ModelError>> {
        let mut notices = request.messages.iter().filter_map(|it| match &it.message {
            Message::System { text } => text.strip_prefix(CHANGED),
            Message::User { .. } | Message::Assistant { .. } | Message::ToolResult { .. } => None,
        });
        let told = notices.next_back().map(str::to_owned);
        let mut said = self.instructions.lock().expect("no panic");
        said.push((request.system.to_string(), told));
        self.inner.call(request, out)
    }
}

fn system_prompt_value(text: &str, mode: &str) -> Value {
    json!({"mode": mode, "content": [{"type": "text", "text": text}]})
}

fn params_with_system_prompt(world: &TestEnv, id: &str, prompt: &Value) -> Value {
    let mut params = world.new_session_params();
    if !id.is_empty() {
        params["sessionId"] = json!(id);
    }
    params["systemPrompt"] = prompt.clone();
    params
}

/// Prompts the session and returns the instructions that the model received.
fn prompt_and_read_instructions(
    client: &mut TestClient,
    heard: &Mutex<Vec<Instructions>>,
    id: &str,
) -> Instructions {
    client.prompt(id, "hi");
    let mut heard = heard.lock().expect("no panic");
    heard.drain(..).next().expect("it was called")
}

#[test]
fn system_prompt_reaches_the_model() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let world = TestEnv::without_answers();
    let model = SystemPromptRecorder {
        instructions: Arc::clone(&heard),
        inner: OfflineModel::default(),
    };
    let mut client = TestClient::initialized(world.agent_with_model(Arc::new(model)));
    let own = || ("You are a test.".to_owned(), None);
    let told = |text: &str| ("You are a test.".to_owned(), Some(text.to_owned()));
    let id = client.new_session(params_with_system_prompt(&world, "", &json!(null)));
    assert_eq!(
        prompt_and_read_instructions(&mut client, &heard, &id),
        own()
    );
    for (method, system, expected) in [
        (
            "session/load",
            system_prompt_value("Be brief.", "append"),
            "You are a test.\n\nBe brief.",
        ),
        (
            "session/resume",
            system_prompt_value("Be brief.", "override"),
            "Be brief.",
        ),
        ("session/resume", json!(null), "You are a test."),
    ] {
        result_of(&client.request(method, params_with_system_prompt(&world, &id, &system)));
        assert_eq!(
            prompt_and_read_instructions(&mut client, &heard, &id),
            told(expected),
            "{method}"
        );
    }
    let both = "You are a test.\n\na\n\nb";
    for (method, source, expected) in [
        ("session/new", "", (both.to_owned(), None)),
        ("session/fork", id.as_str(), told(both)),
    ] {
        let two = json!({"mode": "append", "content": [
            {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]});
        let made = client.request(method, params_with_system_prompt(&world, source, &two));
        let id = result_of(&made)["sessionId"]
            .as_str()
            .expect("an id")
            .to_owned();
        assert_eq!(
            prompt_and_read_instructions(&mut client, &heard, &id),
            expected,
            "{method}"
        );
    }
}

#[test]
fn invalid_system_prompt_creates_no_session() {
    let world = TestEnv::without_answers();
    let (mut client, id) = world.session();
    let image = json!({"type": "image", "data": "", "mimeType": "image/png"});
    for wrong in [
        system_prompt_value("a", "_mine"),
        system_prompt_value("a", "prepend"),
        json!({"mode": "append", "content": []}),
        json!({"mode": "append", "content": [image]}),
        json!({"mode": "append", "content": "a"}),
        json!({"content": [{"type": "text", "text": "a"}]}),
        json!("Be brief."),
    ] {
        for (method, id) in [
            ("session/new", ""),
            ("session/load", id.as_str()),
            ("session/resume", id.as_str()),
            ("session/fork", id.as_str()),
        ] {
            let answer = client.request(method, params_with_system_prompt(&world, id, &wrong));
            assert_eq!(error_code_of(&answer), -32602, "{method} {wrong}");
        }
    }
    let list = client.request("session/list", json!({}));
    assert_eq!(
        result_of(&list)["sessions"].as_array().map(Vec::len),
        Some(1)
    );
}
