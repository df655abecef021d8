//! Rules: the regular expressions of this folder, each compiled once.

/// A constant regular expression.
macro_rules! pattern {
    ($text:expr) => {{
        static PATTERN: std::sync::LazyLock<regex::Regex> =
            std::sync::LazyLock::new(|| regex::Regex::new($text).expect("a valid pattern"));
        &*PATTERN
    }};
}

pub(super) use pattern;
