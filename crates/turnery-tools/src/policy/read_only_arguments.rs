//! Parses the arguments of a read-only program with its table entry.

use super::{
    inner_commands,
    read_only_programs::{ConfinedOptions, ReadOnlyProgram},
};

/// Arguments of a program, parsed with its table entry.
#[derive(Default)]
pub(crate) struct ParsedArguments<'a> {
    /// Letters of the short options.
    pub(crate) short: String,
    /// Long options, without their values.
    pub(crate) long: Vec<&'a str>,
    /// Arguments that are not options.
    pub(crate) operands: Vec<&'a str>,
}

impl<'a> ParsedArguments<'a> {
    /// Returns the paths of a search: every operand but the pattern, unless an option supplies the pattern or needs
    /// none. `None` if the pattern is missing.
    pub(crate) fn searched_paths(&self) -> Option<&[&'a str]> {
        let has_own_pattern = self.short.contains('e') || self.has_long(&["--files", "--regexp"]);
        match has_own_pattern {
            true => Some(&self.operands),
            false => self.operands.split_first().map(|(_, paths)| paths),
        }
    }

    fn has_long(&self, names: &[&str]) -> bool {
        self.long.iter().any(|it| names.contains(it))
    }
}

/// Parses arguments; `None` if an option is not in the table.
pub(crate) fn parse_arguments<'a>(
    program: &ReadOnlyProgram,
    args: &[&'a str],
    is_confined: bool,
) -> Option<ParsedArguments<'a>> {
    let also = match is_confined {
        true => program.confined_options,
        false => ConfinedOptions::NONE,
    };
    let mut found = ParsedArguments::default();
    let mut args = args.iter();
    while let Some(&arg) = args.next() {
        if arg == "--" {
            // `git blame` takes the last word for a revision, and so for an option.
            if program.words[0] == "git" && args.as_slice().iter().any(|it| it.starts_with('-')) {
                return None;
            }
            found.operands.extend(args);
            break;
        }
        if arg.starts_with("--") {
            let known =
                program
                    .long
                    .iter()
                    .chain(also.long)
                    .any(|long| match long.strip_suffix('=') {
                        Some(name) => arg
                            .strip_prefix(name)
                            .is_some_and(|rest| rest.starts_with('=')),
                        None => *long == arg,
                    });
            if !known {
                return None;
            }
            found
                .long
                .push(arg.split_once('=').map_or(arg, |(name, _)| name));
        } else if let Some(letters) = arg.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            let counts = matches!(program.words, ["head" | "tail"] | ["git", "log"]);
            if counts && letters.chars().all(|c| c.is_ascii_digit()) {
                continue;
            }
            // xxd reads each word as one option, identified by its prefix.
            if program.words[0] == "xxd" && letters.len() > 1 {
                return None;
            }
            let mut rest = letters.chars();
            while let Some(letter) = rest.next() {
                found.short.push(letter);
                if program.flags.contains(letter) || also.flags.contains(letter) {
                    continue;
                }
                if !program.valued.contains(letter) && !also.valued.contains(letter) {
                    return None;
                }
                // git takes the value of these options in the same word or not at all.
                let optional = program.words[0] == "git" && "UMCu".contains(letter);
                // tree reads the following letters as further options.
                if program.words[0] == "tree" && !rest.as_str().is_empty() {
                    return None;
                }
                if rest.as_str().is_empty() && !optional {
                    // A name found by a pattern may be anything but the value of an option.
                    args.next().filter(|value| {
                        !looks_like_option(value) && **value != inner_commands::PLACEHOLDER_NAME
                    })?;
                }
                break;
            }
        } else {
            found.operands.push(arg);
        }
    }
    Some(found)
}

/// Returns true if a program that lacks a value may parse this word as an option. `-` and `-5` are values.
fn looks_like_option(word: &str) -> bool {
    word.strip_prefix('-')
        .is_some_and(|rest| !rest.chars().all(|c| c.is_ascii_digit()))
}
