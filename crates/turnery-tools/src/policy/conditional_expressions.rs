//! Parses conditions of `test`, `[ … ]` and `[[ … ]]` that only inspect files, strings and numbers.

use super::{command_line::SimpleCommand, shell_word::ShellWord};

/// Operators that inspect a file.
const FILE_TESTS: &[&str] = &["-d", "-e", "-f", "-h", "-L", "-r", "-s", "-w", "-x"];

/// Returns the files that the condition inspects; `None` if it may do anything else. Numbers are compared
/// only if both are literal or `$?`: in `[[ x -eq 1 ]]` bash runs commands in the value of `x`.
pub(crate) fn condition_paths(command: &SimpleCommand) -> Option<Vec<&str>> {
    let is_double = command.name == "[[";
    let ends = |word: &ShellWord| matches!(word.known_text(), Some("&&" | "||"));
    let is_many = |word: &ShellWord| {
        matches!(
            word,
            ShellWord::UnorderedFileName(_) | ShellWord::PublicWords
        )
    };
    if command.args.iter().any(is_many) || !is_double && command.args.iter().any(ends) {
        return None;
    }
    let mut paths = Vec::new();
    let joins = |word: &ShellWord| is_double && ends(word);
    for part in command.args.split(joins) {
        let part = match part {
            [ShellWord::Literal(not), rest @ ..] if not == "!" => rest,
            part => part,
        };
        match part {
            [ShellWord::Literal(test), file] if FILE_TESTS.contains(&test.as_str()) => {
                paths.push(file.known_text()?);
            }
            [ShellWord::Literal(test), _] if matches!(test.as_str(), "-n" | "-z") => {}
            [one, ShellWord::Literal(compares), other] => match compares.as_str() {
                "=" | "==" | "!=" if is_operand(one) && is_operand(other) => {}
                "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge"
                    if is_number(one) && is_number(other) => {}
                _ => return None,
            },
            _ => return None,
        }
    }
    Some(paths)
}

/// Returns true if `[` reads the word as an operand and not as part of the condition's syntax.
fn is_operand(word: &ShellWord) -> bool {
    !matches!(word.known_text(), Some("!" | "(" | ")"))
}

fn is_number(word: &ShellWord) -> bool {
    match word {
        ShellWord::ExitCode => true,
        ShellWord::Literal(text) => {
            !text.is_empty() && text.len() < 10 && text.chars().all(|c| c.is_ascii_digit())
        }
        _ => false,
    }
}
