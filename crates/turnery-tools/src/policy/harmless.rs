//! Harmless: whether a command only reads, and only inside the roots. The table is in `programs`.

use super::{
    conditions, git, ignore_files,
    line::Command,
    line_access::is_inside,
    programs::{FIND_ALONE, FIND_CONFINED, FIND_VALUED, Operands, Options, PROGRAMS, Program},
    scripts, versions, walk,
    word::Word,
    xargs,
};
use crate::{Workspace, workspace::clean};
use std::path::{Path, PathBuf};

/// What a harmless command reads.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reads {
    /// Files and folders, resolved.
    pub(crate) paths: Vec<PathBuf>,
    /// Also what these words do not name: all below a folder, or what git keeps.
    pub(crate) widely: bool,
}

/// Which programs and options of the table hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    /// Those that are harmless wherever they run.
    Everywhere,
    /// All, for commands that run where they cannot write and reach neither the network nor other files.
    Confined,
}

/// What bash does by itself, without a program.
const BUILTINS: &[&str] = &[
    "[", "[[", "cd", "command", "echo", "false", "printf", "pwd", "test", "true", "type", "ulimit",
];

/// Programs that start others, which they look for by name. A `*` at the end stands for anything.
const STARTED_BY: &[(&str, &[&str])] = &[
    ("cargo", &["rustc"]),
    ("egrep", &["grep"]),
    ("fgrep", &["grep"]),
    // The version that a project asks for.
    ("go", &["go1*"]),
    ("npm", &["node"]),
    ("pip", &["python", "python3"]),
    (
        "tar",
        &[
            "bzip2", "compress", "gzip", "lzip", "lzma", "lzop", "xz", "zstd",
        ],
    ),
];

/// Stands for a word that is only printed.
const SHOWN: &str = "\0";

