//! `session/archive`: archived sessions are listed only on request, and can be restored.

use super::assert_valid;
use crate::harness::{TestClient, TestEnv, error_code_of, prompt_params, result_of};
use agent_client_protocol_schema::v1::{
    ArchiveSessionResponse, ListSessionsResponse, UnarchiveSessionResponse,
};
use serde_json::{Value, json};

/// Returns the listed session ids, sorted, each with true if archived.
fn list_sessions(client: &mut TestClient, params: Value) -> Vec<(String, bool)> {
    let list = client.request("session/list", params);
    let result = result_of(&list);
    assert_valid::<ListSessionsResponse>(result);
    let sessions = result["sessions"].as_array().expect("a list");
    let row = |session: &Value| {
        let id = session["sessionId"].as_str().expect("an id").to_owned();
        (id, session["archived"].as_bool().expect("said of each"))
    };
    let mut rows: Vec<_> = sessions.iter().map(row).collect();
    rows.sort();
    rows
}

fn archive(client: &mut TestClient, id: &str) {
    let answer = client.request("session/archive", json!({"sessionId": id}));
    assert_eq!(result_of(&answer), &json!({}));
    assert_valid::<ArchiveSessionResponse>(result_of(&answer));
}

#[test]
fn archived_session_is_listed_on_request() {
    let world = TestEnv::without_answers();
    let (mut client, kept) = world.session();
    let away = client.new_session(world.new_session_params());
    let all = |archived: bool| {
        let mut all = vec![(kept.clone(), false), (away.clone(), archived)];
        all.sort();
        all
    };
    assert_eq!(list_sessions(&mut client, json!({})), all(false));
    archive(&mut client, &away);
    archive(&mut client, &away);
    // Another process sees it too, since it is stored.
    let mut client = world.client(json!({}));
    for (filter, expected) in [
        (json!({}), vec![(kept.clone(), false)]),
        (json!({"archived": null}), vec![(kept.clone(), false)]),
        (json!({"archived": "exclude"}), vec![(kept.clone(), false)]),
        (json!({"archived": "include"}), all(true)),
        (json!({"archived": "only"}), vec![(away.clone(), true)]),
        (json!({"archived": "only", "cwd": world.root()}), vec![]),
    ] {
        assert_eq!(
            list_sessions(&mut client, filter.clone()),
            expected,
            "{filter}"
        );
    }
    for wrong in [json!("_mine"), json!("all"), json!(7), json!(true)] {
        let answer = client.request("session/list", json!({"archived": wrong}));
        assert_eq!(error_code_of(&answer), -32602, "{wrong}");
    }
    for _ in 0..2 {
        let answer = client.request("session/unarchive", json!({"sessionId": away}));
        assert_eq!(result_of(&answer), &json!({}));
        assert_valid::<UnarchiveSessionResponse>(result_of(&answer));
    }
    assert_eq!(list_sessions(&mut client, json!({})), all(false));
    for method in ["session/archive", "session/unarchive"] {
        let answer = client.request(method, json!({"sessionId": "nobody"}));
        assert_eq!(error_code_of(&answer), -32002);
        assert_eq!(answer["error"]["data"]["sessionId"], "nobody");
    }
}

/// Archiving a session cancels its running prompt and closes it; the session can be loaded again.
/// `initialize` reports the capability.
#[test]
fn archiving_closes_a_running_session() {
    let world = TestEnv::new(json!([{"steps": [{"text": "wait"}, {"wait_for_cancel": true}]}]));
    let mut client = world.connect();
    let hello = client.initialize(json!({}));
    let sessions = &result_of(&hello)["agentCapabilities"]["sessionCapabilities"];
    assert_eq!(
        (&sessions["archive"], &sessions["list"]),
        (&json!({}), &json!({}))
    );
    let id = client.new_session(world.new_session_params());
    let asked = client.send_prompt(&id, "hi");
    client.wait_for(|message| message["params"]["update"]["content"]["text"] == "wait");
    archive(&mut client, &id);
    assert_eq!(
        client.wait_for_response(&asked)["result"]["stopReason"],
        "cancelled"
    );
    let gone = client.request("session/prompt", prompt_params(&id, "more"));
    assert_eq!(error_code_of(&gone), -32002);
    assert_eq!(list_sessions(&mut client, json!({})), []);
    let at = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    client.take_buffered();
    result_of(&client.request("session/load", at));
    let shown = client.take_updates();
    assert!(
        shown.iter().any(|update| update["content"]["text"] == "hi"),
        "{shown:?}"
    );
}
