//! Web page on which the user enters a missing API key: when it is offered, and how it ends (ELIC-1 to
//! ELIC-8).

use crate::{
    harness::{TestClient, TestEnv, error_code_of, prompt_params, result_of},
    login::{FakeKeys, assert_login_is_wanted, connect, login},
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;
use turnery_acp::{KeyPage, Login};

/// Pages opened by the agent and not yet finished by the test. Sending `true` or `false` finishes a page with
/// or without a stored key; a closed channel means that the agent has closed the page.
#[derive(Clone, Default)]
struct FakeKeyPages(Arc<Mutex<Vec<oneshot::Sender<bool>>>>);

impl FakeKeyPages {
    fn login(&self) -> Login {
        let pages = self.clone();
        Login {
            key_page_opener: Some(Arc::new(move |provider| {
                assert_eq!(provider, "acme");
                let (used, given) = oneshot::channel();
                let mut all = pages.0.lock().expect("no panic");
                all.push(used);
                Ok(KeyPage {
                    url: format!("http://127.0.0.1:9/page-{}", all.len()),
                    key_stored: Box::pin(async move { given.await.unwrap_or(false) }),
                })
            })),
            ..login().0
        }
    }

    fn unfinished_count(&self) -> usize {
        self.0.lock().expect("no panic").len()
    }

    /// Finishes the last page, with a key or without.
    fn finish_last(&self, is_key_stored: bool) {
        let last = self.0.lock().expect("no panic").pop();
        let used = last.expect("a page").send(is_key_stored);
        used.expect("it is open");
    }

    fn is_last_closed(&self) -> bool {
        let all = self.0.lock().expect("no panic");
        all.last().expect("a page").is_closed()
    }
}

fn url_capability() -> Value {
    json!({"elicitation": {"url": {}}})
}

/// Connects a client with these capabilities and creates a session whose key is then removed.
fn session_without_key(
    capabilities: Value,
) -> (TestClient, String, FakeKeyPages, FakeKeys, TestEnv) {
    let (world, keys, pages) = (
        TestEnv::without_answers(),
        FakeKeys::none(),
        FakeKeyPages::default(),
    );
    keys.set(Some("sk-1"));
    let mut client = connect(keys.agent(), Some(pages.login()), capabilities);
    let id = client.new_session(world.new_session_params());
    keys.set(None);
    (client, id.to_owned(), pages, keys, world)
}

fn take_elicitation_completions(client: &mut TestClient) -> Vec<Value> {
    let seen = client.take_buffered().into_iter();
    seen.filter(|it| it["method"] == "elicitation/complete")
        .map(|it| it["params"].clone())
        .collect()
}

/// Without the capability for URL elicitation, no page is opened or offered in `authMethods`, and a prompt
/// without a key fails with a login error; with it, the method `page` is offered.
// proves: ELIC-1, INIT-7
#[test]
fn client_without_url_support_gets_no_page() {
    for abilities in [
        json!({}),
        json!({"elicitation": null}),
        json!({"elicitation": {}}),
        json!({"elicitation": true}),
        json!({"elicitation": {"form": {}}}),
        json!({"elicitation": {"url": null}}),
        json!({"elicitation": {"url": true}}),
    ] {
        let (mut client, id, pages, _keys, _world) = session_without_key(abilities.clone());
        assert_login_is_wanted(&client.request("session/prompt", prompt_params(&id, "hi")));
        let page = json!({"methodId": "page"});
        assert_eq!(error_code_of(&client.request("authenticate", page)), -32602);
        let told = client.initialize(abilities.clone());
        assert!(!told.to_string().contains("\"page\""), "{told}");
        assert_eq!(pages.unfinished_count(), 0, "{abilities}");
    }
    let (mut client, _id, _pages, _keys, _world) = session_without_key(url_capability());
    let told = client.initialize(url_capability());
    let methods = result_of(&told)["authMethods"].as_array();
    assert_eq!(methods.expect("methods")[1]["id"], "page");
}

/// A prompt without a key opens a page and continues when the key is stored, even if the client has not
/// responded; `session/new` and `authenticate` with `none` fail without a page. No message contains the key.
// proves: ELIC-1, ELIC-2, ELIC-3, ELIC-6, ELIC-7
#[test]
fn prompt_opens_key_page_and_continues() {
    let (mut client, id, pages, keys, world) = session_without_key(url_capability());
    assert_login_is_wanted(&client.request("session/new", world.new_session_params()));
    result_of(&client.request("session/list", json!({})));
    assert_login_is_wanted(&client.request("authenticate", json!({"methodId": "none"})));
    assert_eq!(pages.unfinished_count(), 0);

    let mut ids = Vec::new();
    for n in 0..2 {
        keys.set(None);
        let asked = client.send_prompt(&id, "hi");
        let question = client.wait_for_request("elicitation/create");
        let elicitation = question["params"]["elicitationId"].clone();
        let expected = json!({
            "mode": "url",
            "sessionId": id,
            "elicitationId": elicitation,
            "url": "http://127.0.0.1:9/page-1",
            "message": "There is no key for acme. Enter it on a page of the machine that turnery runs \
                on: it is sent to the provider, stored for you alone, and shown to no model.",
        });
        assert_eq!(question["params"], expected);
        if n == 0 {
            client.respond(&question, json!({"action": "accept"}));
            // After this response, the agent has read the message before it.
            result_of(&client.request("session/list", json!({})));
        }
        keys.set(Some("sk-secret"));
        pages.finish_last(true);
        let answer = client.wait_for_response(&asked);
        // The server does not exist, but it was called.
        assert_eq!(error_code_of(&answer), -32603, "{answer}");
        let seen = client.take_buffered();
        assert!(!format!("{seen:?}{answer}").contains("sk-secret"));
        let told = seen
            .iter()
            .filter(|it| it["method"] == "elicitation/complete");
        let told: Vec<&Value> = told.map(|it| &it["params"]).collect();
        assert_eq!(told, [&json!({"elicitationId": elicitation})]);
        ids.push(elicitation);
    }
    assert_ne!(ids[0], ids[1]);
}

/// Any response other than `accept`, and a page finished without a key, end the prompt with a login error and
/// without `elicitation/complete`.
// proves: ELIC-4, ELIC-6
#[test]
fn declined_or_unused_page_requires_login() {
    let result = |action: &str| json!({"result": {"action": action}});
    for reply in [
        result("decline"),
        result("cancel"),
        result("_later"),
        json!({"result": {}}),
        json!({"error": {"code": -32601, "message": "no"}}),
        json!({"error": {"code": -32800, "message": "no"}}),
    ] {
        let (mut client, id, pages, _keys, _world) = session_without_key(url_capability());
        let asked = client.send_prompt(&id, "hi");
        let question = client.wait_for_request("elicitation/create");
        let mut answer = json!({"jsonrpc": "2.0", "id": question["id"]});
        let members = answer.as_object_mut().expect("an object");
        members.extend(reply.as_object().expect("an object").clone());
        client.send(&answer);
        assert_login_is_wanted(&client.wait_for_response(&asked));
        assert!(pages.is_last_closed(), "{reply}");
        assert_eq!(take_elicitation_completions(&mut client), [Value::Null; 0]);
    }
    let (mut client, id, pages, _keys, _world) = session_without_key(url_capability());
    let asked = client.send_prompt(&id, "hi");
    let question = client.wait_for_request("elicitation/create");
    client.respond(&question, json!({"action": "accept"}));
    result_of(&client.request("session/list", json!({})));
    pages.finish_last(false);
    assert_login_is_wanted(&client.wait_for_response(&asked));
    assert_eq!(take_elicitation_completions(&mut client), [Value::Null; 0]);
}

/// A cancel closes the page both before and after the user accepts it; a request that is still open is
/// cancelled.
// proves: CANCEL-3, CANCEL-7, ELIC-8
#[test]
fn a_cancel_closes_the_page() {
    for is_open in [false, true] {
        let (mut client, id, pages, _keys, _world) = session_without_key(url_capability());
        let asked = client.send_prompt(&id, "hi");
        let question = client.wait_for_request("elicitation/create");
        if is_open {
            client.respond(&question, json!({"action": "accept"}));
        }
        client.cancel(&id);
        assert_eq!(client.wait_for_stop_reason(&asked), "cancelled");
        assert!(pages.is_last_closed());
        let seen = client.take_buffered();
        let back = seen.iter().filter(|it| it["method"] == "$/cancel_request");
        assert_eq!(back.count(), usize::from(!is_open), "{seen:?}");
    }
}

// proves: ELIC-8, TR-6
#[test]
fn page_closes_with_the_connection() {
    let (mut client, id, pages, _keys, _world) = session_without_key(url_capability());
    client.send_prompt(&id, "hi");
    let question = client.wait_for_request("elicitation/create");
    client.respond(&question, json!({"action": "accept"}));
    client.send_request("authenticate", json!({"methodId": "page"}));
    client.wait_for_request("elicitation/create");
    client.close_and_join();
    assert_eq!(pages.unfinished_count(), 2);
    for page in pages.0.lock().expect("no panic").iter() {
        assert!(page.is_closed());
    }
}

/// `authenticate` with the method `page` opens a page for the request: the login fails if the user declines,
/// the page closes if the request is cancelled, and a stored key makes it succeed.
// proves: AUTH-4, ELIC-2, ELIC-6
#[test]
fn authenticate_opens_page_for_missing_key() {
    let (mut client, _, pages, keys, _world) = session_without_key(url_capability());
    let page = json!({"methodId": "page"});
    let asked = client.send_request("authenticate", page.clone());
    let question = client.wait_for_request("elicitation/create");
    assert_eq!(question["params"]["mode"], "url");
    assert_eq!(question["params"]["requestId"], asked);
    assert_eq!(question["params"]["sessionId"], Value::Null);
    client.respond(&question, json!({"action": "decline"}));
    assert_login_is_wanted(&client.wait_for_response(&asked));

    let asked = client.send_request("authenticate", page.clone());
    client.wait_for_request("elicitation/create");
    client.send_notification("$/cancel_request", json!({"requestId": asked}));
    assert_eq!(error_code_of(&client.wait_for_response(&asked)), -32800);
    assert!(pages.is_last_closed());

    let asked = client.send_request("authenticate", page.clone());
    let question = client.wait_for_request("elicitation/create");
    client.respond(&question, json!({"action": "accept"}));
    result_of(&client.request("session/list", json!({})));
    keys.set(Some("sk-secret"));
    pages.finish_last(true);
    assert_eq!(result_of(&client.wait_for_response(&asked)), &json!({}));
    let told = take_elicitation_completions(&mut client);
    assert_eq!(
        told[0]["elicitationId"],
        question["params"]["elicitationId"]
    );
    // Where nothing is missing there is nothing to ask for.
    assert_eq!(result_of(&client.request("authenticate", page)), &json!({}));
}
