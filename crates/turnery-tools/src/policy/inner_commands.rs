//! Finds the commands that other commands start, for example with `xargs` or `find -exec`.

use super::{
    bounded_walk,
    command_line::Command,
    command_wrappers::{base_name, is_opaque},
    read_only::{self, Reads, Table},
    read_only_arguments,
    read_only_programs::{FIND_VALUED_TESTS, NAME_LISTING_PROGRAMS, Operands},
    rule::{Fit, words_follow_options},
    shell_word::Word,
};
use crate::Workspace;
use std::path::{Path, PathBuf};

/// Programs that start the command after these words; `_` matches any word.
const COMMAND_RUNNERS: &[&[&str]] = &[
    &["asdf", "exec"],
    &["bundle", "exec"],
    &["bunx"],
    &["conda", "run"],
    &["direnv", "exec", "_"],
    &["doppler", "run"],
    &["fnm", "exec"],
    &["goenv", "exec"],
    &["hatch", "run"],
    &["mamba", "run"],
    &["micromamba", "run"],
    &["mise", "exec"],
    &["mise", "x"],
    &["nodenv", "exec"],
    &["npm", "exec"],
    &["npm", "x"],
    &["npx"],
    &["pdm", "run"],
    &["pipenv", "run"],
    &["pipx", "run"],
    &["pixi", "run"],
    &["pnpm", "dlx"],
    &["pnpm", "exec"],
    &["poetry", "run"],
    &["pyenv", "exec"],
    &["rbenv", "exec"],
    &["rustup", "run", "_"],
    &["rye", "run"],
    &["uv", "run"],
    &["uvx"],
    &["volta", "run"],
    &["yarn", "dlx"],
    &["yarn", "exec"],
];

/// Placeholder for a file name passed to a command.
pub(crate) const PLACEHOLDER_NAME: &str = "./name";

/// Command started by another command.
pub(crate) enum Started {
    /// No known inner command.
    Nothing,
    /// Inner command whose words are not certain.
    Unknown,
    /// Inner command, without the names that are appended to it.
    Command(Command),
}

impl Started {
    pub(crate) fn command(&self) -> Option<&Command> {
        match self {
            Self::Nothing | Self::Unknown => None,
            Self::Command(command) => Some(command),
        }
    }
}

/// Finds the command that `xargs`, `find` or an environment runner starts.
pub(crate) fn started(command: &Command) -> Started {
    let is_exec = |word: &Word| {
        let word = word.literal();
        word.is_some_and(|it| matches!(it, "-exec" | "-execdir" | "-ok" | "-okdir"))
    };
    let starters = COMMAND_RUNNERS
        .iter()
        .filter_map(|words| words.split_first());
    let program = base_name(&command.name);
    let starters = starters.filter(|(name, _)| **name == program);
    let owned = |words: Vec<&str>| -> Vec<Word> {
        let words = words.into_iter();
        words.map(|word| Word::Literal(word.to_owned())).collect()
    };
    let inner: Option<Vec<Word>> = match program {
        "xargs" => {
            exact_words(&command.args).and_then(|words| Some(owned(parse_xargs_args(&words)?.1)))
        }
        "find" => match command.args.iter().position(is_exec) {
            None => return Started::Nothing,
            Some(at) => {
                let ends = |word: &&Word| matches!(word.literal(), Some(";" | "+"));
                let inner = command.args.iter().skip(at + 1);
                Some(inner.take_while(|word| !ends(word)).cloned().collect())
            }
        },
        name if runs_shell_line(name, &command.args) => None,
        _ => {
            let fits = starters.map(|(_, words)| (match_leading_args(&command.args, words), words));
            match fits.max_by_key(|(fit, _)| *fit) {
                None | Some((Fit::No, _)) => return Started::Nothing,
                Some((Fit::Perhaps, _)) => None,
                Some((Fit::Yes, words)) => command.args.get(words.len()..).map(<[Word]>::to_vec),
            }
        }
    };
    let inner = inner.unwrap_or_default();
    match inner.split_first() {
        // After an option, the next word may be its value.
        Some((Word::Literal(name) | Word::Name(name), args)) if !name.starts_with('-') => {
            Started::Command(Command {
                name: name.clone(),
                args: args.to_vec(),
                opaque: is_opaque(name, args),
                is_fed: true,
                input: Vec::new(),
            })
        }
        Some(_) | None => Started::Unknown,
    }
}

