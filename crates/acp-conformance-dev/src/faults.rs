//! Defines named faults, each a small function over the lines between a client and a conforming agent.
//!
//! `conformance/faults.toml` describes each fault and lists the rules it breaks; the mutation table holds the
//! suite to that. A fault sees all lines of both directions in order, and may change, drop or hold back a
//! line, or add lines.

mod auth;
mod cancel;
mod config;
mod connection_state;
mod elicitation;
mod extensions;
mod fault;
mod files;
mod framing;
mod initialize;
mod intercepted_line;
mod json_rpc;
mod list;
mod load;
mod mcp;
mod messages;
mod permission;
mod plan;
mod process;
mod prompt;
mod sessions;
mod terminals;
mod tools;
mod v2;
mod v2_sessions;

pub use connection_state::Direction;
pub use fault::{Fault, ProcessFault};
pub use intercepted_line::SideEffect;

use connection_state::{ConnectionState, MessageKind};
use fault::FaultKind;
use intercepted_line::{FaultMemory, InterceptedLine};
use serde_json::Value;

/// Returns all faults, grouped by area.
pub fn all() -> impl Iterator<Item = &'static Fault> {
    [
        framing::FAULTS,
        process::FAULTS,
        json_rpc::FAULTS,
        initialize::FAULTS,
        auth::FAULTS,
        sessions::FAULTS,
        load::FAULTS,
        list::FAULTS,
        mcp::FAULTS,
        prompt::FAULTS,
        messages::FAULTS,
        tools::FAULTS,
        permission::FAULTS,
        files::FAULTS,
        terminals::FAULTS,
        cancel::FAULTS,
        plan::FAULTS,
        config::FAULTS,
        elicitation::FAULTS,
        extensions::FAULTS,
        v2::FAULTS,
        v2_sessions::FAULTS,
    ]
    .into_iter()
    .flatten()
}

/// Returns the fault of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Fault> {
    all().find(|fault| fault.name == name)
}

/// State of one connection with at most one fault.
#[derive(Debug, Default)]
pub struct FaultInjector {
    handler: Option<fn(&mut InterceptedLine<'_>)>,
    connection: ConnectionState,
    memory: FaultMemory,
}

/// Output for one line.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LineOutcome {
    /// Lines to write, with their line ends, in order.
    pub lines: Vec<(Direction, Vec<u8>)>,
    /// Further effect on the process.
    pub side_effect: SideEffect,
}

impl FaultInjector {
    /// Creates the state of a new connection; without a fault every line passes unchanged.
    #[must_use]
    pub fn new(fault: Option<&Fault>) -> Self {
        let handler = fault.and_then(|fault| match fault.kind {
            FaultKind::Lines(handler) => Some(handler),
            FaultKind::Process(_) => None,
        });
        Self {
            handler,
            ..Self::default()
        }
    }

    /// Processes one line, including its line end unless the stream ended without one.
    pub fn process_line(&mut self, direction: Direction, raw: &[u8]) -> LineOutcome {
        let Some(handler) = self.handler else {
            return LineOutcome::unchanged(direction, raw);
        };
        self.apply_fault(handler, direction, raw, parse_or_null(raw))
            .into_outcome()
    }

    /// Returns true if the fault changes an already parsed line.
    pub(crate) fn would_change(&mut self, direction: Direction, raw: &[u8], value: Value) -> bool {
        let Some(handler) = self.handler else {
            return false;
        };
        let intercepted = self.apply_fault(handler, direction, raw, value);
        // Most lines pass untouched, and long ones are not copied for that.
        !intercepted.is_untouched() && !intercepted.into_outcome().is_unchanged(direction, raw)
    }

    /// Lets the fault handle a line.
    fn apply_fault<'a>(
        &'a mut self,
        handler: fn(&mut InterceptedLine<'_>),
        direction: Direction,
        raw: &'a [u8],
        value: Value,
    ) -> InterceptedLine<'a> {
        let kind = self.connection.observe(direction, &value);
        let is_injected = matches!(&kind, MessageKind::Response(open) if open.injected);
        let mut intercepted = InterceptedLine {
            direction,
            raw,
            kind,
            connection: &mut self.connection,
            memory: &mut self.memory,
            message: value,
            edited: false,
            swallowed: is_injected,
            replacement: None,
            lines_before: Vec::new(),
            lines_after: Vec::new(),
            side_effect: SideEffect::None,
        };
        handler(&mut intercepted);
        intercepted
    }
}

/// Parses JSON; anything else is null.
pub(crate) fn parse_or_null(raw: &[u8]) -> Value {
    serde_json::from_slice(raw).unwrap_or_default()
}

impl LineOutcome {
    fn unchanged(direction: Direction, raw: &[u8]) -> Self {
        Self {
            lines: vec![(direction, raw.to_vec())],
            side_effect: SideEffect::None,
        }
    }

    /// Returns true if the line passes unchanged.
    fn is_unchanged(&self, way: Direction, raw: &[u8]) -> bool {
        self.side_effect == SideEffect::None
            && matches!(self.lines.as_slice(), [(to, line)] if *to == way && line == raw)
    }
}

impl InterceptedLine<'_> {
    /// Returns true if the fault has neither changed the line nor added anything.
    fn is_untouched(&self) -> bool {
        !self.edited
            && !self.swallowed
            && self.replacement.is_none()
            && self.lines_before.is_empty()
            && self.lines_after.is_empty()
            && self.side_effect == SideEffect::None
    }

    fn into_outcome(self) -> LineOutcome {
        let mut lines = Vec::new();
        lines.extend(self.lines_before.iter().map(encode_line));
        if !self.swallowed {
            let bytes = match self.replacement {
                Some(bytes) => bytes,
                None if self.edited => encode_line(&(self.direction, self.message)).1,
                None => self.raw.to_vec(),
            };
            lines.push((self.direction, bytes));
        }
        lines.extend(self.lines_after.iter().map(encode_line));
        LineOutcome {
            lines,
            side_effect: self.side_effect,
        }
    }
}

fn encode_line((way, message): &(Direction, Value)) -> (Direction, Vec<u8>) {
    let mut bytes = message.to_string().into_bytes();
    bytes.push(b'\n');
    (*way, bytes)
}
