//! Describes an agent as far as it is known before the cases are played.

use crate::case::{Case, Need, ToolKind};
use serde_json::Value;

/// Properties of an agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentFacts {
    /// Result of `initialize`.
    pub initialize: Value,
    /// Result of `session/new`.
    pub session: Value,
    /// True if the agent speaks protocol version 2.
    pub supports_v2: bool,
    /// True if the agent has a profile.
    pub has_profile: bool,
    /// True if the agent can be pointed at the fake model.
    pub has_model: bool,
    /// True if the agent can be started without a model key.
    pub can_start_keyless: bool,
    /// Kinds of tools that the agent has.
    pub tools: Vec<ToolKind>,
    /// True if the agent sent model requests, and offered no tools in any of them.
    pub offers_no_tools: bool,
}

impl AgentFacts {
    /// Returns true if the agent meets a need.
    #[must_use]
    pub fn has(&self, need: &Need) -> bool {
        match need {
            Need::V2 => self.supports_v2,
            Need::Profile => self.has_profile,
            Need::Model => self.has_model,
            Need::Keyless => self.can_start_keyless,
            Need::Tool(tool) => self.tools.contains(tool),
            // Captures belong to a case, not to the agent.
            Need::Captured(_) => false,
            Need::Path(path) => self.lookup_path(path).is_some_and(|found| match found {
                Value::Null | Value::Bool(false) => false,
                Value::Array(items) => !items.is_empty(),
                Value::Bool(true) | Value::Number(_) | Value::String(_) | Value::Object(_) => true,
            }),
        }
    }

    /// Returns the first need of a case that the agent does not meet. Cases without `v2` need version 1,
    /// which an agent that speaks version 2 may lack.
    #[must_use]
    pub fn missing_need(&self, case: &Case) -> Option<String> {
        let missing = case.needs.iter().find(|need| !self.has(need));
        let speaks_first = !self.supports_v2 || self.initialize["protocolVersion"] == 1;
        match missing {
            Some(need) => Some(need.to_string()),
            None if speaks_first || case.needs.contains(&Need::V2) => None,
            None => Some("version 1".to_owned()),
        }
    }

    fn lookup_path(&self, path: &str) -> Option<&Value> {
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
    fn v2_only_agent_skips_v1_cases() {
        let case =
            |needs: &str| Case::parse("c", &format!("# x\n{needs}start\nexit any\n")).unwrap();
        let (first, second) = (case(""), case("needs v2\n"));
        let missing = |initialize: Value, v2| {
            let facts = AgentFacts {
                initialize,
                supports_v2: v2,
                ..AgentFacts::default()
            };
            (facts.missing_need(&first), facts.missing_need(&second))
        };
        let text = |text: &str| Some(text.to_owned());
        let spoken = json!({"protocolVersion": 1});
        assert_eq!(missing(spoken.clone(), true), (None, None));
        assert_eq!(missing(spoken, false), (None, text("v2")));
        assert_eq!(missing(Value::Null, true), (text("version 1"), None));
        // An agent that answers nothing is still tested with version 1.
        assert_eq!(missing(Value::Null, false), (None, text("v2")));
    }

    #[test]
    fn capability_is_true_or_an_object() {
        let facts = AgentFacts {
            initialize: json!({
                "authMethods": [],
                "agentCapabilities": {
                    "loadSession": true,
                    "sessionCapabilities": {"list": {}, "fork": null},
                    "promptCapabilities": {"image": false},
                },
            }),
            session: json!({"modes": {"currentModeId": "a"}}),
            tools: vec![ToolKind::Read],
            ..AgentFacts::default()
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
        assert!(facts.has(&Need::Tool(ToolKind::Read)));
        assert!(!facts.has(&Need::Tool(ToolKind::Shell)));
        assert!(!facts.has(&Need::Model));
    }
}