/// Matches the first arguments against the words. An option before them may have a value, so the first word
/// is then uncertain.
fn match_leading_args(args: &[Word], words: &[&str]) -> Fit {
    let known = || -> Vec<&str> {
        let known = words.iter().filter(|word| **word != "_");
        known.copied().collect()
    };
    let mut given = args.iter().map(Word::literal);
    for word in words {
        match given.next() {
            Some(Some(arg)) if *word == "_" || arg == *word => {}
            Some(None) => return Fit::Perhaps,
            Some(Some(_)) | None if words_follow_options(&known(), args) => return Fit::Perhaps,
            Some(Some(_)) | None => return Fit::No,
        }
    }
    Fit::Yes
}

/// Returns true for git commands that pass a line to a shell.
fn runs_shell_line(name: &str, args: &[Word]) -> bool {
    let has = |wanted: &[&str]| {
        let mut words = args.iter().map(Word::literal);
        words.any(|word| word.is_none_or(|word| wanted.iter().any(|it| word.starts_with(it))))
    };
    let is_run = |subcommand, words: &[&str]| has(&[subcommand]) && has(words);
    name == "git"
        && (has(&["filter-branch"])
            || is_run("bisect", &["run"])
            || is_run("rebase", &["--exe", "-x"])
            || is_run("submodule", &["foreach"]))
}

/// Returns the texts of the words if all are exactly known.
fn exact_words(words: &[Word]) -> Option<Vec<&str>> {
    let is_exact = |word: &&Word| !matches!(word, Word::Among(_));
    let words = words.iter();
    words
        .map(|word| Some(word).filter(is_exact)?.literal())
        .collect()
}

/// Parses the arguments of `xargs`: whether its input is NUL-separated, and the words of its command (`echo`
/// by default).
fn parse_xargs_args<'a>(words: &[&'a str]) -> Option<(bool, Vec<&'a str>)> {
    let mut words = words.iter().copied().peekable();
    let mut by_nul = false;
    while let Some(option) = words.next_if(|word| word.starts_with('-')) {
        match option {
            "-0" | "--null" => by_nul = true,
            "-r" | "-t" => {}
            "-n" | "-P" => {
                words.next().filter(|count| is_number(count))?;
            }
            _ => {
                let count = option.strip_prefix("-n").or(option.strip_prefix("-P"))?;
                is_number(count).then_some(())?;
            }
        }
    }
    let name = words.next().unwrap_or("echo");
    Some((by_nul, std::iter::once(name).chain(words).collect()))
}

/// Returns what `xargs` reads; `None` unless its command only reads and its input certainly consists of file
/// names.
pub(crate) fn reads(command: &Command, bases: &[PathBuf], workspace: &Workspace) -> Option<Reads> {
    let words = exact_words(&command.args)?;
    let (by_nul, inner) = parse_xargs_args(&words)?;
    let (name, args) = inner.split_first()?;
    let source = source(&command.input, by_nul)?;
    let ends_options = args.last() == Some(&"--");
    if by_nul && source.may_begin_with_dash && !ends_options {
        return None;
    }
    let found = read_only::reads(source.command, bases, workspace, Table::Confined)?;
    let mut folders = found.paths;
    folders.extend_from_slice(bases);
    let is_taken_apart =
        || source.search_paths.iter().any(|place| !is_whole(place)) || may_split_names(&folders);
    if !by_nul && is_taken_apart() {
        return None;
    }
    let args = args.iter().map(|arg| Word::Literal((*arg).to_owned()));
    read_access_of_named_files(name, args.collect(), &folders, (bases, workspace))
}

/// Returns what a command reads if names of files below `folders` follow its own arguments; `None` unless it
/// only reads.
pub(crate) fn read_access_of_named_files(
    name: &str,
    mut args: Vec<Word>,
    folders: &[PathBuf],
    (bases, workspace): (&[PathBuf], &Workspace),
) -> Option<Reads> {
    // Two names are appended because some programs write to their second file.
    args.extend([PLACEHOLDER_NAME, "./other"].map(|name| Word::Name(name.to_owned())));
    let command = Command {
        opaque: is_opaque(name, &args) && name != "awk",
        name: name.to_owned(),
        args,
        is_fed: true,
        input: Vec::new(),
    };
    let is_nested = matches!(name, "find" | "git" | "xargs") || name.contains('/');
    // These programs read some names as a host or as a file with further arguments.
    let reads_names = matches!(name, "strings" | "tar" | "unzip");
    // A program is started, never the bash builtin of that name.
    let is_brought = read_only::is_project_program(name, false, bases, workspace);
    if is_nested || is_brought || reads_names || read_only::links_lead_outside(folders, workspace) {
        return None;
    }
    let reads = read_only::reads(&command, bases, workspace, Table::Confined)?;
    let mut paths = reads.paths;
    paths.extend_from_slice(folders);
    Some(Reads {
        paths,
        widely: true,
    })
}

