//! Commands that are given the names of files: by `xargs`, or by `-exec` of find.

use super::{
    carriers::{base_name, is_opaque},
    harmless::{self, Reads, Table},
    line::Command,
    programs::{NAMING, Operands},
    rule::{Fit, follow_options},
    walk,
    word::Word,
};
use crate::Workspace;
use std::path::{Path, PathBuf};

/// Programs that start the command that follows these words; `_` stands for any.
const STARTERS: &[&[&str]] = &[
    &["asdf", "exec"],
    &["bundle", "exec"],
    &["bunx"],
    &["conda", "run"],
    &["direnv", "exec", "_"],
    &["goenv", "exec"],
    &["hatch", "run"],
    &["mise", "exec"],
    &["mise", "x"],
    &["nodenv", "exec"],
    &["npm", "exec"],
    &["npm", "x"],
    &["npx"],
    &["pdm", "run"],
    &["pipenv", "run"],
    &["pipx", "run"],
    &["pnpm", "dlx"],
    &["pnpm", "exec"],
    &["poetry", "run"],
    &["pyenv", "exec"],
    &["rbenv", "exec"],
    &["rustup", "run", "_"],
    &["rye", "run"],
    &["uv", "run"],
    &["uvx"],
    &["yarn", "dlx"],
    &["yarn", "exec"],
];

/// Stands for the name of a file that a command is given.
pub(crate) const STAND_IN: &str = "./name";

