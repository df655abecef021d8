//! Unstable: what is not in the stable part of version 1 is used only with a peer that has agreed on it (UPD-1,
//! EXT-1, EXT-3).
//!
//! The official schema says what is unstable, and each such part says which capability allows it. What no
//! capability is about cannot be agreed on, and passes. Version 2 is a draft as a whole: nothing is asked there.

use super::{Found, Sort, answers::Asked};
use crate::official::{Part, Side, official};
use serde_json::Value;

/// Which capability allows a part, below `clientCapabilities` or `agentCapabilities`.
#[derive(Clone, Copy, Debug)]
enum Offer {
    Client(&'static str),
    Agent(&'static str),
    /// There is none.
    Open,
}

/// The unstable parts of what agents say; beside them those of the capabilities, which are the offers themselves.
const PARTS: &[(&str, Offer)] = &[
    ("AuthStatusUpdateNotification", Offer::Agent("/auth/status")),
    ("IdleStateUpdate.usage", Offer::Client("/subagents")),
    ("MessageMcpRequest", Offer::Agent("/mcpCapabilities/acp")),
    ("PromptResponse.usage", Offer::Open),
    (
        "SessionInfo.archived",
        Offer::Agent("/sessionCapabilities/archive"),
    ),
    ("SessionUpdate.plan_removed", Offer::Client("/plan")),
    ("SessionUpdate.plan_update", Offer::Client("/plan")),
    ("SessionUpdate.session_message", Offer::Client("/subagents")),
    (
        "SessionUpdate.session_message_chunk",
        Offer::Client("/subagents"),
    ),
    ("SessionUpdate.subagent_update", Offer::Client("/subagents")),
];

#[derive(Debug, Default)]
pub(super) struct Unstable {
    client: Value,
    agent: Value,
}

impl Unstable {
    pub(super) fn sent(&mut self, message: &Value) {
        if message["method"] == "initialize" {
            self.client = message["params"]["clientCapabilities"].clone();
        }
    }

    pub(super) fn heard(
        &mut self,
        sort: Sort,
        message: &Value,
        asked: Option<&Asked>,
        found: &mut Found,
    ) {
        let result = &message["result"];
        if asked.is_some_and(|asked| asked.method == "initialize") {
            self.agent = result["agentCapabilities"].clone();
        }
        let method = message["method"].as_str().unwrap_or_default();
        let (side, method, part, value) = match (sort, asked) {
            (Sort::Request, _) => (Side::Client, method, Part::Request, &message["params"]),
            (Sort::Notification, _) => {
                (Side::Client, method, Part::Notification, &message["params"])
            }
            (Sort::Response, Some(asked)) => {
                (Side::Agent, asked.method.as_str(), Part::Response, result)
            }
            (Sort::Response, None) => return,
        };
        let official = official(1);
        let Some(name) = official.name(side, method, part) else {
            return;
        };
        if side == Side::Client && official.is_unstable(name) {
            self.check(name, "EXT-3", found);
        }
        for part in official.unstable(name, value) {
            let is_update = part.starts_with("SessionUpdate.");
            self.check(part, if is_update { "UPD-1" } else { "EXT-1" }, found);
        }
    }

    fn check(&self, part: &str, rule: &'static str, found: &mut Found) {
        let offer = PARTS.iter().find(|(name, _)| *name == part);
        let (offered, what) = match offer {
            Some((_, Offer::Client(path))) => (self.client.pointer(path), path),
            Some((_, Offer::Agent(path))) => (self.agent.pointer(path), path),
            Some((_, Offer::Open)) | None => return,
        };
        let is_offered = offered.is_some_and(|offer| !offer.is_null() && *offer != false);
        found.holds(rule, is_offered, || {
            format!("{part} is unstable, and nobody has offered {what}")
        });
    }
}

#[cfg(test)]
pub(super) fn parts() -> std::collections::BTreeSet<&'static str> {
    PARTS.iter().map(|(name, _)| *name).collect()
}
