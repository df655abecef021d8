//! Line: a shell command line taken apart: every single command in it, wherever it hides, the files
//! that redirections touch, and whether anything in it was not understood.

mod confined;

use super::{
    carriers,
    expand::Scope,
    locale,
    word::{self, Word},
};
use crate::Workspace;
use confined::{has_line_breaks, is_comment, is_gap};
use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};
use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

/// Longer lines are not looked into.
const LONGEST: usize = 8 * 1024;
/// Nor what is nested deeper than this.
const DEEPEST: usize = 64;
/// Nor lines that change folder more often, since each time doubles where they may be.
const MOST_FOLDER_CHANGES: usize = 3;
/// Longest time that parsing a line may take; the grammar backtracks on some lines.
const PARSING_TIME: Duration = Duration::from_millis(500);

/// A command line, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    /// Every single command, also those inside substitutions, loops and functions.
    pub(crate) commands: Vec<Command>,
    /// Files that redirections write, as written.
    pub(crate) writes: Vec<String>,
    /// Files that redirections read, as written.
    pub(crate) reads: Vec<String>,
    /// Folders that `cd` changes to, as written, in order; at most the first three.
    pub(crate) folders: Vec<String>,
    /// Something in it was not understood: what was found is not all that it does.
    pub(crate) doubtful: bool,
}

/// One single command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Command {
    /// Its name. Plain, or the whole line is doubtful and the name may be empty.
    pub(crate) name: String,
    /// Its arguments.
    pub(crate) args: Vec<Word>,
    /// It runs what other text says, so its own words do not tell what it does.
    pub(crate) opaque: bool,
    /// The line says what it reads as input: it stands behind a pipe or a `<`.
    pub(crate) is_fed: bool,
    /// For `xargs`: the commands before it in a pipeline. Otherwise empty.
    pub(crate) input: Vec<Command>,
}

impl Command {
    /// Name and arguments, when all are certain.
    pub(crate) fn literal(&self) -> Option<Vec<&str>> {
        let args = self.args.iter().map(Word::literal);
        std::iter::once(Some(&*self.name)).chain(args).collect()
    }
}

impl Line {
    /// Take a command line apart. The parser is made here, so that nobody pays for it who runs no commands.
    pub(crate) fn parse(source: &str) -> Self {
        Self::parse_within(source, PARSING_TIME, None)
    }

    /// Like `parse`, for a line that runs confined from `cwd` if it only reads: also understands comments, several
    /// lines, conditions, variables of loops and patterns that stand for files.
    pub(crate) fn parse_confined(source: &str, cwd: &Path, workspace: &Workspace) -> Self {
        Self::parse_within(source, PARSING_TIME, Some(&mut Scope::new(cwd, workspace)))
    }

    /// Like `parse`, with the time that the grammar may take.
    fn parse_within(source: &str, time: Duration, mut scope: Option<&mut Scope<'_>>) -> Self {
        let is_bad = |c: char| is_hidden(c) && !(c == '\n' && scope.is_some());
        let mut line = Self {
            doubtful: source.len() > LONGEST
                || source.chars().any(is_bad)
                || ends_open(source)
                || !source.is_ascii() && !locale::reads_as_written(),
            ..Self::default()
        };
        if source.len() > LONGEST {
            return line;
        }
        let mut parser = Parser::new();
        let language = tree_sitter_bash::LANGUAGE.into();
        let tree = match parser.set_language(&language) {
            Ok(()) => tree_within(&mut parser, &in_ascii(source), time),
            Err(_) => None,
        };
        let Some(tree) = tree else {
            line.doubtful = true;
            return line;
        };
        let root = tree.root_node();
        line.doubtful |= root.has_error() || has_arithmetic(root, source);
        let mut covered = 0;
        line.walk(root, source, Place::default(), &mut covered, &mut scope);
        line.doubtful |= !is_gap(source, covered, source.len(), scope.is_some());
        line.doubtful |= line.commands.iter().any(|command| command.name.is_empty());
        line
    }

