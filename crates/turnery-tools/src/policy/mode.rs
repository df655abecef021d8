//! Defines the modes, which set how freely the agent may act.

use serde::{Deserialize, Serialize};
use std::fmt;

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
    /// Does everything by itself, but for what a rule denies and turnery's own settings.
    Auto,
}

impl Mode {
    /// All modes, in the order in which they are offered.
    pub const ALL: [Self; 4] = [Self::Ask, Self::Edit, Self::Plan, Self::Auto];

    /// Returns the mode with this name; `None` if there is none.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == name)
    }

    /// Returns the name used in the configuration and on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Edit => "edit",
            Self::Plan => "plan",
            Self::Auto => "auto",
        }
    }

    /// Returns a description for users.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::Ask => "Reads by itself, asks before it changes or runs anything",
            Self::Edit => "Also edits files by itself, asks before it runs commands",
            Self::Plan => "Only reads: no changes, no commands but those that only read",
            Self::Auto => {
                "Does everything by itself, but for what a rule denies and turnery's own settings"
            }
        }
    }

    /// Returns true if this mode allows more without approval than `other`.
    #[must_use]
    pub fn is_more_permissive_than(self, other: Self) -> bool {
        self.permissiveness() > other.permissiveness()
    }

    fn permissiveness(self) -> u8 {
        match self {
            Self::Plan => 0,
            Self::Ask => 1,
            Self::Edit => 2,
            Self::Auto => 3,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
