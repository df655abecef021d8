//! What the schemas say of right and wrong messages; a general validator must say the same.

use super::*;
use serde_json::json;

fn wrong(name: &str, value: &Value) -> Vec<(String, String)> {
    let faults = official(1).faults(name, value);
    let holds = official(1).holds(official(1).definition(name), value);
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

fn one(path: &str, why: &str) -> Vec<(String, String)> {
    vec![(path.to_owned(), why.to_owned())]
}

#[test]
fn both_schemas_are_read() {
    assert!(official(1).names.len() > 50);
    assert!(official(2).names.len() > 50);
    let name = |side, method, part| official(1).name(side, method, part);
    assert_eq!(
        name(Side::Agent, "session/prompt", Part::Response),
        Some("PromptResponse")
    );
    assert_eq!(
        name(Side::Client, "session/update", Part::Notification),
        Some("SessionNotification")
    );
    assert_eq!(
        name(Side::Agent, "$/cancel_request", Part::Notification),
        Some("CancelRequestNotification")
    );
    assert_eq!(name(Side::Client, "session/prompt", Part::Request), None);
    let variants = official(1).variants("SessionUpdate", "sessionUpdate");
    assert!(variants.contains(&"plan") && !variants.contains(&"state_update"));
}

#[test]
fn right_messages_are_right() {
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
        assert_eq!(wrong(name, &value), [], "{name}");
        assert_eq!(
            official(1).unknown(name, &value),
            Vec::<String>::new(),
            "{name}"
        );
    }
}

#[test]
fn wrong_messages_say_where_they_are_wrong() {
    let update = |update: Value| json!({"sessionId": "s", "update": update});
    for (name, value, faults) in [
        (
            "PromptResponse",
            json!({"stopReason": "error"}),
            one("/stopReason", "\"error\" is none of the known ones"),
        ),
        (
            "PromptResponse",
            json!({}),
            one("", "stopReason is missing"),
        ),
        (
            "LoadSessionResponse",
            json!(null),
            one("", "null is no object"),
        ),
        (
            "SessionNotification",
            update(json!({"sessionUpdate": "current_mode_update", "modeId": "x"})),
            one("/update", "currentModeId is missing"),
        ),
        (
            "SessionNotification",
            update(json!({"sessionUpdate": "state_update"})),
            one(
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
            one(
                "/update/content/0/type",
                "\"text\" is none of the known ones",
            ),
        ),
        (
            "SessionNotification",
            update(
                json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "cancelled"}),
            ),
            one("/update/status", "\"cancelled\" is none of the known ones"),
        ),
        (
            "SessionNotification",
            update(json!({"sessionUpdate": "usage_update", "used": -1, "size": 2})),
            one("/update/used", "-1 is out of bounds"),
        ),
        (
            "InitializeResponse",
            json!({"protocolVersion": 1.5}),
            one("/protocolVersion", "1.5 is no integer"),
        ),
        (
            "SessionNotification",
            update(json!({"sessionUpdate": "notice", "severity": "info", "title": ""})),
            one("/update/title", "\"\" is too short"),
        ),
    ] {
        assert_eq!(wrong(name, &value), faults, "{name} {value}");
    }
}

#[test]
fn members_that_nobody_knows_are_found_wherever_they_are() {
    let unknown = |name: &str, value: Value| official(1).unknown(name, &value);
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
    // An error may bring any data, though some codes have a shape of their own.
    let value = json!({"code": -32002, "message": "x", "data": {"sessionId": "s", "details": "x"}});
    assert_eq!(official(2).unknown("Error", &value), [""; 0]);
}

impl Official {
    /// The unstable parts of what this side says: methods by their definition, members and variants.
    pub(crate) fn unstable_parts(&self, speaker: Side) -> BTreeSet<&str> {
        let mut parts = BTreeSet::new();
        let mut known = BTreeSet::new();
        for ((side, _, part), name) in &self.names {
            let is_said = match part {
                Part::Response => *side == speaker,
                Part::Request | Part::Notification => *side != speaker && *side != Side::Both,
            };
            if is_said {
                if self.is_unstable(name) && *part != Part::Response {
                    parts.insert(name.as_str());
                }
                self.reach(self.definition(name), &mut known, &mut parts);
            }
        }
        parts
    }

    fn reach<'a>(
        &'a self,
        schema: &'a Schema,
        known: &mut BTreeSet<usize>,
        parts: &mut BTreeSet<&'a str>,
    ) {
        let unstable = schema.unstable.as_deref();
        parts.extend(unstable.filter(|name| name.contains('.')));
        let target = schema.target.filter(|target| known.insert(*target));
        let inner = schema.all_of.iter().chain(schema.branches());
        let inner = inner.chain(schema.properties.values());
        let inner = inner.chain(schema.others.as_deref());
        let inner = inner.chain(schema.items.as_deref());
        for schema in inner.chain(target.map(|target| &self.definitions[target])) {
            self.reach(schema, known, parts);
        }
    }
}
