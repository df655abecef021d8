//! Custom commands of users and projects: offered like built-in commands and expanded to prompt text (CMD-1,
//! CMD-2).

use crate::{
    harness::{TestClient, TestEnv, error_code_of, result_of},
    refused_prompt::EchoModel,
};
use serde_json::{Value, json};
use std::sync::Arc;
use turnery_acp::ServeOptions;
use turnery_agent::{CustomCommand, Settings};

/// Opens a session in a project with these commands.
fn open_session(world: &TestEnv, files: &[(&str, &str)], v2: bool) -> (TestClient, Value) {
    let scenario = world.root().join("scenario.json");
    let model = format!("scripted:{}", scenario.display());
    let mut settings = Settings::new(model.parse().expect("a model"), "You are a test.");
    let slashes = files
        .iter()
        .map(|(name, text)| CustomCommand::parse(name, text).expect("a command"));
    settings.custom_commands = slashes.collect();
    let options = ServeOptions {
        v2,
        ..ServeOptions::default()
    };
    let mut client = TestClient::connect(world.agent_with_settings(Arc::new(settings)), options);
    let made = match v2 {
        true => {
            client.initialize_v2();
            client.request("session/new", json!({"cwd": world.cwd()}))
        }
        false => {
            client.initialize(json!({}));
            client.request("session/new", world.new_session_params())
        }
    };
    (client, result_of(&made).clone())
}

const REVIEW_COMMAND: &str = "---\ndescription: Look over a change\u{202e}\nargument-hint: FILE\n---\nLook over $1, mind $ARGUMENTS.";

// proves: CMD-1, CMD-2, THEME-17
#[test]
fn project_command_is_offered_and_expanded() {
    let world = TestEnv::new(json!([
        {"when": {"last_user_contains": "Look over a.rs, mind a.rs  twice."}, "steps": [{"text": "looked"}]},
        {"when": {"last_user_contains": "/unknown a"}, "steps": [{"text": "what?"}]},
        {"when": {"last_user_contains": "Never said."}, "steps": [{"text": "wrong"}]},
    ]));
    let files = [("review", REVIEW_COMMAND), ("help", "Never said.")];
    let (mut client, made) = open_session(&world, &files, false);
    let id = made["sessionId"].as_str().expect("an id").to_owned();
    result_of(&client.request("session/list", json!({})));
    let offers = client.take_command_offers();
    let offered = offers[0]["update"]["availableCommands"]
        .as_array()
        .expect("a list");
    let last = offered.last().expect("one");
    assert_eq!(last["name"], "review");
    assert_eq!(last["input"], json!({"hint": "FILE"}));
    // Texts of a project are shown without characters that reorder other text.
    let about = last["description"].as_str().expect("a text");
    let is_visible = about.starts_with("Look over a change") && !about.contains('\u{202e}');
    assert!(is_visible, "{about:?}");
    // A project cannot replace a built-in command.
    assert_eq!(offered.iter().filter(|it| it["name"] == "help").count(), 1);

    let mut said = |blocks: Value| {
        let answer = client.request("session/prompt", json!({"sessionId": id, "prompt": blocks}));
        assert_eq!(result_of(&answer)["stopReason"], "end_turn");
        client.take_text()
    };
    let text = |text: &str| json!({"type": "text", "text": text});
    let link = json!({"type": "resource_link", "name": "b", "uri": "file:///w/b"});
    assert_eq!(said(json!([text("/review a.rs  twice")])), "looked");
    assert_eq!(said(json!([link, text("/review a.rs  twice")])), "looked");
    assert_eq!(said(json!([text("/unknown a")])), "what?");
    let help = said(json!([text("/help")]));
    let has_line = help.contains("- `/review FILE`: Look over a change");
    assert!(has_line && !help.contains('\u{202e}'), "{help}");
}

/// In v2 the response lists the commands.
#[test]
fn v2_offers_project_commands() {
    let world = TestEnv::new(json!([
        {"when": {"last_user_contains": "Look over a.rs"}, "steps": [{"text": "looked"}]},
    ]));
    let (mut client, made) = open_session(&world, &[("review", REVIEW_COMMAND)], true);
    let offered = made["availableCommands"].as_array().expect("a list");
    assert_eq!(offered.last().expect("one")["name"], "review");
    let id = made["sessionId"].as_str().expect("an id");
    client.prompt(id, "/review a.rs");
    client.wait_for(|message| message["params"]["update"].to_string().contains("looked"));
}

/// A custom command grants nothing: the model's calls still need permission.
// proves: CMD-2
#[test]
fn project_command_grants_no_permissions() {
    let world = TestEnv::new(json!([
        {"steps": [{"tool_call": {"name": "change", "args": {}}}]},
        {"steps": [{"text": "done"}]},
    ]));
    let file = "---\nallowed-tools: change\nmode: auto\n---\nChange it.";
    let (mut client, made) = open_session(&world, &[("change", file)], false);
    let id = made["sessionId"].as_str().expect("an id").to_owned();
    let asked = client.send_prompt(&id, "/change");
    let question = client.wait_for_request("session/request_permission");
    assert_eq!(world.run_log.all(), [] as [String; 0]);
    let no = json!({"outcome": {"outcome": "selected", "optionId": "reject_once"}});
    client.respond(&question, no);
    result_of(&client.wait_for_response(&asked));
    assert_eq!(world.run_log.all(), [] as [String; 0]);
}

/// An image for a model without image support is rejected before any call; the same prompt works once another
/// model is selected.
// proves: ACP-10, PROMPT-2
#[test]
fn image_is_rejected_for_model_without_images() {
    let world = TestEnv::new(json!([{"steps": [{"text": "first"}]}]));
    let scripted = world.settings().model.to_string();
    let mut client = TestClient::initialized(world.agent_with_model(Arc::new(EchoModel::new())));
    let made = client.request("session/new", world.new_session_params());
    let id = &result_of(&made)["sessionId"];
    client.take_command_offers();
    let image = json!({"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="});
    let picture = json!({"sessionId": id, "prompt": [image, {"type": "text", "text": "look"}]});
    let refused = client.request("session/prompt", picture.clone());
    assert_eq!(error_code_of(&refused), -32602);
    let details = refused["error"]["data"]["details"]
        .as_str()
        .expect("details");
    assert!(details.contains("test/parrot takes no images"), "{details}");
    assert_eq!(client.take_updates(), [] as [Value; 0]);
    let set = json!({"sessionId": id, "configId": "model", "value": scripted});
    result_of(&client.request("session/set_config_option", set));
    let answer = client.request("session/prompt", picture);
    assert_eq!(result_of(&answer)["stopReason"], "end_turn");
}
