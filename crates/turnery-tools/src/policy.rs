//! Policy: whether a call may run, must be asked about, or may not. Unknown means ask.

use crate::{Access, Workspace};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// How freely the agent may act.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Reads by itself, asks before anything else.
    #[default]
    Ask,
    /// Also edits files inside the roots by itself.
    Edit,
    /// Only reads.
    Plan,
    /// Does everything by itself, but for what a rule denies.
    Auto,
}

impl Mode {
    /// All, in the order in which they are offered.
    pub const ALL: [Self; 4] = [Self::Ask, Self::Edit, Self::Plan, Self::Auto];

    /// The word for it in configuration and on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Edit => "edit",
            Self::Plan => "plan",
            Self::Auto => "auto",
        }
    }

    /// For people.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::Ask => "Reads by itself, asks before it changes or runs anything",
            Self::Edit => "Also edits files by itself, asks before it runs commands",
            Self::Plan => "Only reads: no changes, no commands",
            Self::Auto => "Does everything by itself, but for what a rule denies",
        }
    }
}

/// One rule: `shell(cargo test:*)`, `edit(src/**)`, `read(**/.env)`, `shell`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule(String);

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Rule {
    type Err = RuleError;
    fn from_str(text: &str) -> Result<Self, RuleError> {
        Ok(Self(text.to_owned()))
    }
}

/// A rule that cannot be read: what is wrong and how it should look.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rule:?} is no rule: {reason}")]
pub struct RuleError {
    /// As it was written.
    pub rule: String,
    /// What is wrong and how it should look.
    pub reason: String,
}

/// What a policy says of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It may run.
    Allow,
    /// It may not; the sentence is for the model and for people.
    Deny(String),
    /// Ask. `always` is the rule that "always allow" would add for the session, in words for the button too;
    /// `None` when no rule can stand for it (the command was not understood).
    Ask {
        /// The rule that "always" would add.
        always: Option<Rule>,
    },
}

/// The rules in force for a session.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// How freely.
    pub mode: Mode,
    allow: Vec<Rule>,
    deny: Vec<Rule>,
}

impl Policy {
    /// A policy. A deny rule always wins.
    #[must_use]
    pub fn new(mode: Mode, allow: Vec<Rule>, deny: Vec<Rule>) -> Self {
        Self { mode, allow, deny }
    }

    /// Judge a call of `tool` that touches `access`. Relative patterns start at the working directory;
    /// what a command line reads must lie inside the roots to go unasked.
    #[must_use]
    pub fn judge(&self, _tool: &str, _access: &Access, _workspace: &Workspace) -> Judgement {
        Judgement::Ask { always: None }
    }

    /// Remember for the session.
    pub fn allow(&mut self, rule: Rule) {
        self.allow.push(rule);
    }

    /// Remember for the session.
    pub fn deny(&mut self, rule: Rule) {
        self.deny.push(rule);
    }
}
