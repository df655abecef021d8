//! `session/status`: asked of sessions that are open, stored, gone and unknown.

use super::valid;
use crate::harness::{Client, World, error_of, result_of};
use agent_client_protocol_schema::v1::{InitializeResponse, SessionStatusResponse};
use serde_json::{Value, json};

fn status(client: &mut Client, id: &str) -> Value {
    let answer = client.call("session/status", json!({"sessionId": id}));
    let result = result_of(&answer);
    valid::<SessionStatusResponse>(result);
    result["status"].clone()
}

#[test]
fn a_session_is_open_saved_or_unknown() {
    let world = World::silent();
    let mut client = world.connect();
    let hello = client.initialize(json!({}));
    valid::<InitializeResponse>(result_of(&hello));
    let sessions = &hello["result"]["agentCapabilities"]["sessionCapabilities"];
    assert_eq!(sessions["status"], json!({}));
    let made = client.call("session/new", world.new_session());
    let id = result_of(&made)["sessionId"].as_str().expect("an id");
    let listed = |client: &mut Client| {
        let list = client.call("session/list", json!({}));
        result_of(&list)["sessions"].clone()
    };
    let before = listed(&mut client);
    assert_eq!(status(&mut client, id), "open");
    result_of(&client.call("session/close", json!({"sessionId": id})));
    assert_eq!(status(&mut client, id), "saved");
    // It was not opened, nor touched, by the question.
    assert_eq!(status(&mut client, id), "saved");
    assert_eq!(listed(&mut client), before);
    assert_eq!(status(&mut world.client(json!({})), id), "saved");
    result_of(&client.call("session/delete", json!({"sessionId": id})));
    for id in [id, "nobody"] {
        let answer = client.call("session/status", json!({"sessionId": id}));
        assert_eq!(error_of(&answer), -32002);
        assert_eq!(answer["error"]["data"]["sessionId"], id);
    }
    let answer = client.call("session/status", json!({}));
    assert_eq!(error_of(&answer), -32602);
}
