//! Tests that the schemas accept valid messages and reject invalid ones, in agreement with a general validator.

use super::*;
use serde_json::json;

fn violations_of(name: &str, value: &Value) -> Vec<(String, String)> {
    let faults = official_schema(1).violations(name, value);
    let holds = official_schema(1).is_valid(official_schema(1).definition(name), value);
    assert_eq!(holds, faults.is_empty(), "{name} {value}: {faults:?}");
    let definitions: Value = serde_json::from_str(SCHEMAS[0]).unwrap();
    let schema = json!({"$ref": format!("#/$defs/{name}"), "$defs": definitions["$defs"]});
    let general = jsonschema::is_valid(&schema, value);
    assert_eq!(general, faults.is_empty(), "{name} {value}: {faults:?}");
    faults
        .into_iter()
        .map(|fault| (fault.path, fault.why))
        .collect()
}

fn single_violation(path: &str, why: &str) -> Vec<(String, String)> {
    vec![(path.to_owned(), why.to_owned())]
}

#[test]
fn both_schemas_are_parsed() {
    assert!(official_schema(1).definition_names.len() > 50);
    assert!(official_schema(2).definition_names.len() > 50);
    let name = |side, method, kind| official_schema(1).definition_name(side, method, kind);
    assert_eq!(
        name(Side::Agent, "session/prompt", MessageKind::Response),
        Some("PromptResponse")
    );
    assert_eq!(
        name(Side::Client, "session/update", MessageKind::Notification),
        Some("SessionNotification")
    );
    assert_eq!(
        name(Side::Agent, "$/cancel_request", MessageKind::Notification),
        Some("CancelRequestNotification")
    );
    assert_eq!(
        name(Side::Client, "session/prompt", MessageKind::Request),
        None
    );
    let variants = official_schema(1).variant_tags("SessionUpdate", "sessionUpdate");
    assert!(variants.contains(&"plan") && !variants.contains(&"state_update"));
}

#[test]
fn valid_messages_have_no_violations() {
    let update = |update: Value| json!({"sessionId": "s", "update": update});
    for (name, value) in [
        (
            "PromptResponse",
            json!({"stopReason": "end_turn", "_meta": {"x": 1}}),
        ),
        (
            "NewSessionResponse",
            json!({"sessionId": "s", "modes": null}),
        ),
        (
            "SessionNotification",
            update(
                json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": ""}}),
            ),
        ),
        (
            "SessionNotification",
            update(
                json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "x",
                "content": [{"type": "diff", "path": "/a", "oldText": null, "newText": "b"}],
                "locations": [{"path": "/a", "line": 3}], "rawInput": {"any": ["thing"]}}),
            ),
        ),
        ("Error", json!({"code": 12345, "message": "x", "data": [1]})),
        (
            "CreateElicitationRequest",
            json!({"message": "m", "mode": "url", "sessionId": "s", "elicitationId": "e", "url": "https://x"}),
        ),
        (
            "InitializeResponse",
            json!({"protocolVersion": 1, "authMethods": [{"id": "a", "name": "A"},
                {"type": "terminal", "id": "b", "name": "B", "args": ["x"], "env": {"K": "V"}}]}),
        ),
    ] {
        assert_eq!(violations_of(name, &value), [], "{name}");
        assert_eq!(
            official_schema(1).unknown_members(name, &value),
            Vec::<String>::new(),
            "{name}"
        );
    }
}

#[test]
fn invalid_messages_name_the_member() {
    let update = |update: Value| json!({"sessionId": "s", "update": update});
    for (name, value, faults) in [
        (
            "PromptResponse",
            json!({"stopReason": "error"}),
            single_violation("/stopReason", "\"error\" is none of the known ones"),
        ),
        (
            "PromptResponse",
            json!({}),
            single_violation("", "stopReason is missing"),
        ),
        (
            "LoadSessionResponse",
            json!(null),
            single_violation("", "null is no object"),
        ),
        (
            "SessionNotification",
            update(json!({"sessionUpdate": "current_mode_update", "modeId": "x"})),
            single_violation("/update", "currentModeId is missing"),
        ),
        (
            "SessionNotification",
            update(json!({"sessionUpdate": "state_update"})),
            single_violation(
                "/update/sessionUpdate",
                "\"state_update\" is none of the known ones",
            ),
        ),
        (
            "SessionNotification",
            update(
                json!({"sessionUpdate": "tool_call_update", "toolCallId": "t",
                "content": [{"type": "text", "text": "x"}]}),
            ),
            single_violation(
                "/update/content/0/type",
                "\"text\" is none of the known ones",
            ),
        ),
        (
            "SessionNotification",
            update(
                json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "cancelled"}),
            ),
            single_violation("/update/status", "\"cancelled\" is none of the known ones"),
        ),
        (
            "SessionNotification",
            update(json!({"sessionUpdate": "usage_update", "used": -1, "size": 2})),
            single_violation("/update/used", "-1 is out of bounds"),
        ),
        (
            "InitializeResponse",
            json!({"protocolVersion": 1.5}),
            single_violation("/protocolVersion", "1.5 is no integer"),
        ),
        (
            "SessionNotification",
            update(json!({"sessionUpdate": "notice", "severity": "info", "title": ""})),
            single_violation("/update/title", "\"\" is too short"),
        ),
    ] {
        assert_eq!(violations_of(name, &value), faults, "{name} {value}");
    }
}

