//! Checks that a renamed document has no id of its source, whatever fields records have. The document is
//! generated from its schema, with every field and every variant.

use serde_json::{Map, Value, json};
use std::{fs, path::Path};
use turnery_store::SessionDocument;

/// Id types, with an example of each in session `old`.
const IDS: [(&str, &str); 6] = [
    ("SessionId", "old"),
    ("LoopId", "old.cfg.1"),
    ("FrameId", "old.cfg.1.f"),
    ("MessageId", "old.cfg.1.m1"),
    ("CallId", "old.cfg.1.c1"),
    ("PromptId", "old.cfg.1.p1"),
];

struct DocumentGenerator {
    schema: Value,
}

impl DocumentGenerator {
    /// Returns values of `schema` that together cover all its variants, for the field `name`.
    fn values(&self, schema: &Value, name: &str) -> Vec<Value> {
        if let Some(value) = schema.get("const") {
            return vec![value.clone()];
        }
        let fields = self.objects(schema);
        let mut wide: Vec<Value> = Vec::new();
        if let Some(target) = schema["$ref"].as_str() {
            let target = target.trim_start_matches("#/$defs/");
            wide = match IDS.iter().find(|(id, _)| *id == target) {
                Some((_, id)) => return vec![json!(id)],
                None => self.values(&self.schema["$defs"][target], name),
            };
        }
        for branches in ["oneOf", "anyOf"] {
            let branches = schema[branches].as_array().into_iter().flatten();
            let branches = branches.filter(|branch| branch["type"] != "null");
            wide.extend(branches.flat_map(|branch| self.values(branch, name)));
        }
        match (wide.is_empty(), fields.is_empty()) {
            (false, true) => return wide,
            (true, false) => return fields,
            // Flattened objects have the fields of both.
            (false, false) => return cross_product(&wide, &fields),
            (true, true) => {}
        }
        if let Some(words) = schema["enum"].as_array() {
            return words.clone();
        }
        let sort = match &schema["type"] {
            Value::Array(sorts) => sorts[0].as_str(),
            sort => sort.as_str(),
        };
        match sort {
            Some("array") => vec![json!(self.values(&schema["items"], name))],
            Some("integer" | "number") => vec![json!(1)],
            Some("boolean") => vec![json!(true)],
            Some("string") if schema["format"] == "date-time" => {
                vec![json!("2026-11-21T05:00:00Z")]
            }
            Some("string") if name.ends_with("_id") => vec![json!("old.cfg.1.x")],
            Some("object") => vec![json!({})],
            _ => vec![json!("said")],
        }
    }

    /// Returns objects that together contain every value of every field.
    fn objects(&self, schema: &Value) -> Vec<Value> {
        let Some(properties) = schema["properties"].as_object() else {
            return Vec::new();
        };
        let fields: Vec<(&String, Vec<Value>)> = properties
            .iter()
            .map(|(name, schema)| (name, self.values(schema, name)))
            .collect();
        let most = fields.iter().map(|(_, values)| values.len()).max();
        (0..most.unwrap_or(1).max(1))
            .map(|n| {
                let field = |(name, values): &(&String, Vec<Value>)| {
                    ((*name).clone(), values[n % values.len()].clone())
                };
                Value::Object(fields.iter().map(field).collect::<Map<_, _>>())
            })
            .collect()
    }
}

/// Combines two lists, repeating the shorter one up to the length of the longer one.
fn cross_product(left: &[Value], right: &[Value]) -> Vec<Value> {
    (0..left.len().max(right.len()))
        .map(|n| {
            let mut all = Map::new();
            for value in [&left[n % left.len()], &right[n % right.len()]] {
                all.extend(value.as_object().expect("an object").clone());
            }
            Value::Object(all)
        })
        .collect()
}

/// Finds every string that contains the old session id, with its path.
fn find_old_ids(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::String(text) if text.contains("old") => found.push(format!("{path} = {text}")),
        Value::Array(items) => items.iter().for_each(|it| find_old_ids(it, path, found)),
        Value::Object(fields) => fields
            .iter()
            .for_each(|(name, field)| find_old_ids(field, &format!("{path}.{name}"), found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn renamed_document_has_no_id_of_its_source() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/session.json");
    let schema = fs::read_to_string(file).unwrap();
    let maker = DocumentGenerator {
        schema: serde_json::from_str(&schema).unwrap(),
    };
    let mut made = maker.objects(&maker.schema);
    assert_eq!(made.len(), 1);
    made[0]["format"] = json!(1);
    let document = SessionDocument::parse(&made[0].to_string()).unwrap();
    // Ids that the generator omits would prove nothing.
    let text = serde_json::to_string(&document).unwrap();
    for known in [
        "\"frame_switch\"",
        "\"opened_by\"",
        "\"tool_call_id\"",
        "\"through\"",
    ] {
        assert!(text.contains(known), "{known}");
    }
    let renamed = json!(document.with_session_id(&"new".into()).unwrap());
    let mut found = Vec::new();
    find_old_ids(&renamed, "", &mut found);
    found.retain(|it| !it.starts_with(".loops.copied_from = "));
    assert_eq!(found, Vec::<String>::new());
    assert!(renamed.to_string().contains("new.cfg.1.m1"));
    assert_eq!(renamed["loops"][0]["copied_from"], "old.cfg.1");
}
