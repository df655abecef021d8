//! Live fragments of a model response.

use serde::{Deserialize, Serialize};

/// Live fragment of a model response. Never stored as history: the complete response is the
/// [`Response`](crate::Response).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ModelDelta {
    /// Fragment of text. `block` counts the content blocks of the response from 0.
    Text {
        /// Index of the content block.
        block: u32,
        /// Fragment, never empty.
        text: String,
    },
    /// Fragment of reasoning.
    Thinking {
        /// Index of the content block.
        block: u32,
        /// Fragment, never empty.
        text: String,
    },
    /// Fragment of a call's arguments, for display only, never parsed (TURN-55).
    ToolCallArgs {
        /// Index of the content block.
        block: u32,
        /// Tool name.
        name: String,
        /// Fragment of JSON text.
        fragment: String,
    },
}
