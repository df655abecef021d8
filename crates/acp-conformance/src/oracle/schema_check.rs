//! Checks every message against the official JSON Schema of the negotiated version and maps violations to
//! rules.

use super::{messages::AgentMessage, recorder::RuleRecorder};
use crate::official_schema::{MessageKind, OfficialSchema, SchemaViolation, Side, official_schema};
use serde_json::Value;

/// Value to check against a definition.
struct CheckedValue<'a> {
    /// Method of the message, or `error`.
    method: &'a str,
    kind: MessageKind,
    value: &'a Value,
}

/// Checks the shape of a message and returns true if it is valid; unknown members do not make it invalid.
pub(super) fn check(message: AgentMessage<'_>, recorder: &mut RuleRecorder) -> bool {
    let AgentMessage { kind, json, .. } = message;
    let official = official_schema(recorder.version);
    let shape = |method, value| CheckedValue {
        method,
        kind,
        value,
    };
    let is_right = match (kind, message.request) {
        (MessageKind::Request | MessageKind::Notification, _) => {
            let method = json["method"].as_str().unwrap_or_default();
            check_method(official, &shape(method, &json["params"]), recorder)
        }
        (MessageKind::Response, Some(request)) => {
            let result = json.get("result");
            let name = official.definition_name(Side::Agent, &request.method, kind);
            let held = |(result, name)| {
                check_schema(official, name, &shape(&request.method, result), recorder)
            };
            result.zip(name).is_none_or(held)
        }
        (MessageKind::Response, None) => true,
    };
    if let (MessageKind::Response, Some(error)) = (kind, json.get("error"))
        && error["code"].is_i64()
        && error["message"].is_string()
    {
        check_unknown_members(official, "Error", &shape("error", error), recorder);
    }
    is_right
}

/// Checks that a request or notification of the agent is a client method and has a valid shape.
fn check_method(
    official: &OfficialSchema,
    shape: &CheckedValue<'_>,
    recorder: &mut RuleRecorder,
) -> bool {
    let method = shape.method;
    if let Some(name) = official.definition_name(Side::Client, method, shape.kind) {
        return check_schema(official, name, shape, recorder);
    }
    if method.starts_with('_') {
        recorder.record_observed("EXT-3");
        return true;
    }
    if method.starts_with("$/") && shape.kind == MessageKind::Notification {
        return true;
    }
    let is_of_the_other = other_version(recorder.version)
        .definition_name(Side::Client, method, shape.kind)
        .is_some();
    if is_of_the_other {
        recorder.record_violation(
            "INIT-15",
            format!("{method} is not of the version that was agreed on"),
        );
    } else {
        recorder.record_violation(
            "EXT-3",
            format!("{method} is no method of the client, and has no `_`"),
        );
    }
    false
}

/// Returns the first schema violation of a client's message; `None` if it is valid, or if the schema does not know
/// its method. `answers` is the method of the agent's request if the message is a response. A message that is no
/// JSON-RPC violates the schema.
#[must_use]
pub fn client_violation(version: u64, message: &Value, answers: Option<&str>) -> Option<String> {
    if message["jsonrpc"] != "2.0" {
        return Some("this is no JSON-RPC 2.0".to_owned());
    }
    let official = official_schema(version);
    let params = message.get("params").unwrap_or(&Value::Null);
    let (name, value) = match (message["method"].as_str(), message.get("id")) {
        (Some(method), id) => {
            let kind = match id {
                Some(_) => MessageKind::Request,
                None => MessageKind::Notification,
            };
            (official.definition_name(Side::Agent, method, kind), params)
        }
        (None, Some(_)) => {
            let result = message.get("result")?;
            let name =
                |method| official.definition_name(Side::Client, method, MessageKind::Response);
            (answers.and_then(name), result)
        }
        (None, None) => return Some("this is no message".to_owned()),
    };
    // Missing params count as empty params.
    let nothing = Value::Object(serde_json::Map::new());
    let value = if value.is_null() { &nothing } else { value };
    let faults = official.violations(name?, value);
    let found = faults.first()?;
    Some(format!("{}: {} at {:?}", name?, found.why, found.path))
}

fn other_version(version: u64) -> &'static OfficialSchema {
    official_schema(if version == 2 { 1 } else { 2 })
}

