//! Model configuration of a loop, as stored in its record and its start event.

use serde::{Deserialize, Serialize};

/// Model configuration of a loop (LOOP-29 to LOOP-43), without keys.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigSnapshot {
    /// Model id.
    pub model: String,
    /// Provider name.
    pub provider: String,
    /// Stable id of the configuration; the middle part of the loop id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_id: Option<String>,
    /// Display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// API protocol, for example `anthropic_messages`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    /// Base URL without credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// True if the model supports reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<bool>,
    /// Size of the context window. Unit: tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u32>,
    /// Output limit per response. Unit: tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Thinking level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<String>,
    /// Sampling temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    /// Hash of the system prompt, which tells a replay from a change: 16 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_hash: Option<String>,
    /// System prompt, if it is not that of the loops before: a session that is opened again goes on with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Hash of the names, descriptions and schemas of the tools: 16 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_hash: Option<String>,
    /// How the model acts, unless by tool calls: `code`. Then the system prompt describes the tools as functions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
}
