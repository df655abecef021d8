//! faults: named ways to be wrong, each a small function over the lines between a client and a right agent.
//!
//! `conformance/faults.toml` says of each what it does and which rules it breaks; the mutation table
//! holds the suite to that. A fault sees every line of both directions in the order in which they
//! pass, and may change it, drop it, hold it back or say more.

mod auth;
mod cancel;
mod config;
mod elicitation;
mod extensions;
mod files;
mod framing;
mod initialize;
mod json_rpc;
mod list;
mod load;
mod mcp;
mod messages;
mod passing;
mod permission;
mod plan;
mod process;
mod prompt;
mod sessions;
mod terminals;
mod tools;
mod v2;
mod v2_sessions;
mod wire;

pub use passing::Deed;
pub use process::Habit;
pub use wire::Way;

use passing::{Memory, Passing};
use serde_json::Value;
use wire::{Kind, Wire};

/// A named way to be wrong.
#[derive(Debug)]
pub struct Fault {
    /// Its name, in `faults.toml` and on the command line.
    pub name: &'static str,
    breaks: Breaks,
}

/// What it is that goes wrong.
#[derive(Clone, Copy, Debug)]
enum Breaks {
    /// What passes.
    Lines(fn(&mut Passing<'_>)),
    /// How the process behaves.
    Process(Habit),
}

impl Fault {
    const fn lines(name: &'static str, line: fn(&mut Passing<'_>)) -> Self {
        let breaks = Breaks::Lines(line);
        Self { name, breaks }
    }

    const fn process(name: &'static str, habit: Habit) -> Self {
        let breaks = Breaks::Process(habit);
        Self { name, breaks }
    }

    /// What is wrong with the process itself, if anything is.
    #[must_use]
    pub fn habit(&self) -> Option<Habit> {
        match self.breaks {
            Breaks::Lines(_) => None,
            Breaks::Process(habit) => Some(habit),
        }
    }
}

/// All faults, area by area.
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

/// The fault of this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static Fault> {
    all().find(|fault| fault.name == name)
}

/// One connection, broken by a fault or by none.
#[derive(Debug, Default)]
pub struct Breaker {
    line: Option<fn(&mut Passing<'_>)>,
    wire: Wire,
    memory: Memory,
}

/// What comes of one line.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Whole lines with their ends, in order.
    pub lines: Vec<(Way, Vec<u8>)>,
    /// What else happens.
    pub deed: Deed,
}

impl Breaker {
    /// A new connection; without a fault every line passes as it is.
    #[must_use]
    pub fn new(fault: Option<&Fault>) -> Self {
        let line = fault.and_then(|fault| match fault.breaks {
            Breaks::Lines(line) => Some(line),
            Breaks::Process(_) => None,
        });
        Self {
            line,
            ..Self::default()
        }
    }

    /// One line, with its end unless the stream ended before it.
    pub fn line(&mut self, way: Way, raw: &[u8]) -> Outcome {
        let Some(line) = self.line else {
            return Outcome::as_it_is(way, raw);
        };
        self.pass(line, way, raw, parse(raw)).outcome()
    }

    /// Tells whether the fault changes a line that was parsed before.
    pub(crate) fn changes(&mut self, way: Way, raw: &[u8], value: Value) -> bool {
        let Some(line) = self.line else {
            return false;
        };
        let passing = self.pass(line, way, raw, value);
        // Most lines pass untouched, and long ones are not copied for that.
        !passing.is_untouched() && !passing.outcome().is_as_it_was(way, raw)
    }

    /// Lets the fault handle a line.
    fn pass<'a>(
        &'a mut self,
        line: fn(&mut Passing<'_>),
        way: Way,
        raw: &'a [u8],
        value: Value,
    ) -> Passing<'a> {
        let kind = self.wire.note(way, &value);
        let ours = matches!(&kind, Kind::Answer(open) if open.own);
        let mut passing = Passing {
            way,
            raw,
            kind,
            wire: &mut self.wire,
            memory: &mut self.memory,
            value,
            edited: false,
            swallowed: ours,
            instead: None,
            before: Vec::new(),
            after: Vec::new(),
            deed: Deed::None,
        };
        line(&mut passing);
        passing
    }
}

/// Null for what is no JSON.
pub(crate) fn parse(raw: &[u8]) -> Value {
    serde_json::from_slice(raw).unwrap_or_default()
}

impl Outcome {
    fn as_it_is(way: Way, raw: &[u8]) -> Self {
        Self {
            lines: vec![(way, raw.to_vec())],
            deed: Deed::None,
        }
    }

    /// Is this what comes of a line without any fault?
    fn is_as_it_was(&self, way: Way, raw: &[u8]) -> bool {
        self.deed == Deed::None
            && matches!(self.lines.as_slice(), [(to, line)] if *to == way && line == raw)
    }
}

impl Passing<'_> {
    /// The fault has left the line alone and added nothing.
    fn is_untouched(&self) -> bool {
        !self.edited
            && !self.swallowed
            && self.instead.is_none()
            && self.before.is_empty()
            && self.after.is_empty()
            && self.deed == Deed::None
    }

    fn outcome(self) -> Outcome {
        let mut lines = Vec::new();
        lines.extend(self.before.iter().map(written));
        if !self.swallowed {
            let bytes = match self.instead {
                Some(bytes) => bytes,
                None if self.edited => written(&(self.way, self.value)).1,
                None => self.raw.to_vec(),
            };
            lines.push((self.way, bytes));
        }
        lines.extend(self.after.iter().map(written));
        let deed = self.deed;
        Outcome { lines, deed }
    }
}

fn written((way, message): &(Way, Value)) -> (Way, Vec<u8>) {
    let mut bytes = message.to_string().into_bytes();
    bytes.push(b'\n');
    (*way, bytes)
}
