//! Harmless: whether a command only reads, and only inside the roots. The table is in `programs`.

use super::{
    git,
    line::Command,
    programs::{FIND_ALONE, FIND_VALUED, Operands, PROGRAMS, Program},
    walk,
};
use crate::Workspace;
use std::path::{Path, PathBuf};

/// What a harmless command reads.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reads {
    /// Files and folders, resolved.
    pub(crate) paths: Vec<PathBuf>,
    /// Also what these words do not name: all below a folder, or what git keeps.
    pub(crate) widely: bool,
}

/// What the command reads, if it only reads and stays inside the roots, started from any of `bases`.
pub(crate) fn reads(command: &Command, bases: &[PathBuf], workspace: &Workspace) -> Option<Reads> {
    let words = command.literal()?;
    if command.opaque {
        return None;
    }
    if command.name == "cd" {
        return Some(Reads {
            paths: resolved(&words[1..], bases, workspace)?,
            widely: false,
        });
    }
    let program = PROGRAMS
        .iter()
        .filter(|program| words.starts_with(program.words))
        .max_by_key(|program| program.words.len())?;
    let args = &words[program.words.len()..];
    let operands = match program.operands {
        Operands::FindTests => find_folders(args)?,
        Operands::Words => Vec::new(),
        Operands::Format if prints_only(args) => Vec::new(),
        Operands::Format => return None,
        Operands::None
        | Operands::Text
        | Operands::OnePath
        | Operands::Paths
        | Operands::PatternThenPaths
        | Operands::Revisions
        | Operands::PrintLines => operands(program, args)?,
    };
    let paths: &[&str] = match program.operands {
        Operands::None if operands.is_empty() => &[],
        Operands::None => return None,
        Operands::Text | Operands::Words | Operands::Format => &[],
        Operands::OnePath if operands.len() > 1 => return None,
        Operands::OnePath | Operands::Paths | Operands::Revisions | Operands::FindTests => {
            &operands
        }
        Operands::PatternThenPaths => searched(args, &operands),
        Operands::PrintLines => match operands.split_first() {
            Some((script, paths)) if args.contains(&"-n") && prints_lines(script) => paths,
            _ => return None,
        },
    };
    if is_led_astray(command, bases, workspace) {
        return None;
    }
    let widely = match program.operands {
        Operands::PatternThenPaths | Operands::Revisions => true,
        Operands::Paths => command.name == "diff",
        Operands::None
        | Operands::Text
        | Operands::Words
        | Operands::Format
        | Operands::OnePath
        | Operands::PrintLines
        | Operands::FindTests => false,
    };
    let paths = resolved(paths, bases, workspace)?;
    if command.name == "diff" && links_lead_outside(&paths, workspace) {
        return None;
    }
    Some(Reads { paths, widely })
}

/// Whether a link below one of these folders leads outside the roots, as far as can be seen. `diff` follows them.
fn links_lead_outside(paths: &[PathBuf], workspace: &Workspace) -> bool {
    let is_outside = |path: &Path| !workspace.roots().iter().any(|root| path.starts_with(root));
    let mut left = walk::MOST_ENTRIES;
    paths
        .iter()
        .any(|path| path.is_dir() && walk::may_contain(path, &mut left, &is_outside))
}

/// Where these paths lead from each base; nothing when one of them leads outside the roots.
pub(crate) fn resolved(
    paths: &[&str],
    bases: &[PathBuf],
    workspace: &Workspace,
) -> Option<Vec<PathBuf>> {
    let mut found = Vec::new();
    for base in bases {
        for path in paths.iter().filter(|path| **path != "-") {
            let from_base = base.join(path);
            found.push(workspace.resolve(from_base.to_str()?).ok()?);
        }
    }
    Some(found)
}

/// The arguments that are no options; nothing when an option is not known.
fn operands<'a>(program: &Program, args: &[&'a str]) -> Option<Vec<&'a str>> {
    let mut operands = Vec::new();
    let mut args = args.iter();
    while let Some(&arg) = args.next() {
        if arg == "--" {
            operands.extend(args);
            break;
        }
        if arg.starts_with("--") {
            let known = program
                .long
                .iter()
                .any(|long| match long.strip_suffix('=') {
                    Some(name) => arg
                        .strip_prefix(name)
                        .is_some_and(|rest| rest.starts_with('=')),
                    None => *long == arg,
                });
            if !known {
                return None;
            }
        } else if let Some(letters) = arg.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            let counts = matches!(program.words, ["head" | "tail"] | ["git", "log"]);
            if counts && letters.chars().all(|c| c.is_ascii_digit()) {
                continue;
            }
            let mut rest = letters.chars();
            while let Some(letter) = rest.next() {
                if program.flags.contains(letter) {
                    continue;
                }
                if !program.valued.contains(letter) {
                    return None;
                }
                // Context lines, renames and copies take their value in the same word or not at all.
                let optional = program.words[0] == "git" && "UMC".contains(letter);
                // To tree the letters that follow are further options.
                if program.words[0] == "tree" && !rest.as_str().is_empty() {
                    return None;
                }
                if rest.as_str().is_empty() && !optional {
                    args.next().filter(|value| !is_option(value))?;
                }
                break;
            }
        } else {
            operands.push(arg);
        }
    }
    Some(operands)
}

