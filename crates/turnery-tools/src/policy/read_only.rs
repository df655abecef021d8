//! Decides whether a command only reads, and only inside the roots. The programs are listed in
//! `read_only_programs`.

use super::{
    bounded_walk,
    command_line::SimpleCommand,
    command_starters::is_harmless_git_flag,
    conditional_expressions, git, ignore_files, inner_commands,
    path_checks::{entry_exists, is_inside_roots},
    read_only_arguments::parse_arguments,
    read_only_programs::{
        FIND_CONFINED_FLAGS, FIND_FLAGS, FIND_VALUED_TESTS, ProgramOperands, READ_ONLY_PROGRAMS,
    },
    read_only_scripts,
    shell_word::ShellWord,
    version_files,
};
use crate::{
    Workspace,
    workspace::{canonicalize, normalise_lexically},
};
use std::path::{Path, PathBuf};

/// Files that a read-only command reads.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReadAccess {
    /// Resolved files and folders that the command names.
    pub(crate) paths: Vec<PathBuf>,
    /// True if the command also reads files that its words do not name: everything below a folder, or git's
    /// objects.
    pub(crate) reads_unnamed_files: bool,
    /// True if the command may show lines of settings that its words do not name: ignore files of git, manifests in
    /// messages.
    pub(crate) may_quote_settings: bool,
}

/// Set of table entries that apply to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgramSet {
    /// Programs and options that only read in any environment.
    Everywhere,
    /// All entries, for commands that run in a sandbox without write access, without network and without
    /// access to other files.
    Confined,
}

/// Commands built into bash.
const BUILTINS: &[&str] = &[
    ":", "[", "[[", "cd", "command", "echo", "false", "printf", "pwd", "test", "true", "type",
    "ulimit",
];

