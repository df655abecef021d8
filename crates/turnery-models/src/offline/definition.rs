//! Recognizes lines that define an identifier in common languages, by their syntax.

use super::command_context::pattern;
use regex::Regex;

const MODIFIERS: &str = r#"(?:(?:pub(?:\([^)]*\))?|export|default|async|unsafe|extern|"[^"]*"|const|static|public|private|protected|internal|abstract|final|sealed|override|virtual|open|data|inline|declare|readonly|partial|suspend|local|constexpr)\s+)*"#;

/// Pattern of any identifier.
pub(super) const ANY_NAME: &str = r"[A-Za-z_$][\w$]*";

/// Pattern of what may follow an identifier.
const END: &str = r"(?:[^\w$]|$)";

/// Patterns of definitions of one identifier: by keyword, as a value, in C, as a method, by assignment. The
/// language of the file decides which of them apply.
pub(super) struct DefinitionMatcher([Regex; 5]);

/// Returns the patterns for an identifier, given as a pattern itself.
fn definition_patterns(name: &str) -> [String; 5] {
    [
        format!(
            r"^\s*{MODIFIERS}(?:(?:fn|def|func|function|fun|sub)\*?\s+(?:\([^)]*\)\s*|self\.)?{name}{END}|(?:struct|enum|trait|class|interface|union|protocol|record|object)\s+{name}\s*(?:[{{<(\[:=;]|$|(?:extends|implements|where|final|is)\b)|(?:mod|module|namespace)\s+{name}\s*(?:[{{:]|$)|macro_rules!\s*{name}{END})|^\s*#\s*define\s+{name}{END}"
        ),
        format!(
            r"^\s*{MODIFIERS}(?:const|static|type)\s+(?:mut\s+)?{name}{END}|^(?:export\s+)?(?:let|var|val)\s+(?:mut\s+)?{name}{END}"
        ),
        format!(
            r"^\s*[A-Za-z_][\w\s*&:<>,~]*[\s*&:~]{name}\s*\([^;{{]*(?:\{{.*)?$|^[A-Za-z_][\w\s*]*[\s*]{name}(?:\[[^\]]*\])*\s*(?:=|;$)|^\}}\s*{name}\s*;|\btypedef\b.*[\s*}}]{name}\s*;"
        ),
        format!(r#"^\s*{MODIFIERS}(?:get\s+|set\s+)?{name}\s*\([^()"'`]*\)\s*(?::[^{{]*)?\{{"#),
        format!(r"^{name}\s*(?::[^=]*)?=(?:[^=]|$)"),
    ]
}

/// Returns a pattern for the search tool that matches a superset of the lines that
/// [`DefinitionMatcher::matches`] accepts.
pub(super) fn search_pattern(name: &str) -> String {
    definition_patterns(name).join("|")
}

impl DefinitionMatcher {
    /// Creates a matcher for an identifier, given as a pattern.
    pub(super) fn new(name: &str) -> Self {
        Self(definition_patterns(name).map(|form| Regex::new(&form).expect("a valid pattern")))
    }

    /// Returns true if a line of this file defines the identifier.
    pub(super) fn matches(&self, path: &str, line: &str) -> bool {
        let [keyword, value, c, method, assignment] =
            self.0.each_ref().map(|form| form.is_match(line));
        let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
        match ending {
            "md" | "txt" | "rst" | "adoc" | "html" | "json" | "csv" | "lock" | "log" => false,
            "c" | "cc" | "cpp" | "cxx" | "h" | "hpp" | "java" | "cs" => {
                let other = pattern!(
                    r"^\s*(?:return|else|case|goto|throw|new|extern|delete)\b|^\s*(?:struct|class|enum|union)\s+\w+\s*;"
                );
                (keyword || c) && !other.is_match(line)
            }
            "js" | "mjs" | "cjs" | "jsx" | "ts" | "tsx" | "vue" | "svelte" | "php" | "sh"
            | "bash" => {
                let control = pattern!(r"^\s*(?:if|for|while|switch|catch|with|function|return)\b");
                keyword
                    || value
                    || method && !control.is_match(line)
                    || assignment && ending.ends_with("sh")
            }
            "py" | "pyi" | "rb" => keyword || assignment,
            _ => keyword || value,
        }
    }
}