/// The command that another starts, by its own words.
pub(crate) enum Started {
    /// None that is known of.
    Nothing,
    /// One whose words are not certain.
    Unknown,
    /// Without the names that it is given.
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

/// The command that `xargs`, `find` or a program that runs others in an environment starts.
pub(crate) fn started(command: &Command) -> Started {
    let is_exec = |word: &Word| {
        let word = word.literal();
        word.is_some_and(|it| matches!(it, "-exec" | "-execdir" | "-ok" | "-okdir"))
    };
    let starters = STARTERS.iter().filter_map(|words| words.split_first());
    let program = base_name(&command.name);
    let starters = starters.filter(|(name, _)| **name == program);
    let owned = |words: Vec<&str>| -> Vec<Word> {
        let words = words.into_iter();
        words.map(|word| Word::Literal(word.to_owned())).collect()
    };
    let inner: Option<Vec<Word>> = match program {
        "xargs" => exact(&command.args).and_then(|words| Some(owned(taken_apart(&words)?.1))),
        "find" => match command.args.iter().position(is_exec) {
            None => return Started::Nothing,
            Some(at) => {
                let ends = |word: &&Word| matches!(word.literal(), Some(";" | "+"));
                let inner = command.args.iter().skip(at + 1);
                Some(inner.take_while(|word| !ends(word)).cloned().collect())
            }
        },
        name if runs_lines(name, &command.args) => None,
        _ => {
            let fits = starters.map(|(_, words)| (begins_with(&command.args, words), words));
            match fits.max_by_key(|(fit, _)| *fit) {
                None | Some((Fit::No, _)) => return Started::Nothing,
                Some((Fit::Perhaps, _)) => None,
                Some((Fit::Yes, words)) => command.args.get(words.len()..).map(<[Word]>::to_vec),
            }
        }
    };
    let inner = inner.unwrap_or_default();
    match inner.split_first() {
        // An option may have a value.
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

/// Compares the first arguments with these words. An option before them may have a value, so that it is not certain
/// which word is the first.
fn begins_with(args: &[Word], words: &[&str]) -> Fit {
    let known = || -> Vec<&str> {
        let known = words.iter().filter(|word| **word != "_");
        known.copied().collect()
    };
    let mut given = args.iter().map(Word::literal);
    for word in words {
        match given.next() {
            Some(Some(arg)) if *word == "_" || arg == *word => {}
            Some(None) => return Fit::Perhaps,
            Some(Some(_)) | None if follow_options(&known(), args) => return Fit::Perhaps,
            Some(Some(_)) | None => return Fit::No,
        }
    }
    Fit::Yes
}

/// Recognises git commands that hand a line to a shell.
fn runs_lines(name: &str, args: &[Word]) -> bool {
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

/// The words, if each is exactly known.
fn exact(words: &[Word]) -> Option<Vec<&str>> {
    let is_exact = |word: &&Word| !matches!(word, Word::Among(_));
    let words = words.iter();
    words
        .map(|word| Some(word).filter(is_exact)?.literal())
        .collect()
}

/// Whether `xargs` is given names that are separated by NUL, and the words of its command, `echo` if there are none.
fn taken_apart<'a>(words: &[&'a str]) -> Option<(bool, Vec<&'a str>)> {
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

/// What `xargs` reads, if its command only reads and the names that it is given are certain to be names.
pub(crate) fn reads(command: &Command, bases: &[PathBuf], workspace: &Workspace) -> Option<Reads> {
    let words = exact(&command.args)?;
    let (by_nul, inner) = taken_apart(&words)?;
    let (name, args) = inner.split_first()?;
    let source = source(&command.input, by_nul)?;
    let ends_options = args.last() == Some(&"--");
    if by_nul && source.may_begin_with_dash && !ends_options {
        return None;
    }
    let found = harmless::reads(source.command, bases, workspace, Table::Confined)?;
    let mut folders = found.paths;
    folders.extend_from_slice(bases);
    let is_taken_apart =
        || source.places.iter().any(|place| !is_whole(place)) || may_be_taken_apart(&folders);
    if !by_nul && is_taken_apart() {
        return None;
    }
    let args = args.iter().map(|arg| Word::Literal((*arg).to_owned()));
    reads_of_named(name, args.collect(), &folders, (bases, workspace))
}

/// What a command reads that is given names of files below `folders` after its own arguments, if it only reads.
pub(crate) fn reads_of_named(
    name: &str,
    mut args: Vec<Word>,
    folders: &[PathBuf],
    (bases, workspace): (&[PathBuf], &Workspace),
) -> Option<Reads> {
    // Two of them: some programs write to the second file that they are given.
    args.extend([STAND_IN, "./other"].map(|name| Word::Name(name.to_owned())));
    let command = Command {
        opaque: is_opaque(name, &args) && name != "awk",
        name: name.to_owned(),
        args,
        is_fed: true,
        input: Vec::new(),
    };
    let is_nested = matches!(name, "find" | "git" | "xargs") || name.contains('/');
    // To these some names are a host or a file with more arguments, not a file.
    let reads_names = matches!(name, "strings" | "tar" | "unzip");
    // Not what bash has of that name.
    let is_brought = harmless::is_brought(name, false, bases, workspace);
    if is_nested || is_brought || reads_names || harmless::links_lead_outside(folders, workspace) {
        return None;
    }
    let reads = harmless::reads(&command, bases, workspace, Table::Confined)?;
    let mut paths = reads.paths;
    paths.extend_from_slice(folders);
    Some(Reads {
        paths,
        widely: true,
    })
}

/// The command of a pipeline whose output are names.
struct Source<'a> {
    command: &'a Command,
    may_begin_with_dash: bool,
    /// The files and folders that it is given: what it prints begins with one of them.
    places: Vec<&'a str>,
}

fn source(input: &[Command], by_nul: bool) -> Option<Source<'_>> {
    let (first, filters) = input.split_first()?;
    let words = first.literal()?;
    let is_filter = |command: &Command| is_filter(command).is_some();
    if by_nul && !filters.is_empty() || !filters.iter().all(is_filter) {
        return None;
    }
    let has = |wanted: &str| words.contains(&wanted);
    let (lists, places) = match first.name.as_str() {
        "find" => {
            let prints_else = ["-printf", "-ls", "-exec"].iter().any(|word| has(word));
            let is_place = |word: &&str| !word.starts_with('-') && !matches!(*word, "!" | "(");
            let places = words.iter().skip(1).copied().take_while(is_place);
            let lists = has("-print0") == by_nul && !(by_nul && has("-print")) && !prints_else;
            (lists, places.collect())
        }
        "grep" | "rg" | "git" => {
            let program = NAMING
                .iter()
                .find(|program| words.starts_with(program.words))?;
            let args = words.get(program.words.len()..)?;
            let given = harmless::arguments(program, args, true)?;
            let has = |letters: &[char], long: &[&str]| {
                given.short.contains(letters) || given.long.iter().any(|it| long.contains(it))
            };
            let is_search = program.operands == Operands::PatternThenPaths;
            let lists = has(&['l'], &["--files-with-matches", "--files"]) || !is_search;
            let takes_pattern = is_search && !has(&['e'], &["--files"]);
            let is_by_nul = has(&['Z', '0'], &["--null"]) || !is_search && has(&['z'], &[]);
            let places = given.operands.get(usize::from(takes_pattern)..)?;
            // Git quotes names that are not separated by NUL.
            let is_exact = is_search || by_nul;
            (lists && is_exact && is_by_nul == by_nul, places.to_vec())
        }
        _ => return None,
    };
    lists.then_some(Source {
        command: first,
        may_begin_with_dash: first.name != "find",
        places,
    })
}

/// Whether a command passes lines on as they are.
fn is_filter(command: &Command) -> Option<()> {
    let words = command.literal()?;
    let (name, args) = words.split_first()?;
    // `-` is a pattern to grep and a file to the others.
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

/// Whether a name below the folders holds what `xargs` splits names at, or begins as an option does. Also true when
/// there are too many to be sure.
fn may_be_taken_apart(folders: &[PathBuf]) -> bool {
    let is_unsafe = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str());
        !name.is_some_and(|name| !name.starts_with('-') && is_whole(name))
    };
    let mut left = walk::MOST_ENTRIES;
    folders
        .iter()
        .any(|path| path.is_dir() && walk::may_contain(path, &mut left, &is_unsafe))
}

/// Checks that `xargs` would not split or unquote the name.
fn is_whole(name: &str) -> bool {
    name.chars()
        .all(|c| c.is_ascii_alphanumeric() || "_-.+,@=%/".contains(c))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit())
}
