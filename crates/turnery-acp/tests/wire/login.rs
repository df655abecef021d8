//! Login and logout (AUTH-1 to AUTH-11): offered methods, and what is refused without a key.

use crate::harness::{TestClient, TestEnv, error_code_of, prompt_params, result_of};
use secrecy::SecretString;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};
use turnery_acp::{Login, ServeOptions};
use turnery_agent::{Agent, Settings, SettingsError, SettingsResolver};
use turnery_models::{Api, ModelName, ModelRegistry, ProviderConfig, ProviderSource};
use turnery_store::MemoryStore;
use turnery_tools::Toolbox;

/// Returns login options and the number of times keys were deleted.
pub(crate) fn login() -> (Login, Arc<AtomicUsize>) {
    let forgotten = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&forgotten);
    let login = Login {
        program: PathBuf::from("/bin/turnery"),
        args: vec!["login".to_owned()],
        env: BTreeMap::from([("TURNERY_HOME".to_owned(), "/srv/t".to_owned())]),
        forget_keys: Arc::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }),
        key_page_opener: None,
    };
    (login, forgotten)
}

pub(crate) fn connect(agent: Arc<Agent>, login: Option<Login>, abilities: Value) -> TestClient {
    let options = ServeOptions {
        login,
        ..ServeOptions::default()
    };
    let mut client = TestClient::connect(agent, options);
    client.initialize(abilities);
    client
}

