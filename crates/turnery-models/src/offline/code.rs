//! Code: what a definition looks like in common languages, the comment above it, and its signature.

use super::rules::pattern;

/// Words that begin a definition.
const KEYWORDS: &str = "fn|struct|enum|trait|type|mod|const|static|union|class|interface|def|func|function|namespace|record|protocol|typedef|module|object|fun|let|var";

/// A search pattern for where `name` is defined.
pub(super) fn definition_of(name: &str) -> String {
    let name = regex::escape(name);
    format!(
        r"\b({KEYWORDS})\s+(\([^)]*\)\s*|mut\s+|class\s+)?{name}\b|macro_rules!\s*{name}\b|#define\s+{name}\b|^\s*(export\s+)?{name}\s*[:=]\s*(async\s*)?(function\b|\([^)]*\)\s*=>)|^[A-Za-z_][\w *]*[ *]{name} *\(|\btypedef\b.*[\s*}}]{name}\s*;|^\}}\s*{name}\s*;|^[a-z][\w ]*[ *]{name}(\[[^\]]*\])?\s*="
    )
}

/// A search pattern for every definition.
pub(super) fn any_definition() -> &'static str {
    r"^\s*(pub(\([^)]*\))?\s+|export\s+|default\s+|async\s+|unsafe\s+|const\s+|public\s+|private\s+|protected\s+|static\s+|abstract\s+|final\s+)*((fn|struct|enum|trait|mod|class|interface|def|func|function|namespace|record|macro_rules!)\s+[\w<(]|impl\b)"
}

/// What a line defines, or none: the word for it, as `struct` or `function`.
pub(super) fn kind(line: &str, name: &str) -> &'static str {
    let before = line.find(name).map_or(line, |at| &line[..at]);
    let word = before
        .split(|c: char| !(c.is_alphanumeric() || c == '!' || c == '#'))
        .rfind(|word| {
            KEYWORDS.split('|').any(|keyword| keyword == *word)
                || matches!(*word, "macro_rules!" | "#define" | "impl")
        });
    match word {
        Some("fn" | "def" | "func" | "function" | "fun") => "function",
        Some("struct") => "struct",
        Some("enum") => "enum",
        Some("trait") => "trait",
        Some("type" | "typedef") => "type",
        Some("mod" | "module" | "namespace") => "module",
        Some("static") if line.contains('(') && !line.contains('=') => "function",
        Some("const" | "static") => "constant",
        Some("union") => "union",
        Some("class" | "record" | "object") => "class",
        Some("interface" | "protocol") => "interface",
        Some("macro_rules!" | "#define") => "macro",
        Some("let" | "var") => "variable",
        Some("impl") => "implementation",
        None if line.contains(&format!("{name}(")) => "function",
        Some(_) | None => "definition",
    }
}

/// How good a definition is as the first answer: types and functions before modules and variables,
/// code before its tests.
pub(super) fn rank(path: &str, line: &str, name: &str) -> (u8, bool, usize) {
    let place = match kind(line, name) {
        "struct" | "enum" | "trait" | "class" | "interface" | "union" => 0,
        "function" | "type" | "macro" => 1,
        "constant" | "definition" | "implementation" => 2,
        "module" => 3,
        _ => 4,
    };
    (place, is_test(path), line.len() - line.trim_start().len())
}

/// Whether a definition begins the line, as it does in code but seldom in prose and in strings.
pub(super) fn is_definition(path: &str, line: &str, name: &str) -> bool {
    let form = pattern!(
        r"^\s*(pub(\([^)]*\))?\s+|[a-z]+\s+){0,4}(fn|struct|enum|trait|type|mod|const|static|union|class|interface|def|func|function|namespace|record|protocol|typedef|module|object|fun|let|var|macro_rules!)\s|^\s*#\s*define\s|^\s*(export\s+)?\w+\s*[:=]"
    );
    // `let Name { a, b } = it` takes a value apart.
    let takes_apart = |start: &str| {
        line.trim_start().starts_with("let ")
            && start.trim_end().ends_with(name)
            && !start.contains('=')
    };
    let taken = line
        .split_once(['{', '('])
        .is_some_and(|(start, _)| takes_apart(start));
    !path.ends_with(".md")
        && !is_comment(line)
        && !taken
        && (form.is_match(line) || (is_c(path) && is_c_definition(line)))
}

/// Whether a file is written in C or C++.
pub(super) fn is_c(path: &str) -> bool {
    pattern!(r"\.(c|cc|cpp|cxx|h|hpp)$").is_match(path)
}

/// A declaration, which ends with a semicolon, defines no function; nor does a call.
fn is_c_definition(line: &str) -> bool {
    let line = line.trim();
    let declares = line.ends_with(");") && !line.contains(['{', '=']);
    !declares && !pattern!(r"^(return|else|goto|case)\b").is_match(line)
}

