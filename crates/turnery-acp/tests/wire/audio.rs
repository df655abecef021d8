//! Audio in a prompt: for models that take it, offered where there is one (PROMPT-2, INIT-11).

use crate::{
    harness::{Client, World, error_of, prompt, result_of},
    refusal::Parrot,
};
use serde_json::{Value, json};
use std::sync::Arc;
use turnery_acp::ServeOptions;

fn heard() -> Value {
    json!([{"steps": [{"text": "heard"}]}, {"steps": [{"text": "again"}]}])
}

fn audio() -> Value {
    json!({"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"})
}

fn spoken(id: &Value) -> Value {
    json!({"sessionId": id, "prompt": [audio(), {"type": "text", "text": "listen"}]})
}

fn details(answer: &Value) -> &str {
    assert_eq!(error_of(answer), -32602);
    answer["error"]["data"]["details"]
        .as_str()
        .expect("details")
}

/// What is advertised is taken, and said again by a load as it was sent.
// proves: PROMPT-2, INIT-11, LOAD-1
#[test]
fn a_recording_is_taken_and_loaded() {
    let world = World::silent().hearing(heard());
    let mut client = world.connect();
    let hello = client.initialize(json!({}));
    let can = &result_of(&hello)["agentCapabilities"]["promptCapabilities"];
    assert_eq!(can["audio"], true);
    let made = client.call("session/new", world.new_session());
    let id = result_of(&made)["sessionId"].clone();
    let answer = client.call("session/prompt", spoken(&id));
    assert_eq!(result_of(&answer)["stopReason"], "end_turn");
    let ogg = json!({"type": "audio", "data": "T2dn", "mimeType": "audio/ogg"});
    let ogg = client.call("session/prompt", json!({"sessionId": id, "prompt": [ogg]}));
    assert!(details(&ogg).contains("audio/wav or audio/mpeg"), "{ogg}");
    client.leave();

    let mut client = world.client(json!({}));
    let at = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    result_of(&client.call("session/load", at));
    let shown: Vec<Value> = client
        .updates()
        .iter()
        .map(|update| update["content"].clone())
        .collect();
    let text = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(shown, [audio(), text("listen"), text("heard")]);
}

/// The model that is to answer takes none: nothing is called, and nothing is said to what runs.
// proves: PROMPT-2
#[test]
fn a_recording_is_for_a_model_that_takes_audio() {
    let world = World::silent().hearing(heard());
    let scripted = world.settings().model.to_string();
    let agent = world.agent_with(Arc::new(Parrot::new()));
    let mut client = Client::connect(agent, ServeOptions::default());
    let hello = client.initialize(json!({}));
    let can = &result_of(&hello)["agentCapabilities"]["promptCapabilities"];
    assert_eq!(
        can["audio"], false,
        "neither the parrot nor offline listens"
    );
    let made = client.call("session/new", world.new_session());
    let id = result_of(&made)["sessionId"].clone();
    client.offers();
    let refused = client.call("session/prompt", spoken(&id));
    let details = details(&refused);
    assert!(details.contains("test/parrot takes no audio"), "{details}");
    let steered = client.call("_turnery/session/steer", spoken(&id));
    assert_eq!(error_of(&steered), -32602);
    assert_eq!(client.updates(), [] as [Value; 0]);
    let set = json!({"sessionId": id, "configId": "model", "value": scripted});
    result_of(&client.call("session/set_config_option", set));
    let answer = client.call("session/prompt", spoken(&id));
    assert_eq!(result_of(&answer)["stopReason"], "end_turn");
    let set = json!({"sessionId": id, "configId": "model", "value": "offline"});
    result_of(&client.call("session/set_config_option", set));
    assert_eq!(
        error_of(&client.call("session/prompt", spoken(&id))),
        -32602
    );
}

// proves: V2-18
#[test]
fn the_second_version_takes_and_replays_it_too() {
    let world = World::silent().hearing(heard());
    let mut client = world.connect_v2();
    let hello = client.initialize_v2();
    let can = &result_of(&hello)["capabilities"]["session"]["prompt"];
    assert_eq!(can["audio"], json!({}));
    let made = client.call("session/new", json!({"cwd": world.cwd()}));
    let id = result_of(&made)["sessionId"].clone();
    result_of(&client.call("session/prompt", spoken(&id)));
    let is_idle = |message: &Value| message["params"]["update"]["state"] == "idle";
    client.wait(is_idle);
    client.leave();

    let mut client = world.client_v2();
    let params = json!({"sessionId": id, "cwd": world.cwd(), "replayFrom": {"type": "start"}});
    result_of(&client.call("session/resume", params));
    let shown = client.updates();
    let said = |update: &&Value| update["sessionUpdate"] == "user_message";
    let said: Vec<&Value> = shown.iter().filter(said).map(|it| &it["content"]).collect();
    assert_eq!(
        said,
        [&json!([audio(), {"type": "text", "text": "listen"}])]
    );
    client.leave();

    let world = World::silent();
    let (mut client, id) = world.session_v2();
    let refused = client.call("session/prompt", spoken(&json!(id)));
    assert!(details(&refused).contains("takes no audio"), "{refused}");
    assert_eq!(
        error_of(&client.call("session/prompt", prompt("nobody", "hi"))),
        -32002
    );
}
