//! Oracle: hears both directions of a connection and says what breaks a rule, whatever the case is about.
//!
//! It may only complain about what the protocol really forbids. What is merely unusual passes, and where the
//! rules leave it open what an agent owes, nothing is owed.

mod answers;
mod capabilities;
mod envelope;
mod framing;
mod messages;
mod news;
mod order;
mod second;
mod shapes;
mod terminals;
mod tools;
mod unstable;

use answers::Answers;
use capabilities::Capabilities;
use framing::{Framing, Line};
use news::News;
use order::Order;
use second::Second;
use serde_json::Value;
use std::collections::BTreeSet;
use terminals::Terminals;
use tools::Tools;
use unstable::Unstable;

/// The rules that are watched in every case.
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

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: &'static str,
    /// What is wrong.
    pub why: String,
}

/// How an agent's output came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Its stdin was closed, and it ended by itself.
    Eof,
    /// It was told to end, or was ended, or our end of its output was closed.
    Forced,
    /// It ended although nobody wanted it to.
    Unasked,
}

/// Hears one connection, from its first line to its last.
#[derive(Debug, Default)]
pub struct Oracle {
    framing: Framing,
    answers: Answers,
    capabilities: Capabilities,
    order: Order,
    tools: Tools,
    terminals: Terminals,
    news: News,
    second: Second,
    unstable: Unstable,
    found: Found,
    /// The last line had the wrong shape.
    is_bent: bool,
}

/// What the laws have found.
#[derive(Debug, Default)]
struct Found {
    violations: Vec<Violation>,
    /// The rules of which something was seen that could have broken them.
    seen: BTreeSet<&'static str>,
    /// The version that was agreed on.
    version: u64,
}

impl Found {
    /// Something was seen that could have broken this rule.
    fn seen(&mut self, rule: &'static str) {
        debug_assert!(RULES.contains(&rule), "{rule} is not said to be watched");
        self.seen.insert(rule);
    }

    /// It is broken.
    fn broken(&mut self, rule: &'static str, why: impl Into<String>) {
        let why = why.into();
        self.seen(rule);
        self.violations.push(Violation { rule, why });
    }

    /// It holds, or it is broken.
    fn holds(&mut self, rule: &'static str, holds: bool, why: impl FnOnce() -> String) {
        if holds {
            self.seen(rule);
        } else {
            self.broken(rule, why());
        }
    }
}

/// What a message is, by its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Request,
    Notification,
    Response,
}

/// The version that is meant, even if it is wrongly said.
fn version(said: &Value) -> Option<u64> {
    said.as_u64().or_else(|| said.as_str()?.parse().ok())
}

fn sort(message: &Value) -> Option<Sort> {
    let has = |key: &str| message.get(key).is_some();
    match (message["method"].is_string(), has("id")) {
        (true, true) => Some(Sort::Request),
        (true, false) => Some(Sort::Notification),
        (false, _) if has("result") || has("error") => Some(Sort::Response),
        (false, _) => None,
    }
}

impl Oracle {
    /// The client has written this line, without its end.
    pub fn sent(&mut self, line: &str) {
        let message = serde_json::from_str(line);
        self.sent_message(&message.unwrap_or(Value::Null));
    }

    /// The client has written a line that says this; `null` if it is no JSON, blank ones too: to call one an error is
    /// against no rule of the answers.
    pub(crate) fn sent_message(&mut self, message: &Value) {
        self.framing.sent(message);
        self.answers.sent(message);
        self.capabilities.sent(message);
        self.order.sent(message);
        self.tools.sent(message);
        self.terminals.sent(message);
        self.news.sent(message);
        self.second.sent(message);
        self.unstable.sent(message);
    }

    /// The agent has written this line, with its end if it has one. Says what is wrong with it.
    pub fn heard(&mut self, line: &[u8]) -> Vec<Violation> {
        let found = &mut self.found;
        self.is_bent = true;
        let Line::Message(message) = self.framing.heard(line, found) else {
            return std::mem::take(&mut found.violations);
        };
        let before = found.violations.len();
        let Some(sort) = envelope::check(&message, found) else {
            return std::mem::take(&mut found.violations);
        };
        let is_bent = found.violations.len() > before;
        let asked = match sort {
            Sort::Response => self.answers.answer(&message, found),
            Sort::Request => {
                self.answers.ask(&message, found);
                None
            }
            Sort::Notification => None,
        };
        let asked = asked.as_ref();
        if let Some(asked) = asked
            && asked.method == "initialize"
            && let Some(version) = version(&message["result"]["protocolVersion"])
        {
            found.version = version;
        }
        let is_right = shapes::check(sort, &message, asked, found);
        self.is_bent = is_bent || !is_right;
        self.capabilities.heard(sort, &message, asked, found);
        let before = found.violations.len();
        if found.version == 2 {
            self.second.heard(sort, &message, asked, found);
        } else {
            self.unstable.heard(sort, &message, asked, found);
            self.order.heard(sort, &message, asked, found);
            self.tools.heard(sort, &message, asked, found);
            self.terminals.heard(sort, &message, asked, found);
            self.news.heard(sort, &message, asked, found);
        }
        if !is_right {
            // What has the wrong shape is blamed once; it has happened all the same.
            found.violations.truncate(before);
        }
        std::mem::take(&mut self.found.violations)
    }

    /// The last line had not the shape that it must have: some rule was blamed for that.
    pub(crate) fn is_bent(&self) -> bool {
        self.is_bent
    }

    /// The agent's output has ended. Says what it still owed.
    pub fn ended(&mut self, ending: Ending) -> Vec<Violation> {
        self.answers.ended(ending, &mut self.found);
        if ending == Ending::Eof {
            self.terminals.ended(&mut self.found);
        }
        std::mem::take(&mut self.found.violations)
    }

    /// The rules of which something was seen that could have broken them.
    #[must_use]
    pub fn seen(&self) -> &BTreeSet<&'static str> {
        &self.found.seen
    }
}

#[cfg(test)]
mod tests;
