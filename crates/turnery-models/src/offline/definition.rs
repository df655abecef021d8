//! Recognises lines that define a name in common languages, by their form.

use super::conversation::pattern;
use regex::Regex;

const MODIFIERS: &str = r#"(?:(?:pub(?:\([^)]*\))?|export|default|async|unsafe|extern|"[^"]*"|const|static|public|private|protected|internal|abstract|final|sealed|override|virtual|open|data|inline|declare|readonly|partial|suspend|local|constexpr)\s+)*"#;

/// Any name.
pub(super) const ANY: &str = r"[A-Za-z_$][\w$]*";

/// What may stand behind a name.
const END: &str = r"(?:[^\w$]|$)";

/// Forms of a definition of one name, by keyword, as a value, in C, as a method, by assignment. Which
/// of them hold depends on the language of the file.
pub(super) struct Definition([Regex; 5]);

/// `name` is a pattern.
fn forms(name: &str) -> [String; 5] {
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

/// A pattern for the search tool that matches all lines that [`Definition::matches`] accepts, and more.
pub(super) fn search_pattern(name: &str) -> String {
    forms(name).join("|")
}

impl Definition {
    /// `name` is a pattern.
    pub(super) fn of(name: &str) -> Self {
        Self(forms(name).map(|form| Regex::new(&form).expect("a valid pattern")))
    }

    /// Whether a line of this file defines the name.
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
