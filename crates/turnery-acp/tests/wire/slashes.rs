//! Commands of the user and of projects: text for a prompt, offered like any command (CMD-1, CMD-2).

use crate::{
    harness::{Client, World, error_of, prompt, result_of},
    refusal::Parrot,
};
use serde_json::{Value, json};
use std::sync::Arc;
use turnery_acp::ServeOptions;
use turnery_agent::{Settings, Slash};

/// A world whose project has these commands.
fn session(world: &World, files: &[(&str, &str)], v2: bool) -> (Client, Value) {
    let scenario = world.outside().join("scenario.json");
    let model = format!("scripted:{}", scenario.display());
    let mut settings = Settings::new(model.parse().expect("a model"), "You are a test.");
    let slashes = files
        .iter()
        .map(|(name, text)| Slash::parse(name, text).expect("a command"));
    settings.slashes = slashes.collect();
    let options = ServeOptions {
        v2,
        ..ServeOptions::default()
    };
    let mut client = Client::connect(world.agent_of(Arc::new(settings)), options);
    let made = match v2 {
        true => {
            client.initialize_v2();
            client.call("session/new", json!({"cwd": world.cwd()}))
        }
        false => {
            client.initialize(json!({}));
            client.call("session/new", world.new_session())
        }
    };
    (client, result_of(&made).clone())
}

const REVIEW: &str = "---\ndescription: Look over a change\u{202e}\nargument-hint: FILE\n---\nLook over $1, mind $ARGUMENTS.";

// proves: CMD-1, CMD-2, THEME-17
#[test]
fn a_command_of_the_project_is_offered_and_becomes_its_text() {
    let world = World::new(json!([
        {"when": {"last_user_contains": "Look over a.rs, mind a.rs  twice."}, "steps": [{"text": "looked"}]},
        {"when": {"last_user_contains": "/unknown a"}, "steps": [{"text": "what?"}]},
        {"when": {"last_user_contains": "Never said."}, "steps": [{"text": "wrong"}]},
    ]));
    let files = [("review", REVIEW), ("help", "Never said.")];
    let (mut client, made) = session(&world, &files, false);
    let id = made["sessionId"].as_str().expect("an id").to_owned();
    result_of(&client.call("session/list", json!({})));
    let offers = client.offers();
    let offered = offers[0]["update"]["availableCommands"]
        .as_array()
        .expect("a list");
    let last = offered.last().expect("one");
    assert_eq!(last["name"], "review");
    assert_eq!(last["input"], json!({"hint": "FILE"}));
    // What a project writes is shown without what moves other text.
    let about = last["description"].as_str().expect("a text");
    let is_visible = about.starts_with("Look over a change") && !about.contains('\u{202e}');
    assert!(is_visible, "{about:?}");
    // A project cannot take a name of turnery's own.
    assert_eq!(offered.iter().filter(|it| it["name"] == "help").count(), 1);

    let mut said = |blocks: Value| {
        let answer = client.call("session/prompt", json!({"sessionId": id, "prompt": blocks}));
        assert_eq!(result_of(&answer)["stopReason"], "end_turn");
        let updates = client.updates();
        let texts = updates
            .iter()
            .filter(|it| it["sessionUpdate"] == "agent_message_chunk");
        texts
            .filter_map(|it| it["content"]["text"].as_str())
            .collect::<String>()
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

/// The same in the second version, where the offer is in the answer.
#[test]
fn v2_has_them_too() {
    let world = World::new(json!([
        {"when": {"last_user_contains": "Look over a.rs"}, "steps": [{"text": "looked"}]},
    ]));
    let (mut client, made) = session(&world, &[("review", REVIEW)], true);
    let offered = made["availableCommands"].as_array().expect("a list");
    assert_eq!(offered.last().expect("one")["name"], "review");
    let id = made["sessionId"].as_str().expect("an id");
    result_of(&client.call("session/prompt", prompt(id, "/review a.rs")));
    client.wait(|message| message["params"]["update"].to_string().contains("looked"));
}

/// A command grants nothing: what the model then does is asked about as ever.
// proves: CMD-2
#[test]
fn a_command_of_the_project_grants_nothing() {
    let world = World::new(json!([
        {"steps": [{"tool_call": {"name": "change", "args": {}}}]},
        {"steps": [{"text": "done"}]},
    ]));
    let file = "---\nallowed-tools: change\nmode: auto\n---\nChange it.";
    let (mut client, made) = session(&world, &[("change", file)], false);
    let id = made["sessionId"].as_str().expect("an id").to_owned();
    let asked = client.ask("session/prompt", prompt(&id, "/change"));
    let question = client.asked("session/request_permission");
    assert_eq!(world.ran.all(), [] as [String; 0]);
    let no = json!({"outcome": {"outcome": "selected", "optionId": "reject_once"}});
    client.reply(&question, no);
    result_of(&client.answer(&asked));
    assert_eq!(world.ran.all(), [] as [String; 0]);
}

/// An image for a model that takes none is refused before anything is called; a text still works, and so
/// does the image once a model is chosen that takes some.
// proves: PROMPT-2
#[test]
fn an_image_is_for_a_model_that_takes_images() {
    let world = World::new(json!([{"steps": [{"text": "first"}]}]));
    let scripted = world.settings().model.to_string();
    let agent = world.agent_with(Arc::new(Parrot::new()));
    let mut client = Client::connect(agent, ServeOptions::default());
    client.initialize(json!({}));
    let made = client.call("session/new", world.new_session());
    let id = &result_of(&made)["sessionId"];
    client.offers();
    let image = json!({"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="});
    let picture = json!({"sessionId": id, "prompt": [image, {"type": "text", "text": "look"}]});
    let refused = client.call("session/prompt", picture.clone());
    assert_eq!(error_of(&refused), -32602);
    let details = refused["error"]["data"]["details"]
        .as_str()
        .expect("details");
    assert!(details.contains("test/parrot takes no images"), "{details}");
    assert_eq!(client.updates(), [] as [Value; 0]);
    let set = json!({"sessionId": id, "configId": "model", "value": scripted});
    result_of(&client.call("session/set_config_option", set));
    let answer = client.call("session/prompt", picture);
    assert_eq!(result_of(&answer)["stopReason"], "end_turn");
}