/// Programs that look up and start other programs by name. A trailing `*` matches any suffix.
const STARTED_PROGRAMS: &[(&str, &[&str])] = &[
    ("cargo", &["rustc"]),
    ("egrep", &["grep"]),
    ("fgrep", &["grep"]),
    // `go` starts the version that a project asks for.
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

/// Placeholder for a word that is only printed.
const PRINT_ONLY: &str = "\0";

/// Returns what the command reads when started from any of `bases`; `None` unless it only reads and stays
/// inside the roots.
pub(crate) fn read_access(
    command: &SimpleCommand,
    bases: &[PathBuf],
    workspace: &Workspace,
    table: ProgramSet,
) -> Option<ReadAccess> {
    let is_confined = table == ProgramSet::Confined;
    if is_confined && let Some((command, bases)) = strip_git_options(command, bases, workspace) {
        return read_access(&command, &bases, workspace, table);
    }
    // The order of the names is unknown, so none of them may be the program, a pattern or the value of an
    // option.
    let is_among = |word: &ShellWord| matches!(word, ShellWord::UnorderedFileName(_));
    let first_among = command.args.iter().position(is_among);
    if let Some(first) = first_among {
        let mut before = command.clone();
        before.args.truncate(first);
        read_access(&before, bases, workspace, table)?;
    }
    let words = command_words(command)?;
    let is_builtin = BUILTINS.contains(&command.name.as_str());
    if command.is_opaque || is_project_program(&command.name, is_builtin, bases, workspace) {
        return None;
    }
    if command.name == "cd" {
        return Some(ReadAccess {
            paths: resolve_paths(&words[1..], bases, workspace)?,
            reads_unnamed_files: false,
            may_quote_settings: false,
        });
    }
    let program = READ_ONLY_PROGRAMS
        .iter()
        .copied()
        .flatten()
        .filter(|program| is_confined || !program.is_confined_only)
        .filter(|program| words.starts_with(program.words))
        .max_by_key(|program| program.words.len())?;
    if first_among.is_some_and(|first| program.words.len() > first + 1) {
        return None;
    }
    let args = &words[program.words.len()..];
    let prints = matches!(
        program.operands,
        ProgramOperands::AnyText | ProgramOperands::PrintfFormat | ProgramOperands::Condition
    );
    if !prints && args.contains(&PRINT_ONLY) {
        return None;
    }
    if let ProgramOperands::Xargs = program.operands {
        return inner_commands::xargs_read_access(command, bases, workspace);
    }
    if is_confined
        && command.name == "find"
        && let Some(at) = args.iter().position(|arg| *arg == "-exec")
    {
        return find_exec_access(args, at, bases, workspace);
    }
    let sed_files = || read_only_scripts::sed_input_files(command);
    if let Some(files) = (is_confined && command.name == "sed")
        .then(sed_files)
        .flatten()
    {
        return Some(ReadAccess {
            paths: resolve_paths(&files, bases, workspace)?,
            reads_unnamed_files: false,
            may_quote_settings: false,
        });
    }
    let operands = match program.operands {
        ProgramOperands::AwkProgram => read_only_scripts::awk_input_files(command)?,
        ProgramOperands::Condition => conditional_expressions::condition_paths(command)?,
        ProgramOperands::FindTests => find_searched_folders(args, is_confined)?,
        ProgramOperands::PatternThenPaths => {
            let given = parse_arguments(program, args, is_confined)?;
            given.searched_paths()?.to_vec()
        }
        ProgramOperands::Xargs => return None,
        ProgramOperands::AnyText => Vec::new(),
        ProgramOperands::PrintfFormat if printf_only_prints(args) => Vec::new(),
        ProgramOperands::PrintfFormat => return None,
        ProgramOperands::None
        | ProgramOperands::Text
        | ProgramOperands::OnePath
        | ProgramOperands::Paths
        | ProgramOperands::Revisions
        | ProgramOperands::DateFormat
        | ProgramOperands::JqFilter
        | ProgramOperands::Archive
        | ProgramOperands::Number
        | ProgramOperands::PathsWithoutArgFiles
        | ProgramOperands::SedPrintLines => parse_arguments(program, args, is_confined)?.operands,
    };
    let paths: &[&str] = match program.operands {
        ProgramOperands::None if operands.is_empty() => &[],
        ProgramOperands::None => return None,
        ProgramOperands::Text
        | ProgramOperands::AnyText
        | ProgramOperands::PrintfFormat
        | ProgramOperands::Xargs => &[],
        ProgramOperands::DateFormat if operands.is_empty() => &[],
        ProgramOperands::DateFormat => match operands.as_slice() {
            [format] if is_confined && format.starts_with('+') => &[],
            _ => return None,
        },
        ProgramOperands::JqFilter => match operands.split_first() {
            Some((filter, paths)) => {
                let mut args = command.args.iter();
                let filter = args.find(|arg| arg.known_text() == Some(filter))?;
                read_only_scripts::jq_only_filters(filter).then_some(paths)?
            }
            None => return None,
        },
        // The word after the letter `f` is the archive, even if it is `--`.
        ProgramOperands::Archive if args.contains(&"--") => return None,
        // tar takes text before a colon as the host to fetch the archive from.
        ProgramOperands::Archive => match operands.split_first() {
            Some((archive, _))
                if command.name == "unzip" && !is_existing_archive(archive, bases) =>
            {
                return None;
            }
            Some((archive, _)) if !archive.contains(':') => operands.get(..1)?,
            _ => return None,
        },
        ProgramOperands::AwkProgram | ProgramOperands::Condition => &operands,
        ProgramOperands::Number => match operands.as_slice() {
            [number] if number.chars().all(|c| c.is_ascii_digit()) => &[],
            _ => return None,
        },
        // `@file` stands for the words in a file, also as the value of an option.
        ProgramOperands::PathsWithoutArgFiles if args.iter().any(|word| word.contains('@')) => {
            return None;
        }
        ProgramOperands::PathsWithoutArgFiles => &operands,
        // Any word after the first path may be a second path, which is written, whatever it looks like.
        ProgramOperands::OnePath
            if operands.len() > 1 || operands.first().is_some_and(|it| args.last() != Some(it)) =>
        {
            return None;
        }
        ProgramOperands::OnePath
        | ProgramOperands::Paths
        | ProgramOperands::PatternThenPaths
        | ProgramOperands::Revisions
        | ProgramOperands::FindTests => &operands,
        ProgramOperands::SedPrintLines => match operands.split_first() {
            Some((script, paths)) if args.contains(&"-n") && is_print_lines_script(script) => paths,
            _ => return None,
        },
    };
    if may_run_project_code(command, bases, workspace, table) {
        return None;
    }
    if program.words.starts_with(&["git", "config"])
        && !operands.iter().all(|key| is_public_git_key(key))
    {
        return None;
    }
    // A leading `:` reaches the whole repository, and any file where git compares with files.
    let is_git = command.name == "git";
    if is_git && operands.iter().any(|word| word.starts_with(':')) {
        return None;
    }
    let quotes = matches!(
        program.words,
        ["cargo" | "npm", _, ..] | ["git", "check-ignore", ..]
    );
    let reads_unnamed_files = match program.operands {
        _ if quotes || matches!(program.words, ["git", "config", ..]) => true,
        ProgramOperands::PatternThenPaths | ProgramOperands::Revisions => true,
        ProgramOperands::Paths => command.name == "diff",
        ProgramOperands::None
        | ProgramOperands::Text
        | ProgramOperands::AnyText
        | ProgramOperands::PrintfFormat
        | ProgramOperands::OnePath
        | ProgramOperands::SedPrintLines
        | ProgramOperands::AwkProgram
        | ProgramOperands::Condition
        | ProgramOperands::DateFormat
        | ProgramOperands::JqFilter
        | ProgramOperands::Archive
        | ProgramOperands::Xargs
        | ProgramOperands::Number
        | ProgramOperands::PathsWithoutArgFiles
        | ProgramOperands::FindTests => false,
    };
    let paths = resolve_paths(paths, bases, workspace)?;
    if command.name == "diff" && links_lead_outside(&paths, workspace) {
        return None;
    }
    if !is_confined && command.name == "rg" {
        let searched = if paths.is_empty() { bases } else { &paths };
        if ignore_files::may_read_other_ignore_files(searched, &|_| false) {
            return None;
        }
    }
    // Git walks everything that such a pattern may match.
    let is_wide = |path: &&str| path.contains("..") && path.contains(['*', '?', '[']);
    if is_confined && is_git && operands.iter().any(is_wide) {
        return None;
    }
    if is_confined && search_follows_links(command) {
        let is_whole = paths.is_empty() || is_git;
        if is_whole && links_lead_outside(bases, workspace) || links_lead_outside(&paths, workspace)
        {
            return None;
        }
    }
    Some(ReadAccess {
        paths,
        reads_unnamed_files,
        may_quote_settings: quotes,
    })
}

/// Returns true if the project may supply the program, a program that it starts, or the shell that runs the
/// line.
pub(crate) fn is_project_program(
    name: &str,
    is_builtin: bool,
    bases: &[PathBuf],
    workspace: &Workspace,
) -> bool {
    let started = STARTED_PROGRAMS
        .iter()
        .filter(|(program, _)| *program == name);
    let own = (!is_builtin).then_some(name);
    let mut names = ["bash", "sh"]
        .into_iter()
        .chain(own)
        .chain(started.flat_map(|(_, started)| started.iter().copied()));
    names.any(|name| {
        let cwd = std::iter::once(workspace.cwd());
        let mut bases = bases.iter().map(PathBuf::as_path).chain(cwd);
        bases.any(|base| workspace.may_provide_program(name, base))
    })
}

/// Returns the words of the command, with a placeholder for those that are only printed.
fn command_words(command: &SimpleCommand) -> Option<Vec<&str>> {
    let args = command.args.iter().map(|word| match word {
        ShellWord::ExitCode | ShellWord::PublicText | ShellWord::PublicWords => Some(PRINT_ONLY),
        word => word.known_text(),
    });
    std::iter::once(Some(&*command.name)).chain(args).collect()
}

/// Strips harmless options such as `-C FOLDER` before the subcommand of git, up to the first other word, and
/// returns the remaining command and the folders in which it works. `None` if there is none to strip, or a
/// folder is outside the roots.
fn strip_git_options(
    command: &SimpleCommand,
    bases: &[PathBuf],
    workspace: &Workspace,
) -> Option<(SimpleCommand, Vec<PathBuf>)> {
    let mut bases = bases.to_vec();
    let mut args = command.args.as_slice();
    if command.name != "git" {
        return None;
    }
    loop {
        args = match args {
            [ShellWord::Literal(option), rest @ ..] if is_harmless_git_flag(option) => rest,
            [
                ShellWord::Literal(option),
                ShellWord::Literal(folder),
                rest @ ..,
            ] if option == "-C" => {
                bases = resolve_paths(&[folder.as_str()], &bases, workspace)?;
                rest
            }
            _ => break,
        };
    }
    let inner = SimpleCommand {
        args: args.to_vec(),
        ..command.clone()
    };
    (args.len() < command.args.len()).then_some((inner, bases))
}

/// Returns true if `unzip` opens exactly this file. It derives other names from a name without a file, and
/// expands patterns.
fn is_existing_archive(name: &str, bases: &[PathBuf]) -> bool {
    !name.contains(['*', '?', '[']) && bases.iter().all(|base| base.join(name).is_file())
}

/// Returns true if a key of git's configuration holds no secret; HTTP headers and the user's URLs may.
fn is_public_git_key(key: &str) -> bool {
    let sections = [
        "branch.", "core.", "init.", "pull.", "push.", "remote.", "user.",
    ];
    sections.iter().any(|section| key.starts_with(section))
}

/// Returns true if a search follows links.
fn search_follows_links(command: &SimpleCommand) -> bool {
    let mut args = command.known_args();
    if command.name == "git" {
        return args.next() == Some("grep");
    }
    matches!(command.name.as_str(), "grep" | "egrep" | "fgrep")
        && args.any(|arg| {
            arg == "--dereference-recursive" || is_short_option(arg) && arg.contains('R')
        })
}

/// Returns what `find … -exec` reads; `None` unless its command takes the names after its other words and
/// only reads.
fn find_exec_access(
    args: &[&str],
    at: usize,
    bases: &[PathBuf],
    workspace: &Workspace,
) -> Option<ReadAccess> {
    let (tests, exec) = args.split_at_checked(at)?;
    let [_, inner @ .., "{}", end] = exec else {
        return None;
    };
    let (name, words) = inner.split_first()?;
    // After an inner semicolon, the remaining words are parsed by find.
    let is_plain = matches!(*end, "+" | ";")
        && !(inner.iter()).any(|word| word.contains("{}") || *word == ";");
    let folders = find_searched_folders(tests, true).filter(|_| is_plain)?;
    let mut folders = resolve_paths(&folders, bases, workspace)?;
    // Other words are files to compare with.
    if find_places(tests).is_empty() {
        folders.extend_from_slice(bases);
    }
    let words = words
        .iter()
        .map(|word| ShellWord::Literal((*word).to_owned()));
    inner_commands::read_access_of_named_files(name, words.collect(), &folders, (bases, workspace))
}

/// Returns true if a link below one of these folders leads outside the roots, or if that is uncertain. `diff`
/// follows such links.
pub(crate) fn links_lead_outside(paths: &[PathBuf], workspace: &Workspace) -> bool {
    let is_outside = |path: &Path| !workspace.roots().iter().any(|root| path.starts_with(root));
    let mut left = bounded_walk::MAX_ENTRIES;
    paths
        .iter()
        .any(|path| path.is_dir() && bounded_walk::may_contain(path, &mut left, &is_outside))
}

/// Resolves the paths from each base; `None` if one of them leads outside the roots.
pub(crate) fn resolve_paths(
    paths: &[&str],
    bases: &[PathBuf],
    workspace: &Workspace,
) -> Option<Vec<PathBuf>> {
    let mut found = Vec::new();
    for base in bases {
        for path in paths {
            let from_base = base.join(path);
            // Git resolves `..` in the text of a path, without following links.
            if path.contains("..") && !is_inside_roots(&normalise_lexically(&from_base), workspace)
            {
                return None;
            }
            found.push(workspace.resolve(from_base.to_str()?).ok()?);
        }
    }
    Some(found)
}

fn is_short_option(arg: &str) -> bool {
    arg.starts_with('-') && !arg.starts_with("--")
}

/// Returns true for sed scripts that print lines by number: `12p`, `1,20p`, `5,$p`.
fn is_print_lines_script(script: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    script
        .strip_suffix('p')
        .is_some_and(|lines| match lines.split_once(',') {
            Some((from, to)) => is_number(from) && (to == "$" || is_number(to)),
            None => is_number(lines),
        })
}

/// Returns true if `printf` only prints: `-v` and `%n` set variables.
fn printf_only_prints(args: &[&str]) -> bool {
    let is_format = |first: &&&str| !first.starts_with('-') && **first != PRINT_ONLY;
    let Some(format) = args.first().filter(is_format) else {
        return false;
    };
    format.split('%').skip(1).all(|conversion| {
        let between = |c: char| c.is_ascii_digit() || ".*+-# 'hlLqjzt".contains(c);
        !conversion.trim_start_matches(between).starts_with('n')
    })
}

/// Returns the words of `find` that name the places to search.
pub(crate) fn find_places<'a, 'w>(args: &'a [&'w str]) -> &'a [&'w str] {
    let is_test = |arg: &&str| arg.starts_with('-') || matches!(*arg, "!" | "(" | ")");
    let end = args.iter().position(is_test).unwrap_or(args.len());
    args.get(..end).unwrap_or_default()
}

