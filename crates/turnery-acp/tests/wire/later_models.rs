//! Lists of models that arrive after a session was opened.

use crate::{
    harness::{TestClient, result_of},
    login::connect,
};
use futures_util::future::{BoxFuture, FutureExt as _};
use secrecy::SecretString;
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};
use tokio_util::sync::CancellationToken;
use turnery_agent::{Agent, Settings, SettingsError, SettingsResolver};
use turnery_models::{Api, ModelRegistry, ProviderConfig, ProviderSource, ServedModel};
use turnery_store::MemoryStore;
use turnery_tools::Toolbox;

/// The provider `acme`, whose list of models arrives when the test says so.
#[derive(Clone)]
struct SlowLists {
    models: Arc<Mutex<Vec<&'static str>>>,
    arrived: CancellationToken,
}

impl SlowLists {
    fn agent(&self) -> Arc<Agent> {
        Arc::new(Agent::new(
            Arc::new(MemoryStore::new()),
            Arc::new(ModelRegistry::from_source(Arc::new(self.clone()))),
            Toolbox::coding(),
            Arc::new(self.clone()),
        ))
    }
}

impl ProviderSource for SlowLists {
    fn current(&self) -> Arc<[ProviderConfig]> {
        let models = self.models.lock().expect("no panic");
        let acme = ProviderConfig {
            key: Some(SecretString::from("k")),
            models: models.iter().map(|&name| name.to_owned()).collect(),
            ..ProviderConfig::new("acme", Api::OpenAi, "http://127.0.0.1:9/v1")
        };
        Arc::from([acme])
    }

    fn missing_lists(&self) -> Option<BoxFuture<'static, ()>> {
        let arrived = self.arrived.clone();
        (!arrived.is_cancelled()).then(|| arrived.cancelled_owned().boxed())
    }

    fn served_model(&self, _: &ProviderConfig, model: &str) -> Option<ServedModel> {
        self.arrived.is_cancelled().then(|| ServedModel {
            name: model.to_owned(),
            images: Some(false),
            ..ServedModel::default()
        })
    }
}

impl SettingsResolver for SlowLists {
    fn settings(&self, _: &[PathBuf]) -> Result<Settings, SettingsError> {
        Ok(Settings::new(
            "acme/m".parse().expect("a name"),
            "You are a test.",
        ))
    }
}

/// Returns the names of the models that options offer.
fn offered(options: &Value) -> Vec<&str> {
    let options = options.as_array().expect("options");
    let model = options.iter().find(|option| option["id"] == "model");
    let values = model.expect("models")["options"].as_array();
    let values = values.expect("values").iter();
    values.filter_map(|value| value["value"].as_str()).collect()
}

fn is_option_update(message: &Value) -> bool {
    message["params"]["update"]["sessionUpdate"] == "config_option_update"
}

/// Connects a client and opens a session. Returns the response.
fn open_session(lists: &SlowLists) -> (TestClient, Value) {
    let mut client: TestClient = connect(lists.agent(), None, json!({}));
    let answer = client.request("session/new", json!({"cwd": "/", "mcpServers": []}));
    (client, result_of(&answer).clone())
}

/// Prompts with an image. Returns the details of the error.
fn send_image(client: &mut TestClient, session: &Value) -> String {
    let image = json!({"type": "image", "mimeType": "image/png", "data": "aGk="});
    let prompt = json!({"sessionId": session["sessionId"], "prompt": [image]});
    let refused = client.request("session/prompt", prompt);
    refused["error"]["data"]["details"].to_string()
}

/// The options follow only if they change: a list without anything new, or with the session's own model only, does not
/// change them.
#[test]
fn options_are_not_repeated_after_a_list_without_news() {
    for (models, listed) in [(vec!["m"], vec!["m"]), (vec![], vec!["m"])] {
        let lists = SlowLists {
            models: Arc::new(Mutex::new(models)),
            arrived: CancellationToken::new(),
        };
        let (mut client, made) = open_session(&lists);
        assert_eq!(offered(&made["configOptions"]), ["acme/m", "offline"]);
        *lists.models.lock().expect("no panic") = listed;
        lists.arrived.cancel();
        // Until the session knows what the list says of its model.
        while !send_image(&mut client, &made).contains("acme/m takes no images") {}
        client.close_input();
        let (_, messages) = client.join();
        assert!(!messages.iter().any(is_option_update), "{messages:?}");
    }
}

/// A session does not wait for lists of models: they follow in an update, and what they say of its own model holds then.
#[test]
fn session_gets_models_that_arrive_later() {
    let lists = SlowLists {
        models: Arc::new(Mutex::new(vec!["m"])),
        arrived: CancellationToken::new(),
    };
    let (mut client, made) = open_session(&lists);
    assert_eq!(offered(&made["configOptions"]), ["acme/m", "offline"]);
    lists.models.lock().expect("no panic").push("n");
    lists.arrived.cancel();
    let update = client.wait_for(is_option_update);
    assert_eq!(update["params"]["sessionId"], made["sessionId"]);
    let options = &update["params"]["update"]["configOptions"];
    assert_eq!(offered(options), ["acme/m", "acme/n", "offline"]);

    let details = send_image(&mut client, &made);
    assert!(details.contains("acme/m takes no images"), "{details}");

    client.request("session/new", json!({"cwd": "/", "mcpServers": []}));
    client.close_input();
    let (_, messages) = client.join();
    assert!(!messages.iter().any(is_option_update), "{messages:?}");
}
