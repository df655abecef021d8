//! Facts: what is known about an agent before the cases are played.

use crate::{
    Case,
    case::{Need, Tool},
};
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
    /// It has a profile.
    pub profile: bool,
    /// It can be pointed at the fake model.
    pub model: bool,
    /// It can be started without a key for its model.
    pub keyless: bool,
    /// It has such tools.
    pub tools: Vec<Tool>,
    /// It was seen to ask the model without any tools, and never with some.
    pub offers_no_tools: bool,
}

impl Facts {
    /// Whether it has this.
    #[must_use]
    pub fn has(&self, need: &Need) -> bool {
        match need {
            Need::V2 => self.v2,
            Need::Profile => self.profile,
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

    /// What a case needs and the agent does not have. A case that is not about the second version is about the
    /// first, which an agent that speaks the second need not speak.
    #[must_use]
    pub fn missing(&self, case: &Case) -> Option<String> {
        let missing = case.needs.iter().find(|need| !self.has(need));
        let speaks_first = !self.v2 || self.initialize["protocolVersion"] == 1;
        match missing {
            Some(need) => Some(need.to_string()),
            None if speaks_first || case.needs.contains(&Need::V2) => None,
            None => Some("version 1".to_owned()),
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
    fn who_speaks_only_the_second_version_is_not_asked_in_the_first() {
        let case =
            |needs: &str| Case::parse("c", &format!("# x\n{needs}start\nexit any\n")).unwrap();
        let (first, second) = (case(""), case("needs v2\n"));
        let missing = |initialize: Value, v2| {
            let facts = Facts {
                initialize,
                v2,
                ..Facts::default()
            };
            (facts.missing(&first), facts.missing(&second))
        };
        let text = |text: &str| Some(text.to_owned());
        let spoken = json!({"protocolVersion": 1});
        assert_eq!(missing(spoken.clone(), true), (None, None));
        assert_eq!(missing(spoken, false), (None, text("v2")));
        assert_eq!(missing(Value::Null, true), (text("version 1"), None));
        // Who answers nothing at all is asked all the same.
        assert_eq!(missing(Value::Null, false), (None, text("v2")));
    }

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