/// What the command reads, if it only reads and stays inside the roots, started from any of `bases`.
pub(crate) fn reads(
    command: &Command,
    bases: &[PathBuf],
    workspace: &Workspace,
    table: Table,
) -> Option<Reads> {
    let is_confined = table == Table::Confined;
    if is_confined && let Some((command, bases)) = inner_git(command, bases, workspace) {
        return reads(&command, &bases, workspace, table);
    }
    // Any of the names may come first, so none may be what a program, a pattern or the value of an option is.
    let is_among = |word: &Word| matches!(word, Word::Among(_));
    let first_among = command.args.iter().position(is_among);
    if let Some(first) = first_among {
        let mut before = command.clone();
        before.args.truncate(first);
        reads(&before, bases, workspace, table)?;
    }
    let words = words(command)?;
    let is_builtin = BUILTINS.contains(&command.name.as_str());
    if command.opaque || is_brought(&command.name, is_builtin, bases, workspace) {
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
        .copied()
        .flatten()
        .filter(|program| is_confined || !program.only_confined)
        .filter(|program| words.starts_with(program.words))
        .max_by_key(|program| program.words.len())?;
    if first_among.is_some_and(|first| program.words.len() > first + 1) {
        return None;
    }
    let args = &words[program.words.len()..];
    let prints = matches!(
        program.operands,
        Operands::Words | Operands::Format | Operands::Condition
    );
    if !prints && args.contains(&SHOWN) {
        return None;
    }
    if let Operands::Xargs = program.operands {
        return xargs::reads(command, bases, workspace);
    }
    if is_confined
        && command.name == "find"
        && let Some(at) = args.iter().position(|arg| *arg == "-exec")
    {
        return find_exec(args, at, bases, workspace);
    }
    let sed_files = || scripts::sed_files(command);
    if let Some(files) = (is_confined && command.name == "sed")
        .then(sed_files)
        .flatten()
    {
        return Some(Reads {
            paths: resolved(&files, bases, workspace)?,
            widely: false,
        });
    }
    let operands = match program.operands {
        Operands::Awk => scripts::awk_files(command)?,
        Operands::Condition => conditions::looked_at(command)?,
        Operands::FindTests => find_folders(args, is_confined)?,
        Operands::Xargs => return None,
        Operands::Words => Vec::new(),
        Operands::Format if prints_only(args) => Vec::new(),
        Operands::Format => return None,
        Operands::None
        | Operands::Text
        | Operands::OnePath
        | Operands::Paths
        | Operands::PatternThenPaths
        | Operands::Revisions
        | Operands::Date
        | Operands::Filter
        | Operands::Archive
        | Operands::Number
        | Operands::Strings
        | Operands::PrintLines => arguments(program, args, is_confined)?.operands,
    };
    let paths: &[&str] = match program.operands {
        Operands::None if operands.is_empty() => &[],
        Operands::None => return None,
        Operands::Text | Operands::Words | Operands::Format | Operands::Xargs => &[],
        Operands::Date if operands.is_empty() => &[],
        Operands::Date => match operands.as_slice() {
            [format] if is_confined && format.starts_with('+') => &[],
            _ => return None,
        },
        Operands::Filter => match operands.split_first() {
            Some((filter, paths)) => {
                let mut args = command.args.iter();
                let filter = args.find(|arg| arg.literal() == Some(filter))?;
                scripts::jq_only_filters(filter).then_some(paths)?
            }
            None => return None,
        },
        // What follows the letter `f` is the archive, `--` too.
        Operands::Archive if args.contains(&"--") => return None,
        // Before a colon would be the host to fetch the archive from.
        Operands::Archive => match operands.split_first() {
            Some((archive, _)) if command.name == "unzip" && !is_archive(archive, bases) => {
                return None;
            }
            Some((archive, _)) if !archive.contains(':') => operands.get(..1)?,
            _ => return None,
        },
        Operands::Awk | Operands::Condition => &operands,
        Operands::Number => match operands.as_slice() {
            [number] if number.chars().all(|c| c.is_ascii_digit()) => &[],
            _ => return None,
        },
        // Also as the value of an option such a word stands for the words in a file.
        Operands::Strings if args.iter().any(|word| word.contains('@')) => return None,
        Operands::Strings => &operands,
        // What follows it may be a second one, which is written, whatever it looks like.
        Operands::OnePath
            if operands.len() > 1 || operands.first().is_some_and(|it| args.last() != Some(it)) =>
        {
            return None;
        }
        Operands::OnePath | Operands::Paths | Operands::Revisions | Operands::FindTests => {
            &operands
        }
        Operands::PatternThenPaths => searched(args, &operands)?,
        Operands::PrintLines => match operands.split_first() {
            Some((script, paths)) if args.contains(&"-n") && prints_lines(script) => paths,
            _ => return None,
        },
    };
    if is_led_astray(command, bases, workspace, table) {
        return None;
    }
    if program.words.starts_with(&["git", "config"]) && !operands.iter().all(|key| is_public(key)) {
        return None;
    }
    // It reaches the whole repository, and where git compares with a file, any file.
    let is_git = command.name == "git";
    if is_git && operands.iter().any(|word| word.starts_with(':')) {
        return None;
    }
    let widely = match program.operands {
        // What they say of files that they cannot read has lines of these in it.
        _ if matches!(command.name.as_str(), "cargo" | "npm") => true,
        Operands::PatternThenPaths | Operands::Revisions => true,
        Operands::Paths => command.name == "diff",
        Operands::None
        | Operands::Text
        | Operands::Words
        | Operands::Format
        | Operands::OnePath
        | Operands::PrintLines
        | Operands::Awk
        | Operands::Condition
        | Operands::Date
        | Operands::Filter
        | Operands::Archive
        | Operands::Xargs
        | Operands::Number
        | Operands::Strings
        | Operands::FindTests => false,
    };
    let paths = resolved(paths, bases, workspace)?;
    if command.name == "diff" && links_lead_outside(&paths, workspace) {
        return None;
    }
    if !is_confined && command.name == "rg" {
        let searched = if paths.is_empty() { bases } else { &paths };
        if ignore_files::may_lie_elsewhere(searched) {
            return None;
        }
    }
    // Git goes through all that such a pattern may stand for.
    let is_wide = |path: &&str| path.contains("..") && path.contains(['*', '?', '[']);
    if is_confined && is_git && operands.iter().any(is_wide) {
        return None;
    }
    if is_confined && follows_links(command) {
        let is_whole = paths.is_empty() || is_git;
        if is_whole && links_lead_outside(bases, workspace) || links_lead_outside(&paths, workspace)
        {
            return None;
        }
    }
    Some(Reads { paths, widely })
}

/// Whether the project may bring the program, one that it starts, or the shell that runs the line.
pub(crate) fn is_brought(
    name: &str,
    is_builtin: bool,
    bases: &[PathBuf],
    workspace: &Workspace,
) -> bool {
    let started = STARTED_BY.iter().filter(|(program, _)| *program == name);
    let own = (!is_builtin).then_some(name);
    let mut names = ["bash", "sh"]
        .into_iter()
        .chain(own)
        .chain(started.flat_map(|(_, started)| started.iter().copied()));
    names.any(|name| {
        let cwd = std::iter::once(workspace.cwd());
        let mut bases = bases.iter().map(PathBuf::as_path).chain(cwd);
        bases.any(|base| workspace.brings_program(name, base))
    })
}

/// The words of the command, with a stand-in for those that are only printed.
fn words(command: &Command) -> Option<Vec<&str>> {
    let args = command.args.iter().map(|word| match word {
        Word::Number | Word::Shown | Word::Split => Some(SHOWN),
        word => word.literal(),
    });
    std::iter::once(Some(&*command.name)).chain(args).collect()
}

/// A git command without the options before its subcommand, and where it works; `None` if it has none of those that
/// are known to run nothing.
fn inner_git(
    command: &Command,
    bases: &[PathBuf],
    workspace: &Workspace,
) -> Option<(Command, Vec<PathBuf>)> {
    let mut bases = bases.to_vec();
    let mut args = command.args.as_slice();
    if command.name != "git" {
        return None;
    }
    loop {
        args = match args {
            [Word::Literal(option), rest @ ..]
                if matches!(option.as_str(), "--no-pager" | "-P" | "--no-optional-locks") =>
            {
                rest
            }
            [Word::Literal(option), Word::Literal(folder), rest @ ..] if option == "-C" => {
                bases = resolved(&[folder.as_str()], &bases, workspace)?;
                rest
            }
            _ => break,
        };
    }
    let inner = Command {
        args: args.to_vec(),
        ..command.clone()
    };
    (args.len() < command.args.len()).then_some((inner, bases))
}

/// Whether `unzip` opens this file and no other: of a name without a file it makes others, and of a pattern.
fn is_archive(name: &str, bases: &[PathBuf]) -> bool {
    !name.contains(['*', '?', '[']) && bases.iter().all(|base| base.join(name).is_file())
}

/// Whether a key of git's configuration holds no secret: headers and addresses of the person's may.
fn is_public(key: &str) -> bool {
    let sections = [
        "branch.", "core.", "init.", "pull.", "push.", "remote.", "user.",
    ];
    sections.iter().any(|section| key.starts_with(section))
}

/// Whether a search reads what links lead to.
fn follows_links(command: &Command) -> bool {
    let mut args = command.args.iter().filter_map(Word::literal);
    if command.name == "git" {
        return args.next() == Some("grep");
    }
    matches!(command.name.as_str(), "grep" | "egrep" | "fgrep")
        && args.any(|arg| arg == "--dereference-recursive" || is_short(arg) && arg.contains('R'))
}

/// What `find … -exec` reads, if the command that it runs is given names after its other words and only reads.
fn find_exec(args: &[&str], at: usize, bases: &[PathBuf], workspace: &Workspace) -> Option<Reads> {
    let (tests, exec) = args.split_at_checked(at)?;
    let [_, inner @ .., "{}", end] = exec else {
        return None;
    };
    let (name, words) = inner.split_first()?;
    // With a semicolon among them, the words after it are find's.
    let is_plain = matches!(*end, "+" | ";")
        && !(inner.iter()).any(|word| word.contains("{}") || *word == ";");
    let folders = find_folders(tests, true).filter(|_| is_plain)?;
    let mut folders = resolved(&folders, bases, workspace)?;
    folders.extend_from_slice(bases);
    let words = words.iter().map(|word| Word::Literal((*word).to_owned()));
    xargs::reads_of_named(name, words.collect(), &folders, (bases, workspace))
}

/// Whether a link below one of these folders leads outside the roots, as far as can be seen. `diff` follows them.
pub(crate) fn links_lead_outside(paths: &[PathBuf], workspace: &Workspace) -> bool {
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
        for path in paths {
            let from_base = base.join(path);
            // Git goes by the text of a path.
            if path.contains("..") && !is_inside(&clean(&from_base), workspace) {
                return None;
            }
            found.push(workspace.resolve(from_base.to_str()?).ok()?);
        }
    }
    Some(found)
}