    /// Visit a node and all below it. `covered` is how far leaves have been seen: text between
    /// leaves that is not blank means that the parser skipped something.
    fn walk(
        &mut self,
        node: Node<'_>,
        source: &str,
        place: Place,
        covered: &mut usize,
        scope: &mut Option<&mut Scope<'_>>,
    ) {
        if place.depth > DEEPEST {
            self.doubtful = true;
            *covered = node.end_byte();
            return;
        }
        if node.child_count() == 0 {
            let is_next = is_gap(source, *covered, node.start_byte(), scope.is_some());
            self.doubtful |= node.is_missing() || !is_next;
            *covered = node.end_byte();
        }
        let mut within = place.below();
        match node.kind() {
            "program" | "list" | "redirected_statement" | "subshell" => {
                within.straight = place.straight;
                within.is_fed |= is_fed_by_file(node);
            }
            "command" => self.command(node, source, place, scope),
            "comment" if scope.is_some() => self.doubtful |= !is_comment(node, source),
            "test_command" if scope.is_some() => {
                self.doubtful |= !is_gap(source, *covered, node.start_byte(), true);
                *covered = node.end_byte();
                return self.condition(node, source, scope);
            }
            "pipeline" if scope.is_some() => {
                return self.pipeline(node, source, within, covered, scope);
            }
            "function_definition" if scope.is_some() => self.doubtful = true,
            // A call may give it input.
            "function_definition" => within.is_fed = true,
            "process_substitution" => {
                let text = source.get(node.byte_range()).unwrap_or_default();
                within.is_fed |= text.starts_with('>');
            }
            "compound_statement" => {
                // To bash `{ls` is a word.
                let text = source.get(node.byte_range()).unwrap_or_default();
                let inner = text.strip_prefix('{');
                self.doubtful |= inner.is_some_and(|inner| !inner.starts_with([' ', '\n']));
            }
            "file_redirect" => self.redirect(node, source),
            "command_substitution" => {
                // To the shell the next backtick ends what one began, within quotes and comments too; to the
                // parser it does not.
                let text = source.get(node.byte_range()).unwrap_or_default();
                self.doubtful |= text.starts_with('`');
            }
            "for_statement" => {
                let name = node.child_by_field_name("variable");
                let name = name.and_then(|name| source.get(name.byte_range()));
                self.doubtful |= !name.is_some_and(carriers::is_harmless_loop_variable);
                // To the grammar `select` is a `for`.
                let text = source.get(node.byte_range()).unwrap_or_default();
                self.doubtful |= !text.starts_with("for");
                let mut cursor = node.walk();
                if scope.is_some() {
                    return self.confined_loop(node, source, within, covered, scope);
                }
                for value in node.children_by_field_name("value", &mut cursor) {
                    self.doubtful |= word::value(value, source).is_err();
                }
            }
            "variable_assignment" => {
                let name = node.child_by_field_name("name");
                let name = name.and_then(|name| source.get(name.byte_range()));
                self.doubtful |= !name.is_some_and(carriers::is_harmless_variable);
                // With `+=` it has a value before.
                let mut cursor = node.walk();
                self.doubtful |= node.children(&mut cursor).any(|part| part.kind() == "+=");
                if let Some(value) = node.child_by_field_name("value") {
                    self.doubtful |= match (name, word::value(value, source)) {
                        (Some(name), Ok(value)) => !carriers::is_harmless_value(name, &value),
                        (None, _) | (_, Err(word::Unclear)) => true,
                    };
                }
            }
            "pipeline"
            | "do_group"
            | "while_statement"
            | "if_statement"
            | "elif_clause"
            | "else_clause"
            | "negated_command"
            | "command_name"
            | "word"
            | "number"
            | "raw_string"
            | "string"
            | "string_content"
            | "concatenation"
            | "simple_expansion"
            | "expansion"
            | "variable_name"
            | "special_variable_name"
            | "file_descriptor"
            | "variable_assignments" => {}
            _ if !node.is_named() => {}
            // Heredocs, tests, arithmetic, arrays, comments and whatever a later grammar brings.
            _ => self.doubtful = true,
        }
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            self.walk(child, source, within, covered, scope);
            within.is_fed |= node.kind() == "pipeline";
        }
    }

    fn command(
        &mut self,
        node: Node<'_>,
        source: &str,
        place: Place,
        scope: &mut Option<&mut Scope<'_>>,
    ) {
        let name = node
            .child_by_field_name("name")
            .and_then(|name| name.named_child(0))
            .filter(|name| name.kind() == "word")
            .and_then(|name| source.get(name.byte_range()))
            .filter(|name| is_plain_name(name))
            .unwrap_or_default();
        let mut args = Vec::new();
        let mut end = None;
        let mut cursor = node.walk();
        for arg in node.children_by_field_name("argument", &mut cursor) {
            // To the grammar `'a'\;` is two words.
            self.doubtful |= end == Some(arg.start_byte());
            end = Some(arg.end_byte());
            let words = match scope.as_deref_mut() {
                Some(scope) => {
                    let bases = bases(self, scope.cwd, scope.workspace);
                    scope.words(arg, source, &bases)
                }
                None => word::value(arg, source).map(|word| vec![word]),
            };
            match words {
                Ok(words) => args.extend(words),
                Err(word::Unclear) => {
                    self.doubtful = true;
                    args.push(Word::Dynamic);
                }
            }
        }
        if name == "cd" {
            match args.as_slice() {
                [Word::Literal(folder)]
                    if place.straight
                        && !folder.starts_with('-')
                        && self.folders.len() < MOST_FOLDER_CHANGES =>
                {
                    self.folders.push(folder.clone());
                }
                _ => self.doubtful = true,
            }
        }
        self.doubtful |= scope.is_some() && has_line_breaks(node, source, false);
        self.doubtful |= scope.is_some() && !Scope::has_room(self.commands.len());
        // These are judged by their words, which are known to run nothing or are refused.
        let is_judged = scope.is_some() && matches!(name, "awk" | "find" | "git" | "xargs");
        self.commands.push(Command {
            opaque: !is_judged && carriers::is_opaque(name, &args),
            name: name.to_owned(),
            args,
            is_fed: place.is_fed || is_fed_by_file(node),
            input: Vec::new(),
        });
    }

    fn redirect(&mut self, node: Node<'_>, source: &str) {
        // `{name}<file` sets a variable; to the grammar it is a word.
        let before = source.get(..node.start_byte()).unwrap_or_default();
        self.doubtful |= before.ends_with('}');
        self.doubtful |= is_descriptor_doubtful(node, source);
        let mut cursor = node.walk();
        let operator = node
            .children(&mut cursor)
            .find(|child| !child.is_named())
            .map_or("", |operator| operator.kind());
        let mut cursor = node.walk();
        let targets: Vec<Node<'_>> = node
            .children_by_field_name("destination", &mut cursor)
            .collect();
        // More than one: the grammar counts words as targets that the shell takes as a command.
        let target = match targets.as_slice() {
            [] if matches!(operator, "<&-" | ">&-") => return,
            [target] => word::value(*target, source),
            _ => Err(word::Unclear),
        };
        let Ok(Word::Literal(target)) = target else {
            self.doubtful = true;
            return;
        };
        match operator {
            // bash takes `>& -x` for `>&-` and a word `x`, and expands the target of `>&'$(rm x)'` twice.
            ">&" | "<&" => {
                let text = source.get(node.byte_range()).unwrap_or_default();
                let text = text.trim_start_matches(|c: char| c.is_ascii_digit());
                let copied = text.strip_prefix(operator).map(str::as_bytes);
                self.doubtful |= !matches!(copied, Some([b'0'..=b'9' | b'-']));
            }
            ">" | ">>" | ">|" | "&>" | "&>>" => {
                if target != "/dev/null" {
                    self.writes.push(target);
                }
            }
            "<" => {
                if target != "/dev/null" {
                    self.reads.push(target);
                }
            }
            _ => self.doubtful = true,
        }
    }
}

