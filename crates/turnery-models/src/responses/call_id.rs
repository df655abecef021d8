//! Replaces call ids that the API rejects.

use sha2::{Digest as _, Sha256};
use std::{borrow::Cow, fmt::Write as _};

/// Longest id that the API accepts. Unit: bytes.
const MAX_BYTES: usize = 64;

/// Bytes of the hash in a replacement; enough that no two ids of a conversation share it.
const HASH_BYTES: usize = 24;

/// Returns `id`, or a hash of it if the API or a model behind it would reject it: ids of other providers may be longer,
/// and may hold other characters than letters, digits, `_` and `-`, such as the `|` by which some clients join the ids of
/// a call and its item. The same id always has the same replacement.
pub(super) fn accepted_call_id(id: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if (1..=MAX_BYTES).contains(&id.len()) && id.chars().all(fits) {
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

    /// Quirks 2 and 3. The expected values come from `sha256sum`.
    // proves: RESPONSES-2, RESPONSES-3
    #[test]
    fn other_ids_are_replaced_by_their_hash() {
        for (id, replacement) in [
            (
                "call_a|fc_b",
                "call_8ce72531cc146ff17b25732e3922e77caa02d570cf991e76",
            ),
            (
                "functions.read:0",
                "call_c216cab2de2e56d547b4e6340edfc11a16bd7a07a29dc02b",
            ),
        ] {
            assert_eq!(accepted_call_id(id), replacement);
        }
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
