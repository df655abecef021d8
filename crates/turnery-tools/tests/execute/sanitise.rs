//! Tests of what a log may contain of a value.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use turnery_tools::telemetry::sanitise;

// proves: JIDO-64, UP-25
#[test]
fn values_under_secret_names_are_redacted() {
    for name in [
        "api_key",
        "apikey",
        "apiKey",
        "API_KEY",
        "api-key",
        "password",
        "Password",
        "secret",
        "token",
        "auth_token",
        "authToken",
        "authtoken",
        "private_key",
        "privatekey",
        "access_key",
        "accesskey",
        "bearer",
        "api_secret",
        "apisecret",
        "client_secret",
        "clientSecret",
        "clientsecret",
        "secret_recipe",
        "my_secret_place",
        "db_password",
        "dbPassword",
        "signing_key",
        "refresh_token",
        "GITHUB_TOKEN",
        "Authorization",
    ] {
        for value in [
            json!("sk-1"),
            json!(7),
            json!({"inner": "sk-1"}),
            json!(["sk-1"]),
        ] {
            assert_eq!(
                sanitise(&json!({ name: value })),
                json!({ name: "[REDACTED]" })
            );
        }
    }
}

// proves: JIDO-64
#[test]
fn values_under_other_names_are_kept() {
    let value = json!({
        "path": "a", "keyboard": "k", "monkey": "m", "tokens": 5, "max_tokens": 9, "key": "k",
        "secretary": "s", "passwordless": true
    });
    assert_eq!(sanitise(&value), value);
}

// proves: JIDO-64, UP-25
#[test]
fn secrets_are_found_at_every_depth() {
    let value = json!({"servers": [{"name": "a", "token": "t"}, {"auth": {"password": "p"}}]});
    assert_eq!(
        sanitise(&value),
        json!({"servers": [
            {"name": "a", "token": "[REDACTED]"},
            {"auth": {"password": "[REDACTED]"}}
        ]})
    );
}

#[test]
fn value_is_bounded_in_depth_and_size() {
    assert_eq!(
        sanitise(&json!({"a": {"b": {"c": {"d": {"e": 1}}}}})),
        json!({"a": {"b": {"c": {"d": "[DEEPER]"}}}})
    );
    assert_eq!(
        sanitise(&json!([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])),
        json!([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, "... 2 more"])
    );
    let ten = json!([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(sanitise(&ten), ten);
    let keys: Map<String, Value> = (0..40).map(|n| (format!("n{n:02}"), json!(n))).collect();
    let kept = sanitise(&Value::Object(keys));
    let kept = kept.as_object().expect("a map");
    assert_eq!(kept.len(), 33);
    assert_eq!(kept["..."], "... 8 more");
    assert_eq!(kept["n31"], 31);
    let long = "é".repeat(513);
    assert_eq!(
        sanitise(&json!(long)),
        json!(format!("{}...", "é".repeat(512)))
    );
    let fits = json!("é".repeat(512));
    assert_eq!(sanitise(&fits), fits);
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!("hunter2")),
        any::<i64>().prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(8, 128, 12, |inner| {
        let name = prop_oneof!["[a-z]{1,6}", Just("db_password".to_owned())];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..14).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..6)
                .prop_map(|map| { Value::Object(map.into_iter().collect()) }),
        ]
    })
}

/// Returns true if the secret under `db_password` is visible.
fn contains_secret(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.iter().any(|(name, value)| match name.as_str() {
            "db_password" => value != "[REDACTED]",
            _ => contains_secret(value),
        }),
        Value::Array(items) => items.iter().any(contains_secret),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

proptest! {
    // proves: JIDO-64
    #[test]
    fn secrets_never_appear(value in any_value()) {
        prop_assert!(!contains_secret(&sanitise(&value)));
    }
}
