//! Replay of sessions in a new connection: commands, options and approvals, long texts, and damaged parts.

use crate::harness::{TestClient, TestEnv, result_of};
use serde_json::{Value, json};
use std::sync::Arc;
use turnery_store::SqliteStore;

fn texts(updates: &[Value]) -> Vec<(&str, &str)> {
    let texts = updates.iter().filter_map(|update| {
        let text = update["content"]["text"].as_str()?;
        Some((update["sessionUpdate"].as_str()?, text))
    });
    texts.collect()
}

fn load(world: &TestEnv, id: &str) -> (TestClient, Vec<Value>) {
    let mut client = world.client(json!({}));
    let at = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    result_of(&client.request("session/load", at));
    let replay = client.take_updates();
    (client, replay)
}

/// LOAD-1: commands and their answers are replayed in place with the same ids, are no titles, and are copied
/// into a fork under ids of its own.
// proves: LOAD-1, MSG-2, THEME-2, THEME-3
#[test]
fn commands_are_replayed() {
    let world = TestEnv::new(json!([
        {"steps": [{"text": "one"}]},
        {"when": {"last_user_contains": "again"}, "steps": [{"text": "two"}]},
    ]));
    let (mut client, id) = world.session();
    let mut live = Vec::new();
    for text in ["/mode plan", "hi", "/mode ask", "again"] {
        client.prompt(&id, text);
        live.push(client.take_updates());
    }
    client.close_and_join();

    let (mut client, replay) = load(&world, &id);
    let said = texts(&replay);
    let expected = [
        ("user_message_chunk", "/mode plan"),
        (
            "agent_message_chunk",
            "Mode `plan`. Only reads: no changes, no commands but those that only read.",
        ),
        ("user_message_chunk", "hi"),
        ("agent_message_chunk", "one"),
        ("user_message_chunk", "/mode ask"),
        (
            "agent_message_chunk",
            "Mode `ask`. Reads by itself, asks before it changes or runs anything.",
        ),
        ("user_message_chunk", "again"),
        ("agent_message_chunk", "two"),
    ];
    assert_eq!(said, expected);
    let answer = |updates: &[Value]| {
        let is_answer = |it: &&Value| {
            it["content"]["text"]
                .as_str()
                .is_some_and(|t| t.starts_with("Mode"))
        };
        let found = updates.iter().find(is_answer).expect("an answer");
        found["messageId"].clone()
    };
    assert_eq!(answer(&replay), answer(&live[0]));
    assert_eq!(answer(&replay[4..]), answer(&live[2]));
    let list = client.request("session/list", json!({}));
    assert_eq!(result_of(&list)["sessions"][0]["title"], "hi");
    // A fork has them too.
    let at = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    let copied = client.request("session/fork", at);
    let copy = result_of(&copied)["sessionId"]
        .as_str()
        .expect("an id")
        .to_owned();
    let (_client, replay) = load(&world, &copy);
    assert_eq!(texts(&replay), expected);
    let foreign = |update: &&Value| {
        update["messageId"]
            .as_str()
            .is_some_and(|it| it.starts_with(&id))
    };
    assert_eq!(replay.iter().find(foreign), None);
}

/// LOAD-1: `/compact` and its answer are replayed once each, after the conversation.
// proves: LOAD-1
#[test]
fn compact_command_is_replayed() {
    let world = TestEnv::new(json!([{"steps": [{"text": "one"}]}]));
    let (mut client, id) = world.session();
    for text in ["hi", "/compact"] {
        client.prompt(&id, text);
    }
    let live = client.take_updates();
    let (_, answered) = *texts(&live).last().expect("an answer");
    let (_client, replay) = load(&world, &id);
    let said = texts(&replay);
    assert_eq!(said.len(), 4, "{said:?}");
    assert_eq!(said[2], ("user_message_chunk", "/compact"));
    assert_eq!(said[3], ("agent_message_chunk", answered));
}

