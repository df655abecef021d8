//! Parses the parts of a line that only the confined policy understands: loops, pipelines, conditions,
//! comments and several lines.

use super::{CommandLine, NodeContext, SimpleCommand, base_folders, is_blank_between};
use crate::policy::{shell_word, word_expansion::ExpansionScope};
use std::path::PathBuf;
use tree_sitter::Node;

impl CommandLine {
    /// Visits a loop once for each value of its variable.
    pub(super) fn visit_confined_loop(
        &mut self,
        node: Node<'_>,
        source: &str,
        place: NodeContext,
        covered: &mut usize,
        scope: &mut Option<&mut ExpansionScope<'_>>,
    ) {
        let name = node.child_by_field_name("variable");
        let name = name.and_then(|name| source.get(name.byte_range()));
        self.is_uncertain |= has_line_breaks(node, source, true);
        let bases = self.base_folders(scope);
        let mut values = Vec::new();
        let mut cursor = node.walk();
        for value in node.children_by_field_name("value", &mut cursor) {
            match scope
                .as_deref_mut()
                .map(|scope| scope.expand_word(value, source, &bases))
            {
                Some(Ok(words)) => values.extend(words),
                Some(Err(shell_word::AmbiguousWordError)) | None => self.is_uncertain = true,
            }
        }
        let entered = scope
            .as_deref_mut()
            .zip(name)
            .map(|(scope, name)| scope.enter_loop(name));
        if !matches!(entered, Some(Ok(()))) || values.is_empty() {
            self.is_uncertain = true;
            *covered = node.end_byte();
            return;
        }
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            if child.kind() != "do_group" {
                self.visit_node(child, source, place, covered, scope);
                continue;
            }
            let begin = *covered;
            for value in &values {
                *covered = begin;
                if !ExpansionScope::has_command_budget(self.commands.len()) {
                    self.is_uncertain = true;
                    break;
                }
                if let Some(scope) = scope.as_deref_mut() {
                    scope.set_loop_value(value.clone());
                }
                self.visit_node(child, source, place, covered, scope);
            }
        }
        if let Some(scope) = scope.as_deref_mut() {
            scope.leave_loop();
        }
    }

    /// Visits the parts of a pipeline and records for `xargs` the commands before it.
    pub(super) fn visit_pipeline(
        &mut self,
        node: Node<'_>,
        source: &str,
        place: NodeContext,
        covered: &mut usize,
        scope: &mut Option<&mut ExpansionScope<'_>>,
    ) {
        let mut before: Option<Vec<SimpleCommand>> = Some(Vec::new());
        // The grammar attaches redirections after the last command to the whole pipeline.
        if (node.parent()).is_some_and(|whole| is_redirected(whole, source)) {
            before = None;
        }
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            let first = self.commands.len();
            self.visit_node(child, source, place, covered, scope);
            match self.commands.get_mut(first..) {
                // `|&` also passes on standard error.
                Some([]) | None if child.kind() == "|" => {}
                Some([command]) if is_single_command(child) && !is_redirected(child, source) => {
                    if command.name == "xargs" {
                        command.upstream = before.clone().unwrap_or_default();
                    }
                    if let Some(before) = &mut before {
                        before.push(command.clone());
                    }
                }
                _ => before = None,
            }
        }
    }

    pub(super) fn push_condition(
        &mut self,
        node: Node<'_>,
        source: &str,
        scope: &mut Option<&mut ExpansionScope<'_>>,
    ) {
        let text = source.get(node.byte_range()).unwrap_or_default();
        let inside = |open: &str, close: &str| text.strip_prefix(open)?.strip_suffix(close);
        let (name, inside) = match inside("[[", "]]") {
            Some(inside) => ("[[", Some(inside)),
            None => ("[", inside("[", "]")),
        };
        let blank = [' ', '\t'];
        let words = inside
            .filter(|text| text.starts_with(blank) && text.ends_with(blank))
            .zip(scope.as_deref_mut())
            .and_then(|(text, scope)| scope.parse_condition(text).ok());
        let Some(args) = words else {
            self.is_uncertain = true;
            return;
        };
        self.commands.push(SimpleCommand {
            name: name.to_owned(),
            args,
            is_opaque: false,
            is_stdin_redirected: false,
            upstream: Vec::new(),
        });
    }

    /// Returns the folders that the next commands of a confined line may run in.
    fn base_folders(&self, scope: &Option<&mut ExpansionScope<'_>>) -> Vec<PathBuf> {
        scope.as_deref().map_or_else(Vec::new, |scope| {
            base_folders(self, scope.cwd, scope.workspace)
        })
    }
}

/// Returns true if a part of a pipeline is a single command, with or without redirections.
fn is_single_command(node: Node<'_>) -> bool {
    let body = match node.kind() {
        "redirected_statement" => node.child_by_field_name("body"),
        _ => Some(node),
    };
    body.is_some_and(|body| body.kind() == "command")
}

/// Returns true if a node has redirections other than `2>/dev/null`.
fn is_redirected(node: Node<'_>, source: &str) -> bool {
    let is_silent = |node: Node<'_>| {
        let text = source.get(node.byte_range());
        matches!(text, Some("2>/dev/null" | "2> /dev/null"))
    };
    let mut cursor = node.walk();
    node.children(&mut cursor)
        .any(|child| child.kind().ends_with("_redirect") && !is_silent(child))
}

/// Returns true if only blanks separate two leaves. Line breaks count as blanks in a confined line, also
/// after a backslash.
pub(super) fn is_empty_gap(source: &str, from: usize, to: usize, is_confined: bool) -> bool {
    if !is_confined || from >= to {
        return is_blank_between(source, from, to);
    }
    let Some(gap) = source.get(from..to) else {
        return false;
    };
    let is_joined = gap.contains("\\\n") && !gap.contains([' ', '\t']);
    !is_joined
        && gap
            .replace("\\\n", "")
            .chars()
            .all(|c| matches!(c, ' ' | '\t' | '\n'))
}

/// Returns true if a node contains a line break outside strings, where bash may begin a new command.
/// `is_loop`: only the part before the body is checked.
pub(super) fn has_line_breaks(node: Node<'_>, source: &str, is_loop: bool) -> bool {
    let mut code = source.as_bytes().to_vec();
    let mut open = vec![node];
    let mut end = node.end_byte();
    while let Some(node) = open.pop() {
        match node.kind() {
            "raw_string" | "string" | "command_substitution" | "process_substitution" => {
                if let Some(code) = code.get_mut(node.byte_range()) {
                    code.fill(b' ');
                }
            }
            "do_group" if is_loop => end = end.min(node.start_byte().saturating_sub(1)),
            _ => {
                let mut cursor = node.walk();
                open.extend(node.children(&mut cursor));
            }
        }
    }
    let code = code.get(node.start_byte()..end).unwrap_or_default();
    let code = String::from_utf8_lossy(code).replace("\\\n", " ");
    code.contains('\n')
}

/// Returns true if bash also reads the node as a comment, which ends at the end of the line.
pub(super) fn is_bash_comment(node: Node<'_>, source: &str) -> bool {
    let before = source.get(..node.start_byte()).unwrap_or("x");
    let text = source.get(node.byte_range()).unwrap_or_default();
    let is_word_start = match before.strip_suffix([' ', '\t', '\n', ';']) {
        Some(before) => !before.ends_with('\\'),
        None => before.is_empty(),
    };
    let after = source.get(node.end_byte()..).unwrap_or("x");
    is_word_start
        && !text.contains('\n')
        && !text.ends_with('\\')
        && (after.is_empty() || after.starts_with('\n'))
}
