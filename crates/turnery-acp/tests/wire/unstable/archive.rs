//! `session/archive`: what was put away is listed only when asked for, and is there again afterwards.

use super::valid;
use crate::harness::{Client, World, error_of, prompt, result_of};
use agent_client_protocol_schema::v1::{
    ArchiveSessionResponse, ListSessionsResponse, UnarchiveSessionResponse,
};
use serde_json::{Value, json};

/// The ids in a list, and whether each is said to be archived; newest first.
fn listed(client: &mut Client, params: Value) -> Vec<(String, bool)> {
    let list = client.call("session/list", params);
    let result = result_of(&list);
    valid::<ListSessionsResponse>(result);
    let sessions = result["sessions"].as_array().expect("a list");
    let row = |session: &Value| {
        let id = session["sessionId"].as_str().expect("an id").to_owned();
        (id, session["archived"].as_bool().expect("said of each"))
    };
    let mut rows: Vec<_> = sessions.iter().map(row).collect();
    rows.sort();
    rows
}

fn archive(client: &mut Client, id: &str) {
    let answer = client.call("session/archive", json!({"sessionId": id}));
    assert_eq!(result_of(&answer), &json!({}));
    valid::<ArchiveSessionResponse>(result_of(&answer));
}

#[test]
fn what_is_put_away_is_listed_when_asked_for() {
    let world = World::silent();
    let (mut client, kept) = world.session();
    let made = client.call("session/new", world.new_session());
    let away = result_of(&made)["sessionId"]
        .as_str()
        .expect("an id")
        .to_owned();
    let all = |archived: bool| {
        let mut all = vec![(kept.clone(), false), (away.clone(), archived)];
        all.sort();
        all
    };
    assert_eq!(listed(&mut client, json!({})), all(false));
    archive(&mut client, &away);
    archive(&mut client, &away);
    // Of another process as well: it is stored.
    let mut client = world.client(json!({}));
    for (filter, expected) in [
        (json!({}), vec![(kept.clone(), false)]),
        (json!({"archived": null}), vec![(kept.clone(), false)]),
        (json!({"archived": "exclude"}), vec![(kept.clone(), false)]),
        (json!({"archived": "include"}), all(true)),
        (json!({"archived": "only"}), vec![(away.clone(), true)]),
        (json!({"archived": "only", "cwd": world.outside()}), vec![]),
    ] {
        assert_eq!(listed(&mut client, filter.clone()), expected, "{filter}");
    }
    for wrong in [json!("_mine"), json!("all"), json!(7), json!(true)] {
        let answer = client.call("session/list", json!({"archived": wrong}));
        assert_eq!(error_of(&answer), -32602, "{wrong}");
    }
    for _ in 0..2 {
        let answer = client.call("session/unarchive", json!({"sessionId": away}));
        assert_eq!(result_of(&answer), &json!({}));
        valid::<UnarchiveSessionResponse>(result_of(&answer));
    }
    assert_eq!(listed(&mut client, json!({})), all(false));
    for method in ["session/archive", "session/unarchive"] {
        let answer = client.call(method, json!({"sessionId": "nobody"}));
        assert_eq!(error_of(&answer), -32002);
        assert_eq!(answer["error"]["data"]["sessionId"], "nobody");
    }
}

/// One that works is closed first, as a close would; nothing of it is lost.
#[test]
fn a_session_that_works_is_closed_and_put_away() {
    let world = World::new(json!([{"steps": [{"text": "wait"}, {"wait_for_cancel": true}]}]));
    let mut client = world.connect();
    let hello = client.initialize(json!({}));
    let sessions = &result_of(&hello)["agentCapabilities"]["sessionCapabilities"];
    assert_eq!(
        (&sessions["archive"], &sessions["list"]),
        (&json!({}), &json!({}))
    );
    let made = client.call("session/new", world.new_session());
    let id = result_of(&made)["sessionId"].as_str().expect("an id");
    let asked = client.ask("session/prompt", prompt(id, "hi"));
    client.wait(|message| message["params"]["update"]["content"]["text"] == "wait");
    archive(&mut client, id);
    assert_eq!(client.answer(&asked)["result"]["stopReason"], "cancelled");
    let gone = client.call("session/prompt", prompt(id, "more"));
    assert_eq!(error_of(&gone), -32002);
    assert_eq!(listed(&mut client, json!({})), []);
    let at = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    client.seen();
    result_of(&client.call("session/load", at));
    let shown = client.updates();
    assert!(
        shown.iter().any(|update| update["content"]["text"] == "hi"),
        "{shown:?}"
    );
}
