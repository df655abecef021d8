//! Defines named faults between a client and a conforming agent.
//!
//! `conformance/faults.toml` describes each fault and lists the rules it breaks; the mutation table holds the
//! suite to that. A fault sees all lines of both directions in order, and may change, drop or hold back a
//! line, or add lines. `faults/clauses.txt` lists them all and says what most of them do; the others are functions.

mod clauses;
mod client_requests;
mod config;
mod connection_state;
mod fault;
mod framing;
mod intercepted_line;
mod json_rpc;
mod mcp;
mod process;
mod prompt;
mod sessions;
mod tools;
mod v2;

pub use connection_state::Direction;
pub use fault::{Fault, ProcessFault};
pub use intercepted_line::SideEffect;

use connection_state::{ConnectionState, MessageKind};
use fault::{FaultKind, LineFunction};
use intercepted_line::{FaultMemory, InterceptedLine};
use serde_json::Value;
use std::sync::LazyLock;

const FUNCTIONS: [&[LineFunction]; 9] = [
    client_requests::FUNCTIONS,
    config::FUNCTIONS,
    framing::FUNCTIONS,
    json_rpc::FUNCTIONS,
    mcp::FUNCTIONS,
    prompt::FUNCTIONS,
    sessions::FUNCTIONS,
    tools::FUNCTIONS,
    v2::FUNCTIONS,
];

static FAULTS: LazyLock<Vec<Fault>> = LazyLock::new(|| {
    clauses::parse_faults(include_str!("faults/clauses.txt"), &find_coded_fault)
        .unwrap_or_else(|error| panic!("clauses.txt, {error}"))
});

/// Returns the kind of the fault with this name that is implemented in Rust instead of in `clauses.txt`.
fn find_coded_fault(name: &str) -> Option<FaultKind> {
    let mut functions = FUNCTIONS.into_iter().flatten();
    if let Some((_, function)) = functions.find(|(known, _)| *known == name) {
        return Some(FaultKind::Lines(Box::new(function)));
    }
    let mut faults = process::FAULTS.iter();
    let (_, fault) = faults.find(|(known, _)| *known == name)?;
    Some(FaultKind::Process(*fault))
}

/// Returns all faults, grouped by area.
pub fn all() -> impl Iterator<Item = &'static Fault> {
    FAULTS.iter()
}

/// Returns the fault of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Fault> {
    all().find(|fault| fault.name == name)
}

/// State of one connection with at most one fault.
#[derive(Debug, Default)]
pub struct FaultInjector {
    fault: Option<&'static Fault>,
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
    /// Creates an injector for a new connection. Every line passes unchanged if there is no fault, or only a
    /// process fault.
    #[must_use]
    pub fn new(fault: Option<&'static Fault>) -> Self {
        Self {
            fault,
            ..Self::default()
        }
    }

    /// Processes one line, including its line end unless the stream ended without one.
    pub fn process_line(&mut self, direction: Direction, raw: &[u8]) -> LineOutcome {
        match self.apply_fault(direction, raw, || parse_or_null(raw)) {
            Some(intercepted) => intercepted.into_outcome(),
            None => LineOutcome::unchanged(direction, raw),
        }
    }

    /// Processes a line that is already parsed, and returns true if the fault changes it.
    pub(crate) fn would_change(&mut self, direction: Direction, raw: &[u8], value: &Value) -> bool {
        let intercepted = self.apply_fault(direction, raw, || value.clone());
        // Most lines pass untouched, and long ones are not copied for that.
        intercepted.is_some_and(|intercepted| {
            !intercepted.is_untouched() && !intercepted.into_outcome().is_unchanged(direction, raw)
        })
    }

    /// Passes a line to the fault's handler; returns `None` if there is no fault, or only a process fault.
    fn apply_fault<'a>(
        &'a mut self,
        direction: Direction,
        raw: &'a [u8],
        parse: impl FnOnce() -> Value,
    ) -> Option<InterceptedLine<'a>> {
        let Some(FaultKind::Lines(handler)) = self.fault.map(|fault| &fault.kind) else {
            return None;
        };
        let value = parse();
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
        Some(intercepted)
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
