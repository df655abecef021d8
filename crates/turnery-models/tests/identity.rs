//! Identity: what is kept of a model with each loop, and how it names the loop.

use serde_json::json;
use turnery_models::{Api, Catalogue, ModelName, ProviderConfig, Thinking};

// proves: LOOP-29, LOOP-33, LOOP-34, LOOP-35, LOOP-37, LOOP-38, LOOP-42
#[test]
fn a_snapshot_has_the_address_and_no_secret() {
    let provider = ProviderConfig {
        name: "desk".to_owned(),
        api: Api::OpenAi,
        base_url: "https://me:hunter2@desk.example/v1".to_owned(),
        key: Some("sk-very-secret".to_owned().into()),
        key_hint: "DESK_KEY".to_owned(),
        models: Vec::new(),
    };
    let name: ModelName = "desk/qwen2.5:7b".parse().expect("a name");
    let model = Catalogue::new(vec![provider]).model(&name).expect("there");
    let snapshot = model.info().snapshot(Thinking::Low);
    let written = serde_json::to_value(snapshot).expect("written");
    for (field, value) in [
        ("model", json!("qwen2.5:7b")),
        ("provider", json!("desk")),
        ("config_id", json!("desk-qwen2-5-7b")),
        ("base_url", json!("https://desk.example/v1")),
        ("thinking_level", json!("low")),
    ] {
        assert_eq!(written[field], value, "{field}");
    }
    assert!(written["api"].is_string(), "{written}");
    let text = written.to_string();
    for secret in ["hunter2", "sk-very-secret"] {
        assert!(!text.contains(secret), "{text}");
    }
}

// proves: LOOP-11, D-13
#[test]
fn no_name_of_a_model_breaks_a_loop_id_apart() {
    for (name, segment) in [
        ("offline", "offline"),
        ("openai/gpt-5.1", "openai-gpt-5-1"),
        (
            "openrouter/meta/llama-3.3:free",
            "openrouter-meta-llama-3-3-free",
        ),
        ("scripted:/a.b/c.json", "scripted--a-b-c-json"),
        ("desk/é.ü", "desk----"),
    ] {
        let name: ModelName = name.parse().expect(name);
        assert_eq!(name.segment(), segment);
    }
}