/// Returns true if the descriptor in front of a redirection is an argument to the shell, or the other way round, or if
/// it is the standard input, which may be copied with any operator.
fn is_descriptor_doubtful(redirect: Node<'_>, source: &str) -> bool {
    #[cfg(test)]
    if IGNORES_DESCRIPTORS.get() {
        return false;
    }
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let mut cursor = redirect.walk();
    let mut children = redirect.children(&mut cursor);
    match children.find(|child| child.kind() == "file_descriptor") {
        // To the grammar `-fx2>&1` is a redirection of `-fx2`.
        Some(descriptor) => {
            let text = source.get(descriptor.byte_range()).unwrap_or_default();
            // Numbers that are too large for a descriptor are words to bash.
            !matches!(text.as_bytes(), [b'1'..=b'9'])
        }
        // To the grammar the `0` of `0>x` is an argument.
        None => {
            let before = source.get(..redirect.start_byte()).unwrap_or_default();
            let is_separator = |c: char| c.is_whitespace() || ";&|()<>".contains(c);
            is_number(before.rsplit(is_separator).next().unwrap_or_default())
        }
    }
}

/// Where a node is.
#[derive(Clone, Copy)]
struct Place {
    depth: usize,
    /// On the line itself, run once, so that a `cd` here is one change of folder.
    straight: bool,
    /// Behind a pipe or a `<`.
    is_fed: bool,
}

