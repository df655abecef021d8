//! Faults of modes, options and commands.

use super::{Fault, passing::Passing};
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

fn busy(m: &Passing<'_>) -> bool {
    m.wire.prompt_in(&m.session()).is_some()
}

fn unknown_mode_taken(m: &mut Passing<'_>) {
    if m.answers(SET_MODE) && m.fails_with(-32602) && m.asked()["modeId"].is_string() {
        m.turn_into_result(json!({}));
    }
}

fn mode_refused_in_turn(m: &mut Passing<'_>) {
    if m.client_says(SET_MODE) && busy(m) {
        m.refuse(-32603, "a prompt runs");
    }
}

fn set_mode_answers_null(m: &mut Passing<'_>) {
    if m.grants(SET_MODE) {
        m.set("/result", Value::Null);
    }
}

/// As an example on the page about modes has it.
fn mode_id_key(m: &mut Passing<'_>) {
    if m.update() == "current_mode_update"
        && let Some(id) = m.unset("/params/update/currentModeId")
    {
        m.set("/params/update/modeId", id);
    }
}

fn mode_change_silent(m: &mut Passing<'_>) {
    if m.update() == "current_mode_update" {
        m.swallow();
    }
}

/// Where the options are, if they are in this message.
fn options_pointer(m: &Passing<'_>) -> Option<&'static str> {
    if m.wire.version != 1 {
        None
    } else if m.update() == "config_option_update" {
        Some("/params/update/configOptions")
    } else if m.get("/result/configOptions").is_array() {
        Some("/result/configOptions")
    } else {
        None
    }
}

fn change_options(m: &mut Passing<'_>, change: impl FnOnce(&mut Vec<Value>)) {
    if let Some(pointer) = options_pointer(m)
        && let Some(options) = m.get(pointer).as_array()
    {
        let mut options = options.clone();
        change(&mut options);
        m.set(pointer, options);
    }
}

fn mode_without_option(m: &mut Passing<'_>) {
    change_options(m, |options| options.retain(|o| o["category"] != "mode"));
}

/// After a `set_mode` the option still tells the first mode.
fn mode_option_stale(m: &mut Passing<'_>) {
    if m.grants("session/new") {
        let first = m.get("/result/modes/currentModeId").clone();
        m.keep("first", first);
    } else if m.grants(SET_MODE) {
        m.keep("set", true);
    } else if m.note("set") == true {
        let first = m.note("first");
        change_options(m, |options| {
            for option in options.iter_mut().filter(|o| o["category"] == "mode") {
                option["currentValue"] = first.clone();
            }
        });
    }
}

fn option_without_value(m: &mut Passing<'_>) {
    if m.grants("session/new") {
        m.unset("/result/configOptions/0/currentValue");
    }
}

fn set_option_answers_one(m: &mut Passing<'_>) {
    if m.grants(SET_OPTION) {
        let id = m.asked()["configId"].clone();
        change_options(m, |options| options.retain(|option| option["id"] == id));
    }
}

fn boolean_option_unasked(m: &mut Passing<'_>) {
    let asked = m.wire.client["session"]["configOptions"]["boolean"].is_object();
    if m.grants("session/new") && !asked {
        change_options(m, |options| {
            options.push(
                json!({"id": "loud", "name": "Loud", "type": "boolean", "currentValue": false}),
            );
        });
    }
}

/// The options as they were last told, for an answer that the agent did not give.
fn note_options(m: &mut Passing<'_>) {
    if let Some(pointer) = options_pointer(m) {
        let options = m.get(pointer).clone();
        m.keep("options", options);
    }
}

fn unknown_value_taken(m: &mut Passing<'_>) {
    note_options(m);
    let known = ["mode", "model"];
    let right = known.contains(&m.asked()["configId"].as_str().unwrap_or_default());
    if m.answers(SET_OPTION) && m.fails_with(-32602) && right {
        let options = m.note("options");
        m.turn_into_result(json!({"configOptions": options}));
    }
}

fn unknown_option_taken(m: &mut Passing<'_>) {
    note_options(m);
    let id = m.asked()["configId"].clone();
    let options = m.note("options");
    let listed = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let known = listed.iter().any(|option| option["id"] == id);
    if m.answers(SET_OPTION) && m.fails_with(-32602) && id.is_string() && !known {
        m.turn_into_result(json!({"configOptions": options}));
    }
}

fn untyped_value_refused(m: &mut Passing<'_>) {
    let kind = m.text("/params/type");
    let strange = !kind.is_empty() && kind != "boolean" && kind != "select" && kind != "id";
    if m.client_says(SET_OPTION) && m.get("/params/value").is_string() && strange {
        m.refuse(-32602, "unknown type");
    }
}

fn own_category_without_underscore(m: &mut Passing<'_>) {
    change_options(m, |options| {
        if let Some(last) = options.last_mut() {
            last["category"] = json!("speed");
        }
    });
}

fn option_refused_in_turn(m: &mut Passing<'_>) {
    if m.client_says(SET_OPTION) && busy(m) {
        m.refuse(-32603, "a prompt runs");
    }
}

/// A prompt that begins with a slash is never answered.
fn command_hangs(m: &mut Passing<'_>) {
    if m.client_says("session/prompt") && m.text("/params/prompt/0/text").starts_with('/') {
        m.swallow();
    }
}

const COMMANDS: &str = "/params/update/availableCommands";

fn command_with_slash(m: &mut Passing<'_>) {
    let name = m.text("/params/update/availableCommands/0/name").to_owned();
    if m.update() == "available_commands_update" && !name.is_empty() {
        m.set(
            "/params/update/availableCommands/0/name",
            format!("/{name}"),
        );
    }
}

fn command_twice(m: &mut Passing<'_>) {
    if m.update() == "available_commands_update"
        && let Some(commands) = m.get(COMMANDS).as_array()
        && let Some(first) = commands.first()
    {
        let mut commands = commands.clone();
        commands.push(first.clone());
        m.set(COMMANDS, commands);
    }
}
