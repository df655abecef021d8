//! Parses slash commands that expand to prompt text, written by the user or kept in a project. They grant no
//! permissions: the text is sent as if the user had typed it.

use std::{fmt::Write as _, sync::Arc};

/// Slash command that expands to prompt text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomCommand {
    /// Name after the slash: letters, digits, `-` and `_`.
    pub name: String,
    /// Description for the list of commands.
    pub description: String,
    /// Hint for the arguments.
    pub argument_hint: Option<String>,
    template: Arc<str>,
}

/// Maximum length of a displayed description or hint. Unit: characters.
const MAX_LINE_CHARS: usize = 120;

impl CustomCommand {
    /// Parses a Markdown file: an optional front matter between two lines of `---`, of which `description`
    /// and `argument-hint` are used, then the prompt. Returns `None` if the prompt is empty or the name is
    /// invalid.
    #[must_use]
    pub fn parse(name: &str, file: &str) -> Option<Self> {
        if !is_command_name(name) {
            return None;
        }
        let (head, text) = split_head(file);
        let text = text.trim();
        let field = |key: &str| {
            let lines = head.lines().filter_map(|line| line.split_once(':'));
            let found = lines.into_iter().find(|(it, _)| it.trim() == key)?;
            Some(truncate_line(unquote(found.1.trim()))).filter(|it| !it.is_empty())
        };
        let first = || truncate_line(text.lines().next().unwrap_or_default());
        (!text.is_empty()).then(|| Self {
            name: name.to_owned(),
            description: field("description").unwrap_or_else(first),
            argument_hint: field("argument-hint"),
            template: text.into(),
        })
    }

    /// Returns `/init`, which asks the model to write an AGENTS.md.
    #[must_use]
    pub fn init() -> Self {
        Self {
            name: "init".to_owned(),
            description: "Write an AGENTS.md for this project".to_owned(),
            argument_hint: Some("[WHAT TO MIND]".to_owned()),
            template: include_str!("init.md").trim().into(),
        }
    }

    /// Expands the prompt: `$ARGUMENTS` becomes all of `args`, `$1` to `$9` single arguments, which may be
    /// quoted. A text without placeholders gets the arguments appended.
    #[must_use]
    pub fn expand(&self, args: &str) -> String {
        let args = args.trim();
        let words = split_args(args);
        let mut filled = String::with_capacity(self.template.len() + args.len());
        let mut rest = &*self.template;
        let mut has_place = false;
        while let Some((before, after)) = rest.split_once('$') {
            filled.push_str(before);
            let digit = after.chars().next().and_then(|c| c.to_digit(10));
            if let Some(tail) = after.strip_prefix("ARGUMENTS") {
                filled.push_str(args);
                (rest, has_place) = (tail, true);
            } else if let Some(place @ 1..) = digit {
                let word = words.get(place as usize - 1);
                filled.push_str(word.map_or("", String::as_str));
                (rest, has_place) = (&after[1..], true);
            } else {
                filled.push('$');
                rest = after;
            }
        }
        filled.push_str(rest);
        if !has_place && !args.is_empty() {
            let _ = write!(filled, "\n\n{args}");
        }
        filled
    }
}

fn is_command_name(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    (1..=64).contains(&name.len()) && name.chars().all(is_letter)
}

/// Splits a file into its front matter, between two lines of `---`, and the rest.
fn split_head(file: &str) -> (&str, &str) {
    let file = file.strip_prefix('\u{feff}').unwrap_or(file);
    let is_rule = |line: &str| line.trim_end() == "---";
    let mut lines = file.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    if !is_rule(first) {
        return ("", file);
    }
    let mut at = first.len();
    for line in lines {
        if is_rule(line) {
            return (&file[first.len()..at], &file[at + line.len()..]);
        }
        at += line.len();
    }
    ("", file)
}

fn unquote(text: &str) -> &str {
    let inside = |quote| text.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or_else(|| inside('\'')).unwrap_or(text)
}

