//! Delta: a live fragment of an answer.

use serde::{Deserialize, Serialize};

/// A live fragment of an answer. Never history: the settled answer is the [`Response`](crate::Response).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ModelDelta {
    /// A fragment of prose. `block` counts content blocks of the answer from 0.
    Text {
        /// Content block that this belongs to.
        block: u32,
        /// The fragment, never empty.
        text: String,
    },
    /// A fragment of reasoning.
    Thinking {
        /// Content block that this belongs to.
        block: u32,
        /// The fragment, never empty.
        text: String,
    },
    /// A fragment of a call's arguments: for display, never parsed (TURN-55).
    ToolCallArgs {
        /// Content block that this belongs to.
        block: u32,
        /// The tool's name.
        name: String,
        /// The fragment of JSON text.
        fragment: String,
    },
}
