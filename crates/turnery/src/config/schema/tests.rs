//! Tests that the schema, the reader and the examples agree.

use super::*;
use std::{fs, path::PathBuf};

/// Asserts that the file of `schemas/` holds this text; writes it if `UPDATE_SCHEMAS` is set.
pub(crate) fn assert_schema_file(name: &str, text: &str) {
    let file = root().join("schemas").join(name);
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        fs::write(&file, text).unwrap();
    }
    assert_eq!(
        fs::read_to_string(&file).unwrap_or_default(),
        text,
        "schemas/{name} is out of date: run `cargo xtask schemas`"
    );
}

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[test]
fn the_schema_file_is_up_to_date() {
    assert_schema_file("config.json", &text().unwrap());
}

fn valid(toml: &str) -> bool {
    let schema = serde_json::to_value(schema()).unwrap();
    let instance: Value = toml::from_str(toml).unwrap();
    jsonschema::validator_for(&schema)
        .unwrap()
        .is_valid(&instance)
}

#[test]
fn schema_and_reader_agree_on_examples() {
    for name in ["all-keys.toml", "project.toml", "local-only.toml"] {
        let path = root().join("examples/config").join(name);
        let text = fs::read_to_string(&path).unwrap();
        assert!(valid(&text), "{name}");
        Config::parse(&path, &text).unwrap();
    }
}

/// Returns the keys of `schema` that are in none of `values`. Names that the user chooses are `*`.
fn missing_keys(root: &Value, schema: &Value, values: &[&Value], path: &str) -> Vec<String> {
    let mut missing = Vec::new();
    let mut look = |name: &str, schema: &Value, values: Vec<&Value>| match values.is_empty() {
        true => missing.push(format!("{path}{name}")),
        false => missing.extend(missing_keys(
            root,
            schema,
            &values,
            &format!("{path}{name}."),
        )),
    };
    let reference = schema["$ref"]
        .as_str()
        .and_then(|name| name.strip_prefix('#'));
    let schema = reference.map_or(schema, |name| root.pointer(name).unwrap());
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        look(
            name,
            schema,
            values.iter().filter_map(|value| value.get(name)).collect(),
        );
    }
    if let Some(schema @ Value::Object(_)) = schema.get("additionalProperties") {
        let tables = values.iter().filter_map(|value| value.as_object());
        look(
            "*",
            schema,
            tables.flat_map(|table| table.values()).collect(),
        );
    }
    if let Some(schema) = schema.get("items") {
        let lists = values.iter().filter_map(|value| value.as_array());
        look("*", schema, lists.flatten().collect());
    }
    for schema in schema["anyOf"].as_array().into_iter().flatten() {
        missing.extend(missing_keys(root, schema, values, path));
    }
    missing
}

#[test]
fn example_holds_every_key() {
    let text = fs::read_to_string(root().join("examples/config/all-keys.toml")).unwrap();
    let example: Value = toml::from_str(&text).unwrap();
    let schema = serde_json::to_value(schema()).unwrap();
    let missing = missing_keys(&schema, &schema, &[&example], "");
    // Variables and a provider's headers are written like the headers of an MCP server, where the example has it.
    let shown_elsewhere = ["mcp.*.env.*.prefix", "providers.*.headers.*.prefix"];
    assert_eq!(
        missing, shown_elsewhere,
        "add the others to examples/config/all-keys.toml"
    );
}

#[test]
fn the_schema_refuses_what_the_reader_refuses() {
    for text in [
        "modle = \"offline\"",
        "mode = \"atuo\"",
        "[limits]\nturns = 0",
        "[limits]\nturn = 3",
        "[limits]\nanswer_bytes = 0",
        "[limits]\nanswer_calls = 0",
        "[limits]\nidle_seconds = 0",
        "[limits]\ncontent_seconds = -1",
        "compact_at = 101",
        "parallel_tools = 0",
        "compaction = 5",
        "[compaction]\nfirst_turns = -1",
        "[compaction]\nsummary_tokens = 0",
        "[compaction]\noutput_lines = 0",
        "[compaction]\nroom = 0",
        "[compaction]\nrooom = 1",
        "[[hooks]]\non = \"before_toll\"\ncommand = \"true\"",
        "[[hooks]]\non = \"input\"\ncommand = []",
        "[[hooks]]\non = \"input\"\ncommand = 5",
        "[models.\"a/b\"]\ncontext_window = 0",
        "[models.\"a/b\"]\nprice = { input = -1, output = 1 }",
        "[providers.x]\napi = \"opnai\"",
        "[providers.x]\nkey = \"secret\"",
        "[mcp.x]\ncommand = \"\"",
        "[mcp.x]\nurl = \"ftp://x\"",
        "[mcp.x]\ncommand = \"x\"\nenv = { A = 1 }",
        "[mcp.x]\ncommand = \"x\"\nenv = { A = { evn = \"B\" } }",
        "[mcp.x]\ncommand = \"x\"\ntimeout = 0",
    ] {
        assert!(!valid(text), "{text}");
        Config::parse(std::path::Path::new("f"), text).unwrap_err();
    }
}