/// The arguments of a program, taken apart by its table.
#[derive(Default)]
pub(crate) struct Arguments<'a> {
    /// Letters of the short options.
    pub(crate) short: String,
    /// Long options, without their values.
    pub(crate) long: Vec<&'a str>,
    /// All that are no options.
    pub(crate) operands: Vec<&'a str>,
}

/// Takes arguments apart; nothing when an option is not in the table.
pub(crate) fn arguments<'a>(
    program: &Program,
    args: &[&'a str],
    is_confined: bool,
) -> Option<Arguments<'a>> {
    let also = match is_confined {
        true => program.also,
        false => Options::NONE,
    };
    let mut found = Arguments::default();
    let mut args = args.iter();
    while let Some(&arg) = args.next() {
        if arg == "--" {
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
            // To xxd each word is one option, known by its beginning.
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
                // Context lines, renames and copies take their value in the same word or not at all.
                let optional = program.words[0] == "git" && "UMC".contains(letter);
                // To tree the letters that follow are further options.
                if program.words[0] == "tree" && !rest.as_str().is_empty() {
                    return None;
                }
                if rest.as_str().is_empty() && !optional {
                    // A name that is found may be anything but the value of an option.
                    args.next()
                        .filter(|value| !is_option(value) && **value != xargs::STAND_IN)?;
                }
                break;
            }
        } else {
            found.operands.push(arg);
        }
    }
    Some(found)
}

