//! What is there again when a session is loaded, besides what was said to the model.

use crate::harness::{Client, World, prompt, result_of};
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

fn loaded(world: &World, id: &str) -> (Client, Vec<Value>) {
    let mut client = world.client(json!({}));
    let at = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    result_of(&client.call("session/load", at));
    let replay = client.updates();
    (client, replay)
}

/// LOAD-1: commands and their answers come back where they were, under the ids that they had. The model
/// gets to see none of them.
// proves: LOAD-1, MSG-2, THEME-2, THEME-3
#[test]
fn commands_are_shown_again() {
    let world = World::new(json!([
        {"steps": [{"text": "one"}]},
        {"when": {"last_user_contains": "again"}, "steps": [{"text": "two"}]},
    ]));
    let (mut client, id) = world.session();
    let mut live = Vec::new();
    for text in ["/mode plan", "hi", "/mode ask", "again"] {
        result_of(&client.call("session/prompt", prompt(&id, text)));
        live.push(client.updates());
    }
    client.leave();

    let (mut client, replay) = loaded(&world, &id);
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
    let list = client.call("session/list", json!({}));
    assert_eq!(result_of(&list)["sessions"][0]["title"], "hi");
    // A copy has them too.
    let at = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    let copied = client.call("session/fork", at);
    let copy = result_of(&copied)["sessionId"]
        .as_str()
        .expect("an id")
        .to_owned();
    let (_client, replay) = loaded(&world, &copy);
    assert_eq!(texts(&replay), expected);
    let foreign = |update: &&Value| {
        update["messageId"]
            .as_str()
            .is_some_and(|it| it.starts_with(&id))
    };
    assert_eq!(replay.iter().find(foreign), None);
}

/// LOAD-1: a command that works with a loop of its own stands around it.
// proves: LOAD-1
#[test]
fn a_summary_that_was_asked_for_is_shown_again() {
    let world = World::new(json!([{"steps": [{"text": "one"}]}]));
    let (mut client, id) = world.session();
    for text in ["hi", "/compact"] {
        result_of(&client.call("session/prompt", prompt(&id, text)));
    }
    let live = client.updates();
    let (_, answered) = *texts(&live).last().expect("an answer");
    let (_client, replay) = loaded(&world, &id);
    let said = texts(&replay);
    assert_eq!(said.len(), 4, "{said:?}");
    assert_eq!(said[2], ("user_message_chunk", "/compact"));
    assert_eq!(said[3], ("agent_message_chunk", answered));
}

/// PERM-6, CFG-7, RES-2 over the wire: what was set and said for good is there in another process.
// proves: PERM-6, CFG-7, RES-2, THEME-6
#[test]
fn what_was_set_and_said_for_good_is_there_again() {
    let world = World::new(json!([
        {"steps": [{"tool_call": {"name": "change", "args": {}}}]},
        {"steps": [{"text": "one"}]},
        {"steps": [{"tool_call": {"name": "change", "args": {}}}]},
        {"steps": [{"text": "two"}]},
        {"steps": [{"tool_call": {"name": "change", "args": {}}}]},
        {"steps": [{"text": "three"}]},
    ]));
    let (mut client, id) = world.session();
    let set = json!({"sessionId": id, "configId": "thinking", "value": "high"});
    result_of(&client.call("session/set_config_option", set));
    let asked = client.ask("session/prompt", prompt(&id, "hi"));
    let question = client.asked("session/request_permission");
    let always = json!({"outcome": {"outcome": "selected", "optionId": "allow_always"}});
    client.reply(&question, always);
    result_of(&client.answer(&asked));
    client.leave();
    for method in ["session/load", "session/resume"] {
        let mut client = world.client(json!({}));
        let at = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
        let opened = client.call(method, at);
        let options = &result_of(&opened)["configOptions"];
        assert_eq!(options[2]["currentValue"], "high", "{method}");
        let answer = client.call("session/prompt", prompt(&id, "again"));
        assert_eq!(result_of(&answer)["stopReason"], "end_turn", "{method}");
        let questions = client.seen();
        assert!(
            questions.iter().all(|seen| seen.get("id").is_none()),
            "{method}"
        );
        client.leave();
    }
    assert_eq!(world.ran.all(), ["change", "change", "change"]);
}

/// What one client sends in one line another one may not be able to read in one.
// proves: TR-9, G-14, LOAD-1
#[test]
fn a_long_text_is_loaded_in_short_lines() {
    let world = World::new(json!([{"steps": [{"text": "seen"}]}]));
    let (mut client, id) = world.session();
    let text = "größer ".repeat(300_000);
    result_of(&client.call("session/prompt", prompt(&id, &text)));
    client.leave();
    let (_, shown) = loaded(&world, &id);
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

/// A client is told at the end of the replay what of the session cannot be read, in a message of the agent.
#[test]
fn load_of_a_damaged_session_names_what_is_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sessions.db");
    let store = Arc::new(SqliteStore::open(path.clone()));
    let world = World::over(
        store,
        json!([
            {"steps": [{"text": "one"}]},
            {"when": {"last_user_contains": "again"}, "steps": [{"text": "two"}]},
        ]),
    );
    let (mut client, id) = world.session();
    for text in ["hi", "again"] {
        result_of(&client.call("session/prompt", prompt(&id, text)));
    }
    client.leave();
    let db = rusqlite::Connection::open(&path).expect("a database");
    let change = |sql: &str| assert_eq!(db.execute(sql, ()), Ok(1), "{sql}");
    change("UPDATE loops SET status = 'dreaming' WHERE loop = 1");

    let (client, replay) = loaded(&world, &id);
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
    client.leave();
    // All that is stored is looked at when the world ends.
    change("UPDATE loops SET status = 'completed' WHERE loop = 1");
}