#[test]
fn unknown_members_are_found_at_any_depth() {
    let unknown = |name: &str, value: Value| official_schema(1).unknown_members(name, &value);
    let value = json!({"stopReason": "end_turn", "outcome": 1, "_meta": {"outcome": 1}});
    assert_eq!(unknown("PromptResponse", value), ["/outcome"]);
    let value = json!({"sessionId": "s", "update": {"sessionUpdate": "tool_call", "toolCallId": "t",
        "title": "x", "rawInput": {"a": {"b": 1}}, "content": [{"type": "content", "extra": 1,
        "content": {"type": "text", "text": "", "bold": true}}]}});
    assert_eq!(
        unknown("SessionNotification", value),
        ["/update/content/0/content/bold", "/update/content/0/extra"]
    );
    let value =
        json!({"protocolVersion": 1, "authMethods": [{"type": "agent", "id": "a", "name": "A"}]});
    assert_eq!(unknown("InitializeResponse", value), [""; 0]);
    let value = json!({"protocolVersion": 1, "agentCapabilities": {"sessionCapabilities": {"list": {"x": 1}}}});
    assert_eq!(
        unknown("InitializeResponse", value),
        ["/agentCapabilities/sessionCapabilities/list/x"]
    );
    // An error may carry any data, even if its code defines a shape.
    let value = json!({"code": -32002, "message": "x", "data": {"sessionId": "s", "details": "x"}});
    assert_eq!(official_schema(2).unknown_members("Error", &value), [""; 0]);
}

impl OfficialSchema {
    /// Returns the unstable parts of messages from this side: methods by definition name, members and variants.
    pub(crate) fn unstable_parts(&self, speaker: Side) -> BTreeSet<&str> {
        let mut parts = BTreeSet::new();
        let mut known = BTreeSet::new();
        for ((side, _, kind), name) in &self.definition_names {
            let is_said = match kind {
                MessageKind::Response => *side == speaker,
                MessageKind::Request | MessageKind::Notification => {
                    *side != speaker && *side != Side::Both
                }
            };
            if is_said {
                if self.is_unstable(name) && *kind != MessageKind::Response {
                    parts.insert(name.as_str());
                }
                self.collect_reachable(self.definition(name), &mut known, &mut parts);
            }
        }
        parts
    }

    fn collect_reachable<'a>(
        &'a self,
        schema: &'a Schema,
        known: &mut BTreeSet<usize>,
        parts: &mut BTreeSet<&'a str>,
    ) {
        let unstable = schema.unstable.as_deref();
        parts.extend(unstable.filter(|name| name.contains('.')));
        let target = schema.target.filter(|target| known.insert(*target));
        let inner = schema.all_of.iter().chain(schema.variants());
        let inner = inner.chain(schema.properties.values());
        let inner = inner.chain(schema.additional.as_deref());
        let inner = inner.chain(schema.items.as_deref());
        for schema in inner.chain(target.map(|target| &self.definitions[target])) {
            self.collect_reachable(schema, known, parts);
        }
    }
}

/// Removes documentation, and writes a reference and a schema that accepts everything in one way: the generators differ
/// in these.
fn normalized(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let is_text = |key: &str| {
                matches!(key, "title" | "description" | "$comment") || key.starts_with("x-")
            };
            let mut kept: serde_json::Map<String, Value> = members
                .iter()
                .filter(|(key, value)| !is_text(key) || value.is_object())
                .map(|(key, value)| (key.clone(), normalized(value)))
                .collect();
            let only = kept.get("allOf").and_then(Value::as_array);
            let only = only
                .filter(|parts| parts.len() == 1)
                .and_then(|parts| parts[0].get("$ref"));
            if let Some(target) = only.cloned() {
                kept.remove("allOf");
                kept.insert("$ref".to_owned(), target);
            }
            Value::Object(kept)
        }
        Value::Array(parts) => {
            let accepts_all = |part: &&Value| **part == Value::Bool(true);
            let parts = parts.iter().map(|part| match accepts_all(&part) {
                true => Value::Object(serde_json::Map::new()),
                false => normalized(part),
            });
            parts.collect()
        }
        other => other.clone(),
    }
}

/// If `ACP_SCHEMA` is set to the folder `schema` of the npm package `@agentclientprotocol/sdk`, compares the embedded
/// schemas with the published ones.
#[test]
fn embedded_schemas_equal_the_published_ones() {
    let Some(folder) = std::env::var_os("ACP_SCHEMA") else {
        return;
    };
    for (version, embedded) in ["v1", "v2"].into_iter().zip(SCHEMAS) {
        let path = std::path::Path::new(&folder)
            .join(version)
            .join("schema.unstable.json");
        let published: Value =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let embedded: Value = serde_json::from_str(embedded).unwrap();
        for (name, definition) in embedded["$defs"].as_object().unwrap() {
            let theirs = normalized(&published["$defs"][name]);
            assert_eq!(normalized(definition), theirs, "{version} {name}");
        }
    }
}
