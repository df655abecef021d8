//! Replaces ids of calls that this API rejects.

use sha2::{Digest as _, Sha256};
use std::{borrow::Cow, fmt::Write as _};

/// Longest id that the API accepts. Unit: characters.
const MAX_ID_CHARS: usize = 64;

/// Bytes of the hash in a replaced id.
const HASH_BYTES: usize = 8;

/// Returns the id as the API accepts it: letters, digits, `_` and `-`, at most 64. A replaced id depends only on the
/// original one and keeps its start, so that a call has the same id in every request and different calls have different
/// ids.
pub(super) fn accepted_id(id: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !id.is_empty() && id.len() <= MAX_ID_CHARS && id.chars().all(fits) {
        return Cow::Borrowed(id);
    }
    let kept = MAX_ID_CHARS - 2 * HASH_BYTES - 1;
    let start = id.chars().take(kept);
    let mut accepted: String = start.map(|c| if fits(c) { c } else { '_' }).collect();
    accepted.push('_');
    for byte in Sha256::digest(id).iter().take(HASH_BYTES) {
        // Writing to a string cannot fail.
        let _ = write!(accepted, "{byte:02x}");
    }
    Cow::Owned(accepted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    /// Quirk 2.
    #[test]
    fn accepted_ids_are_kept_and_others_replaced() {
        let longest = "a".repeat(64);
        for id in ["toolu_01-x", "a", longest.as_str()] {
            assert!(matches!(accepted_id(id), Cow::Borrowed(kept) if kept == id));
        }
        let longer = "a".repeat(65);
        let others = [
            "functions.read:0",
            "a|b",
            "a_b",
            "a b",
            "ä",
            "",
            &longer,
            &format!("{longer}b"),
        ];
        let accepted: HashSet<_> = others.iter().map(|id| accepted_id(id)).collect();
        assert_eq!(accepted.len(), others.len(), "{accepted:?}");
        assert!(accepted_id("functions.read:0").starts_with("functions_read_0_"));
    }

    proptest! {
        #[test]
        fn any_id_becomes_an_accepted_one(id in ".{0,200}") {
            let accepted = accepted_id(&id);
            prop_assert!((1..=64).contains(&accepted.len()), "{accepted}");
            prop_assert!(accepted.bytes().all(|c| c.is_ascii_alphanumeric() || b"_-".contains(&c)));
            // The same in the next request, which contains what the last one sent.
            prop_assert_eq!(accepted_id(&accepted), accepted.clone());
        }
    }
}
