//! `systemPrompt` of a session that is made or opened: behind our own words, in place of them, or refused.

use crate::harness::{Client, World, error_of, prompt, result_of};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use turnery_acp::ServeOptions;
use turnery_engine::{ModelFault, Response};
use turnery_models::{DeltaSender, Model, ModelInfo, ModelRequest, Offline};

/// Hears what it is told before all else, and answers like the one without a network.
struct Hears {
    said: Arc<Mutex<Vec<String>>>,
    inner: Offline,
}

impl Model for Hears {
    fn info(&self) -> &ModelInfo {
        self.inner.info()
    }

    fn call(
        &self,
        request: ModelRequest,
        out: DeltaSender,
    ) -> BoxFuture<'_, Result<Response, ModelFault>> {
        let mut said = self.said.lock().expect("no panic");
        said.push(request.system.to_string());
        self.inner.call(request, out)
    }
}

fn told(text: &str, mode: &str) -> Value {
    json!({"mode": mode, "content": [{"type": "text", "text": text}]})
}

fn opens(world: &World, id: &str, prompt: &Value) -> Value {
    let mut params = world.new_session();
    if !id.is_empty() {
        params["sessionId"] = json!(id);
    }
    params["systemPrompt"] = prompt.clone();
    params
}

/// What the model hears when the session is asked something.
fn hears(client: &mut Client, heard: &Mutex<Vec<String>>, id: &str) -> String {
    result_of(&client.call("session/prompt", prompt(id, "hi")));
    let mut heard = heard.lock().expect("no panic");
    heard.drain(..).next().expect("it was called")
}

#[test]
fn a_system_prompt_is_said_to_the_model() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let world = World::silent();
    let model = Hears {
        said: Arc::clone(&heard),
        inner: Offline::default(),
    };
    let agent = world.agent_with(Arc::new(model));
    let mut client = Client::connect(agent, ServeOptions::default());
    client.initialize(json!({}));
    let made = client.call("session/new", opens(&world, "", &json!(null)));
    let id = result_of(&made)["sessionId"]
        .as_str()
        .expect("an id")
        .to_owned();
    assert_eq!(hears(&mut client, &heard, &id), "You are a test.");
    for (method, system, expected) in [
        (
            "session/load",
            told("Be brief.", "append"),
            "You are a test.\n\nBe brief.",
        ),
        ("session/resume", told("Be brief.", "override"), "Be brief."),
        ("session/resume", json!(null), "You are a test."),
    ] {
        result_of(&client.call(method, opens(&world, &id, &system)));
        assert_eq!(hears(&mut client, &heard, &id), expected, "{method}");
    }
    for (method, source) in [("session/new", ""), ("session/fork", id.as_str())] {
        let two = json!({"mode": "append", "content": [
            {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]});
        let made = client.call(method, opens(&world, source, &two));
        let id = result_of(&made)["sessionId"]
            .as_str()
            .expect("an id")
            .to_owned();
        assert_eq!(hears(&mut client, &heard, &id), "You are a test.\n\na\n\nb");
    }
}

#[test]
fn what_cannot_be_said_makes_no_session() {
    let world = World::silent();
    let (mut client, id) = world.session();
    let image = json!({"type": "image", "data": "", "mimeType": "image/png"});
    for wrong in [
        told("a", "_mine"),
        told("a", "prepend"),
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
            let answer = client.call(method, opens(&world, id, &wrong));
            assert_eq!(error_of(&answer), -32602, "{method} {wrong}");
        }
    }
    let list = client.call("session/list", json!({}));
    assert_eq!(
        result_of(&list)["sessions"].as_array().map(Vec::len),
        Some(1)
    );
}
