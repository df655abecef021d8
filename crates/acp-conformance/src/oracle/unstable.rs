//! Checks that unstable parts of version 1 are used only with a peer that agreed to them (UPD-1, EXT-1, EXT-3).
//!
//! The official schema marks unstable parts, and a table maps each to the capability that allows it. Parts
//! without such a capability cannot be negotiated, and pass. Version 2 is a draft as a whole and is not checked
//! here.

use super::{messages::AgentMessage, recorder::RuleRecorder};
use crate::official_schema::{MessageKind, Side, official_schema};
use serde_json::Value;

/// Capability that allows a part, below `clientCapabilities` or `agentCapabilities`.
#[derive(Clone, Copy, Debug)]
enum RequiredCapability {
    Client(&'static str),
    Agent(&'static str),
    /// No capability covers the part.
    Unrestricted,
}

use RequiredCapability::{Agent, Client, Unrestricted};

/// Unstable parts of agent messages, except the capabilities themselves.
const UNSTABLE_PARTS: &[(&str, RequiredCapability)] = &[
    ("AuthStatusUpdateNotification", Agent("/auth/status")),
    ("IdleStateUpdate.usage", Client("/subagents")),
    ("MessageMcpRequest", Agent("/mcpCapabilities/acp")),
    ("PromptResponse.usage", Unrestricted),
    (
        "SessionInfo.archived",
        Agent("/sessionCapabilities/archive"),
    ),
    ("SessionUpdate.plan_removed", Client("/plan")),
    ("SessionUpdate.plan_update", Client("/plan")),
    ("SessionUpdate.session_message", Client("/subagents")),
    ("SessionUpdate.session_message_chunk", Client("/subagents")),
    ("SessionUpdate.subagent_update", Client("/subagents")),
];

#[derive(Debug, Default)]
pub(super) struct UnstableRules {
    client_capabilities: Value,
    agent_capabilities: Value,
}

impl UnstableRules {
    pub(super) fn on_received(&mut self, message: AgentMessage<'_>, recorder: &mut RuleRecorder) {
        let AgentMessage { kind, json, .. } = message;
        let result = &json["result"];
        if let Some(initialize) = message.accepted_initialize() {
            self.client_capabilities = initialize.params["clientCapabilities"].clone();
            self.agent_capabilities = result["agentCapabilities"].clone();
        }
        let method = json["method"].as_str().unwrap_or_default();
        let (side, method, value) = match (kind, message.request) {
            (MessageKind::Request | MessageKind::Notification, _) => {
                (Side::Client, method, &json["params"])
            }
            (MessageKind::Response, Some(request)) => (Side::Agent, &*request.method, result),
            (MessageKind::Response, None) => return,
        };
        let official = official_schema(1);
        let Some(name) = official.definition_name(side, method, kind) else {
            return;
        };
        if side == Side::Client && official.is_unstable(name) {
            self.check_part(name, "EXT-3", recorder);
        }
        for part in official.unstable_uses(name, value) {
            let is_update = part.starts_with("SessionUpdate.");
            self.check_part(part, if is_update { "UPD-1" } else { "EXT-1" }, recorder);
        }
    }

    fn check_part(&self, part: &str, rule: &'static str, recorder: &mut RuleRecorder) {
        let offer = UNSTABLE_PARTS.iter().find(|(name, _)| *name == part);
        let (offered, what) = match offer {
            Some((_, Client(path))) => (self.client_capabilities.pointer(path), path),
            Some((_, Agent(path))) => (self.agent_capabilities.pointer(path), path),
            Some((_, Unrestricted)) | None => return,
        };
        let is_offered = offered.is_some_and(|offer| !offer.is_null() && *offer != false);
        recorder.record_check(rule, is_offered, || {
            format!("{part} is unstable, and nobody has offered {what}")
        });
    }
}

#[cfg(test)]
pub(super) fn known_parts() -> std::collections::BTreeSet<&'static str> {
    UNSTABLE_PARTS.iter().map(|(name, _)| *name).collect()
}