/// Returns text as one short line without control characters, which could garble a list.
fn truncate_line(text: &str) -> String {
    let plain = text.trim().trim_start_matches('#').trim();
    let plain = plain.chars().filter(|c| !c.is_control());
    let mut line: String = plain.clone().take(MAX_LINE_CHARS).collect();
    if plain.count() > MAX_LINE_CHARS {
        line.push('…');
    }
    line
}

/// Splits arguments at whitespace outside quotes.
fn split_args(args: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in args.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if matches!(c, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            Some(_) | None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse_command(file: &str) -> CustomCommand {
        CustomCommand::parse("x", file).unwrap()
    }

    #[test]
    fn front_matter_gives_description_and_hint() {
        let file = "---\r\ndescription: \"Look over a change\"\r\nallowed-tools: shell\r\nargument-hint: [FILE]\r\n---\r\n\r\nLook over $1.\r\n";
        let read = parse_command(file);
        assert_eq!(read.description, "Look over a change");
        assert_eq!(read.argument_hint.as_deref(), Some("[FILE]"));
        assert_eq!(read.expand("a.rs"), "Look over a.rs.");
    }

    #[test]
    fn first_line_is_default_description() {
        let read = parse_command("# Tests\n\nRun the tests.\n---\nAll of them.");
        assert_eq!(read.description, "Tests");
        assert_eq!(read.argument_hint, None);
        assert_eq!(
            read.expand(""),
            "# Tests\n\nRun the tests.\n---\nAll of them."
        );
        // An unterminated front matter is prompt text; a long line is cut, and control characters are
        // removed.
        let read = parse_command(&format!("---\n{}\u{1b}[2J", "é".repeat(200)));
        assert_eq!(read.description, "---");
        let read = parse_command(&format!("{}\u{1b}", "é".repeat(200)));
        assert_eq!(read.description, format!("{}…", "é".repeat(120)));
    }

    #[test]
    fn arguments_fill_placeholders() {
        for (text, args, expected) in [
            ("Do $ARGUMENTS now", " a  b ", "Do a  b now"),
            ("$1 and $2, not $3.", "a 'b c'", "a and b c, not ."),
            ("$2 then $1", "one \"two three\"", "two three then one"),
            ("costs $0, $x or $", "", "costs $0, $x or $"),
            ("Do it.", "but slowly", "Do it.\n\nbut slowly"),
            ("Do it.", " ", "Do it."),
            // Arguments are not expanded again.
            ("$1 $2", "$2 $ARGUMENTS", "$2 $ARGUMENTS"),
            ("$12", "a", "a2"),
        ] {
            assert_eq!(
                parse_command(text).expand(args),
                expected,
                "{text:?} with {args:?}"
            );
        }
    }

    #[test]
    fn invalid_name_or_empty_file_is_none() {
        for name in ["", "a b", "a/b", "ä", "a.b", "a:b", &"a".repeat(65)] {
            assert_eq!(CustomCommand::parse(name, "Do it."), None, "{name:?}");
        }
        for file in ["", " \n", "---\ndescription: x\n---\n"] {
            assert_eq!(CustomCommand::parse("x", file), None, "{file:?}");
        }
    }

    #[test]
    fn init_command_appends_arguments() {
        let text = CustomCommand::init().expand("the tests are slow");
        assert!(text.contains("AGENTS.md"), "{text}");
        assert!(text.ends_with("\n\nthe tests are slow"), "{text}");
    }

    proptest! {
        /// Arguments are inserted verbatim, and nothing else is added.
        #[test]
        fn arguments_are_inserted_verbatim(args in "[^\u{0}]{0,40}", before in "[a-z ]{0,5}", after in "[a-z ]{0,5}") {
            let text = format!("<{before}$ARGUMENTS{after}>");
            let expected = format!("<{before}{}{after}>", args.trim());
            prop_assert_eq!(parse_command(&text).expand(&args), expected);
        }

        /// No file makes the parser panic.
        #[test]
        fn any_file_parses_without_panic(file in "(---\n)?(.|\n|description:){0,60}(---\n)?(.|\n|\\$){0,20}", args in ".{0,20}") {
            if let Some(read) = CustomCommand::parse("x", &file) {
                prop_assert!(read.description.chars().count() <= 121);
                let _ = read.expand(&args);
            }
        }
    }
}