/// Command of a pipeline that prints file names.
struct NameSource<'a> {
    command: &'a Command,
    may_begin_with_dash: bool,
    /// Files and folders passed to the command: every printed name begins with one of them.
    search_paths: Vec<&'a str>,
}

/// Returns true if `find` ends names with NUL; a test may have `-print0` as its value.
fn prints_nul(words: &[&str]) -> bool {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if FIND_VALUED_TESTS.contains(word) || *word == "-newer" {
            words.next();
        } else if *word == "-print0" {
            return true;
        }
    }
    false
}

fn source(input: &[Command], by_nul: bool) -> Option<NameSource<'_>> {
    let (first, filters) = input.split_first()?;
    let words = first.literal()?;
    let check_line_filter = |command: &Command| check_line_filter(command).is_some();
    if by_nul && !filters.is_empty() || !filters.iter().all(check_line_filter) {
        return None;
    }
    let has = |wanted: &str| words.contains(&wanted);
    let (lists, search_paths) = match first.name.as_str() {
        "find" => {
            let prints_else = ["-printf", "-ls", "-exec"].iter().any(|word| has(word));
            let is_place = |word: &&str| !word.starts_with('-') && !matches!(*word, "!" | "(");
            let search_paths = words.iter().skip(1).copied().take_while(is_place);
            let lists = prints_nul(&words) == by_nul && !(by_nul && has("-print")) && !prints_else;
            (lists, search_paths.collect())
        }
        "grep" | "rg" | "git" => {
            let program = NAME_LISTING_PROGRAMS
                .iter()
                .find(|program| words.starts_with(program.words))?;
            let args = words.get(program.words.len()..)?;
            let given = read_only_arguments::arguments(program, args, true)?;
            let has = |letters: &[char], long: &[&str]| {
                given.short.contains(letters) || given.long.iter().any(|it| long.contains(it))
            };
            let is_search = program.operands == Operands::PatternThenPaths;
            let lists = has(&['l'], &["--files-with-matches", "--files"]) || !is_search;
            let takes_pattern = is_search && !has(&['e'], &["--files"]);
            let is_by_nul = has(&['Z', '0'], &["--null"]) || !is_search && has(&['z'], &[]);
            let search_paths = given.operands.get(usize::from(takes_pattern)..)?;
            // Git quotes names unless they are separated by NUL.
            let is_exact = is_search || by_nul;
            (
                lists && is_exact && is_by_nul == by_nul,
                search_paths.to_vec(),
            )
        }
        _ => return None,
    };
    lists.then_some(NameSource {
        command: first,
        may_begin_with_dash: first.name != "find",
        search_paths,
    })
}

/// Checks that a command passes lines on unchanged.
fn check_line_filter(command: &Command) -> Option<()> {
    let words = command.literal()?;
    let (name, args) = words.split_first()?;
    // grep reads `-` as a pattern, other programs as a file.
    if args.contains(&"-") {
        return None;
    }
    let operands = args.iter().filter(|arg| !arg.starts_with('-')).count();
    let has_only = |letters: &str| {
        let mut options = args.iter().filter_map(|arg| arg.strip_prefix('-'));
        options.all(|option| option.chars().all(|c| letters.contains(c)))
    };
    match *name {
        "sort" => has_only("ru") && operands == 0,
        "head" | "tail" => has_only("0123456789") && operands == 0,
        "grep" => has_only("EFiv") && operands == 1,
        _ => false,
    }
    .then_some(())
}

/// Returns true if a name below the folders begins like an option or contains a character at which `xargs`
/// splits, and also if there are too many entries to be sure.
fn may_split_names(folders: &[PathBuf]) -> bool {
    let is_unsafe = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str());
        !name.is_some_and(|name| !name.starts_with('-') && is_whole(name))
    };
    let mut left = bounded_walk::MAX_ENTRIES;
    folders
        .iter()
        .any(|path| path.is_dir() && bounded_walk::may_contain(path, &mut left, &is_unsafe))
}

/// Checks that `xargs` would not split or unquote the name.
fn is_whole(name: &str) -> bool {
    name.chars()
        .all(|c| c.is_ascii_alphanumeric() || "_-.+,@=%/".contains(c))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit())
}
