//! A page for a missing key (ELIC-1 to ELIC-8): who is sent there and when, and each way in which that ends.

use crate::{
    harness::{Client, World, error_of, prompt, result_of},
    login::{Keys, assert_login_is_wanted, connect, login},
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;
use turnery_acp::{KeyPage, Login};

/// The pages that were opened: whoever sends there has used the page; one that is closed hears nothing.
#[derive(Clone, Default)]
struct Pages(Arc<Mutex<Vec<oneshot::Sender<bool>>>>);

impl Pages {
    fn login(&self) -> Login {
        let pages = self.clone();
        Login {
            pages: Some(Arc::new(move |provider| {
                assert_eq!(provider, "acme");
                let (used, given) = oneshot::channel();
                let mut all = pages.0.lock().expect("no panic");
                all.push(used);
                Ok(KeyPage {
                    url: format!("http://127.0.0.1:9/page-{}", all.len()),
                    given: Box::pin(async move { given.await.unwrap_or(false) }),
                })
            })),
            ..login().0
        }
    }

    fn opened(&self) -> usize {
        self.0.lock().expect("no panic").len()
    }

    /// The last page: a key came, or none will.
    fn used(&self, is_kept: bool) {
        let last = self.0.lock().expect("no panic").pop();
        let used = last.expect("a page").send(is_kept);
        used.expect("it is open");
    }

    fn is_closed(&self) -> bool {
        let all = self.0.lock().expect("no panic");
        all.last().expect("a page").is_closed()
    }
}

fn urls() -> Value {
    json!({"elicitation": {"url": {}}})
}

/// A client like that, with a session whose key is gone.
fn without_key(abilities: Value) -> (Client, String, Pages, Keys, World) {
    let (world, keys, pages) = (World::silent(), Keys::none(), Pages::default());
    keys.set(Some("sk-1"));
    let mut client = connect(keys.agent(), Some(pages.login()), abilities);
    let made = client.call("session/new", world.new_session());
    let id = result_of(&made)["sessionId"].as_str().expect("an id");
    keys.set(None);
    (client, id.to_owned(), pages, keys, world)
}

fn completed(client: &mut Client) -> Vec<Value> {
    let seen = client.seen().into_iter();
    seen.filter(|it| it["method"] == "elicitation/complete")
        .map(|it| it["params"].clone())
        .collect()
}

/// The oracle fails for a mode that was not offered; and no page is opened that nobody is told of.
// proves: ELIC-1, INIT-7
#[test]
fn nobody_is_sent_to_a_page_who_did_not_say_so() {
    for abilities in [
        json!({}),
        json!({"elicitation": null}),
        json!({"elicitation": {}}),
        json!({"elicitation": true}),
        json!({"elicitation": {"form": {}}}),
        json!({"elicitation": {"url": null}}),
        json!({"elicitation": {"url": true}}),
    ] {
        let (mut client, id, pages, _keys, _world) = without_key(abilities.clone());
        assert_login_is_wanted(&client.call("session/prompt", prompt(&id, "hi")));
        let page = json!({"methodId": "page"});
        assert_eq!(error_of(&client.call("authenticate", page)), -32602);
        let told = client.initialize(abilities.clone());
        assert!(!told.to_string().contains("\"page\""), "{told}");
        assert_eq!(pages.opened(), 0, "{abilities}");
    }
    let (mut client, _id, _pages, _keys, _world) = without_key(urls());
    let told = client.initialize(urls());
    let methods = result_of(&told)["authMethods"].as_array();
    assert_eq!(methods.expect("methods")[1]["id"], "page");
}

/// Only what needs the key sends anybody anywhere.
// proves: ELIC-1, ELIC-2, ELIC-3, ELIC-6, ELIC-7
#[test]
fn a_prompt_sends_to_a_page_and_goes_on_with_the_key() {
    let (mut client, id, pages, keys, world) = without_key(urls());
    assert_login_is_wanted(&client.call("session/new", world.new_session()));
    result_of(&client.call("session/list", json!({})));
    assert_login_is_wanted(&client.call("authenticate", json!({"methodId": "none"})));
    assert_eq!(pages.opened(), 0);

    let mut ids = Vec::new();
    for n in 0..2 {
        keys.set(None);
        let asked = client.ask("session/prompt", prompt(&id, "hi"));
        let question = client.asked("elicitation/create");
        let elicitation = question["params"]["elicitationId"].clone();
        let expected = json!({
            "mode": "url",
            "sessionId": id,
            "elicitationId": elicitation,
            "url": "http://127.0.0.1:9/page-1",
            "message": "There is no key for acme. Type it on a page of the machine that turnery runs \
                on: it goes to the provider, is kept for you alone, and is shown to no model.",
        });
        assert_eq!(question["params"], expected);
        if n == 0 {
            client.reply(&question, json!({"action": "accept"}));
            // By its answer to this one it has read that.
            result_of(&client.call("session/list", json!({})));
        }
        keys.set(Some("sk-secret"));
        pages.used(true);
        let answer = client.answer(&asked);
        // There is no such server; but it was called.
        assert_eq!(error_of(&answer), -32603, "{answer}");
        let seen = client.seen();
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

/// Anything but yes, and a page on which nobody gave a key: as if there were no pages.
// proves: ELIC-4, ELIC-6
#[test]
fn without_a_yes_or_a_key_a_login_is_wanted_as_ever() {
    let result = |action: &str| json!({"result": {"action": action}});
    for reply in [
        result("decline"),
        result("cancel"),
        result("_later"),
        json!({"result": {}}),
        json!({"error": {"code": -32601, "message": "no"}}),
        json!({"error": {"code": -32800, "message": "no"}}),
    ] {
        let (mut client, id, pages, _keys, _world) = without_key(urls());
        let asked = client.ask("session/prompt", prompt(&id, "hi"));
        let question = client.asked("elicitation/create");
        let mut answer = json!({"jsonrpc": "2.0", "id": question["id"]});
        let members = answer.as_object_mut().expect("an object");
        members.extend(reply.as_object().expect("an object").clone());
        client.send(&answer);
        assert_login_is_wanted(&client.answer(&asked));
        assert!(pages.is_closed(), "{reply}");
        assert_eq!(completed(&mut client), [Value::Null; 0]);
    }
    let (mut client, id, pages, _keys, _world) = without_key(urls());
    let asked = client.ask("session/prompt", prompt(&id, "hi"));
    let question = client.asked("elicitation/create");
    client.reply(&question, json!({"action": "accept"}));
    result_of(&client.call("session/list", json!({})));
    pages.used(false);
    assert_login_is_wanted(&client.answer(&asked));
    assert_eq!(completed(&mut client), [Value::Null; 0]);
}

/// Before the person has said anything, and while they are at the page.
// proves: CANCEL-3, CANCEL-7, ELIC-8
#[test]
fn a_cancel_closes_the_page() {
    for is_open in [false, true] {
        let (mut client, id, pages, _keys, _world) = without_key(urls());
        let asked = client.ask("session/prompt", prompt(&id, "hi"));
        let question = client.asked("elicitation/create");
        if is_open {
            client.reply(&question, json!({"action": "accept"}));
        }
        client.tell("session/cancel", json!({"sessionId": id}));
        assert_eq!(result_of(&client.answer(&asked))["stopReason"], "cancelled");
        assert!(pages.is_closed());
        let seen = client.seen();
        let back = seen.iter().filter(|it| it["method"] == "$/cancel_request");
        assert_eq!(back.count(), usize::from(!is_open), "{seen:?}");
    }
}

// proves: ELIC-8, TR-6
#[test]
fn a_page_is_closed_with_its_connection() {
    let (mut client, id, pages, _keys, _world) = without_key(urls());
    client.ask("session/prompt", prompt(&id, "hi"));
    let question = client.asked("elicitation/create");
    client.reply(&question, json!({"action": "accept"}));
    client.ask("authenticate", json!({"methodId": "page"}));
    client.asked("elicitation/create");
    client.leave();
    assert_eq!(pages.opened(), 2);
    for page in pages.0.lock().expect("no panic").iter() {
        assert!(page.is_closed());
    }
}

/// It belongs to that request, and goes when it is taken back.
// proves: AUTH-4, ELIC-2, ELIC-6
#[test]
fn a_login_sends_to_a_page_for_the_key_that_is_missing() {
    let (mut client, _, pages, keys, _world) = without_key(urls());
    let page = json!({"methodId": "page"});
    let asked = client.ask("authenticate", page.clone());
    let question = client.asked("elicitation/create");
    assert_eq!(question["params"]["mode"], "url");
    assert_eq!(question["params"]["requestId"], asked);
    assert_eq!(question["params"]["sessionId"], Value::Null);
    client.reply(&question, json!({"action": "decline"}));
    assert_login_is_wanted(&client.answer(&asked));

    let asked = client.ask("authenticate", page.clone());
    client.asked("elicitation/create");
    client.tell("$/cancel_request", json!({"requestId": asked}));
    assert_eq!(error_of(&client.answer(&asked)), -32800);
    assert!(pages.is_closed());

    let asked = client.ask("authenticate", page.clone());
    let question = client.asked("elicitation/create");
    client.reply(&question, json!({"action": "accept"}));
    result_of(&client.call("session/list", json!({})));
    keys.set(Some("sk-secret"));
    pages.used(true);
    assert_eq!(result_of(&client.answer(&asked)), &json!({}));
    let told = completed(&mut client);
    assert_eq!(
        told[0]["elicitationId"],
        question["params"]["elicitationId"]
    );
    // Where nothing is missing there is nothing to ask for.
    assert_eq!(result_of(&client.call("authenticate", page)), &json!({}));
}