/// Whether a program that lacks a value before this word may take it as an option. `-` and `-5` are values.
fn is_option(word: &str) -> bool {
    word.strip_prefix('-')
        .is_some_and(|rest| !rest.chars().all(|c| c.is_ascii_digit()))
}

/// The paths of a search: all but the pattern, unless an option gives the pattern or there is none.
fn searched<'a>(args: &[&str], operands: &'a [&'a str]) -> &'a [&'a str] {
    // When in doubt the pattern counts as a path too: at worst that leads to a question.
    let has_own_pattern = args.iter().any(|arg| {
        arg.starts_with("--regexp") || *arg == "--files" || (is_short(arg) && arg.contains('e'))
    });
    match operands.split_first() {
        Some((_, paths)) if !has_own_pattern => paths,
        _ => operands,
    }
}

fn is_short(arg: &str) -> bool {
    arg.starts_with('-') && !arg.starts_with("--")
}

/// `12p`, `1,20p`, `5,$p`.
fn prints_lines(script: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    script
        .strip_suffix('p')
        .is_some_and(|lines| match lines.split_once(',') {
            Some((from, to)) => is_number(from) && (to == "$" || is_number(to)),
            None => is_number(lines),
        })
}

/// Whether `printf` only prints: `-v` and `%n` set variables.
fn prints_only(args: &[&str]) -> bool {
    let Some(format) = args.first().filter(|first| !first.starts_with('-')) else {
        return false;
    };
    format.split('%').skip(1).all(|conversion| {
        let between = |c: char| c.is_ascii_digit() || ".*+-# 'hlLqjzt".contains(c);
        !conversion.trim_start_matches(between).starts_with('n')
    })
}

fn find_folders<'a>(args: &[&'a str]) -> Option<Vec<&'a str>> {
    let is_test = |arg: &&str| arg.starts_with('-') || matches!(*arg, "!" | "(" | ")");
    let folders: Vec<&str> = args
        .iter()
        .copied()
        .take_while(|arg| !is_test(arg))
        .collect();
    let mut tests = args[folders.len()..].iter();
    while let Some(test) = tests.next() {
        if FIND_VALUED.contains(test) {
            tests.next()?;
        } else if !FIND_ALONE.contains(test) {
            return None;
        }
    }
    Some(folders)
}

/// Whether files in the folder make this program run something: what a repository configures, or a program that
/// the project brings and a version manager's stand-in starts.
fn is_led_astray(command: &Command, bases: &[PathBuf], workspace: &Workspace) -> bool {
    let above =
        |found: &dyn Fn(&Path) -> bool| bases.iter().flat_map(|base| base.ancestors()).any(found);
    let has_any = |names: &[&str]| above(&|folder| names.iter().any(|name| exists(folder, name)));
    match command.name.as_str() {
        "git" => !git::runs_nothing(command, bases, workspace, git::Hooks::Disabled),
        "cargo" | "rustc" | "rustup" => has_any(RUST_TOOLCHAIN) || has_any(VERSION_MANAGERS),
        "file" | "gcc" | "node" | "python" | "python3" | "rg" | "tree" => has_any(VERSION_MANAGERS),
        _ => false,
    }
}

/// Files with which rustup picks a toolchain, which may be a folder of the project.
const RUST_TOOLCHAIN: &[&str] = &["rust-toolchain", "rust-toolchain.toml"];

/// Files with which asdf, mise, pyenv and nodenv pick programs, which may be in a folder of the project.
const VERSION_MANAGERS: &[&str] = &[
    ".config/mise",
    ".config/mise.toml",
    ".mise",
    ".mise.local.toml",
    ".mise.toml",
    ".node-version",
    ".python-version",
    ".rtx.toml",
    ".tool-versions",
    "mise.local.toml",
    "mise.toml",
    "mise/config.toml",
];

/// Whether there is such a file, or a link of this name that leads nowhere yet.
fn exists(folder: &Path, name: &str) -> bool {
    folder.join(name).symlink_metadata().is_ok()
}