/// Whether a program that lacks a value before this word may take it as an option. `-` and `-5` are values.
fn is_option(word: &str) -> bool {
    word.strip_prefix('-')
        .is_some_and(|rest| !rest.chars().all(|c| c.is_ascii_digit()))
}

/// The paths of a search: all but the pattern, unless an option gives the pattern or needs none. `None` if the pattern
/// is missing.
fn searched<'a>(args: &[&str], operands: &'a [&'a str]) -> Option<&'a [&'a str]> {
    // When in doubt the pattern counts as a path too: at worst that leads to a question.
    let has_own_pattern = args.iter().any(|arg| {
        arg.starts_with("--regexp") || *arg == "--files" || (is_short(arg) && arg.contains('e'))
    });
    match has_own_pattern {
        true => Some(operands),
        false => operands.split_first().map(|(_, paths)| paths),
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
    let is_format = |first: &&&str| !first.starts_with('-') && **first != SHOWN;
    let Some(format) = args.first().filter(is_format) else {
        return false;
    };
    format.split('%').skip(1).all(|conversion| {
        let between = |c: char| c.is_ascii_digit() || ".*+-# 'hlLqjzt".contains(c);
        !conversion.trim_start_matches(between).starts_with('n')
    })
}

fn find_folders<'a>(args: &[&'a str], is_confined: bool) -> Option<Vec<&'a str>> {
    let is_test = |arg: &&str| arg.starts_with('-') || matches!(*arg, "!" | "(" | ")");
    let mut folders: Vec<&str> = args
        .iter()
        .copied()
        .take_while(|arg| !is_test(arg))
        .collect();
    let mut tests = args[folders.len()..].iter();
    while let Some(test) = tests.next() {
        if is_confined && *test == "-newer" {
            folders.push(tests.next().filter(|path| !path.starts_with('-'))?);
        } else if is_confined && *test == "-printf" || FIND_VALUED.contains(test) {
            tests.next()?;
        } else if is_confined && FIND_CONFINED.contains(test) {
            // Has no value.
        } else if !FIND_ALONE.contains(test) {
            return None;
        }
    }
    Some(folders)
}

/// Whether files in the folder make this program run something: what a repository configures, or a program that
/// the project brings and a version manager's stand-in starts.
fn is_led_astray(
    command: &Command,
    bases: &[PathBuf],
    workspace: &Workspace,
    table: Table,
) -> bool {
    let above =
        |found: &dyn Fn(&Path) -> bool| bases.iter().flat_map(|base| base.ancestors()).any(found);
    let has_any = |names: &[&str]| above(&|folder| names.iter().any(|name| exists(folder, name)));
    let picks_version = || above(&versions::picks_version);
    match command.name.as_str() {
        "git" => {
            let run = match table {
                Table::Confined => git::GitRun::Confined,
                Table::Everywhere => git::GitRun::Hardened,
            };
            !git::runs_nothing(command, bases, workspace, run)
        }
        "cargo" if !is_version(command) => {
            let fixes_lock = |word: &Word| matches!(word.literal(), Some("--locked" | "--offline"));
            let has_lock = has_any(&["Cargo.lock"]) || command.args.iter().any(fixes_lock);
            !has_lock || has_any(CARGO_CONFIG) || has_any(RUST_TOOLCHAIN) || picks_version()
        }
        "cargo" | "rustc" | "rustup" => has_any(RUST_TOOLCHAIN) || picks_version(),
        "npm" => has_any(&[".npmrc"]) || picks_version(),
        "awk" | "fd" | "file" | "gcc" | "go" | "jq" | "make" | "node" | "pip" | "python"
        | "python3" | "rg" | "tree" => picks_version(),
        _ => false,
    }
}

/// Whether cargo is only asked for its version, or for nothing.
fn is_version(command: &Command) -> bool {
    !matches!(
        command.args.first().and_then(Word::literal),
        Some("tree" | "metadata")
    )
}

/// Files that name the compiler that cargo asks for its version.
const CARGO_CONFIG: &[&str] = &[".cargo/config", ".cargo/config.toml"];

/// Files with which rustup picks a toolchain, which may be a folder of the project.
const RUST_TOOLCHAIN: &[&str] = &["rust-toolchain", "rust-toolchain.toml"];

/// Whether there is such a file, or a link of this name that leads nowhere yet.
pub(super) fn exists(folder: &Path, name: &str) -> bool {
    folder.join(name).symlink_metadata().is_ok()
}