fn check_schema(
    official: &OfficialSchema,
    name: &str,
    shape: &CheckedValue<'_>,
    recorder: &mut RuleRecorder,
) -> bool {
    let faults = official.violations(name, shape.value);
    if faults.is_empty() {
        recorder.record_observed("RPC-21");
        mark_kept_rules(shape, recorder);
        check_unknown_members(official, name, shape, recorder);
        return true;
    }
    // The first violation explains the others.
    if let Some(fault) = faults.first() {
        let rule = violated_rule(shape, fault, recorder.version);
        let at = if fault.path.is_empty() { "" } else { " at " };
        recorder.record_violation(rule, format!("{name}: {}{at}{}", fault.why, fault.path));
    }
    false
}

/// Records the rules that a valid message satisfies.
fn mark_kept_rules(shape: &CheckedValue<'_>, recorder: &mut RuleRecorder) {
    let fault = SchemaViolation {
        path: String::new(),
        why: String::new(),
    };
    recorder.record_observed(violated_rule(shape, &fault, recorder.version));
    let update = &shape.value["update"];
    if recorder.version != 2 && update["toolCallId"].is_string() {
        for (key, rule) in [("content", "TOOL-6"), ("status", "TOOL-11")] {
            if update.get(key).is_some() {
                recorder.record_observed(rule);
            }
        }
        let content = update["content"].as_array().into_iter().flatten();
        if content.clone().any(|item| item["type"] == "diff") {
            recorder.record_observed("TOOL-8");
        }
    }
}

/// Members of former drafts that agents still send, as definition and path.
const LEGACY_MEMBERS: [(&str, &str); 4] = [
    ("NewSessionResponse", "/models"),
    ("LoadSessionResponse", "/models"),
    ("ResumeSessionResponse", "/models"),
    ("ForkSessionResponse", "/models"),
];

/// Reports members that the schema does not define.
fn check_unknown_members(
    official: &OfficialSchema,
    name: &str,
    shape: &CheckedValue<'_>,
    recorder: &mut RuleRecorder,
) {
    let (former, unknown): (Vec<_>, Vec<_>) = official
        .unknown_members(name, shape.value)
        .into_iter()
        .partition(|path| LEGACY_MEMBERS.contains(&(name, path.as_str())));
    match former.first() {
        Some(path) => {
            let why = format!("{name} has no member {path} any more: it is one of a former draft");
            recorder.record_violation("EXT-7", why);
        }
        None => recorder.record_observed("EXT-7"),
    }
    let Some(path) = unknown.first() else {
        return recorder.record_observed("EXT-1");
    };
    let key = path.rsplit('/').next().unwrap_or_default();
    let why = format!("{name} has no member {path}");
    if is_terminal_login_argument(shape, path) {
        recorder.record_violation(
            "AUTH-10",
            format!("{name}: {path} is not what a terminal login has"),
        );
    } else if key != "_meta" && key.contains('_') && is_misspelt(official, name, shape.value, path)
    {
        recorder.record_violation("RPC-21", why);
    } else {
        recorder.record_violation("EXT-1", why);
    }
}

/// Returns true if the unknown member is `args` or `env` of a terminal login. They are unknown only if they
/// are invalid: the login then matches another login type, which lacks these members.
fn is_terminal_login_argument(shape: &CheckedValue<'_>, path: &str) -> bool {
    let Some((login, "args" | "env")) = path.rsplit_once('/') else {
        return false;
    };
    let login = shape.value.pointer(login);
    shape.method == "initialize" && login.is_some_and(|login| login["type"] == "terminal")
}

/// Returns true if the member is known in camelCase.
fn is_misspelt(official: &OfficialSchema, name: &str, value: &Value, path: &str) -> bool {
    let (parent, key) = path.rsplit_once('/').unwrap_or(("", path));
    let mut value = value.clone();
    let Some(object) = value.pointer_mut(parent).and_then(Value::as_object_mut) else {
        return false;
    };
    let Some(member) = object.remove(key) else {
        return false;
    };
    let renamed = to_camel_case(key);
    object.insert(renamed.clone(), member);
    !official
        .unknown_members(name, &value)
        .contains(&format!("{parent}/{renamed}"))
}