/// PERM-6, CFG-7, RES-2: options and remembered approvals are there in another process.
// proves: PERM-6, CFG-7, RES-2, THEME-6
#[test]
fn option_and_approval_survive_reload() {
    let world = TestEnv::new(json!([
        {"steps": [{"tool_call": {"name": "change", "args": {}}}]},
        {"steps": [{"text": "one"}]},
        {"steps": [{"tool_call": {"name": "change", "args": {}}}]},
        {"steps": [{"text": "two"}]},
        {"steps": [{"tool_call": {"name": "change", "args": {}}}]},
        {"steps": [{"text": "three"}]},
    ]));
    let (mut client, id) = world.session();
    let set = json!({"sessionId": id, "configId": "thinking", "value": "high"});
    result_of(&client.request("session/set_config_option", set));
    let asked = client.send_prompt(&id, "hi");
    let question = client.wait_for_request("session/request_permission");
    let always = json!({"outcome": {"outcome": "selected", "optionId": "allow_always"}});
    client.respond(&question, always);
    result_of(&client.wait_for_response(&asked));
    client.close_and_join();
    for method in ["session/load", "session/resume"] {
        let mut client = world.client(json!({}));
        let at = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
        let opened = client.request(method, at);
        let options = &result_of(&opened)["configOptions"];
        assert_eq!(options[2]["currentValue"], "high", "{method}");
        assert_eq!(client.prompt(&id, "again"), "end_turn", "{method}");
        let questions = client.take_buffered();
        assert!(
            questions.iter().all(|seen| seen.get("id").is_none()),
            "{method}"
        );
        let set = json!({"sessionId": id, "configId": "protocol", "value": "code"});
        result_of(&client.request("session/set_config_option", set));
        client.close_and_join();
        let mut client = world.client(json!({}));
        let at = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
        let opened = client.request(method, at);
        let options = &result_of(&opened)["configOptions"];
        assert_eq!(options[3]["currentValue"], "code", "{method}");
        let set = json!({"sessionId": id, "configId": "protocol", "value": "tools"});
        result_of(&client.request("session/set_config_option", set));
        client.close_and_join();
    }
    assert_eq!(world.run_log.all(), ["change", "change", "change"]);
}

/// A long text of the user is replayed unchanged in chunks with one message id, since a client may not be
/// able to read a line as long as another client sent.
// proves: TR-9, G-14, LOAD-1
#[test]
fn long_text_is_replayed_in_chunks() {
    let world = TestEnv::new(json!([{"steps": [{"text": "seen"}]}]));
    let (mut client, id) = world.session();
    let text = "größer ".repeat(300_000);
    client.prompt(&id, &text);
    client.close_and_join();
    let (_, shown) = load(&world, &id);
    let longest = shown.iter().map(|update| update.to_string().len()).max();
    assert!(longest < Some(300 << 10), "{longest:?}");
    let of_person = shown
        .iter()
        .filter(|update| update["sessionUpdate"] == "user_message_chunk");
    let pieces: Vec<&Value> = of_person.collect();
    assert!(pieces.len() > 8, "{}", pieces.len());
    assert!(
        pieces
            .iter()
            .all(|piece| piece["messageId"] == pieces[0]["messageId"])
    );
    let whole: String = pieces
        .iter()
        .filter_map(|piece| piece["content"]["text"].as_str())
        .collect();
    assert!(whole == text, "{} bytes of {}", whole.len(), text.len());
}

/// The replay ends with a message of the agent that names the unreadable parts.
#[test]
fn loading_damaged_session_names_missing_part() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sessions.db");
    let store = Arc::new(SqliteStore::open(path.clone()));
    let world = TestEnv::with_store(
        store,
        json!([
            {"steps": [{"text": "one"}]},
            {"when": {"last_user_contains": "again"}, "steps": [{"text": "two"}]},
        ]),
    );
    let (mut client, id) = world.session();
    for text in ["hi", "again"] {
        client.prompt(&id, text);
    }
    client.close_and_join();
    let db = rusqlite::Connection::open(&path).expect("a database");
    let change = |sql: &str| assert_eq!(db.execute(sql, ()), Ok(1), "{sql}");
    change("UPDATE loops SET status = 'dreaming' WHERE loop = 1");

    let (client, replay) = load(&world, &id);
    let said = texts(&replay);
    let [question, answer, (kind, notice)] = said[..] else {
        panic!("{said:?}");
    };
    assert_eq!(question, ("user_message_chunk", "again"));
    assert_eq!(answer, ("agent_message_chunk", "two"));
    assert_eq!(kind, "agent_message_chunk");
    for part in ["damaged", "dreaming", &id, "turnery sessions repair"] {
        assert!(notice.contains(part), "{notice}");
    }
    client.close_and_join();
    // Repairs the store, which is checked when the environment is dropped.
    change("UPDATE loops SET status = 'completed' WHERE loop = 1");
}
