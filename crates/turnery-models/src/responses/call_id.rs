//! Replaces call ids that the API rejects.

use sha2::{Digest as _, Sha256};
use std::{borrow::Cow, fmt::Write as _};

/// Longest id that the API accepts. Unit: bytes.
const MAX_BYTES: usize = 64;

/// Bytes of the hash in a replacement; enough that no two ids of a conversation share it.
const HASH_BYTES: usize = 24;

/// Returns `id`, or a hash of it if the API would reject it: ids of other providers may be longer, and may hold the `|`
/// by which some clients join the ids of a call and its item. The same id always has the same replacement.
pub(super) fn accepted_call_id(id: &str) -> Cow<'_, str> {
    if id.len() <= MAX_BYTES && !id.contains('|') {
        return Cow::Borrowed(id);
    }
    let mut replacement = String::from("call_");
    for byte in Sha256::digest(id).iter().take(HASH_BYTES) {
        // Writing to a string cannot fail.
        let _ = write!(replacement, "{byte:02x}");
    }
    Cow::Owned(replacement)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_fit_are_kept() {
        let longest = "x".repeat(64);
        for id in ["call_1", "toolu_01AbC-_", longest.as_str()] {
            assert_eq!(accepted_call_id(id), id);
        }
    }

    /// Quirk 3. The expected value comes from `sha256sum`.
    #[test]
    fn other_ids_are_replaced_by_their_hash() {
        assert_eq!(
            accepted_call_id("call_a|fc_b"),
            "call_8ce72531cc146ff17b25732e3922e77caa02d570cf991e76"
        );
    }

    #[test]
    fn long_ids_with_a_common_start_stay_different() {
        let ids: Vec<String> = ["a", "b", "a|"]
            .map(|end| format!("{}{end}", "x".repeat(64)))
            .into();
        let mut replaced: Vec<Cow<'_, str>> = ids.iter().map(|id| accepted_call_id(id)).collect();
        assert!(replaced.iter().all(|id| id.len() <= 64), "{replaced:?}");
        replaced.sort();
        replaced.dedup();
        assert_eq!(replaced.len(), 3);
    }
}
