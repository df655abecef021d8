//! Checks that the agent uses only declared capabilities, and that its options are well-formed.

use super::RuleResult;
use serde_json::Value;
use std::collections::HashSet;

/// Capabilities the client declared. Values of the wrong type count as undeclared.
#[derive(Clone, Copy, Default)]
pub(super) struct DeclaredCapabilities {
    read: bool,
    write: bool,
    terminal: bool,
    notices: bool,
    compaction: bool,
    booleans: bool,
    form: bool,
    url: bool,
}

/// Categories defined by the protocol. Others begin with an underscore (CFG-6).
const CATEGORIES: [&str; 4] = ["mode", "model", "model_config", "thought_level"];

impl DeclaredCapabilities {
    pub(super) fn parse(said: &Value) -> Self {
        let yes = |path: &str| said.pointer(path) == Some(&Value::Bool(true));
        let marker = |path: &str| said.pointer(path).is_some_and(Value::is_object);
        Self {
            read: yes("/fs/readTextFile"),
            write: yes("/fs/writeTextFile"),
            terminal: yes("/terminal"),
            notices: marker("/session/notices"),
            compaction: marker("/session/compaction"),
            booleans: marker("/session/configOptions/boolean"),
            form: marker("/elicitation/form"),
            url: marker("/elicitation/url"),
        }
    }

    /// Checks a request of the agent.
    pub(super) fn check_request(self, method: &str, params: &Value) -> RuleResult {
        let offered = match method {
            "session/request_permission" => true,
            "fs/read_text_file" => self.read,
            "fs/write_text_file" => self.write,
            "elicitation/create" => match params["mode"].as_str() {
                Some("form") => self.form,
                Some("url") => self.url,
                _ => false,
            },
            other => other.starts_with("terminal/") && self.terminal,
        };
        hold!(
            offered,
            "INIT-7, FS-1, TERM-1, ELIC-1: {method} was not offered"
        );
        Ok(())
    }

    /// Checks an update of the agent.
    pub(super) fn check_update(self, kind: &str, update: &Value) -> RuleResult {
        let offered = match kind {
            "notice" => self.notices,
            "compaction_update" | "compaction_summary_chunk" => self.compaction,
            _ => true,
        };
        hold!(offered, "INIT-7, NOTE-1, COMP-1: {kind} was not offered");
        self.check_options(update)
    }

    /// Checks options and modes in any message.
    pub(super) fn check_options(self, said: &Value) -> RuleResult {
        let mut ids = HashSet::new();
        for option in said["configOptions"].as_array().into_iter().flatten() {
            let id = &option["id"];
            hold!(ids.insert(id.to_string()), "CFG-2: {id} is there twice");
            let category = option["category"].as_str();
            hold!(
                category.is_none_or(|name| CATEGORIES.contains(&name) || name.starts_with('_')),
                "CFG-6: {category:?} is no category"
            );
            if option["type"] == "boolean" {
                hold!(self.booleans, "CFG-3: {id} is a boolean");
                continue;
            }
            let options = option["options"].as_array().into_iter().flatten();
            let mut values = options.flat_map(|one| match one["options"].as_array() {
                Some(group) => group.iter().collect(),
                None => vec![one],
            });
            hold!(
                values.any(|one| one["value"] == option["currentValue"]),
                "CFG-1: {id} is none of its values"
            );
        }
        let modes = &said["modes"];
        let mut offered = modes["availableModes"].as_array().into_iter().flatten();
        hold!(
            modes.is_null() || offered.any(|mode| mode["id"] == modes["currentModeId"]),
            "MODE-4: the mode is none of those that are offered"
        );
        Ok(())
    }
}
