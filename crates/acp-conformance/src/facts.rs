//! Facts: what is known about an agent before the cases are played.

use crate::case::{Need, Tool};
use serde_json::Value;

/// What an agent has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Its result of `initialize`.
    pub initialize: Value,
    /// Its result of `session/new`.
    pub session: Value,
    /// It speaks the second version.
    pub v2: bool,
    /// It can be pointed at the fake model.
    pub model: bool,
    /// It can be started without a key for its model.
    pub keyless: bool,
    /// It has such tools.
    pub tools: Vec<Tool>,
}

impl Facts {
    /// Whether it has this.
    #[must_use]
    pub fn has(&self, need: &Need) -> bool {
        match need {
            Need::V2 => self.v2,
            Need::Model => self.model,
            Need::Keyless => self.keyless,
            Need::Tool(tool) => self.tools.contains(tool),
            // That depends on the case.
            Need::Captured(_) => false,
            Need::Path(path) => self.path(path).is_some_and(|found| match found {
                Value::Null | Value::Bool(false) => false,
                Value::Array(items) => !items.is_empty(),
                Value::Bool(true) | Value::Number(_) | Value::String(_) | Value::Object(_) => true,
            }),
        }
    }

    fn path(&self, path: &str) -> Option<&Value> {
        let (root, path) = match path.split_once('.') {
            Some(("initialize", rest)) => (&self.initialize, rest),
            Some(("session", rest)) => (&self.session, rest),
            _ => (self.initialize.get("agentCapabilities")?, path),
        };
        path.split('.').try_fold(root, |value, key| value.get(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_capability_is_true_or_an_object() {
        let facts = Facts {
            initialize: json!({
                "authMethods": [],
                "agentCapabilities": {
                    "loadSession": true,
                    "sessionCapabilities": {"list": {}, "fork": null},
                    "promptCapabilities": {"image": false},
                },
            }),
            session: json!({"modes": {"currentModeId": "a"}}),
            tools: vec![Tool::Read],
            ..Facts::default()
        };
        let has = |path: &str| facts.has(&Need::Path(path.to_owned()));
        let there = ["loadSession", "sessionCapabilities.list", "session.modes"];
        for path in there {
            assert!(has(path), "{path}");
        }
        let missing = [
            "sessionCapabilities.fork",
            "sessionCapabilities.close",
            "promptCapabilities.image",
            "initialize.authMethods",
            "session.configOptions",
        ];
        for path in missing {
            assert!(!has(path), "{path}");
        }
        assert!(facts.has(&Need::Tool(Tool::Read)));
        assert!(!facts.has(&Need::Tool(Tool::Shell)));
        assert!(!facts.has(&Need::Model));
    }
}
