//! Tests where cached prefixes are marked.

use super::*;

fn marked(messages: &[Value]) -> Vec<usize> {
    let is_marked = |message: &Value| {
        let parts = message["content"].as_array();
        parts.is_some_and(|parts| {
            let last = parts.len() - 1;
            parts.iter().enumerate().any(|(at, part)| {
                let is_marked = part["cache_control"] == json!({"type": "ephemeral"});
                assert!(!is_marked || at == last, "the last part of a message");
                is_marked
            })
        })
    };
    let marked = messages.iter().enumerate().filter(|(_, it)| is_marked(it));
    marked.map(|(at, _)| at).collect()
}

/// Quirk 58.
// proves: CHAT-58
#[test]
fn claude_s_cache_is_marked_on_openrouter() {
    let model = "anthropic/claude-sonnet-4.5";
    let sent = messages(OPENROUTER, model, two_rounds(model));
    // System, user, call, result, answer, user, call, result.
    assert_eq!(marked(&sent), [0, 5, 7]);
    let short = messages(OPENROUTER, model, vec![user("one")]);
    assert_eq!(marked(&short), [0, 1]);
}

/// Quirk 58.
// proves: CHAT-58
#[test]
fn other_models_and_hosts_get_no_cache_marks() {
    for (host, model) in [
        (OPENROUTER, "google/gemini-3-pro"),
        (OPENROUTER, "qwen/qwen3-max"),
        (OPENROUTER, "openrouter/auto"),
        (OPENAI, "gpt-5"),
        (UNKNOWN, "claude-sonnet-4-5"),
    ] {
        let sent = json!(messages(host, model, two_rounds(model))).to_string();
        assert!(!sent.contains("cache_control"), "{host} {model}");
    }
}

/// The form of a message does not depend on its mark, so that a longer conversation begins with the same content.
#[test]
fn marks_do_not_change_the_form_of_messages() {
    let model = "anthropic/claude-sonnet-4.5";
    let without_marks = |history: Vec<Message>| {
        let sent = json!(messages(OPENROUTER, model, history)).to_string();
        sent.replace(",\"cache_control\":{\"type\":\"ephemeral\"}", "")
            .replace("\"cache_control\":{\"type\":\"ephemeral\"},", "")
    };
    let mut history = two_rounds(model);
    let long = without_marks(history.clone());
    history.truncate(5);
    let short = without_marks(history);
    assert!(
        long.starts_with(short.trim_end_matches(']')),
        "{long}\n{short}"
    );
}

#[test]
fn cache_key_is_sent_to_hosts_that_take_one() {
    for (host, key) in [
        (OPENAI, json!("s1")),
        (AZURE, json!("s1")),
        (MOONSHOT, json!("s1")),
        (GROQ, json!(null)),
        (UNKNOWN, json!(null)),
    ] {
        let sent = body(host, "m1", &request(vec![user("one")]));
        assert_eq!(sent["prompt_cache_key"], key, "{host}");
    }
}
