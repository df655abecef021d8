//! `session/status` of sessions that are open, stored, deleted and unknown.

use super::assert_valid;
use crate::harness::{TestClient, TestEnv, error_code_of, result_of};
use agent_client_protocol_schema::v1::{InitializeResponse, SessionStatusResponse};
use serde_json::{Value, json};

fn status(client: &mut TestClient, id: &str) -> Value {
    let answer = client.request("session/status", json!({"sessionId": id}));
    let result = result_of(&answer);
    assert_valid::<SessionStatusResponse>(result);
    result["status"].clone()
}

#[test]
fn status_is_open_saved_or_not_found() {
    let world = TestEnv::without_answers();
    let mut client = world.connect();
    let hello = client.initialize(json!({}));
    assert_valid::<InitializeResponse>(result_of(&hello));
    let sessions = &hello["result"]["agentCapabilities"]["sessionCapabilities"];
    assert_eq!(sessions["status"], json!({}));
    let id = client.new_session(world.new_session_params());
    let listed = |client: &mut TestClient| {
        let list = client.request("session/list", json!({}));
        result_of(&list)["sessions"].clone()
    };
    let before = listed(&mut client);
    assert_eq!(status(&mut client, &id), "open");
    result_of(&client.request("session/close", json!({"sessionId": id})));
    assert_eq!(status(&mut client, &id), "saved");
    // The request neither opened nor touched it.
    assert_eq!(status(&mut client, &id), "saved");
    assert_eq!(listed(&mut client), before);
    assert_eq!(status(&mut world.client(json!({})), &id), "saved");
    result_of(&client.request("session/delete", json!({"sessionId": id})));
    for id in [&*id, "nobody"] {
        let answer = client.request("session/status", json!({"sessionId": id}));
        assert_eq!(error_code_of(&answer), -32002);
        assert_eq!(answer["error"]["data"]["sessionId"], id);
    }
    let answer = client.request("session/status", json!({}));
    assert_eq!(error_code_of(&answer), -32602);
}
