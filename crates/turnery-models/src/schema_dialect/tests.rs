//! Checks converted schemas against rules written from the documentation of each provider, independent of the
//! conversion.

use super::{DialectSchema, SchemaDialect, restore_property_names};
use crate::providers;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use turnery_engine::{Content, ModelStop, Response, ToolCall, ToolSpec};

const ALL: [SchemaDialect; 4] = [
    SchemaDialect::Anthropic,
    SchemaDialect::OpenAi,
    SchemaDialect::Gemini,
    SchemaDialect::Moonshot,
];

/// Returns the schema in the dialect, and whether it was passed through.
fn adapt(dialect: SchemaDialect, schema: &Value) -> (Value, bool) {
    let tool = ToolSpec::new("t", "", schema.clone());
    match &dialect.adapt(&[tool])[0] {
        DialectSchema::Unchanged(schema) => ((**schema).clone(), true),
        DialectSchema::Adapted(schema) => ((**schema).clone(), false),
    }
}

fn converted(dialect: SchemaDialect, schema: &Value) -> Value {
    let (converted, is_unchanged) = adapt(dialect, schema);
    assert!(!is_unchanged, "{dialect:?} accepts {schema}");
    converted
}

/// Returns what is wrong with a schema for the provider.
fn violation(dialect: SchemaDialect, schema: &Value) -> Option<&'static str> {
    if schema["type"] != "object" {
        return Some("the root is no object");
    }
    match dialect {
        SchemaDialect::Anthropic => plain_violation(schema)
            .or_else(|| (!names_are_valid(schema)).then_some("a property has a bad name")),
        SchemaDialect::OpenAi => plain_violation(schema).or_else(|| {
            (!schema["properties"].is_object()).then_some("the root has no properties")
        }),
        SchemaDialect::Gemini | SchemaDialect::Moonshot => subset_violation(dialect, schema),
    }
}

fn plain_violation(schema: &Value) -> Option<&'static str> {
    let refused = ["anyOf", "oneOf", "allOf", "not", "enum", "const"];
    if refused.iter().any(|it| schema.get(it).is_some()) {
        Some("the root is a union")
    } else if !jsonschema::meta::is_valid(schema) {
        Some("it is no valid schema")
    } else {
        None
    }
}

fn names_are_valid(schema: &Value) -> bool {
    let Some(members) = schema.as_object() else {
        return true;
    };
    let is_valid = |name: &String| {
        !name.is_empty()
            && name.len() <= 64
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
    };
    members
        .iter()
        .all(|(keyword, value)| match keyword.as_str() {
            "properties" => value
                .as_object()
                .unwrap()
                .iter()
                .all(|(name, schema)| is_valid(name) && names_are_valid(schema)),
            "$defs" | "definitions" | "patternProperties" => {
                value.as_object().unwrap().values().all(names_are_valid)
            }
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                value.as_array().unwrap().iter().all(names_are_valid)
            }
            "items" | "not" | "additionalProperties" | "if" | "then" | "else" => {
                names_are_valid(value)
            }
            _ => true,
        })
}

