//! Parses rules, and rejects those that can never match.

use super::{ExtraArgs, IGNORES_CASE, Rule, RulePattern, SHELL_GROUP, resolve_pattern_links};
use crate::{
    glob_matcher::compile_glob,
    policy::{command_line::CommandLine, known_commands},
};

pub(super) fn parse_rule(text: &str) -> Result<Rule, String> {
    let (tool, inside) = match text.split_once('(') {
        None => (text, None),
        Some((tool, rest)) => match rest.strip_suffix(')') {
            Some(inside) => (tool, Some(inside.trim())),
            None => {
                return Err(
                    "the bracket is not closed: write it like shell(cargo test:*)".to_owned(),
                );
            }
        },
    };
    if tool.is_empty() {
        return Err("the tool is missing: write it like edit or shell(cargo test:*)".to_owned());
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.:/".contains(c);
    if let Some(bad) = tool.chars().find(|c| !is_name(*c)) {
        return Err(format!(
            "{bad:?} cannot be in a tool's name: write it like edit(src/**)"
        ));
    }
    let pattern = match inside {
        None => None,
        Some("" | "*" | ":*" | ":+") => {
            return Err(format!("nothing to compare with: for all, write {tool}"));
        }
        Some(inside) if tool == SHELL_GROUP => Some(parse_command_pattern(inside)?),
        Some(inside) => Some(parse_file_pattern(inside)?),
    };
    Ok(Rule {
        copied_folder: None,
        text: text.to_owned(),
        tool: tool.to_owned(),
        pattern,
    })
}

fn parse_command_pattern(inside: &str) -> Result<RulePattern, String> {
    let (plain, more) = match (inside.strip_suffix(":*"), inside.strip_suffix(":+")) {
        (Some(plain), _) => (plain, ExtraArgs::Any),
        (None, Some(plain)) => (plain, ExtraArgs::Known),
        (None, None) => (inside, ExtraArgs::Nothing),
    };
    let name = plain.split_whitespace().next().unwrap_or_default();
    if name.contains(':') && !name.contains('/')
        || name.ends_with([':', '/'])
        || more != ExtraArgs::Nothing && plain.ends_with(':')
    {
        return Err(
            "it can never match: write the program, blanks between the words, and `:*` after the last for any further arguments, like shell(git push:*)"
                .to_owned(),
        );
    }
    let line = CommandLine::parse(plain);
    let [command] = line.commands.as_slice() else {
        return Err(
            "it must be a single command: one rule for each, like shell(cargo test:*)".to_owned(),
        );
    };
    let clear = !line.is_uncertain && line.output_files.is_empty() && line.input_files.is_empty();
    let words = command.literal_words().filter(|_| clear);
    // A function, a loop or `coproc` holds more than the words of its command.
    let without_quotes = |text: &str| text.replace(['\'', '"', '\\', ' ', '\t'], "");
    if words
        .as_ref()
        .is_some_and(|words| without_quotes(&words.concat()) != without_quotes(plain))
    {
        return Err(
            "it must be a command and nothing else: write it like shell(cargo test:*)".to_owned(),
        );
    }
    match words {
        Some(words) if more == ExtraArgs::Known && known_commands::find_known_command(&words).is_none() => Err(format!(
            "no options are known of {plain}, so `:+` cannot be used: write shell({plain}) for exactly this, or shell({plain}:*) for any further arguments"
        )),
        Some(words) => Ok(RulePattern::Command {
            words: words.into_iter().map(str::to_owned).collect(),
            extra_args: more,
        }),
        None => Err(
            "it must be plain words, without variables, patterns or redirections; `:*` at the end stands for any further arguments, like shell(cargo test:*)"
                .to_owned(),
        ),
    }
}

fn parse_file_pattern(inside: &str) -> Result<RulePattern, String> {
    if inside.starts_with('~') {
        return Err(
            "`~` is not known here: write the whole path, like read(/home/me/.ssh/**)".to_owned(),
        );
    }
    let written = inside;
    let inside = inside.strip_prefix("./").unwrap_or(inside);
    let parts: Vec<&str> = inside.trim_end_matches('/').split('/').collect();
    let is_never = |at: usize, part: &str| matches!(part, "." | "..") || part.is_empty() && at > 0;
    let mut all = parts.iter().enumerate();
    let is_quoted = inside.starts_with(['"', '\'', '$']);
    let escapes_letter = |part: &str| part.starts_with(|c: char| c.is_ascii_alphanumeric());
    let is_escaped = inside.split('\\').skip(1).any(escapes_letter);
    if [":", ":*", ":+"].iter().any(|end| inside.ends_with(end)) {
        return Err(
            "`:*` is for commands: write files like read(secrets/**); `**` stands for everything"
                .to_owned(),
        );
    }
    let count = |bracket: char| inside.matches(bracket).count();
    if count('(') != count(')') && !inside.contains(['[', '\\']) {
        return Err(
            "its brackets are not balanced: write it like read(secrets/**), or a bracket of a name like [)]"
                .to_owned(),
        );
    }
    let is_doubled = written.starts_with("./") && inside.starts_with('/');
    if is_quoted
        || is_escaped
        || is_doubled
        || matches!(inside, "" | "/")
        || all.any(|(at, part)| is_never(at, part))
    {
        return Err(
            "it can never match: write a path without `.`, `..`, empty parts, quotes, backslashes and variables, like read(secrets/**); `**` stands for everything"
                .to_owned(),
        );
    }
    let whole = match inside.strip_suffix('/') {
        Some(folder) => format!("{folder}/**"),
        None => inside.to_owned(),
    };
    let matcher = |pattern: &str| {
        let glob = compile_glob(pattern, |glob| {
            glob.literal_separator(true).case_insensitive(IGNORES_CASE);
        });
        glob.map_err(|error| format!("{error}: write it like edit(src/**)"))
    };
    let mut globs = vec![matcher(&whole)?];
    if let Some(resolved) = resolve_pattern_links(&whole) {
        globs.push(matcher(&resolved)?);
    }
    let below = globs
        .iter()
        .map(|glob| matcher(&format!("{}/**", glob.glob())));
    Ok(RulePattern::Files {
        below: below.collect::<Result<_, _>>()?,
        globs,
        is_relative: !inside.starts_with('/'),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_that_never_matches_is_error() {
        for pattern in [
            ".", "./", "./.", "sub//x", "sub/./x", "../x", "/", "/a//b", "/a/./b", "\"x\"", "'x'",
            "$PWD/x", ".//x", "a\\b", ".env:*", "src/*:*", "x:+", "x:", "**/.env)", "(x",
        ] {
            assert!(
                format!("read({pattern})").parse::<Rule>().is_err(),
                "{pattern}"
            );
        }
        for pattern in [
            "**", "x/", "./x", ".env", "**/.env", "/a/b/", "a$b", "a (1)", "a[)]", "C:/x",
        ] {
            assert!(
                format!("read({pattern})").parse::<Rule>().is_ok(),
                "{pattern}"
            );
        }
    }

    #[test]
    fn command_that_never_matches_is_error() {
        for command in [
            "rm:",
            "rm::*",
            "git:push:*",
            "rm/:*",
            "rm:*)",
            "rm:*:*",
            "git push::*",
            "rm:x",
            "f() { make; }",
            "make 2>1",
            "make;",
            "! make",
            "(make)",
        ] {
            assert!(
                format!("shell({command})").parse::<Rule>().is_err(),
                "{command}"
            );
        }
        for command in [
            "scp a host:",
            "./test:unit:*",
            "npm run test:unit:*",
            "rm",
            "git commit -m 'a; \"b\" c'",
        ] {
            assert!(
                format!("shell({command})").parse::<Rule>().is_ok(),
                "{command}"
            );
        }
    }

    #[test]
    fn errors_explain_expected_form() {
        let reason = |text: &str| text.parse::<Rule>().unwrap_err().to_string();
        for (text, expected) in [
            (
                "",
                "invalid rule \"\": the tool is missing: write it like edit or shell(cargo test:*)",
            ),
            (
                "(x)",
                "invalid rule \"(x)\": the tool is missing: write it like edit or shell(cargo test:*)",
            ),
            (
                "shell(ls",
                "invalid rule \"shell(ls\": the bracket is not closed: write it like shell(cargo test:*)",
            ),
            (
                "read(sub/../x)",
                "invalid rule \"read(sub/../x)\": it can never match: write a path without `.`, `..`, empty parts, quotes, backslashes and variables, like read(secrets/**); `**` stands for everything",
            ),
            (
                "shell(*)",
                "invalid rule \"shell(*)\": nothing to compare with: for all, write shell",
            ),
            (
                "edit()",
                "invalid rule \"edit()\": nothing to compare with: for all, write edit",
            ),
            (
                "my tool",
                "invalid rule \"my tool\": ' ' cannot be in a tool's name: write it like edit(src/**)",
            ),
            (
                "shell(a && b)",
                "invalid rule \"shell(a && b)\": it must be a single command: one rule for each, like shell(cargo test:*)",
            ),
            (
                "read(~/.ssh)",
                "invalid rule \"read(~/.ssh)\": `~` is not known here: write the whole path, like read(/home/me/.ssh/**)",
            ),
        ] {
            assert_eq!(reason(text), expected);
        }
        assert!(reason("shell(ls > x)").contains("plain words"));
        assert!(reason("shell(ls $x)").contains("plain words"));
        assert!(reason("edit(src/[)").contains("write it like edit(src/**)"));
    }
}
