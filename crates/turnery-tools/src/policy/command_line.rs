//! Parses shell command lines into simple commands, redirected files and changes of folder, and flags lines
//! that are not fully understood.

mod confined;

use super::{
    command_wrappers, locale,
    shell_word::{self, ShellWord},
    word_expansion::ExpansionScope,
};
use crate::Workspace;
use confined::{has_line_breaks, is_bash_comment, is_empty_gap};
use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};
use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

/// Maximum length of a line; longer lines are not parsed. Unit: bytes.
const MAX_LINE_BYTES: usize = 8 * 1024;
/// Maximum nesting depth; deeper nodes make the line uncertain.
const MAX_NESTING: usize = 64;
/// Maximum number of folder changes in a line: each one triples the folders that its commands may run in.
const MAX_FOLDER_CHANGES: usize = 3;
/// Maximum time for parsing a line; the grammar backtracks on some lines.
const PARSE_TIMEOUT: Duration = Duration::from_millis(500);

/// Parsed command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandLine {
    /// All simple commands, including those inside substitutions, loops and functions.
    pub(crate) commands: Vec<SimpleCommand>,
    /// Files written by redirections, as written in the line.
    pub(crate) output_files: Vec<String>,
    /// Files read by redirections, as written in the line.
    pub(crate) input_files: Vec<String>,
    /// Folders that `cd` changes to, as written in the line and in order; at most three.
    pub(crate) cd_folders: Vec<String>,
    /// True if the line sets a variable that may change what a program does, so that no rule for a command decides.
    pub(crate) sets_variables: bool,
    /// True if commands may run again, after later ones.
    pub(crate) has_loops: bool,
    /// True if commands may run in another order than that of the text: at once, or one as part of another.
    pub(crate) is_order_uncertain: bool,
    /// True if some part of the line was not understood, so that it may do more than was found.
    pub(crate) is_uncertain: bool,
}

/// Simple command: a name and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SimpleCommand {
    /// Name of the program. It may be empty if the line is uncertain.
    pub(crate) name: String,
    /// Arguments.
    pub(crate) args: Vec<ShellWord>,
    /// True if the command may run other code or, like `find -delete`, change files, so that no rule for
    /// single commands covers it.
    pub(crate) is_opaque: bool,
    /// True if the line supplies the command's standard input, with a pipe or a `<`.
    pub(crate) is_stdin_redirected: bool,
    /// For `xargs`, the commands before it in the pipeline; otherwise empty.
    pub(crate) upstream: Vec<SimpleCommand>,
}

impl SimpleCommand {
    /// Returns the name and the arguments if the value of every word is certain.
    pub(crate) fn literal_words(&self) -> Option<Vec<&str>> {
        let args = self.args.iter().map(ShellWord::known_text);
        std::iter::once(Some(&*self.name)).chain(args).collect()
    }

    /// Returns the arguments whose value is certain.
    pub(crate) fn known_args(&self) -> impl Iterator<Item = &str> + Clone {
        self.args.iter().filter_map(ShellWord::known_text)
    }
}

impl CommandLine {
    /// Parses a command line. Creates a new parser, so sessions that run no commands do not pay for one.
    pub(crate) fn parse(source: &str) -> Self {
        Self::parse_with_timeout(source, PARSE_TIMEOUT, None)
    }

    /// Like `parse`, for a line that runs confined from `cwd` if it only reads: also understands comments,
    /// several lines, conditions, loop variables and file name patterns.
    pub(crate) fn parse_confined(source: &str, cwd: &Path, workspace: &Workspace) -> Self {
        Self::parse_with_timeout(
            source,
            PARSE_TIMEOUT,
            Some(&mut ExpansionScope::new(cwd, workspace)),
        )
    }

