//! Faults of capabilities, modes, options and commands.

use super::{
    fault::LineFunction,
    intercepted_line::{InterceptedLine, value_at},
};
use serde_json::{Value, json};

pub(super) const FUNCTIONS: &[LineFunction] = &[
    ("version_as_string", version_as_string),
    (
        "wrong_capability_type_refused",
        wrong_capability_type_refused,
    ),
    ("mode_option_stale", mode_option_stale),
    ("set_option_answers_one", set_option_answers_one),
    ("unknown_value_taken", unknown_value_taken),
    ("unknown_option_taken", unknown_option_taken),
    (
        "own_category_without_underscore",
        own_category_without_underscore,
    ),
    ("command_with_slash", command_with_slash),
];

fn version_as_string(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("initialize") {
        let version = m.get("/result/protocolVersion").to_string();
        m.set("/result/protocolVersion", version);
    }
}

/// Returns true if a client capability has the wrong type.
fn has_mistyped_capability(m: &InterceptedLine<'_>) -> bool {
    let capabilities = m.get("/params/clientCapabilities");
    let flag = |pointer: &str| {
        let value = value_at(capabilities, pointer);
        value.is_null() || value.is_boolean()
    };
    let object = |pointer: &str| {
        let value = value_at(capabilities, pointer);
        value.is_null() || value.is_object()
    };
    let right = object("")
        && object("/fs")
        && flag("/fs/readTextFile")
        && flag("/fs/writeTextFile")
        && flag("/terminal")
        && object("/session/notices")
        && object("/session/compaction")
        && object("/elicitation");
    !right
}

fn wrong_capability_type_refused(m: &mut InterceptedLine<'_>) {
    if m.is_client_call("initialize") && has_mistyped_capability(m) {
        m.respond_error(-32602, "a capability has the wrong type");
    }
}

const SET_MODE: &str = "session/set_mode";

const SET_OPTION: &str = "session/set_config_option";

/// Returns the JSON pointer to the options in this message.
fn options_pointer(m: &InterceptedLine<'_>) -> Option<&'static str> {
    if m.connection.protocol_version != 1 {
        None
    } else if m.update_kind() == "config_option_update" {
        Some("/params/update/configOptions")
    } else if m.get("/result/configOptions").is_array() {
        Some("/result/configOptions")
    } else {
        None
    }
}

fn edit_options(m: &mut InterceptedLine<'_>, change: impl FnOnce(&mut Vec<Value>)) {
    if let Some(pointer) = options_pointer(m) {
        m.edit_array(pointer, change);
    }
}

/// Keeps the first mode as the option's value after `session/set_mode`.
fn mode_option_stale(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("session/new") {
        let first = m.get("/result/modes/currentModeId").clone();
        m.remember("first", first);
    } else if m.is_agent_result(SET_MODE) {
        m.remember("set", true);
    } else if m.recall("set") == true {
        let first = m.recall("first");
        edit_options(m, |options| {
            for option in options.iter_mut().filter(|o| o["category"] == "mode") {
                option["currentValue"] = first.clone();
            }
        });
    }
}

fn set_option_answers_one(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result(SET_OPTION) {
        let id = m.request_params()["configId"].clone();
        edit_options(m, |options| options.retain(|option| option["id"] == id));
    }
}

/// Remembers the options of this message, for later made-up responses.
fn remember_options(m: &mut InterceptedLine<'_>) {
    if let Some(pointer) = options_pointer(m) {
        let options = m.get(pointer).clone();
        m.remember("options", options);
    }
}

fn unknown_value_taken(m: &mut InterceptedLine<'_>) {
    remember_options(m);
    let known = ["mode", "model"];
    let right = known.contains(&m.request_params()["configId"].as_str().unwrap_or_default());
    if m.is_agent_response(SET_OPTION) && m.is_agent_error(-32602) && right {
        let options = m.recall("options");
        m.turn_into_result(json!({"configOptions": options}));
    }
}

fn unknown_option_taken(m: &mut InterceptedLine<'_>) {
    remember_options(m);
    let id = m.request_params()["configId"].clone();
    let options = m.recall("options");
    let listed = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let known = listed.iter().any(|option| option["id"] == id);
    if m.is_agent_response(SET_OPTION) && m.is_agent_error(-32602) && id.is_string() && !known {
        m.turn_into_result(json!({"configOptions": options}));
    }
}

fn own_category_without_underscore(m: &mut InterceptedLine<'_>) {
    edit_options(m, |options| {
        if let Some(last) = options.last_mut() {
            last["category"] = json!("speed");
        }
    });
}

fn command_with_slash(m: &mut InterceptedLine<'_>) {
    let name = m
        .get_str("/params/update/availableCommands/0/name")
        .to_owned();
    if m.update_kind() == "available_commands_update" && !name.is_empty() {
        m.set(
            "/params/update/availableCommands/0/name",
            format!("/{name}"),
        );
    }
}