/// A provider `acme` that needs a key, and its model, the default of every session.
#[derive(Clone)]
pub(crate) struct FakeKeys(Arc<Mutex<Option<&'static str>>>);

impl FakeKeys {
    pub(crate) fn none() -> Self {
        Self(Arc::default())
    }

    pub(crate) fn set(&self, key: Option<&'static str>) {
        *self.0.lock().expect("no panic") = key;
    }

    pub(crate) fn agent(&self) -> Arc<Agent> {
        Arc::new(Agent::new(
            Arc::new(MemoryStore::new()),
            Arc::new(ModelRegistry::from_source(Arc::new(self.clone()))),
            Toolbox::coding(),
            Arc::new(self.clone()),
        ))
    }
}

impl ProviderSource for FakeKeys {
    fn current(&self) -> Arc<[ProviderConfig]> {
        let key = *self.0.lock().expect("no panic");
        let acme = ProviderConfig {
            key: key.map(SecretString::from),
            key_hint: "ACME_KEY".to_owned(),
            models: vec!["m".to_owned()],
            ..ProviderConfig::new("acme", Api::OpenAi, "http://127.0.0.1:9/v1")
        };
        Arc::from([acme])
    }
}

impl SettingsResolver for FakeKeys {
    fn settings(&self, _: &[PathBuf]) -> Result<Settings, SettingsError> {
        let model: ModelName = "acme/m".parse().expect("a name");
        Ok(Settings::new(model, "You are a test."))
    }
}

/// Asserts the error `-32000` (authentication required), whose details name the provider, its key variable
/// and `turnery login`.
pub(crate) fn assert_login_is_wanted(answer: &Value) {
    assert_eq!(error_code_of(answer), -32000, "{answer}");
    let message = answer["error"]["message"].as_str().expect("a message");
    assert!(
        message.starts_with("Authentication required: There is no key for acme: "),
        "{message}"
    );
    let details = answer["error"]["data"]["details"].as_str();
    let details = details.expect("a reason");
    for part in ["acme", "ACME_KEY", "turnery login"] {
        assert!(details.contains(part), "{part}: {details}");
    }
}

/// Returns the `authMethods` that `initialize` offers a client with these capabilities.
fn offered_methods(login: Option<Login>, abilities: Value) -> Vec<Value> {
    let world = TestEnv::without_answers();
    let options = ServeOptions {
        login,
        ..ServeOptions::default()
    };
    let mut client = TestClient::connect(world.agent(), options);
    let answer = client.initialize(abilities);
    let methods = result_of(&answer)["authMethods"].as_array();
    methods.expect("methods").clone()
}

/// The method `none` is always offered; `login` has type `terminal` for clients with `auth.terminal`, is an
/// agent method for those with only `_meta.terminal-auth`, and is not offered to others. The command in its
/// `_meta` is only for clients with `_meta.terminal-auth`.
// proves: AUTH-1, AUTH-2, AUTH-3, AUTH-10, AUTH-11, G-27, G-28, INIT-9
#[test]
fn terminal_login_is_offered_to_capable_clients() {
    let terminal_auth = json!({"terminal-auth": true});
    let table = [
        (json!({}), None, false),
        (json!({"terminal": true}), None, false),
        (json!({"auth": {"terminal": false}}), None, false),
        (json!({"auth": {"terminal": "yes"}}), None, false),
        (json!({"auth": true}), None, false),
        (json!({"_meta": {"terminal-auth": "yes"}}), None, false),
        (json!({"_meta": 7}), None, false),
        (json!({"auth": {"terminal": true}}), Some("terminal"), false),
        (json!({"_meta": terminal_auth}), Some("agent"), true),
        (
            json!({"auth": {"terminal": true}, "_meta": terminal_auth}),
            Some("terminal"),
            true,
        ),
    ];
    for (abilities, second, with_meta) in table {
        let methods = offered_methods(Some(login().0), abilities.clone());
        assert_eq!(methods[0]["id"], "none", "{abilities}");
        assert!(methods[0].get("type").is_none(), "{abilities}");
        for method in &methods {
            assert!(!method["name"].as_str().expect("a name").is_empty());
        }
        let Some(kind) = second else {
            assert_eq!(methods.len(), 1, "{abilities}: {methods:?}");
            continue;
        };
        assert_eq!(methods.len(), 2, "{abilities}");
        assert_eq!(methods[1]["id"], "login");
        assert_eq!(methods[1]["type"].as_str().unwrap_or("agent"), kind);
        if kind == "terminal" {
            assert_eq!(methods[1]["args"], json!(["login"]));
            assert_eq!(methods[1]["env"], json!({"TURNERY_HOME": "/srv/t"}));
        }
        let expected = json!({
            "label": "Log in with a key",
            "command": "/bin/turnery",
            "args": ["login"],
            "env": {"TURNERY_HOME": "/srv/t"},
        });
        let meta = &methods[1]["_meta"]["terminal-auth"];
        assert_eq!(*meta, if with_meta { expected } else { Value::Null });
    }
    let nobody = offered_methods(
        None,
        json!({"auth": {"terminal": true}, "_meta": terminal_auth}),
    );
    assert_eq!(nobody.len(), 1, "a host without a way in offers none");
}

// proves: AUTH-5
#[test]
fn unknown_or_terminal_auth_method_is_rejected() {
    let world = TestEnv::without_answers();
    let authenticate = |abilities: &Value, id: &str| {
        let mut client = connect(world.agent(), Some(login().0), abilities.clone());
        client.request("authenticate", json!({"methodId": id}))
    };
    let terminal = json!({"auth": {"terminal": true}});
    let terminal_auth = json!({"_meta": {"terminal-auth": true}});
    for (abilities, id) in [
        (&terminal, "login"),
        (&json!({}), "login"),
        (&json!({}), "other"),
        (&terminal_auth, "Login"),
        (&terminal_auth, ""),
    ] {
        let answer = authenticate(abilities, id);
        assert_eq!(error_code_of(&answer), -32602, "{abilities} {id}");
    }
    for (abilities, id) in [
        (&terminal, "none"),
        (&json!({}), "none"),
        (&terminal_auth, "login"),
    ] {
        let answer = authenticate(abilities, id);
        assert_eq!(result_of(&answer), &json!({}), "{abilities} {id}");
    }
}

/// Everything that needs the key is refused with a reason; once the key exists, it works with and without
/// `authenticate`.
// proves: AUTH-4, AUTH-6, G-11
#[test]
fn sessions_require_a_key() {
    let world = TestEnv::without_answers();
    let keys = FakeKeys::none();
    let mut client = connect(keys.agent(), Some(login().0), json!({}));
    assert_login_is_wanted(&client.request("session/new", world.new_session_params()));
    let authenticate = json!({"methodId": "none"});
    assert_login_is_wanted(&client.request("authenticate", authenticate.clone()));

    keys.set(Some("sk-1"));
    let answer = client.request("authenticate", authenticate);
    assert_eq!(result_of(&answer), &json!({}));
    let id = client.new_session(world.new_session_params());

    keys.set(None);
    assert_login_is_wanted(&client.request("session/prompt", prompt_params(&id, "hi")));
    let open = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    for method in [
        "session/new",
        "session/load",
        "session/resume",
        "session/fork",
    ] {
        assert_login_is_wanted(&client.request(method, open.clone()));
    }
    assert_eq!(
        result_of(&client.request("session/list", json!({})))["sessions"]
            .as_array()
            .map(Vec::len),
        Some(1),
        "to look needs no login, and a refused request leaves nothing behind"
    );

    keys.set(Some("sk-2"));
    for method in ["session/new", "session/load", "session/resume"] {
        result_of(&client.request(method, open.clone()));
    }
}

/// Without a key, `authenticate` fails even before the client has requested a session; with one it succeeds.
// proves: AUTH-4
#[test]
fn authenticate_without_key_fails_before_any_session() {
    let keys = FakeKeys::none();
    let mut client = connect(keys.agent(), None, json!({}));
    let authenticate = json!({"methodId": "none"});
    assert_login_is_wanted(&client.request("authenticate", authenticate.clone()));
    keys.set(Some("sk-1"));
    result_of(&client.request("authenticate", authenticate));
}

/// After a logout no session begins until the client authenticates; open sessions continue.
// proves: AUTH-7, AUTH-8
#[test]
fn logout_forgets_keys_and_blocks_sessions() {
    let world = TestEnv::new(json!([{"steps": [{"text": "still here"}]}]));
    let (login, forgotten) = login();
    let mut client = connect(world.agent(), Some(login), json!({}));
    let id = client.new_session(world.new_session_params());
    assert_eq!(result_of(&client.request("logout", json!({}))), &json!({}));
    assert_eq!(forgotten.load(Ordering::Relaxed), 1);
    let open = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    for method in [
        "session/new",
        "session/load",
        "session/resume",
        "session/fork",
    ] {
        let answer = client.request(method, open.clone());
        assert_eq!(error_code_of(&answer), -32000, "{method}");
    }
    assert_eq!(client.prompt(&id, "hi"), "end_turn");
    result_of(&client.request("authenticate", json!({"methodId": "none"})));
    result_of(&client.request("session/new", world.new_session_params()));
}

#[test]
fn failed_key_removal_is_reported() {
    let world = TestEnv::without_answers();
    let login = Login {
        forget_keys: Arc::new(|| Err("keys.json: no space".to_owned())),
        ..login().0
    };
    let mut client = connect(world.agent(), Some(login), json!({}));
    let answer = client.request("logout", Value::Null);
    assert_eq!(error_code_of(&answer), -32603);
    let details = &answer["error"]["data"]["details"];
    assert_eq!(details, "keys.json: no space. Delete that file by hand.");
    result_of(&client.request("session/new", world.new_session_params()));
}

/// Reported before and after a login, without side effects (unstable).
#[test]
fn auth_status_reports_need_for_login() {
    let state = |client: &mut TestClient| {
        let answer = client.request("auth/status", json!({}));
        result_of(&answer)["state"].clone()
    };
    let keys = FakeKeys::none();
    let mut client = connect(keys.agent(), Some(login().0), json!({}));
    assert_eq!(state(&mut client), "unauthenticated");
    assert_eq!(state(&mut client), "unauthenticated");
    keys.set(Some("secret"));
    assert_eq!(state(&mut client), "authenticated");
    result_of(&client.request("logout", json!({})));
    assert_eq!(state(&mut client), "unauthenticated");
    result_of(&client.request("authenticate", json!({"methodId": "none"})));
    assert_eq!(state(&mut client), "authenticated");
    let world = TestEnv::without_answers();
    assert_eq!(state(&mut world.client(json!({}))), "not_required");
    // The requirements of an unknown model are unknown.
    let settings = Settings::new("nope/x".parse().expect("a name"), "You are a test.");
    let agent = world.agent_with_settings(Arc::new(settings));
    assert_eq!(state(&mut connect(agent, None, json!({}))), "unknown");
}