    /// Like `parse`, with a limit on parsing time.
    fn parse_with_timeout(
        source: &str,
        time: Duration,
        mut scope: Option<&mut ExpansionScope<'_>>,
    ) -> Self {
        let is_bad = |c: char| is_invisible_char(c) && !(c == '\n' && scope.is_some());
        let mut line = Self {
            is_uncertain: source.len() > MAX_LINE_BYTES
                || source.chars().any(is_bad)
                || ends_with_continuation(source)
                || !source.is_ascii() && !locale::is_encoding_safe(),
            ..Self::default()
        };
        if source.len() > MAX_LINE_BYTES {
            return line;
        }
        let mut parser = Parser::new();
        let language = tree_sitter_bash::LANGUAGE.into();
        let tree = match parser.set_language(&language) {
            Ok(()) => parse_tree(&mut parser, &mask_non_ascii(source), time),
            Err(_) => None,
        };
        let Some(tree) = tree else {
            line.is_uncertain = true;
            return line;
        };
        let root = tree.root_node();
        line.is_uncertain |= root.has_error() || has_arithmetic(root, source);
        let mut covered = 0;
        line.visit_node(
            root,
            source,
            NodeContext::default(),
            &mut covered,
            &mut scope,
        );
        line.is_uncertain |= !is_empty_gap(source, covered, source.len(), scope.is_some());
        line.is_uncertain |= line.commands.iter().any(|command| command.name.is_empty());
        line
    }

