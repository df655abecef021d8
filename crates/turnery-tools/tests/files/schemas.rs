//! Tests of tool schemas, and of normalising arguments to them.

use proptest::prelude::*;
use serde_json::{Value, json};
use turnery_engine::{ToolErrorKind, ToolSpec};
use turnery_tools::Toolbox;

fn tool_spec(name: &str) -> ToolSpec {
    let toolbox = Toolbox::coding();
    toolbox.get(name).expect("it is there").spec()
}

fn normalise_args(name: &str, args: Value) -> Result<Value, String> {
    Toolbox::normalise_args(&tool_spec(name), &args).map_err(|failure| {
        assert_eq!(failure.kind, ToolErrorKind::Validation);
        failure.message
    })
}

#[test]
fn schema_contains_only_what_models_need() {
    assert_eq!(
        *tool_spec("read_file").schema,
        json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "start_line": {"type": "integer", "description": "First line, from 1"},
                "end_line": {"type": "integer", "description": "Last line, included"},
            },
            "required": ["path"],
            "additionalProperties": false,
        })
    );
    assert_eq!(
        tool_spec("update_plan")
            .schema
            .pointer("/properties/entries/items/properties/status"),
        Some(&json!({"type": "string", "enum": ["pending", "in_progress", "completed"]}))
    );
}

/// All tools are sent with the first request, so they must be small.
#[test]
fn file_tool_specs_fit_in_4_kib() {
    let toolbox = Toolbox::coding();
    let specs = toolbox.specs();
    let bytes: usize = specs
        .iter()
        .filter(|spec| spec.name != "shell")
        .map(|spec| serde_json::to_string(spec).expect("it is JSON").len())
        .sum();
    assert!(bytes < 4_096, "{bytes}");
}

/// JIDO-39, JIDO-40.
// proves: JIDO-39, JIDO-40
#[test]
fn equivalent_arguments_are_coerced() {
    let path = json!({"path": "a", "start_line": 6});
    for args in [
        json!({"path": "a", "start_line": 6}),
        json!({"path": "a", "start_line": "6"}),
        json!({"path": "a", "start_line": 6.0}),
        json!({"path": "a", "start_line": 6, "end_line": null}),
        json!("{\"path\": \"a\", \"start_line\": \"6\"}"),
    ] {
        assert_eq!(normalise_args("read_file", args), Ok(path.clone()));
    }
    assert_eq!(normalise_args("list_dir", json!(null)), Ok(json!({})));
    assert_eq!(normalise_args("list_dir", json!("")), Ok(json!({})));
    assert_eq!(
        normalise_args("search", json!({"pattern": 42, "literal": "True"})),
        Ok(json!({"pattern": "42", "literal": true}))
    );
    assert_eq!(
        normalise_args("update_plan", json!({"entries": "[{\"content\": \"x\"}]"})),
        Ok(json!({"entries": [{"content": "x"}]}))
    );
}

#[test]
fn mismatched_argument_is_named() {
    for (name, args, message) in [
        (
            "read_file",
            json!({"file_path": "a"}),
            "read_file: there is no argument \"file_path\"; did you mean \"path\"? It takes \
             path (required), start_line, end_line",
        ),
        (
            "read_file",
            json!({"path": "a", "startLine": 6}),
            "read_file: there is no argument \"startLine\"; did you mean \"start_line\"? It takes \
             path (required), start_line, end_line",
        ),
        (
            "read_file",
            json!({"path": "a", "description": "b"}),
            "read_file: there is no argument \"description\"; it takes \
             path (required), start_line, end_line",
        ),
        ("read_file", json!({}), "read_file: \"path\" is missing"),
        (
            "read_file",
            json!({"path": ["a"]}),
            "read_file: \"path\" must be of type string, not an array",
        ),
        (
            "read_file",
            json!({"path": "a", "start_line": "six"}),
            "read_file: \"start_line\" must be of type integer, not a string",
        ),
        (
            "update_plan",
            json!({"entries": [{"content": "x"}, {"content": {}}]}),
            "update_plan: /entries/1/content must be of type string, not an object",
        ),
        (
            "read_file",
            json!([]),
            "the arguments of read_file must be an object, not an array",
        ),
        (
            "read_file",
            json!("{\"path\": "),
            "the arguments of read_file are not valid JSON: EOF while parsing a value at line 1 column 9",
        ),
    ] {
        assert_eq!(normalise_args(name, args), Err(message.to_owned()));
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[0-9]{0,3}|true|[a-z{}\\[\\]\"]{0,6}".prop_map(Value::from),
    ];
    let key = prop_oneof![
        prop::sample::select(vec![
            "path",
            "content",
            "start_line",
            "pattern",
            "literal",
            "entries",
            "status",
            "depth",
        ])
        .prop_map(str::to_owned),
        "[a-z~/]{0,3}",
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Arguments never cause a panic, and normalising twice gives the same result.
    #[test]
    fn normalising_is_idempotent(args in any_json()) {
        for spec in Toolbox::coding().specs().iter() {
            if let Ok(once) = Toolbox::normalise_args(spec, &args) {
                prop_assert_eq!(Toolbox::normalise_args(spec, &once), Ok(once.clone()));
            }
        }
    }

    /// Schemas of external tools may be anything, and may be recursive.
    #[test]
    fn arbitrary_schema_does_not_panic(args in any_json(), inner in any_json()) {
        let spec = ToolSpec {
            name: "other".to_owned(),
            description: String::new(),
            schema: json!({
                "type": "object",
                "properties": {"path": {"$ref": "#"}, "content": inner},
                "anyOf": [{"$ref": "#"}, {"anyOf": [{"$ref": "#"}, {"type": "array"}]}],
            }).into(),
        };
        if let Ok(fitted) = Toolbox::normalise_args(&spec, &args) {
            prop_assert!(fitted.is_object());
        }
    }
}