fn subset_violation(dialect: SchemaDialect, schema: &Value) -> Option<&'static str> {
    let is_gemini = dialect == SchemaDialect::Gemini;
    let Some(members) = schema.as_object() else {
        return Some("a schema is no object");
    };
    let known: &[&str] = match is_gemini {
        true => &[
            "type",
            "description",
            "anyOf",
            "properties",
            "required",
            "items",
            "minItems",
            "maxItems",
            "minimum",
            "maximum",
            "enum",
        ],
        false => &[
            "type",
            "description",
            "anyOf",
            "properties",
            "required",
            "items",
            "minItems",
            "maxItems",
            "minimum",
            "maximum",
            "enum",
            "title",
            "default",
            "minLength",
            "maxLength",
            "additionalProperties",
        ],
    };
    if !members.keys().all(|it| known.contains(&it.as_str())) {
        return Some("an unknown keyword");
    }
    let kind = members
        .get("type")
        .map(|kind| kind.as_str().unwrap_or("no text"));
    let types = [
        "object", "array", "string", "integer", "number", "boolean", "null",
    ];
    match (kind, members.get("anyOf")) {
        (Some(kind), None) if types.contains(&kind) => {}
        (None, Some(Value::Array(choices))) if !choices.is_empty() => {}
        _ => return Some("neither one type nor a union"),
    }
    if kind == Some("array") && !members.contains_key("items") {
        return Some("an array without items");
    }
    for value in members
        .get("enum")
        .map_or(&[][..], |it| it.as_array().unwrap())
    {
        let fits = match kind {
            Some("string") => value.as_str().is_some_and(|text| !text.is_empty()),
            Some("integer") => !is_gemini && value.is_i64() || value.is_u64(),
            Some("number") => !is_gemini && value.is_number(),
            _ => false,
        };
        if !fits || (is_gemini && kind != Some("string")) {
            return Some("a choice of another type");
        }
    }
    let none = Map::new();
    let properties = members
        .get("properties")
        .map_or(&none, |it| it.as_object().unwrap());
    for name in members
        .get("required")
        .map_or(&[][..], |it| it.as_array().unwrap())
    {
        if !properties.contains_key(name.as_str().unwrap()) {
            return Some("a required property that is not declared");
        }
    }
    let choices = members
        .get("anyOf")
        .map_or(&[][..], |it| it.as_array().unwrap());
    let extra = members
        .get("additionalProperties")
        .filter(|it| !it.is_boolean());
    properties
        .values()
        .chain(choices)
        .chain(members.get("items"))
        .chain(extra)
        .find_map(|schema| subset_violation(dialect, schema))
}

const KEYWORDS: &[&str] = &[
    "type",
    "properties",
    "required",
    "items",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "enum",
    "const",
    "$ref",
    "$defs",
    "additionalProperties",
    "description",
    "format",
    "minimum",
    "prefixItems",
    "exclusiveMinimum",
    "minLength",
    "maxItems",
    "title",
    "default",
    "if",
    "$id",
    "$anchor",
    "dependencies",
    "nullable",
    "uniqueItems",
    "multipleOf",
];

const WORDS: &[&str] = &[
    "object",
    "string",
    "array",
    "integer",
    "null",
    "a",
    "user id",
    "#/$defs/a",
    "#/$defs/b",
    "#",
    "#/properties/a",
    "",
    "\u{fc}",
];

const NAMES: &[&str] = &["a", "b", "user id", "", "type", "properties"];

