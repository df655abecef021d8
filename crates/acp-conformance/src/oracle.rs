//! Observes both directions of a connection and reports rule violations, whatever the case tests.
//!
//! The oracle reports only what the protocol forbids. Unusual behaviour passes, and where the rules leave open
//! what an agent must do, nothing is required.

mod capabilities;
mod envelope;
mod framing;
mod messages;
mod recorder;
mod responses;
mod schema_check;
mod session_activity;
mod session_state;
mod terminals;
mod tool_calls;
mod unstable;
mod update_order;
mod v2;

pub use recorder::Violation;
pub use responses::OutputEnding;
pub use schema_check::client_violation;

use crate::{deep_json, official_schema::MessageKind};
use capabilities::CapabilityRules;
use framing::{FramingRules, ParsedLine};
use messages::{AgentMessage, parse_version};
use recorder::RuleRecorder;
use responses::ResponseRules;
use serde_json::Value;
use session_state::SessionStateRules;
use std::collections::BTreeSet;
use terminals::TerminalRules;
use tool_calls::ToolCallRules;
use unstable::UnstableRules;
use update_order::UpdateOrderRules;
use v2::V2Rules;

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

impl Oracle {
    /// Observes a line written by the client, without its line end.
    pub fn on_sent_line(&mut self, line: &str) {
        let message = deep_json::parse_json(line.as_bytes());
        self.on_sent(&message.unwrap_or(Value::Null));
    }

    /// Observes a parsed client line; `null` if the line is blank or not JSON. An error response to a blank
    /// line breaks no rule.
    pub(crate) fn on_sent(&mut self, message: &Value) {
        self.framing.on_sent(message);
        self.responses.on_sent(message);
        self.update_order.on_sent(message);
        self.tool_calls.on_sent(message);
        self.terminals.on_sent(message);
        self.session_state.on_sent(message);
        self.v2.on_sent(message);
    }

    /// Observes a line written by the agent, with its line end if present, and returns the violations.
    pub fn on_received_line(&mut self, line: &[u8]) -> Vec<Violation> {
        let recorder = &mut self.recorder;
        self.is_malformed = true;
        let ParsedLine::Message(message) = self.framing.on_received_line(line, recorder) else {
            return std::mem::take(&mut recorder.violations);
        };
        let before = recorder.violations.len();
        let Some(kind) = envelope::check(&message, recorder) else {
            return std::mem::take(&mut recorder.violations);
        };
        let is_bent = recorder.violations.len() > before;
        let request = match kind {
            MessageKind::Response => self.responses.match_response(&message, recorder),
            MessageKind::Request => {
                self.responses.on_agent_request(&message, recorder);
                None
            }
            MessageKind::Notification => None,
        };
        let request = request.as_ref();
        if let Some(request) = request
            && request.method == "initialize"
            && let Some(version) = parse_version(&message["result"]["protocolVersion"])
        {
            recorder.version = version;
        }
        let message = AgentMessage {
            kind,
            json: &message,
            request,
        };
        let is_right = schema_check::check(message, recorder);
        self.is_malformed = is_bent || !is_right;
        self.capabilities.on_received(message, recorder);
        let before = recorder.violations.len();
        if recorder.version == 2 {
            self.v2.on_received(message, recorder);
        } else {
            self.unstable.on_received(message, recorder);
            self.update_order.on_received(message, recorder);
            self.tool_calls.on_received(message, recorder);
            self.terminals.on_received(message, recorder);
            self.session_state.on_received(message, recorder);
        }
        if !is_right {
            // A malformed message is reported once, but still updates the state.
            recorder.violations.truncate(before);
        }
        std::mem::take(&mut self.recorder.violations)
    }

    /// Returns true if the last line was malformed, which is reported under some rule.
    pub(crate) fn is_last_line_malformed(&self) -> bool {
        self.is_malformed
    }

    /// Observes the end of the agent's output and returns violations such as missing responses.
    pub fn on_output_end(&mut self, ending: OutputEnding) -> Vec<Violation> {
        self.responses.on_output_end(ending, &mut self.recorder);
        if ending == OutputEnding::Eof {
            self.terminals.on_output_end(&mut self.recorder);
        }
        std::mem::take(&mut self.recorder.violations)
    }

    /// Returns the rules that the observed messages could have broken.
    #[must_use]
    pub fn exercised_rules(&self) -> &BTreeSet<&'static str> {
        &self.recorder.seen
    }
}

#[cfg(test)]
mod tests;
