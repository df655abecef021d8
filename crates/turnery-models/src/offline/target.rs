//! Target: the words of a sentence that name something: paths, code, identifiers.

use super::rules::pattern;

/// A file and perhaps some of its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) path: String,
    pub(super) from: Option<usize>,
    pub(super) to: Option<usize>,
}

impl Place {
    /// Reads `path`, `path:10`, `path:10-40`.
    pub(super) fn read(text: &str) -> Self {
        let form = pattern!(r"^(.+?):(\d+)(?:\s*(?:-|\.\.|:)\s*(\d+))?:?$");
        match form.captures(text) {
            Some(parts) => {
                let from: Option<usize> = parts[2].parse().ok();
                Self {
                    path: parts[1].to_owned(),
                    from,
                    to: parts.get(3).and_then(|to| to.as_str().parse().ok()),
                }
            }
            None => Self {
                path: text.to_owned(),
                from: None,
                to: None,
            },
        }
    }
}

/// What stands in backticks.
pub(super) fn quoted(text: &str) -> Option<&str> {
    let found = pattern!("`([^`\n]+)`").captures(text)?;
    Some(found.get(1)?.as_str().trim()).filter(|inner| !inner.is_empty())
}

/// Takes quotes and the punctuation of a sentence off a word.
pub(super) fn bare(word: &str) -> &str {
    let ends = |c: char| {
        matches!(
            c,
            '`' | '"' | '\'' | ',' | ';' | '?' | '!' | '(' | ')' | '<' | '>'
        )
    };
    let word = word.trim().trim_matches(ends);
    let word = word.strip_suffix(['.', ':']).unwrap_or(word);
    word.trim_matches(ends)
}

/// Whether a word looks like a file or a folder.
pub(super) fn is_path(word: &str) -> bool {
    let known = pattern!(
        r"(?i)^[\w@.\-/\\*]*\.(rs|toml|md|txt|py|pyi|js|mjs|cjs|jsx|ts|tsx|json|jsonc|ya?ml|go|mod|sum|c|h|cc|cpp|cxx|hpp|java|kt|kts|rb|php|cs|swift|sh|bash|zsh|sql|html?|css|scss|lock|cfg|ini|xml|proto|zig|lua|ex|exs|hs|ml|scala|vue|svelte|csv|log)(:\d+(-\d+)?)?$"
    );
    let names = pattern!(
        r"^(Makefile|Dockerfile|README|LICENSE|CMakeLists\.txt|\.?\w+ignore)(:\d+(-\d+)?)?$"
    );
    if word.contains("://") || word.contains(char::is_whitespace) {
        return false;
    }
    known.is_match(word)
        || names.is_match(word)
        || matches!(word, "." | "./" | "..")
        || (word.contains('/') && pattern!(r"^[\w@.\-/]+(:\d+(-\d+)?)?$").is_match(word))
}

/// The first word of a sentence that looks like a path.
pub(super) fn path(text: &str) -> Option<&str> {
    text.split_whitespace().map(bare).find(|word| is_path(word))
}

/// The path that a sentence speaks about, be it only a folder's plain name after `in`.
pub(super) fn place(text: &str) -> Option<&str> {
    path(text).or_else(|| {
        let form = pattern!(
            r"(?i)\b(?:in|under|inside|within|of|outline)\s+(?:the\s+)?[`']?([\w.\-]+)[`']?(?:\s+(?:folder|directory))?\s*[?.!]*$"
        );
        let noise = pattern!(
            r"(?i)^(here|code|repo|repository|project|codebase|workspace|folder|directory|it|this|that|everything|all|files?|us|me)$"
        );
        let word = form.captures(text)?.get(1)?.as_str();
        let word = word.trim_end_matches('.');
        (!word.is_empty() && !noise.is_match(word)).then_some(word)
    })
}

/// Whether a word looks like code and not like English: `snake_case`, `CamelCase`, `a::b`, `f()`.
pub(super) fn is_code(word: &str) -> bool {
    pattern!(r"^[A-Za-z_$][\w$]*((::|\.|#)[A-Za-z_$][\w$]*)*!?(\(\))?$").is_match(word)
        && (word.contains('_')
            || word.contains("::")
            || word.ends_with("()")
            || word.ends_with('!')
            || pattern!(r"[a-z0-9][A-Z]").is_match(word)
            || pattern!(r"^[A-Z]{2,}[0-9]*$").is_match(word))
}

/// The name to search for: the last part of `a::b::c`, without brackets.
pub(super) fn name(word: &str) -> &str {
    let word = bare(word).trim_end_matches("()").trim_end_matches('!');
    let last = word.rsplit("::").next().unwrap_or(word);
    let last = last.rsplit('#').next().unwrap_or(last);
    let parts = pattern!(r"^[A-Za-z_$][\w$]*\.([A-Za-z_$][\w$]*)$");
    match parts.captures(last).and_then(|parts| parts.get(1)) {
        Some(part) if !is_path(last) => part.as_str(),
        Some(_) | None => last,
    }
}
