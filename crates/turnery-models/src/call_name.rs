//! Replaces names of called functions that an API rejects: a model may have called what does not exist.

use std::borrow::Cow;

/// Longest name in a history that all APIs accept. Unit: characters.
const MAX_CHARS: usize = 64;

/// Returns the name with `_` for what is not a letter, a digit, `_`, `-` or one of `more`.
pub(crate) fn accepted_name<'a>(name: &'a str, more: &[char]) -> Cow<'a, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || more.contains(&c);
    if (1..=MAX_CHARS).contains(&name.len()) && name.chars().all(fits) {
        return Cow::Borrowed(name);
    }
    let accepted = name.chars().map(|c| if fits(c) { c } else { '_' });
    let accepted: String = accepted.take(MAX_CHARS).collect();
    match accepted.is_empty() {
        true => Cow::Borrowed("unnamed"),
        false => Cow::Owned(accepted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_do_not_fit_are_replaced() {
        let longest = "x".repeat(64);
        for (name, more, expected) in [
            ("read_file-2", &[][..], "read_file-2"),
            ("functions.read:0", &[][..], "functions_read_0"),
            ("functions.read:0", &['.', ':'][..], "functions.read:0"),
            ("", &[][..], "unnamed"),
            ("ä b", &[][..], "__b"),
            (&"x".repeat(65), &[][..], &longest),
        ] {
            assert_eq!(accepted_name(name, more), expected);
        }
    }
}