fn to_camel_case(key: &str) -> String {
    let mut words = key.split('_').filter(|word| !word.is_empty());
    let mut to_camel_case = words.next().unwrap_or_default().to_owned();
    for word in words {
        let (first, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        to_camel_case.push_str(&first.to_uppercase());
        to_camel_case.push_str(rest);
    }
    to_camel_case
}

/// Returns the rule that a violation breaks.
fn violated_rule(shape: &CheckedValue<'_>, fault: &SchemaViolation, version: u64) -> &'static str {
    let update = &shape.value["update"];
    if version == 2 {
        return violated_rule_v2(shape, fault);
    }
    let path = fault.path.as_str();
    match shape.method {
        "initialize" if path.starts_with("/authMethods") => {
            if path.contains("/args") || path.contains("/env") {
                "AUTH-10"
            } else {
                "AUTH-1"
            }
        }
        "initialize" if path.starts_with("/agentInfo") => "INIT-6",
        "initialize" if path.starts_with("/agentCapabilities") => "INIT-11",
        "initialize" => "INIT-1",
        "authenticate" => "AUTH-4",
        "logout" => "AUTH-7",
        "session/new" | "session/load" | "session/resume" | "session/fork"
            if path.starts_with("/configOptions") =>
        {
            "CFG-2"
        }
        "session/new" | "session/load" | "session/resume" | "session/fork"
            if path.starts_with("/modes") =>
        {
            "MODE-1"
        }
        "session/new" | "session/fork" => "SESS-1",
        "session/load" => "LOAD-4",
        "session/resume" => "RES-2",
        "session/list" if path.ends_with("/updatedAt") => "LIST-6",
        "session/list" => "LIST-1",
        "session/close" => "CLOSE-1",
        "session/delete" => "DEL-1",
        "session/set_mode" => "MODE-2",
        "session/set_config_option" => "CFG-2",
        "session/prompt" => "PROMPT-5",
        "session/request_permission" => "PERM-2",
        "fs/read_text_file" | "fs/write_text_file" => "FS-2",
        "elicitation/create" => "ELIC-2",
        "elicitation/complete" => "ELIC-6",
        "session/update" => violated_update_rule(update, path),
        method if method.starts_with("terminal/") => "TERM-3",
        _ => "TR-3",
    }
}

fn violated_update_rule(update: &Value, path: &str) -> &'static str {
    match update["sessionUpdate"].as_str().unwrap_or_default() {
        "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk" => "MSG-1",
        "tool_call" | "tool_call_update" => match path.split('/').nth(2) {
            Some("status") => "TOOL-11",
            Some("content") if path.ends_with("/path") => "TOOL-7",
            Some("content") if path.ends_with("Text") => "TOOL-8",
            Some("content") => "TOOL-6",
            Some("locations") => "TOOL-7",
            Some("name") => "TOOL-10",
            _ => "TOOL-2",
        },
        "plan" => "PLAN-2",
        "current_mode_update" => "MODE-3",
        "config_option_update" => "CFG-2",
        "session_info_update" => "INFO-1",
        "notice" => "NOTE-1",
        "compaction_update" | "compaction_summary_chunk" => "COMP-2",
        variant => {
            let later = official_schema(2).variant_tags("SessionUpdate", "sessionUpdate");
            if later.contains(&variant) && path.ends_with("/sessionUpdate") {
                "INIT-15"
            } else {
                "UPD-1"
            }
        }
    }
}

fn violated_rule_v2(shape: &CheckedValue<'_>, fault: &SchemaViolation) -> &'static str {
    match shape.method {
        "initialize" => "V2-1",
        "session/prompt" => "V2-4",
        "session/resume" => "V2-10",
        "session/new" if fault.path.starts_with("/configOptions") => "V2-21",
        "session/new" if fault.path.starts_with("/availableCommands") => "V2-22",
        "session/set_config_option" => "V2-21",
        "session/close" => "V2-16",
        "tool_call/cancel" | "terminal/cancel" => "V2-19",
        "session/update" => match shape.value["update"]["sessionUpdate"].as_str() {
            Some("state_update") if fault.path.contains("/background") => "V2-9",
            Some("state_update") => "V2-8",
            Some(
                "user_message"
                | "user_message_chunk"
                | "agent_message"
                | "agent_message_chunk"
                | "agent_thought"
                | "agent_thought_chunk",
            ) => "V2-11",
            Some("tool_call_update" | "tool_call_content_chunk") => {
                if fault.path.contains("/changes") || fault.path.contains("/patch") {
                    "V2-14"
                } else {
                    "V2-12"
                }
            }
            Some("terminal_update" | "terminal_output_chunk") => "V2-13",
            Some("available_commands_update") => "V2-22",
            Some("config_option_update") => "V2-21",
            _ => "V2-20",
        },
        _ => "V2-20",
    }
}