/// Returns the places that `find` searches and the files that it compares with.
fn find_searched_folders<'a>(args: &[&'a str], is_confined: bool) -> Option<Vec<&'a str>> {
    let mut folders = find_places(args).to_vec();
    let mut tests = args[folders.len()..].iter();
    while let Some(test) = tests.next() {
        if is_confined && *test == "-newer" {
            folders.push(tests.next().filter(|path| !path.starts_with('-'))?);
        } else if is_confined && *test == "-printf" || FIND_VALUED_TESTS.contains(test) {
            tests.next()?;
        } else if is_confined && FIND_CONFINED_FLAGS.contains(test) {
            // These options and tests have no value.
        } else if !FIND_FLAGS.contains(test) {
            return None;
        }
    }
    Some(folders)
}

/// Returns true if files in the folder make this program run something: a program configured in the
/// repository, or one that the project supplies and a version manager's shim starts.
fn may_run_project_code(
    command: &SimpleCommand,
    bases: &[PathBuf],
    workspace: &Workspace,
    table: ProgramSet,
) -> bool {
    // Some programs go by the path that the shell names, others by the one without links.
    let real = bases.iter().filter_map(|base| canonicalize(base).ok());
    let folders: Vec<PathBuf> = bases.iter().cloned().chain(real).collect();
    let above =
        |found: &dyn Fn(&Path) -> bool| folders.iter().flat_map(|base| base.ancestors()).any(found);
    let has_any =
        |names: &[&str]| above(&|folder| names.iter().any(|name| entry_exists(folder, name)));
    let picks_version = || {
        above(&version_files::picks_project_version)
            || version_files::has_version_in_project(workspace)
    };
    match command.name.as_str() {
        "git" => {
            let run = match table {
                ProgramSet::Confined => git::GitRun::Confined,
                ProgramSet::Everywhere => git::GitRun::Hardened,
            };
            !git::runs_no_configured_program(command, bases, workspace, run)
        }
        "cargo" if !is_version_query(command) => {
            let fixes_lock =
                |word: &ShellWord| matches!(word.known_text(), Some("--locked" | "--offline"));
            let has_lock = has_any(&["Cargo.lock"]) || command.args.iter().any(fixes_lock);
            !has_lock
                || has_any(CARGO_CONFIG_FILES)
                || has_any(RUST_TOOLCHAIN_FILES)
                || picks_version()
        }
        "cargo" | "rustc" | "rustup" => has_any(RUST_TOOLCHAIN_FILES) || picks_version(),
        // Corepack, which may provide `npm`, reads the second.
        "npm" => has_any(&[".npmrc", ".corepack.env"]) || picks_version(),
        "awk" | "file" | "gcc" | "go" | "jq" | "make" | "node" | "pip" | "python" | "python3"
        | "rg" | "tree" => picks_version(),
        _ => false,
    }
}

/// Returns true if cargo is called without arguments or only for its version.
fn is_version_query(command: &SimpleCommand) -> bool {
    !matches!(
        command.args.first().and_then(ShellWord::known_text),
        Some("tree" | "metadata")
    )
}

/// Files that name the compiler whose version cargo asks for.
const CARGO_CONFIG_FILES: &[&str] = &[".cargo/config", ".cargo/config.toml"];

/// Files with which rustup selects a toolchain, which may be a folder of the project.
const RUST_TOOLCHAIN_FILES: &[&str] = &["rust-toolchain", "rust-toolchain.toml"];

#[cfg(test)]
mod project_code_tests;
