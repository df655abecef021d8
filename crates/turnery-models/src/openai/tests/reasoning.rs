//! Tests that reasoning goes back where it is wanted, and nowhere else.

use super::*;

/// Returns `field` of the three messages of the model.
fn replayed(host: &str, model: &str, field: &str) -> Vec<Value> {
    messages(host, model, two_rounds(model))
        .into_iter()
        .filter(|message| message["role"] == "assistant")
        .map(|message| message[field].clone())
        .collect()
}

/// Quirk 23.
// proves: CHAT-23
#[test]
fn all_rounds_keep_their_reasoning() {
    for (host, model, field) in [
        (DEEPSEEK, "deepseek-v4-pro", "reasoning_content"),
        (MOONSHOT, "kimi-k2.6", "reasoning_content"),
        (
            "https://api.z.ai/api/paas/v4",
            "glm-5.2",
            "reasoning_content",
        ),
        (OPENROUTER, "moonshotai/kimi-k2.6", "reasoning"),
        (
            "https://api.together.xyz/v1",
            "zai-org/GLM-5.2",
            "reasoning",
        ),
        (UNKNOWN, "qwen3", "reasoning_content"),
    ] {
        let all = replayed(host, model, field);
        assert_eq!(all, ["Hm", "So", "Again"], "{host} {model}");
    }
}

/// Quirk 23: models before V4.
// proves: CHAT-23
#[test]
fn old_deepseek_keeps_reasoning_within_the_round() {
    for model in ["deepseek-reasoner", "deepseek-r1"] {
        let all = replayed(DEEPSEEK, model, "reasoning_content");
        assert_eq!(all, [json!(null), json!(null), json!("Again")], "{model}");
    }
}

/// Quirk 23: a text stands in for reasoning of another model. Moonshot takes an empty one for a missing one.
// proves: CHAT-23
#[test]
fn dropped_reasoning_leaves_a_placeholder() {
    for (host, model, field, placeholder) in [
        (DEEPSEEK, "deepseek-v4-flash", "reasoning_content", ""),
        (MOONSHOT, "kimi-k2.5", "reasoning_content", " "),
        (OPENROUTER, "deepseek/deepseek-v4-pro", "reasoning", ""),
    ] {
        let sent = messages(host, model, two_rounds("another-model"));
        let own: Vec<&Value> = sent
            .iter()
            .filter(|message| message["role"] == "assistant")
            .map(|message| &message[field])
            .collect();
        assert_eq!(own, [placeholder; 3], "{host}");
        assert!(!json!(sent).to_string().contains("Again"), "{host}");
    }
}

/// Quirk 24.
// proves: CHAT-24
#[test]
fn hosts_that_refuse_reasoning_get_none() {
    for (host, model) in [
        (GROQ, "openai/gpt-oss-120b"),
        (GROQ, "moonshotai/kimi-k2.6"),
        (CEREBRAS, "zai-glm-4.7"),
        (OPENAI, "gpt-5"),
        (AZURE, "o3"),
        ("https://api.x.ai/v1", "grok-4.3"),
    ] {
        let sent = json!(messages(host, model, two_rounds(model))).to_string();
        for refused in ["reasoning", "Hm", "So", "Again"] {
            assert!(!sent.contains(refused), "{host} {model}: {sent}");
        }
    }
}

/// Quirk 24: the field it came in, which is kept with the response.
// proves: CHAT-24
#[test]
fn reasoning_goes_back_in_the_field_it_came_in() {
    for (host, kept, field) in [
        (UNKNOWN, "reasoning", "reasoning"),
        (UNKNOWN, "reasoning_text", "reasoning_text"),
        (OPENROUTER, "reasoning_content", "reasoning_content"),
    ] {
        let marker = opaque(json!({"reasoning_field": kept}));
        let history = vec![
            user("one"),
            assistant(
                "m1",
                &[user("one")],
                vec![thought("H"), call("c_1"), marker],
            ),
            result("c_1", "found"),
        ];
        let sent = messages(host, "m1", history);
        let fields: Vec<&String> = sent[2].as_object().unwrap().keys().collect();
        assert_eq!(sent[2][field], "H", "{host}");
        assert_eq!(
            fields.len(),
            4,
            "role, content, tool_calls and {field}: {fields:?}"
        );
    }
}

/// Quirk 24: parts of the content, of Mistral.
#[test]
fn thinking_parts_go_back_before_the_text() {
    let content = vec![
        thought("H"),
        thought("m"),
        Content::text("Yes."),
        call("D681PevKs"),
    ];
    let history = vec![
        user("one"),
        assistant("magistral-medium-latest", &[user("one")], content),
        result("D681PevKs", "found"),
    ];
    let sent = messages(MISTRAL, "magistral-medium-latest", history);
    assert_eq!(
        sent[2]["content"],
        json!([
            {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]},
            {"type": "text", "text": "Yes."},
        ])
    );
}

/// Quirk 25.
// proves: CHAT-17, CHAT-25
#[test]
fn reasoning_details_go_back_unchanged() {
    let details = json!([
        {"type": "reasoning.text", "text": "Hm \"é\"", "signature": "c2ln+/=", "format": "anthropic-claude-v1", "index": 0},
        {"type": "reasoning.encrypted", "data": "gAAAAB==", "id": "rs_1", "format": "openai-responses-v1", "index": 1},
    ]);
    let kept = || {
        vec![
            thought("Hm \"é\""),
            call("c_1"),
            opaque(json!({"reasoning_details": details})),
        ]
    };
    let of = |model: &str, request: &ModelRequest| {
        let sent = body(OPENROUTER, model, request);
        sent["messages"][2].clone()
    };
    let history = |author: &str| {
        vec![
            user("one"),
            assistant(author, &[user("one")], kept()),
            result("c_1", "found"),
        ]
    };
    for model in ["openai/gpt-5.1", "anthropic/claude-sonnet-4.5"] {
        let own = of(model, &request(history(model)));
        assert_eq!(own["reasoning_details"], details, "{model}");
        assert_eq!(own["reasoning"], json!(null), "the details hold the text");
        let other = of(model, &request(history("google/gemini-3-pro")));
        assert_eq!(other["reasoning_details"], json!(null), "{model}");
        assert_eq!(other["tool_calls"][0]["id"], "c_1");
    }
}

/// Quirk 35: Claude signs its reasoning along with the conversation.
// proves: CHAT-35
#[test]
fn signed_reasoning_stays_in_its_context() {
    let details = json!([{"type": "reasoning.text", "text": "Hm", "signature": "s", "index": 0}]);
    for (model, is_kept) in [
        ("anthropic/claude-opus-4.8", false),
        ("google/gemini-3-pro", true),
    ] {
        let kept = vec![
            thought("Hm"),
            call("c_1"),
            opaque(json!({"reasoning_details": details})),
        ];
        let history = vec![
            user("one"),
            assistant(model, &[user("one")], kept),
            result("c_1", "found"),
        ];
        let mut changed = request(history);
        changed.system = "Be verbose.".into();
        let sent = body(OPENROUTER, model, &changed);
        let has_details = sent["messages"][2]["reasoning_details"] == details;
        assert_eq!(has_details, is_kept, "{model}");
    }
}
