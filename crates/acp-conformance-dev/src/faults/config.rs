//! Faults of modes, options and commands.

use super::{fault::Fault, intercepted_line::InterceptedLine};
use serde_json::{Value, json};

pub(super) const FAULTS: &[Fault] = &[
    Fault::lines("unknown_mode_taken", unknown_mode_taken),
    Fault::lines("mode_refused_in_turn", mode_refused_in_turn),
    Fault::lines("set_mode_answers_null", set_mode_answers_null),
    Fault::lines("mode_id_key", mode_id_key),
    Fault::lines("mode_change_silent", mode_change_silent),
    Fault::lines("mode_without_option", mode_without_option),
    Fault::lines("mode_option_stale", mode_option_stale),
    Fault::lines("option_without_value", option_without_value),
    Fault::lines("set_option_answers_one", set_option_answers_one),
    Fault::lines("boolean_option_unasked", boolean_option_unasked),
    Fault::lines("unknown_value_taken", unknown_value_taken),
    Fault::lines("unknown_option_taken", unknown_option_taken),
    Fault::lines("untyped_value_refused", untyped_value_refused),
    Fault::lines(
        "own_category_without_underscore",
        own_category_without_underscore,
    ),
    Fault::lines("option_refused_in_turn", option_refused_in_turn),
    Fault::lines("command_hangs", command_hangs),
    Fault::lines("command_with_slash", command_with_slash),
    Fault::lines("command_twice", command_twice),
];

const SET_MODE: &str = "session/set_mode";
const SET_OPTION: &str = "session/set_config_option";

fn has_running_prompt(m: &InterceptedLine<'_>) -> bool {
    m.connection.running_prompt(&m.session_id()).is_some()
}

fn unknown_mode_taken(m: &mut InterceptedLine<'_>) {
    if m.is_agent_response(SET_MODE)
        && m.is_agent_error(-32602)
        && m.request_params()["modeId"].is_string()
    {
        m.turn_into_result(json!({}));
    }
}

fn mode_refused_in_turn(m: &mut InterceptedLine<'_>) {
    if m.is_client_call(SET_MODE) && has_running_prompt(m) {
        m.respond_error(-32603, "a prompt runs");
    }
}

fn set_mode_answers_null(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result(SET_MODE) {
        m.set("/result", Value::Null);
    }
}

/// Uses the key `modeId`, as an example in the specification of modes does.
fn mode_id_key(m: &mut InterceptedLine<'_>) {
    if m.update_kind() == "current_mode_update"
        && let Some(id) = m.remove("/params/update/currentModeId")
    {
        m.set("/params/update/modeId", id);
    }
}

fn mode_change_silent(m: &mut InterceptedLine<'_>) {
    if m.update_kind() == "current_mode_update" {
        m.swallow();
    }
}

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
    if let Some(pointer) = options_pointer(m)
        && let Some(options) = m.get(pointer).as_array()
    {
        let mut options = options.clone();
        change(&mut options);
        m.set(pointer, options);
    }
}

fn mode_without_option(m: &mut InterceptedLine<'_>) {
    edit_options(m, |options| options.retain(|o| o["category"] != "mode"));
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

fn option_without_value(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result("session/new") {
        m.remove("/result/configOptions/0/currentValue");
    }
}

fn set_option_answers_one(m: &mut InterceptedLine<'_>) {
    if m.is_agent_result(SET_OPTION) {
        let id = m.request_params()["configId"].clone();
        edit_options(m, |options| options.retain(|option| option["id"] == id));
    }
}

fn boolean_option_unasked(m: &mut InterceptedLine<'_>) {
    let asked = m.connection.client_capabilities["session"]["configOptions"]["boolean"].is_object();
    if m.is_agent_result("session/new") && !asked {
        edit_options(m, |options| {
            options.push(
                json!({"id": "loud", "name": "Loud", "type": "boolean", "currentValue": false}),
            );
        });
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

fn untyped_value_refused(m: &mut InterceptedLine<'_>) {
    let kind = m.get_str("/params/type");
    let strange = !kind.is_empty() && kind != "boolean" && kind != "select" && kind != "id";
    if m.is_client_call(SET_OPTION) && m.get("/params/value").is_string() && strange {
        m.respond_error(-32602, "unknown type");
    }
}

fn own_category_without_underscore(m: &mut InterceptedLine<'_>) {
    edit_options(m, |options| {
        if let Some(last) = options.last_mut() {
            last["category"] = json!("speed");
        }
    });
}

fn option_refused_in_turn(m: &mut InterceptedLine<'_>) {
    if m.is_client_call(SET_OPTION) && has_running_prompt(m) {
        m.respond_error(-32603, "a prompt runs");
    }
}

/// Never answers a prompt that begins with a slash.
fn command_hangs(m: &mut InterceptedLine<'_>) {
    if m.is_client_call("session/prompt") && m.get_str("/params/prompt/0/text").starts_with('/') {
        m.swallow();
    }
}

const COMMANDS: &str = "/params/update/availableCommands";

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

fn command_twice(m: &mut InterceptedLine<'_>) {
    if m.update_kind() == "available_commands_update"
        && let Some(commands) = m.get(COMMANDS).as_array()
        && let Some(first) = commands.first()
    {
        let mut commands = commands.clone();
        commands.push(first.clone());
        m.set(COMMANDS, commands);
    }
}