    /// Visits a node and its descendants. `covered` is the end of the leaves visited so far: non-blank text
    /// between two leaves means that the parser skipped something.
    fn visit_node(
        &mut self,
        node: Node<'_>,
        source: &str,
        place: NodeContext,
        covered: &mut usize,
        scope: &mut Option<&mut ExpansionScope<'_>>,
    ) {
        if place.depth > MAX_NESTING {
            self.is_uncertain = true;
            *covered = node.end_byte();
            return;
        }
        if node.child_count() == 0 {
            let is_next = is_empty_gap(source, *covered, node.start_byte(), scope.is_some());
            self.is_uncertain |= node.is_missing() || !is_next;
            *covered = node.end_byte();
        }
        let mut within = place.nested();
        // A function runs where it is called, also from itself.
        self.has_loops |= matches!(
            node.kind(),
            "do_group" | "for_statement" | "function_definition" | "while_statement"
        );
        self.is_order_uncertain |= match node.kind() {
            "&" | "command_substitution" | "process_substitution" => true,
            "pipeline" => {
                let text = source.get(node.byte_range()).unwrap_or_default();
                text.matches("git").count() + text.matches("gh").count() > 1
            }
            _ => false,
        };
        match node.kind() {
            "program" | "list" | "redirected_statement" | "subshell" => {
                within.is_top_level = place.is_top_level;
                within.is_stdin_redirected |= has_input_redirect(node);
            }
            "command" => self.push_command(node, source, place, scope),
            "comment" if scope.is_some() => self.is_uncertain |= !is_bash_comment(node, source),
            "test_command" if scope.is_some() => {
                self.is_uncertain |= !is_empty_gap(source, *covered, node.start_byte(), true);
                *covered = node.end_byte();
                return self.push_condition(node, source, scope);
            }
            "pipeline" if scope.is_some() => {
                return self.visit_pipeline(node, source, within, covered, scope);
            }
            "function_definition" if scope.is_some() => self.is_uncertain = true,
            // The call of a function may supply its input.
            "function_definition" => within.is_stdin_redirected = true,
            "process_substitution" => {
                let text = source.get(node.byte_range()).unwrap_or_default();
                within.is_stdin_redirected |= text.starts_with('>');
            }
            "compound_statement" => {
                // To bash `{ls` is a word.
                let text = source.get(node.byte_range()).unwrap_or_default();
                let inner = text.strip_prefix('{');
                self.is_uncertain |= inner.is_some_and(|inner| !inner.starts_with([' ', '\n']));
            }
            "file_redirect" => self.add_redirect(node, source),
            "command_substitution" => {
                // The shell ends a backtick substitution at the next backtick, also within quotes and
                // comments; the grammar does not.
                let text = source.get(node.byte_range()).unwrap_or_default();
                self.is_uncertain |= text.starts_with('`');
            }
            "for_statement" => {
                let name = node.child_by_field_name("variable");
                let name = name.and_then(|name| source.get(name.byte_range()));
                self.is_uncertain |= !name.is_some_and(command_wrappers::is_safe_loop_variable);
                // It reaches programs if the environment has a variable of that name.
                self.sets_variables = true;
                // The grammar parses `select` as a `for`.
                let text = source.get(node.byte_range()).unwrap_or_default();
                self.is_uncertain |= !text.starts_with("for");
                let mut cursor = node.walk();
                if scope.is_some() {
                    return self.visit_confined_loop(node, source, within, covered, scope);
                }
                for value in node.children_by_field_name("value", &mut cursor) {
                    self.is_uncertain |= shell_word::parse_word(value, source).is_err();
                }
            }
            "variable_assignment" => {
                let name = node.child_by_field_name("name");
                let name = name.and_then(|name| source.get(name.byte_range()));
                self.is_uncertain |= !name.is_some_and(command_wrappers::is_safe_variable);
                self.sets_variables |= !name.is_some_and(command_wrappers::is_output_variable);
                // `+=` appends to an unknown value.
                let mut cursor = node.walk();
                self.is_uncertain |= node.children(&mut cursor).any(|part| part.kind() == "+=");
                if let Some(value) = node.child_by_field_name("value") {
                    self.is_uncertain |= match (name, shell_word::parse_word(value, source)) {
                        (Some(name), Ok(value)) => !command_wrappers::is_safe_value(name, &value),
                        (None, _) | (_, Err(shell_word::AmbiguousWordError)) => true,
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
            // Heredocs, tests, arithmetic, arrays, comments, and node kinds of later grammars.
            _ => self.is_uncertain = true,
        }
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            self.visit_node(child, source, within, covered, scope);
            within.is_stdin_redirected |= node.kind() == "pipeline";
        }
    }

    fn push_command(
        &mut self,
        node: Node<'_>,
        source: &str,
        place: NodeContext,
        scope: &mut Option<&mut ExpansionScope<'_>>,
    ) {
        let name = node
            .child_by_field_name("name")
            .and_then(|name| name.named_child(0))
            .filter(|name| name.kind() == "word")
            .and_then(|name| source.get(name.byte_range()))
            .filter(|name| is_plain_program_name(name))
            .unwrap_or_default();
        let mut args = Vec::new();
        let mut end = None;
        let mut cursor = node.walk();
        for arg in node.children_by_field_name("argument", &mut cursor) {
            // The grammar parses `'a'\;` as two words.
            self.is_uncertain |= end == Some(arg.start_byte());
            end = Some(arg.end_byte());
            let words = match scope.as_deref_mut() {
                Some(scope) => {
                    let bases = base_folders(self, scope.cwd, scope.workspace);
                    scope.expand_word(arg, source, &bases)
                }
                None => shell_word::parse_word(arg, source).map(|word| vec![word]),
            };
            match words {
                Ok(words) => args.extend(words),
                Err(shell_word::AmbiguousWordError) => {
                    self.is_uncertain = true;
                    args.push(ShellWord::Dynamic);
                }
            }
        }
        if name == "cd" {
            match args.as_slice() {
                [ShellWord::Literal(folder)]
                    if place.is_top_level
                        && !folder.starts_with('-')
                        && self.cd_folders.len() < MAX_FOLDER_CHANGES =>
                {
                    self.cd_folders.push(folder.clone());
                }
                _ => self.is_uncertain = true,
            }
        }
        self.is_uncertain |= command_wrappers::sets_variable(name, &args);
        self.is_uncertain |= scope.is_some() && has_line_breaks(node, source, false);
        self.is_uncertain |=
            scope.is_some() && !ExpansionScope::has_command_budget(self.commands.len());
        // These commands are judged by their arguments, which either run nothing or are refused.
        let is_judged = scope.is_some() && matches!(name, "awk" | "find" | "git" | "xargs");
        self.commands.push(SimpleCommand {
            is_opaque: !is_judged && command_wrappers::is_opaque(name, &args),
            name: name.to_owned(),
            args,
            is_stdin_redirected: place.is_stdin_redirected || has_input_redirect(node),
            upstream: Vec::new(),
        });
    }

    fn add_redirect(&mut self, node: Node<'_>, source: &str) {
        // `{name}<file` sets a variable; the grammar parses `{name}` as a word.
        let before = source.get(..node.start_byte()).unwrap_or_default();
        self.is_uncertain |= before.ends_with('}');
        self.is_uncertain |= is_descriptor_doubtful(node, source);
        let mut cursor = node.walk();
        let operator = node
            .children(&mut cursor)
            .find(|child| !child.is_named())
            .map_or("", |operator| operator.kind());
        let mut cursor = node.walk();
        let targets: Vec<Node<'_>> = node
            .children_by_field_name("destination", &mut cursor)
            .collect();
        // The grammar counts later words as targets that the shell takes as a command.
        let target = match targets.as_slice() {
            [] if matches!(operator, "<&-" | ">&-") => return,
            [target] => shell_word::parse_word(*target, source),
            _ => Err(shell_word::AmbiguousWordError),
        };
        let Ok(ShellWord::Literal(target)) = target else {
            self.is_uncertain = true;
            return;
        };
        match operator {
            // bash takes `>& -x` for `>&-` and a word `x`, and expands the target of `>&'$(rm x)'` twice.
            ">&" | "<&" => {
                let text = source.get(node.byte_range()).unwrap_or_default();
                let text = text.trim_start_matches(|c: char| c.is_ascii_digit());
                let copied = text.strip_prefix(operator).map(str::as_bytes);
                self.is_uncertain |= !matches!(copied, Some([b'0'..=b'9' | b'-']));
            }
            ">" | ">>" | ">|" | "&>" | "&>>" => {
                if target != "/dev/null" {
                    self.output_files.push(target);
                }
            }
            "<" => {
                if target != "/dev/null" {
                    self.input_files.push(target);
                }
            }
            _ => self.is_uncertain = true,
        }
    }
}

/// Returns true if the grammar and the shell may disagree on whether the word before a redirection is its
/// descriptor, or if the descriptor is standard input, which can be copied with any operator.
fn is_descriptor_doubtful(redirect: Node<'_>, source: &str) -> bool {
    #[cfg(test)]
    if IGNORES_DESCRIPTORS.get() {
        return false;
    }
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let mut cursor = redirect.walk();
    let mut children = redirect.children(&mut cursor);
    match children.find(|child| child.kind() == "file_descriptor") {
        // The grammar parses `-fx2>&1` as a redirection of `-fx2`.
        Some(descriptor) => {
            let text = source.get(descriptor.byte_range()).unwrap_or_default();
            // Numbers that are too large for a descriptor are words to bash.
            !matches!(text.as_bytes(), [b'1'..=b'9'])
        }
        // The grammar parses the `0` of `0>x` as an argument.
        None => {
            let before = source.get(..redirect.start_byte()).unwrap_or_default();
            let is_separator = |c: char| c.is_whitespace() || ";&|()<>".contains(c);
            is_number(before.rsplit(is_separator).next().unwrap_or_default())
        }
    }
}

/// Context of a syntax node.
#[derive(Clone, Copy)]
struct NodeContext {
    depth: usize,
    /// True if the node is at the top level of the line and runs once, so that a `cd` here is one change of
    /// folder.
    is_top_level: bool,
    /// True behind a pipe or a `<`.
    is_stdin_redirected: bool,
}

impl Default for NodeContext {
    fn default() -> Self {
        Self {
            depth: 0,
            is_top_level: true,
            is_stdin_redirected: false,
        }
    }
}

impl NodeContext {
    fn nested(self) -> Self {
        Self {
            depth: self.depth + 1,
            is_top_level: false,
            is_stdin_redirected: self.is_stdin_redirected,
        }
    }
}

/// Returns true if a redirection of the statement supplies standard input.
fn has_input_redirect(statement: Node<'_>) -> bool {
    let mut cursor = statement.walk();
    let mut children = statement.children(&mut cursor);
    children.any(|child| {
        let mut cursor = child.walk();
        let mut parts = child.children(&mut cursor);
        child.kind() == "file_redirect" && parts.any(|part| part.kind().starts_with('<'))
    })
}

/// Parses the text into a syntax tree; `None` if that takes longer than `time`.
fn parse_tree(parser: &mut Parser, text: &[u8], time: Duration) -> Option<Tree> {
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
    /// Disables the arithmetic check, to show that the tests against bash detect the difference.
    pub(super) static IGNORES_ARITHMETIC: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    /// Disables the descriptor check, for the same purpose.
    pub(super) static IGNORES_DESCRIPTORS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Returns true if the line contains `((`, `$((` or `$[` where bash may read arithmetic. Arithmetic runs the
/// commands in the values of variables (`a[$(rm x)]`), and the grammar parses some of it as nested subshells.
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

/// Replaces each non-ASCII byte by a plain one for the grammar; the length does not change. The shell treats
/// those bytes as part of a word; the grammar's C scanner reads past the end of a table for such characters.
fn mask_non_ascii(source: &str) -> Vec<u8> {
    let mask = |byte: u8| if byte.is_ascii() { byte } else { b'%' };
    source.bytes().map(mask).collect()
}

fn is_blank_between(source: &str, from: usize, to: usize) -> bool {
    from >= to
        || source
            .get(from..to)
            .is_some_and(|gap| gap.chars().all(|c| c == ' ' || c == '\t'))
}

/// Returns the folders that the commands of a line may run in: the starting folder, in case a `cd` fails, and
/// each folder that the line changes to. `cd a/..` counts both as the shell resolves it (by name) and as the
/// system does (through links).
pub(super) fn base_folders(line: &CommandLine, cwd: &Path, workspace: &Workspace) -> Vec<PathBuf> {
    let mut bases = vec![cwd.to_owned()];
    for folder in &line.cd_folders {
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

/// Returns true if the line ends in a backslash, which would join it with whatever is appended.
fn ends_with_continuation(source: &str) -> bool {
    source.trim_end_matches([' ', '\t']).ends_with('\\') || source.ends_with('\\')
}

/// Returns true if a program name is plain: no quotes, no escapes, no patterns.
fn is_plain_program_name(name: &str) -> bool {
    name.chars()
        .all(|c| c.is_ascii_alphanumeric() || "_-./+:@".contains(c))
}

/// Returns true for characters that a user cannot see or would mistake for others, and for line breaks, after
/// which the shell begins a new command.
pub(crate) fn is_invisible_char(c: char) -> bool {
    (c.is_control() && c != '\t')
        || (c.is_whitespace() && !c.is_ascii())
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}' | '\u{891}'
            | '\u{8e2}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_outside_plain_text_is_uncertain() {
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
            assert!(CommandLine::parse(line).is_uncertain, "{line}");
        }
        for line in ["grep '((' a", "grep \"f((x\" a", "( (ls) )", "echo $(pwd)"] {
            assert!(!CommandLine::parse(line).is_uncertain, "{line}");
        }
    }

    #[test]
    fn line_over_parse_timeout_is_uncertain() {
        let source = "ls a b c; ".repeat(800);
        assert!(
            !CommandLine::parse_with_timeout(&source, Duration::from_secs(60), None).is_uncertain
        );
        assert!(CommandLine::parse_with_timeout(&source, Duration::ZERO, None).is_uncertain);
    }

    #[test]
    fn only_first_folder_changes_are_followed() {
        let source: Vec<String> = (0..40).map(|at| format!("cd d{at}")).collect();
        let line = CommandLine::parse(&format!("{};ls", source.join(";")));
        assert!(line.is_uncertain);
        assert_eq!(line.cd_folders, ["d0", "d1", "d2"]);
    }
}
