//! Code mode: the model acts by one block of code a turn instead of tool calls (LASH-5, UP-33).
//!
//! A model adapter turns a block into a call of the tool [`CODE_TOOL`], so that the engine, its records and all clients
//! treat it like any call; the calls of the code are nested calls. The variables are part of the session's history.

mod code_block;
mod code_model;
mod functions;
mod instructions;
mod nested_call_budget;
mod run_code;
mod variables;

pub use code_block::CODE_TOOL;
pub(crate) use code_block::LANGUAGE;
pub(crate) use code_model::{CodeModel, code_system_prompt};
pub(crate) use run_code::RunCodeTool;
pub(crate) use variables::{CodeVariables, SessionInterpreter};

use serde::{Deserialize, Serialize};

/// How the model acts (LASH-5).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// By tool calls.
    #[default]
    Tools,
    /// By one block of code a turn.
    Code,
}

impl Protocol {
    /// All protocols, the default first.
    pub const ALL: [Self; 2] = [Self::Tools, Self::Code];

    /// Returns the protocol with this name; `None` if there is none.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|protocol| protocol.as_str() == name)
    }

    /// Returns the name used in configuration and on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Code => "code",
        }
    }
}
