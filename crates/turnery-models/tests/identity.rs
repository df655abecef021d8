//! Tests the model identity stored with each loop, and its segment of the loop id.

use serde_json::json;
use turnery_engine::Price;
use turnery_models::{Api, ModelName, ModelOverride, ModelRegistry, ProviderConfig, Thinking};

const URL: &str = "http://desk.example/v1";

fn name(text: &str) -> ModelName {
    text.parse().expect("a name")
}

// proves: LOOP-29, LOOP-33, LOOP-34, LOOP-35, LOOP-37, LOOP-38, LOOP-42, LOOP-43
#[test]
fn snapshot_has_the_address_and_no_secret() {
    let url = "https://me:hunter2@desk.example/v1?token=t0ken";
    let provider = ProviderConfig {
        key: Some("sk-very-secret".to_owned().into()),
        ..ProviderConfig::new("desk", Api::OpenAi, url)
    };
    let registry = ModelRegistry::new(vec![provider]);
    let model = registry.model(&name("desk/qwen2.5:7b")).expect("there");
    let snapshot = model.info().snapshot(Thinking::Low, Some(0.25));
    let written = serde_json::to_value(snapshot).expect("written");
    assert_eq!(
        written,
        json!({
            "model": "qwen2.5:7b",
            "provider": "desk",
            "config_id": "desk-qwen2-5-7b",
            "name": "qwen2.5:7b",
            "reasoning": true,
            "max_tokens": 8192,
            "base_url": "https://desk.example/v1",
            "thinking_level": "low",
            "temperature": 0.25,
            "api": "openai_chat_completions",
        })
    );
    let other = ModelRegistry::new(vec![ProviderConfig::new("desk", Api::Anthropic, url)]);
    let model = other.model(&name("desk/claude")).expect("there");
    let snapshot = model.info().snapshot(Thinking::Default, None);
    assert_eq!(snapshot.api.as_deref(), Some("anthropic_messages"));
}

// proves: LOOP-11, D-13
#[test]
fn model_name_cannot_split_a_loop_id() {
    for (text, segment) in [
        ("offline", "offline"),
        ("openai/gpt-5.1", "openai-gpt-5-1"),
        (
            "openrouter/meta/llama-3.3:free",
            "openrouter-meta-llama-3-3-free",
        ),
        ("scripted:/a.b/c.json", "scripted--a-b-c-json"),
        ("desk/é.ü", "desk----"),
    ] {
        assert_eq!(name(text).loop_id_segment(), segment);
    }
}

#[test]
fn override_wins_over_the_model_name() {
    let provider = ProviderConfig {
        models: vec!["gpt-4o".to_owned()],
        ..ProviderConfig::new("desk", Api::OpenAi, URL)
    };
    let price = Price {
        input: 3_000_000,
        ..Price::default()
    };
    let catalogue = ModelRegistry::new(vec![provider]).with_overrides([
        (
            name("desk/gpt-4o"),
            ModelOverride {
                context_window: Some(32_000),
                images: Some(false),
                price: Some(price),
                ..ModelOverride::default()
            },
        ),
        (
            name("desk/qwen"),
            ModelOverride {
                max_output: Some(4_000),
                reasoning: Some(false),
                ..ModelOverride::default()
            },
        ),
    ]);
    let known = catalogue.model(&name("desk/gpt-4o")).expect("there");
    let info = known.info();
    assert_eq!(
        (info.context_window, info.max_output, info.images),
        (Some(32_000), 16_384, false)
    );
    assert_eq!(catalogue.list_models()[0].context_window, Some(32_000));
    assert_eq!(catalogue.price(&name("desk/gpt-4o")), Some(price));
    let unknown = catalogue.model(&name("desk/qwen")).expect("there");
    let info = unknown.info();
    assert_eq!(
        (info.context_window, info.max_output, info.reasoning),
        (None, 4_000, false)
    );
    assert_eq!(catalogue.price(&name("desk/qwen")), None);
}

/// An audio override has no effect if the API cannot transmit audio.
#[test]
fn audio_override_needs_an_api_that_takes_audio() {
    let audio = |audio| ModelOverride {
        audio: Some(audio),
        ..ModelOverride::default()
    };
    let catalogue = ModelRegistry::new(vec![
        ProviderConfig::new("desk", Api::OpenAi, URL),
        ProviderConfig::new("far", Api::Anthropic, URL),
    ])
    .with_overrides([
        (name("desk/voxtral"), audio(true)),
        (name("desk/gpt-audio-mini"), audio(false)),
        (name("far/voxtral"), audio(true)),
    ]);
    for (model, takes) in [
        ("desk/voxtral", true),
        ("desk/gpt-audio-mini", false),
        ("desk/gpt-audio", true),
        ("desk/qwen", false),
        ("far/voxtral", false),
        ("far/gpt-audio", false),
    ] {
        let model = catalogue.model(&name(model)).expect("there");
        assert_eq!(model.info().audio, takes, "{}", model.info().name);
    }
}
