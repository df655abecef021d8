//! Checks lists of version 2: session options, commands and permission options (V2-21).

use super::super::{
    messages::{are_unique, option_values},
    recorder::RuleRecorder,
};
use serde_json::Value;

/// Checks the options and commands in a result or update.
pub(super) fn check(holder: &Value, recorder: &mut RuleRecorder) {
    if let Some(options) = holder["configOptions"].as_array() {
        recorder.record_check("V2-21", is_unique(options, "configId"), || {
            "two options have one id".to_owned()
        });
        for option in options.iter().filter(|option| option["type"] == "select") {
            check_option(option, recorder);
        }
    }
    if let Some(commands) = holder["availableCommands"].as_array() {
        recorder.record_check("V2-21", is_unique(commands, "name"), || {
            "two commands have one name".to_owned()
        });
        let commands = commands.iter().filter(|item| item["type"] == "command");
        for name in commands.filter_map(|command| command["name"].as_str()) {
            let is_right = !name.starts_with('/') && !name.contains(char::is_whitespace);
            recorder.record_check("V2-21", is_right, || {
                format!("the name of a command has no slash and no blank: {name:?}")
            });
        }
    }
}

fn check_option(option: &Value, recorder: &mut RuleRecorder) {
    let values: Vec<&Value> = option_values(option).collect();
    let id = &option["configId"];
    let current = &option["currentValue"];
    recorder.record_check("V2-21", are_unique(&values), || {
        format!("two values of {id} are the same")
    });
    recorder.record_check("V2-21", values.contains(&current), || {
        format!("{current} is none of the values of {id}")
    });
}

/// Checks that the options of a permission request have distinct ids.
pub(super) fn check_permission(params: &Value, recorder: &mut RuleRecorder) {
    let options = params["options"].as_array();
    let is_right = options.is_some_and(|options| is_unique(options, "optionId"));
    recorder.record_check("V2-21", is_right, || "two answers have one id".to_owned());
}

fn is_unique(items: &[Value], key: &str) -> bool {
    let ids: Vec<&str> = items.iter().filter_map(|item| item[key].as_str()).collect();
    are_unique(&ids)
}
