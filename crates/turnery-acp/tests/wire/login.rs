//! Logging in and out (AUTH-1 to AUTH-11): which ways are offered to whom, and what is refused without a key.

use crate::harness::{Client, World, error_of, prompt, result_of};
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
use turnery_agent::{Agent, Projects, Settings, SettingsError};
use turnery_models::{Api, Catalogue, ModelName, ProviderConfig, Providers};
use turnery_store::MemoryStore;
use turnery_tools::Toolbox;

/// The way in that an agent offers, and how often it was asked to forget.
pub(crate) fn login() -> (Login, Arc<AtomicUsize>) {
    let forgotten = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&forgotten);
    let login = Login {
        program: PathBuf::from("/bin/turnery"),
        args: vec!["login".to_owned()],
        env: BTreeMap::from([("TURNERY_HOME".to_owned(), "/srv/t".to_owned())]),
        forget: Arc::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }),
        pages: None,
    };
    (login, forgotten)
}

pub(crate) fn connect(agent: Arc<Agent>, login: Option<Login>, abilities: Value) -> Client {
    let options = ServeOptions {
        login,
        ..ServeOptions::default()
    };
    let mut client = Client::connect(agent, options);
    client.initialize(abilities);
    client
}

/// A provider at `acme` that needs a key, and a model of it that everybody begins with.
#[derive(Clone)]
pub(crate) struct Keys(Arc<Mutex<Option<&'static str>>>);

impl Keys {
    pub(crate) fn none() -> Self {
        Self(Arc::default())
    }

    pub(crate) fn set(&self, key: Option<&'static str>) {
        *self.0.lock().expect("no panic") = key;
    }

    pub(crate) fn agent(&self) -> Arc<Agent> {
        Arc::new(Agent::new(
            Arc::new(MemoryStore::new()),
            Arc::new(Catalogue::over(Arc::new(self.clone()))),
            Toolbox::coding(),
            Arc::new(self.clone()),
        ))
    }
}

impl Providers for Keys {
    fn now(&self) -> Arc<[ProviderConfig]> {
        let key = *self.0.lock().expect("no panic");
        let acme = ProviderConfig {
            name: "acme".to_owned(),
            api: Api::OpenAi,
            base_url: "http://127.0.0.1:9/v1".to_owned(),
            key: key.map(SecretString::from),
            key_hint: "ACME_KEY".to_owned(),
            models: vec!["m".to_owned()],
        };
        Arc::from([acme])
    }
}

impl Projects for Keys {
    fn settings(&self, _: &[PathBuf]) -> Result<Settings, SettingsError> {
        let model: ModelName = "acme/m".parse().expect("a name");
        Ok(Settings::new(model, "You are a test."))
    }
}

/// `-32000`, with what to set and what to run; never the key.
pub(crate) fn assert_login_is_wanted(answer: &Value) {
    assert_eq!(error_of(answer), -32000, "{answer}");
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

/// The ids and the types of what is offered.
fn offered(login: Option<Login>, abilities: Value) -> Vec<Value> {
    let world = World::silent();
    let options = ServeOptions {
        login,
        ..ServeOptions::default()
    };
    let mut client = Client::connect(world.agent(), options);
    let answer = client.initialize(abilities);
    let methods = result_of(&answer)["authMethods"].as_array();
    methods.expect("methods").clone()
}

/// Those with a `type` only for a client that said it runs them; one without always; the other dialect
/// only where it is spoken.
// proves: AUTH-1, AUTH-2, AUTH-3, AUTH-10, AUTH-11, G-27, G-28, INIT-9
#[test]
fn a_terminal_is_offered_to_those_who_have_one() {
    let dialect = json!({"terminal-auth": true});
    let table = [
        (json!({}), None, false),
        (json!({"terminal": true}), None, false),
        (json!({"auth": {"terminal": false}}), None, false),
        (json!({"auth": {"terminal": "yes"}}), None, false),
        (json!({"auth": true}), None, false),
        (json!({"_meta": {"terminal-auth": "yes"}}), None, false),
        (json!({"_meta": 7}), None, false),
        (json!({"auth": {"terminal": true}}), Some("terminal"), false),
        (json!({"_meta": dialect}), Some("agent"), true),
        (
            json!({"auth": {"terminal": true}, "_meta": dialect}),
            Some("terminal"),
            true,
        ),
    ];
    for (abilities, second, with_meta) in table {
        let methods = offered(Some(login().0), abilities.clone());
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
    let nobody = offered(None, json!({"auth": {"terminal": true}, "_meta": dialect}));
    assert_eq!(nobody.len(), 1, "a host without a way in offers none");
}

// proves: AUTH-5
#[test]
fn a_login_that_is_not_ours_to_do_is_refused() {
    let world = World::silent();
    let authenticate = |abilities: &Value, id: &str| {
        let mut client = connect(world.agent(), Some(login().0), abilities.clone());
        client.call("authenticate", json!({"methodId": id}))
    };
    let terminal = json!({"auth": {"terminal": true}});
    let dialect = json!({"_meta": {"terminal-auth": true}});
    for (abilities, id) in [
        (&terminal, "login"),
        (&json!({}), "login"),
        (&json!({}), "other"),
        (&dialect, "Login"),
        (&dialect, ""),
    ] {
        let answer = authenticate(abilities, id);
        assert_eq!(error_of(&answer), -32602, "{abilities} {id}");
    }
    for (abilities, id) in [
        (&terminal, "none"),
        (&json!({}), "none"),
        (&dialect, "login"),
    ] {
        let answer = authenticate(abilities, id);
        assert_eq!(result_of(&answer), &json!({}), "{abilities} {id}");
    }
}

/// Whatever needs the key is refused for want of it, with a reason; once it is there, all is well, with
/// `authenticate` and without.
// proves: AUTH-4, AUTH-6, G-11
#[test]
fn without_a_key_nothing_begins_and_with_one_all_does() {
    let world = World::silent();
    let keys = Keys::none();
    let mut client = connect(keys.agent(), Some(login().0), json!({}));
    assert_login_is_wanted(&client.call("session/new", world.new_session()));
    let authenticate = json!({"methodId": "none"});
    assert_login_is_wanted(&client.call("authenticate", authenticate.clone()));

    keys.set(Some("sk-1"));
    let answer = client.call("authenticate", authenticate);
    assert_eq!(result_of(&answer), &json!({}));
    let made = client.call("session/new", world.new_session());
    let id = result_of(&made)["sessionId"].as_str().expect("an id");

    keys.set(None);
    assert_login_is_wanted(&client.call("session/prompt", prompt(id, "hi")));
    let open = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    for method in [
        "session/new",
        "session/load",
        "session/resume",
        "session/fork",
    ] {
        assert_login_is_wanted(&client.call(method, open.clone()));
    }
    assert_eq!(
        result_of(&client.call("session/list", json!({})))["sessions"]
            .as_array()
            .map(Vec::len),
        Some(1),
        "to look needs no login, and a refused request leaves nothing behind"
    );

    keys.set(Some("sk-2"));
    for method in ["session/new", "session/load", "session/resume"] {
        result_of(&client.call(method, open.clone()));
    }
}

/// Also where the editor has not asked for anything yet.
// proves: AUTH-4
#[test]
fn authenticate_says_no_before_anything_was_refused() {
    let keys = Keys::none();
    let mut client = connect(keys.agent(), None, json!({}));
    let authenticate = json!({"methodId": "none"});
    assert_login_is_wanted(&client.call("authenticate", authenticate.clone()));
    keys.set(Some("sk-1"));
    result_of(&client.call("authenticate", authenticate));
}

/// After it nothing begins until somebody authenticates; what is open goes on.
// proves: AUTH-7, AUTH-8
#[test]
fn logout_forgets_and_lets_nothing_begin() {
    let world = World::new(json!([{"steps": [{"text": "still here"}]}]));
    let (login, forgotten) = login();
    let mut client = connect(world.agent(), Some(login), json!({}));
    let made = client.call("session/new", world.new_session());
    let id = result_of(&made)["sessionId"].as_str().expect("an id");
    assert_eq!(result_of(&client.call("logout", json!({}))), &json!({}));
    assert_eq!(forgotten.load(Ordering::Relaxed), 1);
    let open = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    for method in [
        "session/new",
        "session/load",
        "session/resume",
        "session/fork",
    ] {
        let answer = client.call(method, open.clone());
        assert_eq!(error_of(&answer), -32000, "{method}");
    }
    let answer = client.call("session/prompt", prompt(id, "hi"));
    assert_eq!(result_of(&answer)["stopReason"], "end_turn");
    result_of(&client.call("authenticate", json!({"methodId": "none"})));
    result_of(&client.call("session/new", world.new_session()));
}

#[test]
fn keys_that_cannot_be_forgotten_are_told_of() {
    let world = World::silent();
    let login = Login {
        forget: Arc::new(|| Err("keys.json: no space".to_owned())),
        ..login().0
    };
    let mut client = connect(world.agent(), Some(login), json!({}));
    let answer = client.call("logout", Value::Null);
    assert_eq!(error_of(&answer), -32603);
    let details = &answer["error"]["data"]["details"];
    assert_eq!(details, "keys.json: no space. Delete that file by hand.");
    result_of(&client.call("session/new", world.new_session()));
}

/// It is said without a question of ours, before and after a login, and nothing changes by it (unstable).
#[test]
fn a_client_may_ask_whether_a_login_is_needed() {
    let state = |client: &mut Client| {
        let answer = client.call("auth/status", json!({}));
        result_of(&answer)["state"].clone()
    };
    let keys = Keys::none();
    let mut client = connect(keys.agent(), Some(login().0), json!({}));
    assert_eq!(state(&mut client), "unauthenticated");
    assert_eq!(state(&mut client), "unauthenticated");
    keys.set(Some("secret"));
    assert_eq!(state(&mut client), "authenticated");
    result_of(&client.call("logout", json!({})));
    assert_eq!(state(&mut client), "unauthenticated");
    result_of(&client.call("authenticate", json!({"methodId": "none"})));
    assert_eq!(state(&mut client), "authenticated");
    let world = World::silent();
    assert_eq!(state(&mut world.client(json!({}))), "not_required");
    // Nobody can say what a model needs that there is not.
    let settings = Settings::new("nope/x".parse().expect("a name"), "You are a test.");
    let agent = world.agent_of(Arc::new(settings));
    assert_eq!(state(&mut connect(agent, None, json!({}))), "unknown");
}
