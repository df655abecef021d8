//! Observes both directions of a connection and reports rule violations, whatever the case tests.
//!
//! The oracle reports only what the protocol forbids. Unusual behaviour passes, and where the rules leave open
//! what an agent must do, nothing is required.

mod capabilities;
mod envelope;
mod framing;
mod messages;
mod responses;
mod schema_check;
mod session_state;
mod terminals;
mod tool_calls;
mod unstable;
mod update_order;
mod v2;

use capabilities::CapabilityRules;
use framing::{FramingRules, ParsedLine};
use responses::ResponseRules;
use serde_json::Value;
use session_state::SessionStateRules;
use std::collections::BTreeSet;
use terminals::TerminalRules;
use tool_calls::ToolCallRules;
use unstable::UnstableRules;
use update_order::UpdateOrderRules;
use v2::V2Rules;

/// Rules checked in every case.
pub const RULES: &[&str] = &[
    "AUTH-1",
    "AUTH-10",
    "AUTH-2",
    "AUTH-4",
    "AUTH-7",
    "CANCEL-10",
    "CANCEL-5",
    "CFG-1",
    "CFG-2",
    "CFG-3",
    "CLOSE-1",
    "CLOSE-3",
    "CMD-3",
    "COMP-1",
    "COMP-2",
    "DEL-1",
    "ELIC-1",
    "ELIC-2",
    "ELIC-6",
    "EXT-1",
    "EXT-3",
    "EXT-7",
    "FS-1",
    "FS-2",
    "INFO-1",
    "INIT-1",
    "INIT-11",
    "INIT-15",
    "INIT-6",
    "LIST-1",
    "LIST-6",
    "LOAD-2",
    "LOAD-4",
    "LOAD-7",
    "MODE-1",
    "MODE-2",
    "MODE-3",
    "MSG-1",
    "MSG-3",
    "MSG-4",
    "NOTE-1",
    "PERM-2",
    "PLAN-2",
    "PROMPT-4",
    "PROMPT-5",
    "PROMPT-7",
    "RES-1",
    "RES-2",
    "RPC-1",
    "RPC-12",
    "RPC-13",
    "RPC-14",
    "RPC-16",
    "RPC-2",
    "RPC-21",
    "RPC-23",
    "RPC-4",
    "RPC-5",
    "SESS-1",
    "SESS-7",
    "TERM-1",
    "TERM-2",
    "TERM-3",
    "TOOL-10",
    "TOOL-11",
    "TOOL-2",
    "TOOL-4",
    "TOOL-6",
    "TOOL-7",
    "TOOL-8",
    "TOOL-9",
    "TR-1",
    "TR-2",
    "TR-3",
    "TR-7",
    "TR-9",
    "UPD-1",
    "V2-1",
    "V2-10",
    "V2-11",
    "V2-12",
    "V2-13",
    "V2-14",
    "V2-16",
    "V2-19",
    "V2-20",
    "V2-21",
    "V2-22",
    "V2-3",
    "V2-4",
    "V2-6",
    "V2-8",
    "V2-9",
];

/// Violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Id of the rule.
    pub rule: &'static str,
    /// Explanation of the violation.
    pub why: String,
}

/// Reason why an agent's output ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputEnding {
    /// The agent ended by itself after its stdin was closed.
    Eof,
    /// The agent was signalled or killed, or the runner closed its end of the output.
    Forced,
    /// The agent ended without a request to do so.
    Unexpected,
}

/// Observer of one connection, from the first line to the last.
#[derive(Debug, Default)]
pub struct Oracle {
    framing: FramingRules,
    responses: ResponseRules,
    capabilities: CapabilityRules,
    update_order: UpdateOrderRules,
    tool_calls: ToolCallRules,
    terminals: TerminalRules,
    session_state: SessionStateRules,
    v2: V2Rules,
    unstable: UnstableRules,
    recorder: RuleRecorder,
    /// True if the last line was malformed.
    is_malformed: bool,
}

/// Violations and observed rules of a connection.
#[derive(Debug, Default)]
struct RuleRecorder {
    violations: Vec<Violation>,
    /// Rules that the observed messages could have broken.
    seen: BTreeSet<&'static str>,
    /// Negotiated protocol version.
    version: u64,
}

impl RuleRecorder {
    /// Records that the observed messages could have broken this rule.
    fn seen(&mut self, rule: &'static str) {
        debug_assert!(RULES.contains(&rule), "{rule} is not said to be watched");
        self.seen.insert(rule);
    }

