//! Parses conditions of `test`, `[ … ]` and `[[ … ]]` that only inspect files, strings and numbers.

use super::{command_line::Command, shell_word::Word};

/// Operators that inspect a file.
const FILE_TESTS: &[&str] = &["-d", "-e", "-f", "-h", "-L", "-r", "-s", "-w", "-x"];

/// Returns the files that the condition inspects; `None` if it may do anything else. Numbers are compared
/// only if both are literal or `$?`: in `[[ x -eq 1 ]]` bash runs commands in the value of `x`.
pub(crate) fn condition_paths(command: &Command) -> Option<Vec<&str>> {
    let is_double = command.name == "[[";
    let ends = |word: &Word| matches!(word.literal(), Some("&&" | "||"));
    let is_many = |word: &Word| matches!(word, Word::Among(_) | Word::Split);
    if command.args.iter().any(is_many) || !is_double && command.args.iter().any(ends) {
        return None;
    }
    let mut paths = Vec::new();
    let joins = |word: &Word| is_double && ends(word);
    for part in command.args.split(joins) {
        let part = match part {
            [Word::Literal(not), rest @ ..] if not == "!" => rest,
            part => part,
        };
        match part {
            [Word::Literal(test), file] if FILE_TESTS.contains(&test.as_str()) => {
                paths.push(file.literal()?);
            }
            [Word::Literal(test), _] if matches!(test.as_str(), "-n" | "-z") => {}
            [one, Word::Literal(compares), other] => match compares.as_str() {
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
fn is_operand(word: &Word) -> bool {
    !matches!(word.literal(), Some("!" | "(" | ")"))
}

fn is_number(word: &Word) -> bool {
    match word {
        Word::Number => true,
        Word::Literal(text) => {
            !text.is_empty() && text.len() < 10 && text.chars().all(|c| c.is_ascii_digit())
        }
        _ => false,
    }
}
