//! Keeps the signatures of parts beside the content that they belong to, in opaque blocks.
//!
//! The API signs its thoughts on parts of any kind, and wants each signature back on the part that it came on:
//! <https://ai.google.dev/gemini-api/docs/thought-signatures>. A block follows the text or the call whose signature it
//! holds; the end of a text is signed if the signed part was not the whole text. All other parts are kept whole.

use serde_json::{Value, json};
use turnery_engine::Content;

/// Name of the signature in parts and in blocks.
pub(super) const SIGNATURE: &str = "thoughtSignature";

/// Name of the length of a signed text in blocks. Unit: bytes.
const SIGNED_BYTES: &str = "signedBytes";

/// Signature of the content before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartSignature<'a> {
    pub(super) signature: &'a str,
    /// Length of the signed end of a text; `None` for calls. Unit: bytes.
    pub(super) signed_bytes: Option<usize>,
}

impl<'a> PartSignature<'a> {
    /// Returns the block that keeps the signature.
    pub(super) fn to_block(self) -> Value {
        match self.signed_bytes {
            Some(bytes) => json!({ SIGNATURE: self.signature, SIGNED_BYTES: bytes }),
            None => json!({ SIGNATURE: self.signature }),
        }
    }

    /// Returns the signature that a block keeps; `None` for other content and for whole parts.
    pub(super) fn from_content(content: &'a Content) -> Option<Self> {
        let Content::Opaque { value, .. } = content else {
            return None;
        };
        let members = value.as_object()?;
        let is_known = |name: &String| name == SIGNATURE || name == SIGNED_BYTES;
        if !members.keys().all(is_known) {
            return None;
        }
        let bytes = members.get(SIGNED_BYTES).and_then(Value::as_u64);
        Some(Self {
            signature: members.get(SIGNATURE)?.as_str()?,
            signed_bytes: bytes.and_then(|bytes| usize::try_from(bytes).ok()),
        })
    }

    /// Splits a text in what was not signed and what was. Both are not empty, unless all of it was signed.
    pub(super) fn split_text(self, text: &str) -> (&str, &str) {
        let start = self
            .signed_bytes
            .and_then(|bytes| text.len().checked_sub(bytes));
        start
            .filter(|start| *start < text.len())
            .and_then(|start| text.split_at_checked(start))
            .unwrap_or(("", text))
    }
}
