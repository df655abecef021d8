//! Commands that are given the names of files: by `xargs`, or by `-exec` of find.

use super::{
    harmless::{self, Reads, Table},
    line::Command,
    walk,
    word::Word,
};
use crate::Workspace;
use std::path::{Path, PathBuf};

/// Stands for the name of a file that a command is given.
pub(crate) const STAND_IN: &str = "./name";

/// What `xargs` reads, if its command only reads and the names that it is given are certain to be names.
pub(crate) fn reads(command: &Command, bases: &[PathBuf], workspace: &Workspace) -> Option<Reads> {
    let words: Option<Vec<&str>> = command.args.iter().map(Word::literal).collect();
    let mut words = words?.into_iter().peekable();
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
    let args: Vec<&str> = words.collect();
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
    let args = args.into_iter().map(|arg| Word::Literal(arg.to_owned()));
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
        opaque: super::carriers::is_opaque(name, &args) && name != "awk",
        name: name.to_owned(),
        args,
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
        "grep" => {
            let given = GREP.given(words.get(1..)?)?;
            let lists = given.has(&["-l", "--files-with-matches"]);
            let has_pattern = given.has(&["-e"]);
            let is_by_nul = given.has(&["-Z", "--null"]);
            let places = given.operands.get(usize::from(!has_pattern)..)?;
            (lists && is_by_nul == by_nul, places.to_vec())
        }
        "rg" => {
            let given = RG.given(words.get(1..)?)?;
            let lists = given.has(&["-l", "--files-with-matches", "--files"]);
            let has_pattern = given.has(&["-e", "--files"]);
            let is_by_nul = given.has(&["-0", "--null"]);
            let places = given.operands.get(usize::from(!has_pattern)..)?;
            (lists && is_by_nul == by_nul, places.to_vec())
        }
        "git" if words.get(1) == Some(&"ls-files") => {
            let given = LS_FILES.given(words.get(2..)?)?;
            (by_nul && given.has(&["-z"]), given.operands)
        }
        _ => return None,
    };
    lists.then_some(Source {
        command: first,
        may_begin_with_dash: first.name != "find",
        places,
    })
}

/// Options after which a program prints names of files and nothing else.
struct Naming {
    flags: &'static str,
    valued: &'static str,
    long: &'static [&'static str],
}

const GREP: Naming = Naming {
    flags: "EFGHIPRZahilnorsvwxz",
    valued: "ABCem",
    long: &[
        "--dereference-recursive",
        "--exclude=",
        "--exclude-dir=",
        "--extended-regexp",
        "--files-with-matches",
        "--fixed-strings",
        "--ignore-case",
        "--include=",
        "--invert-match",
        "--no-messages",
        "--null",
        "--perl-regexp",
        "--recursive",
        "--word-regexp",
    ],
};

const RG: Naming = Naming {
    flags: "0FIPSUilnosuvwx",
    valued: "egmtT",
    long: &[
        "--files",
        "--files-with-matches",
        "--fixed-strings",
        "--glob=",
        "--hidden",
        "--ignore-case",
        "--invert-match",
        "--max-depth=",
        "--no-ignore",
        "--null",
        "--smart-case",
        "--sort=",
        "--type=",
        "--type-not=",
        "--word-regexp",
    ],
};

const LS_FILES: Naming = Naming {
    flags: "cdmoz",
    valued: "x",
    long: &[
        "--cached",
        "--deleted",
        "--exclude-standard",
        "--ignored",
        "--modified",
        "--others",
    ],
};

/// What a program is given.
struct Given<'a> {
    /// Long options without their values; short ones as `-x`, one by one.
    options: Vec<String>,
    operands: Vec<&'a str>,
}

impl Given<'_> {
    fn has(&self, wanted: &[&str]) -> bool {
        self.options
            .iter()
            .any(|option| wanted.contains(&&**option))
    }
}

impl Naming {
    /// Nothing when an option is not one of these.
    fn given<'a>(&self, words: &[&'a str]) -> Option<Given<'a>> {
        let mut options = Vec::new();
        let mut operands = Vec::new();
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            let Some(letters) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
                operands.push(word);
                continue;
            };
            if word == "--" {
                operands.extend(words);
                break;
            }
            if letters.starts_with('-') {
                let end = word.find('=').map_or(word.len(), |at| at + 1);
                let option = word.get(..end)?;
                self.long.contains(&option).then_some(())?;
                options.push(option.to_owned());
                continue;
            }
            for (at, letter) in letters.char_indices() {
                options.push(format!("-{letter}"));
                if self.valued.contains(letter) {
                    // The rest of the word, or else the next.
                    if at + letter.len_utf8() == letters.len() {
                        words.next()?;
                    }
                    break;
                }
                self.flags.contains(letter).then_some(())?;
            }
        }
        Some(Given { options, operands })
    }
}

/// Whether a command passes lines on as they are.
fn is_filter(command: &Command) -> Option<()> {
    let words = command.literal()?;
    let (name, args) = words.split_first()?;
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

/// Whether `xargs` leaves a name as it is.
fn is_whole(name: &str) -> bool {
    name.chars()
        .all(|c| c.is_ascii_alphanumeric() || "_-.+,@=%/".contains(c))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit())
}