/// Generates JSON that resembles a schema.
fn schema_like() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        prop_oneof![Just(-1), Just(0), Just(3)].prop_map(Value::from),
        Just(json!(1.5)),
        Just(json!(["a", "user id"])),
        Just(json!(["", "x", 1])),
        prop::sample::select(WORDS).prop_map(Value::from),
        prop::sample::select(&["object", "string", "array"][..]).prop_map(|it| json!({"type": it})),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        let map = |keys: &'static [&'static str]| {
            let keys = prop::sample::select(keys).prop_map(str::to_owned);
            prop::collection::btree_map(keys, inner.clone(), 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect()))
        };
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            map(KEYWORDS),
            map(NAMES),
            (map(NAMES), map(KEYWORDS)).prop_map(|(properties, mut schema)| {
                schema["properties"] = properties;
                schema
            }),
            (map(NAMES), map(KEYWORDS)).prop_map(|(defs, mut schema)| {
                schema["$defs"] = defs;
                schema
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_json_is_brought_into_each_dialect(schema in schema_like()) {
        for dialect in ALL {
            let (adapted, _) = adapt(dialect, &schema);
            prop_assert_eq!(violation(dialect, &adapted), None, "{:?}: {}", dialect, adapted);
            let (again, is_unchanged) = adapt(dialect, &adapted);
            prop_assert!(is_unchanged, "{:?} refuses {}, converts to {}", dialect, adapted, again);
        }
    }
}

#[test]
fn schema_within_a_dialect_is_passed_through() {
    let common = json!({
        "type": "object",
        "description": "Arguments.",
        "properties": {
            "path": {"type": "string", "description": "A path."},
            "mode": {"type": "string", "enum": ["fast", "slow"]},
            "count": {"type": "integer", "minimum": 1},
            "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
            "value": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["path"],
    });
    for dialect in ALL {
        assert_eq!(violation(dialect, &common), None);
        assert_eq!(
            adapt(dialect, &common),
            (common.clone(), true),
            "{dialect:?}"
        );
    }
    let rich = json!({
        "type": "object",
        "properties": {
            "a.b-c_1": {"oneOf": [{"const": 1}, {"$ref": "#/$defs/x"}]},
            "pair": {"type": "array", "prefixItems": [{"type": "string"}, true]},
        },
        "additionalProperties": false,
        "$defs": {"x": {"type": ["string", "null"], "pattern": "^x"}},
    });
    for dialect in [SchemaDialect::Anthropic, SchemaDialect::OpenAi] {
        assert_eq!(adapt(dialect, &rich), (rich.clone(), true), "{dialect:?}");
    }
    let numbers = json!({
        "type": "object",
        "properties": {"level": {"type": "integer", "enum": [1, 2], "default": 1}},
        "additionalProperties": false,
    });
    let moonshot = SchemaDialect::Moonshot;
    assert_eq!(adapt(moonshot, &numbers), (numbers.clone(), true));
}

/// Quirk 55: a union at the root, as MCP servers write it.
#[test]
fn union_at_the_root_is_merged() {
    let schema = json!({
        "type": "object",
        "description": "Looks a thing up.",
        "properties": {"limit": {"type": "integer"}},
        "required": ["limit"],
        "oneOf": [
            {"properties": {"kind": {"const": "id"}, "id": {"type": "string"}}, "required": ["kind", "id"]},
            {"$ref": "#/$defs/by_name"},
        ],
        "$defs": {
            "by_name": {
                "type": "object",
                "properties": {"kind": {"const": "name"}, "name": {"type": "string"}},
                "required": ["name", "kind"],
                "additionalProperties": false,
            },
        },
    });
    let merged = json!({
        "type": "object",
        "description": "Looks a thing up.",
        "properties": {
            "limit": {"type": "integer"},
            "kind": {"anyOf": [{"const": "id"}, {"const": "name"}]},
            "id": {"type": "string"},
            "name": {"type": "string"},
        },
        "required": ["limit", "kind"],
        "$defs": schema["$defs"],
    });
    assert_eq!(converted(SchemaDialect::Anthropic, &schema), merged);
    assert_eq!(converted(SchemaDialect::OpenAi, &schema), merged);
    let choices = json!({"anyOf": [
        {"type": "string", "enum": ["id"]},
        {"type": "string", "enum": ["name"]},
    ]});
    let mut typed = merged;
    typed["properties"]["kind"] = choices;
    typed.as_object_mut().unwrap().remove("$defs");
    assert_eq!(converted(SchemaDialect::Gemini, &schema), typed);
    assert_eq!(converted(SchemaDialect::Moonshot, &schema), typed);
}

#[test]
fn root_of_any_kind_becomes_an_object() {
    let empty = json!({"type": "object", "properties": {}});
    for schema in [
        json!(null),
        json!(true),
        json!("string"),
        json!([]),
        json!({}),
        json!({"type": "string"}),
        json!({"type": ["object", "null"]}),
        json!({"properties": null, "required": null}),
        json!({"$ref": "#/$defs/missing"}),
        json!({"$ref": "#"}),
    ] {
        for dialect in ALL {
            assert_eq!(converted(dialect, &schema), empty, "{dialect:?}: {schema}");
        }
    }
}

/// Older drafts, and values that no draft allows.
#[test]
fn unusable_keywords_are_dropped() {
    let schema = json!({
        "type": "object",
        "properties": {
            "a": {"type": "string", "required": true, "title": null, "default": null},
            "b": {"type": "number", "minimum": 0, "exclusiveMinimum": true},
            "c": {"type": ["string", "text"], "enum": null},
            "d": null,
            "e": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]},
            "f": {"type": "object", "properties": null},
        },
        "required": ["a", "a", 1],
    });
    let repaired = json!({
        "type": "object",
        "properties": {
            "a": {"type": "string", "default": null},
            "b": {"type": "number", "minimum": 0},
            "c": {"type": ["string"]},
            "d": {},
            "e": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
            "f": {"type": "object"},
        },
        "required": ["a"],
    });
    assert_eq!(converted(SchemaDialect::Anthropic, &schema), repaired);
    assert_eq!(converted(SchemaDialect::OpenAi, &schema), repaired);
}