impl Default for Place {
    fn default() -> Self {
        Self {
            depth: 0,
            straight: true,
            is_fed: false,
        }
    }
}

impl Place {
    fn below(self) -> Self {
        Self {
            depth: self.depth + 1,
            straight: false,
            is_fed: self.is_fed,
        }
    }
}

/// Whether a redirection gives what stands in the statement its input.
fn is_fed_by_file(statement: Node<'_>) -> bool {
    let mut cursor = statement.walk();
    let mut children = statement.children(&mut cursor);
    children.any(|child| {
        let mut cursor = child.walk();
        let mut parts = child.children(&mut cursor);
        child.kind() == "file_redirect" && parts.any(|part| part.kind().starts_with('<'))
    })
}

/// The syntax tree, unless that takes longer than `time`.
fn tree_within(parser: &mut Parser, text: &[u8], time: Duration) -> Option<Tree> {
    let start = Instant::now();
    let mut is_late = |_: &ParseState| match start.elapsed() < time {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    };
    let options = ParseOptions::new().progress_callback(&mut is_late);
    parser.parse_with_options(
        &mut |at, _| text.get(at..).unwrap_or_default(),
        None,
        Some(options),
    )
}

#[cfg(test)]
thread_local! {
    /// Takes the check for arithmetic out, to show that the tests against bash find what it is for.
    pub(super) static IGNORES_ARITHMETIC: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    /// Takes the check for words that look like descriptors out, for the same purpose.
    pub(super) static IGNORES_DESCRIPTORS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Whether the line holds `((`, `$((` or `$[` where bash may read arithmetic. Arithmetic runs the commands
/// in the values of variables (`a[$(rm x)]`), and the grammar takes some of it for nested subshells.
fn has_arithmetic(root: Node<'_>, source: &str) -> bool {
    #[cfg(test)]
    if IGNORES_ARITHMETIC.get() {
        return false;
    }
    let mut code = source.as_bytes().to_vec();
    let mut open = vec![root];
    while let Some(node) = open.pop() {
        let text = source.get(node.byte_range()).unwrap_or_default();
        let is_text = match node.kind() {
            "raw_string" => true,
            // `((` is plain text in a string; `$((` and `$[` are not.
            "string" if text.contains("$((") || text.contains("$[") => return true,
            "string_content" => true,
            _ => false,
        };
        if is_text && let Some(code) = code.get_mut(node.byte_range()) {
            code.fill(b' ');
        }
        let mut cursor = node.walk();
        open.extend(node.children(&mut cursor));
    }
    code.windows(2).any(|pair| pair == b"((" || pair == b"$[")
}

/// The line as the grammar is shown it, byte for byte as long. To the shell whatever is not ASCII is
/// part of a word; the grammar's scanner, which is C, looks such characters up past a table's end.
fn in_ascii(source: &str) -> Vec<u8> {
    let mask = |byte: u8| if byte.is_ascii() { byte } else { b'%' };
    source.bytes().map(mask).collect()
}

fn is_blank(source: &str, from: usize, to: usize) -> bool {
    from >= to
        || source
            .get(from..to)
            .is_some_and(|gap| gap.chars().all(|c| c == ' ' || c == '\t'))
}

/// Where the commands of a line may run: in each folder that it changes to, or where they began if
/// the change fails. `cd a/..` leads back by the names, which is what a shell goes by, and perhaps
/// elsewhere by the links, which is what the system goes by.
pub(super) fn bases(line: &Line, cwd: &Path, workspace: &Workspace) -> Vec<PathBuf> {
    let mut bases = vec![cwd.to_owned()];
    for folder in &line.folders {
        for at in 0..bases.len() {
            let by_links = bases[at].join(folder);
            let by_names = workspace.absolute(&by_links);
            for base in [by_names, by_links] {
                if !bases.contains(&base) {
                    bases.push(base);
                }
            }
        }
    }
    bases
}

/// A line that would swallow what is written after it.
fn ends_open(source: &str) -> bool {
    source.trim_end_matches([' ', '\t']).ends_with('\\') || source.ends_with('\\')
}

/// The name of a program as an honest line has it: no quotes, no escapes, no patterns.
fn is_plain_name(name: &str) -> bool {
    name.chars()
        .all(|c| c.is_ascii_alphanumeric() || "_-./+:@".contains(c))
}

/// Characters that a person does not see, or sees as something else; and line breaks, after which
/// the shell begins a new command.
pub(crate) fn is_hidden(c: char) -> bool {
    (c.is_control() && c != '\t')
        || (c.is_whitespace() && !c.is_ascii())
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_is_doubtful_outside_plain_text() {
        for line in [
            "((x))",
            "ls; ((x))",
            "!((x))",
            "! ((x))",
            "(((x)))",
            "echo $((x))",
            "echo $[x]",
            "echo \"$((x))\"",
            "echo \"$y$[x]\"",
            "echo \"a $[x] $y\"",
            "for ((;;)); do ls; done",
            "x=$((y))",
        ] {
            assert!(Line::parse(line).doubtful, "{line}");
        }
        for line in ["grep '((' a", "grep \"f((x\" a", "( (ls) )", "echo $(pwd)"] {
            assert!(!Line::parse(line).doubtful, "{line}");
        }
    }

    #[test]
    fn a_line_that_parses_too_long_is_doubtful() {
        let source = "ls a b c; ".repeat(800);
        assert!(!Line::parse_within(&source, Duration::from_secs(60), None).doubtful);
        assert!(Line::parse_within(&source, Duration::ZERO, None).doubtful);
    }

    #[test]
    fn only_the_first_changes_of_folder_are_followed() {
        let source: Vec<String> = (0..40).map(|at| format!("cd d{at}")).collect();
        let line = Line::parse(&format!("{};ls", source.join(";")));
        assert!(line.doubtful);
        assert_eq!(line.folders, ["d0", "d1", "d2"]);
    }
}