    /// Records a violation.
    fn broken(&mut self, rule: &'static str, why: impl Into<String>) {
        let why = why.into();
        self.seen(rule);
        self.violations.push(Violation { rule, why });
    }

    /// Records the rule as observed, or as broken if `holds` is false.
    fn holds(&mut self, rule: &'static str, holds: bool, why: impl FnOnce() -> String) {
        if holds {
            self.seen(rule);
        } else {
            self.broken(rule, why());
        }
    }
}

/// Kind of a JSON-RPC message, derived from its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JsonRpcKind {
    Request,
    Notification,
    Response,
}

/// Returns the intended protocol version, even if it is sent as a string.
fn version(said: &Value) -> Option<u64> {
    said.as_u64().or_else(|| said.as_str()?.parse().ok())
}

fn sort(message: &Value) -> Option<JsonRpcKind> {
    let has = |key: &str| message.get(key).is_some();
    match (message["method"].is_string(), has("id")) {
        (true, true) => Some(JsonRpcKind::Request),
        (true, false) => Some(JsonRpcKind::Notification),
        (false, _) if has("result") || has("error") => Some(JsonRpcKind::Response),
        (false, _) => None,
    }
}

impl Oracle {
    /// Observes a line written by the client, without its line end.
    pub fn sent(&mut self, line: &str) {
        let message = serde_json::from_str(line);
        self.on_sent(&message.unwrap_or(Value::Null));
    }

    /// Observes a parsed client line; `null` if the line is blank or not JSON. An error response to a blank
    /// line breaks no rule.
    pub(crate) fn on_sent(&mut self, message: &Value) {
        self.framing.on_sent(message);
        self.responses.on_sent(message);
        self.capabilities.on_sent(message);
        self.update_order.on_sent(message);
        self.tool_calls.on_sent(message);
        self.terminals.on_sent(message);
        self.session_state.on_sent(message);
        self.v2.sent(message);
        self.unstable.on_sent(message);
    }

    /// Observes a line written by the agent, with its line end if present, and returns the violations.
    pub fn heard(&mut self, line: &[u8]) -> Vec<Violation> {
        let found = &mut self.recorder;
        self.is_malformed = true;
        let ParsedLine::Message(message) = self.framing.on_received_line(line, found) else {
            return std::mem::take(&mut found.violations);
        };
        let before = found.violations.len();
        let Some(sort) = envelope::check(&message, found) else {
            return std::mem::take(&mut found.violations);
        };
        let is_bent = found.violations.len() > before;
        let asked = match sort {
            JsonRpcKind::Response => self.responses.match_response(&message, found),
            JsonRpcKind::Request => {
                self.responses.ask(&message, found);
                None
            }
            JsonRpcKind::Notification => None,
        };
        let asked = asked.as_ref();
        if let Some(asked) = asked
            && asked.method == "initialize"
            && let Some(version) = version(&message["result"]["protocolVersion"])
        {
            found.version = version;
        }
        let is_right = schema_check::check(sort, &message, asked, found);
        self.is_malformed = is_bent || !is_right;
        self.capabilities.on_received(sort, &message, asked, found);
        let before = found.violations.len();
        if found.version == 2 {
            self.v2.heard(sort, &message, asked, found);
        } else {
            self.unstable.on_received(sort, &message, asked, found);
            self.update_order.on_received(sort, &message, asked, found);
            self.tool_calls.on_received(sort, &message, asked, found);
            self.terminals.on_received(sort, &message, asked, found);
            self.session_state.on_received(sort, &message, asked, found);
        }
        if !is_right {
            // A malformed message is reported once, but still updates the state.
            found.violations.truncate(before);
        }
        std::mem::take(&mut self.recorder.violations)
    }

    /// Returns true if the last line was malformed, which is reported under some rule.
    pub(crate) fn is_bent(&self) -> bool {
        self.is_malformed
    }

    /// Observes the end of the agent's output and returns violations such as missing responses.
    pub fn ended(&mut self, ending: OutputEnding) -> Vec<Violation> {
        self.responses.on_output_end(ending, &mut self.recorder);
        if ending == OutputEnding::Eof {
            self.terminals.on_output_end(&mut self.recorder);
        }
        std::mem::take(&mut self.recorder.violations)
    }

    /// Returns the rules that the observed messages could have broken.
    #[must_use]
    pub fn seen(&self) -> &BTreeSet<&'static str> {
        &self.recorder.seen
    }
}

#[cfg(test)]
mod tests;