/// Quirk 55: what Gemini's subset lacks.
#[test]
fn gemini_gets_types_unions_and_text_choices() {
    let schema = json!({
        "type": "object",
        "properties": {
            "level": {"type": "integer", "enum": [0, 1], "description": "How loud."},
            "name": {"type": ["string", "null"], "description": "Its name.", "minLength": 1},
            "when": {"type": "string", "format": "date-time"},
            "where": {"$ref": "#/$defs/place", "description": "Where to."},
            "tree": {"$ref": "#/$defs/tree"},
            "both": {"allOf": [{"$ref": "#/$defs/place"}, {"properties": {"z": {"type": "number"}}}]},
            "kind": {"enum": ["", "x"]},
            "pair": {"type": "array", "items": [{"type": "string"}, {"type": "number"}]},
        },
        "required": ["level", "unknown"],
        "additionalProperties": false,
        "$defs": {
            "place": {"type": "object", "properties": {"x": {"type": "number", "exclusiveMinimum": 0}}},
            "tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
        },
    });
    let anything = json!({"anyOf": [
        {"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"type": "object"},
        {"type": "array", "items": {"type": "string"}},
    ]});
    let x = json!({"type": "number"});
    assert_eq!(
        converted(SchemaDialect::Gemini, &schema),
        json!({
            "type": "object",
            "properties": {
                "level": {"type": "integer", "description": "How loud. Allowed values: 0, 1."},
                "name": {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "Its name."},
                "when": {"type": "string", "description": "Format: date-time."},
                "where": {"type": "object", "properties": {"x": x}, "description": "Where to."},
                "tree": {"type": "array", "items": anything},
                "both": {"type": "object", "properties": {"x": x, "z": x}},
                "kind": {"type": "string", "enum": ["x"]},
                "pair": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}},
            },
            "required": ["level"],
        })
    );
}

/// Quirk 55; MoonshotAI/kimi-cli#1595 and #2061: a type beside `anyOf`, no type, a description beside `$ref`.
#[test]
fn moonshot_gets_types_inside_unions() {
    let schema = json!({
        "type": "object",
        "properties": {
            "asset": {"$ref": "#/$defs/asset", "description": "The asset."},
            "mode": {"type": "string", "anyOf": [{"enum": ["a"]}, {"minLength": 3}]},
            "free": {"description": "Anything."},
            "level": {"enum": [1, 2], "default": 1},
        },
        "$defs": {"asset": {"type": "string", "description": "An asset."}},
    });
    assert_eq!(
        converted(SchemaDialect::Moonshot, &schema),
        json!({
            "type": "object",
            "properties": {
                "asset": {"type": "string", "description": "The asset."},
                "mode": {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "string", "minLength": 3}]},
                "free": {"description": "Anything.", "anyOf": [
                    {"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"type": "object"},
                    {"type": "array", "items": {"type": "string"}},
                ]},
                "level": {"type": "integer", "enum": [1, 2], "default": 1},
            },
        })
    );
}