/// Whether a file holds tests.
pub(super) fn is_test(path: &str) -> bool {
    path.split('/')
        .any(|part| part.contains("test") || part == "benches")
}

/// Whether a line only speaks about code.
pub(super) fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    ["//", "/*", "* ", "*/", "# ", "--", "<!--"]
        .iter()
        .any(|mark| line.starts_with(mark))
        || line == "*"
}

/// The comment that belongs to the definition on `line`, without its marks.
pub(super) fn comment(lines: &[(usize, &str)], line: usize) -> Vec<String> {
    let Some(at) = lines.iter().position(|(number, _)| *number == line) else {
        return Vec::new();
    };
    let mut found: Vec<String> = Vec::new();
    for (_, text) in lines[..at].iter().rev() {
        let text = text.trim();
        let attribute = text.starts_with("#[") || text.starts_with('@');
        let mark = pattern!(r"^(///?!?|/\*\*?|\*/|\*|#|--)\s?");
        if attribute {
            continue;
        }
        if !mark.is_match(text)
            || pattern!(r"^#(!|\s*(include|define|if|ifdef|ifndef|endif|else|pragma|undef)\b)")
                .is_match(text)
        {
            break;
        }
        let inner = mark.replace(text, "");
        found.push(inner.trim_end_matches("*/").trim_end().to_owned());
    }
    found.reverse();
    if found.iter().all(|text| text.is_empty()) {
        found = docstring(&lines[at..]);
    }
    let end = found.iter().rposition(|text| !text.is_empty());
    found.truncate(end.map_or(0, |end| end + 1));
    found
        .into_iter()
        .skip_while(|text| text.is_empty())
        .collect()
}

fn docstring(lines: &[(usize, &str)]) -> Vec<String> {
    let mut body = lines.iter().skip(1).take(20).map(|(_, text)| text.trim());
    let Some(first) = body
        .next()
        .filter(|text| text.starts_with(r#"""""#) || text.starts_with("'''"))
    else {
        return Vec::new();
    };
    let quote = if first.starts_with('"') {
        r#"""""#
    } else {
        "'''"
    };
    let first = &first[3..];
    if let Some(whole) = first.strip_suffix(quote) {
        return vec![whole.to_owned()];
    }
    let mut found = vec![first.to_owned()];
    for text in body {
        if let Some(last) = text.strip_suffix(quote) {
            found.push(last.to_owned());
            return found;
        }
        found.push(text.to_owned());
    }
    found
}

/// The definition from its line to where its body begins, at most eight lines; a short type whole.
pub(super) fn signature(lines: &[(usize, &str)], line: usize) -> String {
    let rest: Vec<&str> = lines
        .iter()
        .skip_while(|(number, _)| *number != line)
        .map(|(_, text)| *text)
        .collect();
    let indent = rest
        .first()
        .map_or(0, |text| text.len() - text.trim_start().len());
    let cut = |text: &str| {
        let blank = text.len() - text.trim_start().len();
        text[blank.min(indent)..].trim_end().to_owned()
    };
    if let Some(first) = rest.first()
        && first.trim_start().starts_with("#define")
        && !first.ends_with('\\')
    {
        return cut(first);
    }
    let opened = rest.iter().take(8).position(|text| {
        let text = text.trim_end();
        text.ends_with(['{', ';', ':'])
            || text.ends_with("=>")
            || text.ends_with("{}")
            || text.ends_with('}')
    });
    let head = opened.map_or(1, |at| at + 1);
    let is_type =
        pattern!(r"\b(struct|enum|union|interface|type)\b").is_match(rest.first().unwrap_or(&""));
    let opens = rest
        .get(head - 1)
        .is_some_and(|text| text.trim_end().ends_with('{'));
    let closed = rest.iter().take(16).position(|text| {
        text.starts_with('}') || (text.trim_start().starts_with('}') && cut(text).starts_with('}'))
    });
    let end = match closed {
        Some(at) if is_type && opens => at + 1,
        Some(_) | None => head,
    };
    let text = rest
        .iter()
        .take(end)
        .map(|text| cut(text))
        .collect::<Vec<_>>()
        .join("\n");
    text.strip_suffix("\n{").unwrap_or(&text).to_owned()
}

/// The name that a fenced block gives to the language of a file.
pub(super) fn language(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default() {
        "rs" => "rust",
        "py" | "pyi" => "python",
        "js" | "mjs" | "cjs" | "jsx" => "javascript",
        "ts" | "tsx" => "typescript",
        "go" => "go",
        "c" | "h" => "c",
        "cc" | "cpp" | "cxx" | "hpp" => "cpp",
        "java" => "java",
        "rb" => "ruby",
        "sh" | "bash" => "sh",
        "toml" => "toml",
        "json" => "json",
        "yml" | "yaml" => "yaml",
        _ => "",
    }
}
