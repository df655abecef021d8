//! Audio in a prompt: advertised if a configured model supports it (PROMPT-2, INIT-11).

use crate::{
    harness::{TestClient, TestEnv, error_code_of, prompt_params, result_of},
    refused_prompt::EchoModel,
};
use serde_json::{Value, json};
use std::sync::Arc;
use turnery_acp::ServeOptions;

fn model_answers() -> Value {
    json!([{"steps": [{"text": "heard"}]}, {"steps": [{"text": "again"}]}])
}

fn audio_block() -> Value {
    json!({"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"})
}

fn audio_prompt(id: &Value) -> Value {
    json!({"sessionId": id, "prompt": [audio_block(), {"type": "text", "text": "listen"}]})
}

fn details(answer: &Value) -> &str {
    assert_eq!(error_code_of(answer), -32602);
    answer["error"]["data"]["details"]
        .as_str()
        .expect("details")
}

/// Audio is accepted, and replayed by a load as it was sent.
// proves: PROMPT-2, INIT-11, LOAD-1, C-30
#[test]
fn audio_is_accepted_and_replayed() {
    let world = TestEnv::without_answers().with_audio_answers(model_answers());
    let mut client = world.connect();
    let hello = client.initialize(json!({}));
    let can = &result_of(&hello)["agentCapabilities"]["promptCapabilities"];
    assert_eq!(can["audio"], true);
    let made = client.request("session/new", world.new_session_params());
    let id = result_of(&made)["sessionId"].clone();
    let answer = client.request("session/prompt", audio_prompt(&id));
    assert_eq!(result_of(&answer)["stopReason"], "end_turn");
    let ogg = json!({"type": "audio", "data": "T2dn", "mimeType": "audio/ogg"});
    let ogg = client.request("session/prompt", json!({"sessionId": id, "prompt": [ogg]}));
    assert!(details(&ogg).contains("audio/wav or audio/mpeg"), "{ogg}");
    client.close_and_join();

    let mut client = world.client(json!({}));
    let at = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    result_of(&client.request("session/load", at));
    let shown: Vec<Value> = client
        .take_updates()
        .iter()
        .map(|update| update["content"].clone())
        .collect();
    let text = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(shown, [audio_block(), text("listen"), text("heard")]);
}

/// A prompt or steering message with audio is rejected without any update while the current model takes no
/// audio; after a switch to a model that does, the prompt succeeds.
// proves: PROMPT-2, ACP-10, C-8
#[test]
fn audio_is_rejected_for_model_without_audio() {
    let world = TestEnv::without_answers().with_audio_answers(model_answers());
    let scripted = world.settings().model.to_string();
    let agent = world.agent_with_model(Arc::new(EchoModel::new()));
    let mut client = TestClient::connect(agent, ServeOptions::default());
    let hello = client.initialize(json!({}));
    let can = &result_of(&hello)["agentCapabilities"]["promptCapabilities"];
    assert_eq!(
        can["audio"], false,
        "neither the parrot nor offline listens"
    );
    let made = client.request("session/new", world.new_session_params());
    let id = result_of(&made)["sessionId"].clone();
    client.take_command_offers();
    let refused = client.request("session/prompt", audio_prompt(&id));
    let details = details(&refused);
    assert!(details.contains("test/parrot takes no audio"), "{details}");
    let steered = client.request("_turnery/session/steer", audio_prompt(&id));
    assert_eq!(error_code_of(&steered), -32602);
    assert_eq!(client.take_updates(), [] as [Value; 0]);
    let set = json!({"sessionId": id, "configId": "model", "value": scripted});
    result_of(&client.request("session/set_config_option", set));
    let answer = client.request("session/prompt", audio_prompt(&id));
    assert_eq!(result_of(&answer)["stopReason"], "end_turn");
    let set = json!({"sessionId": id, "configId": "model", "value": "offline"});
    result_of(&client.request("session/set_config_option", set));
    assert_eq!(
        error_code_of(&client.request("session/prompt", audio_prompt(&id))),
        -32602
    );
}

// proves: V2-18
#[test]
fn v2_accepts_and_replays_audio() {
    let world = TestEnv::without_answers().with_audio_answers(model_answers());
    let mut client = world.connect_v2();
    let hello = client.initialize_v2();
    let can = &result_of(&hello)["capabilities"]["session"]["prompt"];
    assert_eq!(can["audio"], json!({}));
    let made = client.request("session/new", json!({"cwd": world.cwd()}));
    let id = result_of(&made)["sessionId"].clone();
    result_of(&client.request("session/prompt", audio_prompt(&id)));
    let is_idle = |message: &Value| message["params"]["update"]["state"] == "idle";
    client.wait_for(is_idle);
    client.close_and_join();

    let mut client = world.client_v2();
    let params = json!({"sessionId": id, "cwd": world.cwd(), "replayFrom": {"type": "start"}});
    result_of(&client.request("session/resume", params));
    let shown = client.take_updates();
    let said = |update: &&Value| update["sessionUpdate"] == "user_message";
    let said: Vec<&Value> = shown.iter().filter(said).map(|it| &it["content"]).collect();
    assert_eq!(
        said,
        [&json!([audio_block(), {"type": "text", "text": "listen"}])]
    );
    client.close_and_join();

    let world = TestEnv::without_answers();
    let (mut client, id) = world.session_v2();
    let refused = client.request("session/prompt", audio_prompt(&json!(id)));
    assert!(details(&refused).contains("takes no audio"), "{refused}");
    assert_eq!(
        error_code_of(&client.request("session/prompt", prompt_params("nobody", "hi"))),
        -32002
    );
}