/// References that double at every step would need 2^40 schemas.
#[test]
fn multiplying_references_stay_small() {
    let doubled = |next: &str| json!({"type": "object", "properties": {"l": {"$ref": next}, "r": {"$ref": next}}});
    let merged = |next: &str| json!({"allOf": [{"$ref": next}, {"$ref": next, "title": "r"}]});
    let forms: [&dyn Fn(&str) -> Value; 2] = [&doubled, &merged];
    for form in forms {
        let steps = (0..40).map(|n| (format!("s{n}"), form(&format!("#/$defs/s{}", n + 1))));
        let defs: Map<String, Value> = steps.collect();
        let mut schema = form("#/$defs/s0");
        schema["$defs"] = Value::Object(defs);
        for dialect in ALL {
            let (adapted, _) = adapt(dialect, &schema);
            assert!(adapted.to_string().len() < 1_000_000, "{dialect:?}");
        }
    }
}

/// Quirk 55: names that the Messages API refuses. The hashes are the first digits of `sha256sum`.
#[test]
fn refused_property_names_are_changed_and_restored() {
    let long = "x".repeat(70);
    let long_changed = format!("{}-c71bd109", "x".repeat(55));
    let inner = json!({"type": "object", "properties": {"user id": {"type": "string"}}});
    let schema = json!({
        "type": "object",
        "properties": {"user id": {"type": "string"}, (&*long): {"type": "array", "items": inner}},
        "required": ["user id"],
    });
    let changed = json!({"type": "object", "properties": {"user_id-9b55b418": {"type": "string"}}});
    assert_eq!(
        converted(SchemaDialect::Anthropic, &schema),
        json!({
            "type": "object",
            "properties": {
                "user_id-9b55b418": {"type": "string"},
                (&*long_changed): {"type": "array", "items": changed},
            },
            "required": ["user_id-9b55b418"],
        })
    );
    let args = json!({
        "user_id-9b55b418": "a",
        (&*long_changed): [{"user_id-9b55b418": "b"}],
        "other": 2,
    });
    let call = |name: &str| Content::ToolCall(ToolCall::new("c", name, args.clone()));
    let mut response = Response {
        content: vec![call("look"), call("other")],
        stop: ModelStop::ToolUse,
        raw_stop: None,
        usage: None,
        model: String::new(),
        provider: String::new(),
        tool_results: Vec::new(),
        request: None,
    };
    restore_property_names(&[ToolSpec::new("look", "", schema)], &mut response);
    let restored: Vec<Value> = response.calls().map(|call| (*call.args).clone()).collect();
    let original = json!({"user id": "a", (&*long): [{"user id": "b"}], "other": 2});
    assert_eq!(restored[0], original);
    assert_eq!(restored[1], args, "a tool without such names");
}

#[test]
fn dialect_depends_on_host_then_model() {
    let of =
        |url, model| providers::schemas_at(url).unwrap_or_else(|| SchemaDialect::of_model(model));
    let openrouter = "https://openrouter.ai/api/v1";
    for (url, model, dialect) in [
        ("https://api.moonshot.ai/v1", "k3", SchemaDialect::Moonshot),
        (
            "https://api.kimi.com/coding/v1",
            "k3",
            SchemaDialect::Moonshot,
        ),
        ("https://notmoonshot.ai/v1", "m1", SchemaDialect::OpenAi),
        (
            "https://generativelanguage.googleapis.com/v1beta/openai",
            "x",
            SchemaDialect::Gemini,
        ),
        (openrouter, "moonshotai/kimi-k2.6", SchemaDialect::Moonshot),
        (openrouter, "google/gemini-2.5-pro", SchemaDialect::Gemini),
        (
            openrouter,
            "anthropic/claude-sonnet-4.6",
            SchemaDialect::Anthropic,
        ),
        (openrouter, "openai/gpt-5", SchemaDialect::OpenAi),
        ("http://127.0.0.1:11434/v1", "qwen3", SchemaDialect::OpenAi),
    ] {
        assert_eq!(of(url, model), dialect, "{url} {model}");
    }
}
