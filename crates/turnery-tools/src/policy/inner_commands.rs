//! Finds the commands that other commands start, for example with `xargs` or `find -exec`.

use super::{
    bounded_walk,
    command_line::SimpleCommand,
    command_starters::{StartedWords, as_git_command, started_script, started_words},
    command_wrappers::{is_opaque, sets_variable},
    program_name::ProgramName,
    read_only::{self, ProgramSet, ReadAccess},
    read_only_arguments,
    read_only_programs::{FIND_VALUED_TESTS, NAME_LISTING_PROGRAMS, ProgramOperands},
    shell_word::ShellWord,
};
use crate::Workspace;
use std::path::{Path, PathBuf};

/// Maximum number of inner commands, at all levels, in which further commands are looked for; with more, the
/// result is uncertain.
const MAX_STARTED: usize = 16;

/// Placeholder for a file name passed to a command.
pub(crate) const PLACEHOLDER_NAME: &str = "./name";

/// Commands started by another command, or by one that it starts.
#[derive(Default)]
pub(crate) struct InnerCommands {
    /// Outermost first, without the names that are passed to them.
    pub(crate) commands: Vec<SimpleCommand>,
    /// True if the list may be incomplete, or if a command in it may change the working directory or a
    /// variable.
    appends_names: Vec<bool>,
    /// True if the words of some started command are not certain.
    pub(crate) is_uncertain: bool,
}

/// Finds the commands that `xargs`, `find`, an environment runner, a plain wrapper or an interpreter starts.
pub(crate) fn find_inner_commands(command: &SimpleCommand) -> InnerCommands {
    let mut found = InnerCommands::default();
    found.follow(command, false);
    let mut at = 0;
    while let Some((started, appends)) = found.commands.get(at).zip(found.appends_names.get(at)) {
        if at == MAX_STARTED {
            found.is_uncertain = true;
            break;
        }
        let (started, appends) = (started.clone(), *appends);
        found.follow(&started, appends);
        at += 1;
    }
    found
}

impl InnerCommands {
    /// Returns the commands with unknown words for the names that `find` and `xargs` pass to them.
    pub(crate) fn with_names(&self) -> impl Iterator<Item = SimpleCommand> {
        let pass_name = |arg: &ShellWord| match arg.known_text() {
            Some(text) if text.contains("{}") => ShellWord::Dynamic,
            Some(_) | None => arg.clone(),
        };
        let commands = self.commands.iter().zip(&self.appends_names);
        commands.map(move |(command, appends)| {
            let appended = appends.then_some(ShellWord::Dynamic);
            SimpleCommand {
                args: command.args.iter().map(pass_name).chain(appended).collect(),
                ..command.clone()
            }
        })
    }

    /// Adds the commands that `command` starts itself. `appends`: names are appended to it.
    fn follow(&mut self, command: &SimpleCommand, appends: bool) {
        let git = as_git_command(command);
        let command = git.as_ref().unwrap_or(command);
        let program = ProgramName::new(&command.name);
        if program.is("xargs") {
            match exact_words(&command.args).and_then(|words| parse_xargs_args(&words)) {
                Some((_, words)) => {
                    let words = words
                        .into_iter()
                        .map(|word| ShellWord::Literal(word.to_owned()));
                    self.add(&words.collect::<Vec<_>>(), true);
                }
                None => self.is_uncertain = true,
            }
        } else if program.is("find") {
            let is_exec = |word: &ShellWord| {
                let word = word.known_text();
                word.is_some_and(|it| matches!(it, "-exec" | "-execdir" | "-ok" | "-okdir"))
            };
            let ends = |word: &ShellWord| matches!(word.known_text(), Some(";" | "+"));
            for after in command.args.split(is_exec).skip(1) {
                self.add(after.split(ends).next().unwrap_or_default(), appends);
            }
        } else {
            let is_colon = |word: &ShellWord| word.known_text() == Some(":");
            match started_words(command) {
                StartedWords::Nothing => {}
                StartedWords::Unknown => self.is_uncertain = true,
                // `mpirun` starts several.
                StartedWords::Words(words) => {
                    words
                        .split(is_colon)
                        .for_each(|part| self.add(part, appends));
                }
            }
            if let Some(script) = started_script(command) {
                self.add(script, appends);
            }
        }
    }

    fn add(&mut self, words: &[ShellWord], appends: bool) {
        match words.split_first() {
            // After an option, the next word may be its value.
            Some((ShellWord::Literal(name) | ShellWord::FileName(name), args))
                if !name.starts_with('-') && !is_shell_text(name) =>
            {
                // `time` also starts builtins.
                self.is_uncertain |= name == "cd" || sets_variable(name, args);
                self.appends_names.push(appends);
                self.commands.push(SimpleCommand {
                    name: name.clone(),
                    args: args.to_vec(),
                    is_opaque: is_opaque(name, args),
                    is_stdin_redirected: true,
                    upstream: Vec::new(),
                });
            }
            Some(_) | None => self.is_uncertain = true,
        }
    }
}

/// Returns true if a shell would read the word as more than the name of a program. Some programs pass their
/// words to a shell, and `time` may be followed by any shell syntax.
fn is_shell_text(name: &str) -> bool {
    matches!(name, "!" | "[[")
        || name.contains(|c: char| c.is_whitespace() || "|&;<>(){}$`\"'\\*?".contains(c))
}

/// Returns the texts of the words if all are exactly known.
fn exact_words(words: &[ShellWord]) -> Option<Vec<&str>> {
    let is_exact = |word: &&ShellWord| !matches!(word, ShellWord::UnorderedFileName(_));
    let words = words.iter();
    words
        .map(|word| Some(word).filter(is_exact)?.known_text())
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
pub(crate) fn xargs_read_access(
    command: &SimpleCommand,
    bases: &[PathBuf],
    workspace: &Workspace,
) -> Option<ReadAccess> {
    let words = exact_words(&command.args)?;
    let (by_nul, inner) = parse_xargs_args(&words)?;
    let (name, args) = inner.split_first()?;
    let source = find_name_source(&command.upstream, by_nul)?;
    let ends_options = args.last() == Some(&"--");
    if by_nul && source.may_begin_with_dash && !ends_options {
        return None;
    }
    let found = read_only::read_access(source.command, bases, workspace, ProgramSet::Confined)?;
    let mut folders = found.paths;
    // The paths of `git ls-files` are patterns.
    if source.search_paths.is_empty() || source.command.name == "git" {
        folders.extend_from_slice(bases);
    }
    let may_be_split = || {
        source
            .search_paths
            .iter()
            .any(|place| !is_unsplit_name(place))
            || may_split_names(&folders)
    };
    if !by_nul && may_be_split() {
        return None;
    }
    let args = args.iter().map(|arg| ShellWord::Literal((*arg).to_owned()));
    read_access_of_named_files(name, args.collect(), &folders, (bases, workspace))
}

/// Returns what a command reads if names of files below `folders` follow its own arguments; `None` unless it
/// only reads.
pub(crate) fn read_access_of_named_files(
    name: &str,
    mut args: Vec<ShellWord>,
    folders: &[PathBuf],
    (bases, workspace): (&[PathBuf], &Workspace),
) -> Option<ReadAccess> {
    // Two names are appended because some programs write to their second file.
    args.extend([PLACEHOLDER_NAME, "./other"].map(|name| ShellWord::FileName(name.to_owned())));
    let command = SimpleCommand {
        is_opaque: is_opaque(name, &args) && name != "awk",
        name: name.to_owned(),
        args,
        is_stdin_redirected: true,
        upstream: Vec::new(),
    };
    let is_nested = matches!(name, "find" | "git" | "xargs") || name.contains('/');
    // These programs read some names as a host or as a file with further arguments.
    let reads_names = matches!(name, "strings" | "tar" | "unzip");
    // A program is started, never the bash builtin of that name.
    let is_brought = read_only::is_project_program(name, false, bases, workspace);
    if is_nested || is_brought || reads_names || read_only::links_lead_outside(folders, workspace) {
        return None;
    }
    let reads = read_only::read_access(&command, bases, workspace, ProgramSet::Confined)?;
    let mut paths = reads.paths;
    paths.extend_from_slice(folders);
    Some(ReadAccess {
        paths,
        reads_unnamed_files: true,
        may_quote_settings: reads.may_quote_settings,
    })
}

/// Command of a pipeline that prints file names.
struct NameSource<'a> {
    command: &'a SimpleCommand,
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

fn find_name_source(input: &[SimpleCommand], by_nul: bool) -> Option<NameSource<'_>> {
    let (first, filters) = input.split_first()?;
    let words = first.literal_words()?;
    let check_line_filter = |command: &SimpleCommand| check_line_filter(command).is_some();
    if by_nul && !filters.is_empty() || !filters.iter().all(check_line_filter) {
        return None;
    }
    let has = |wanted: &str| words.contains(&wanted);
    let (lists, search_paths) = match first.name.as_str() {
        "find" => {
            let prints_else = ["-printf", "-ls", "-exec"].iter().any(|word| has(word));
            let search_paths = read_only::find_places(words.get(1..).unwrap_or_default());
            let lists = prints_nul(&words) == by_nul && !(by_nul && has("-print")) && !prints_else;
            (lists, search_paths.to_vec())
        }
        "grep" | "rg" | "git" => {
            let program = NAME_LISTING_PROGRAMS
                .iter()
                .find(|program| words.starts_with(program.words))?;
            let args = words.get(program.words.len()..)?;
            let given = read_only_arguments::parse_arguments(program, args, true)?;
            let has = |letters: &[char], long: &[&str]| {
                given.short.contains(letters) || given.long.iter().any(|it| long.contains(it))
            };
            let is_search = program.operands == ProgramOperands::PatternThenPaths;
            let lists = has(&['l'], &["--files-with-matches", "--files"]) || !is_search;
            let is_by_nul = has(&['Z', '0'], &["--null"]) || !is_search && has(&['z'], &[]);
            let search_paths = match is_search {
                true => given.searched_paths()?,
                false => &given.operands,
            };
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
fn check_line_filter(command: &SimpleCommand) -> Option<()> {
    let words = command.literal_words()?;
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
        !name.is_some_and(|name| !name.starts_with('-') && is_unsplit_name(name))
    };
    let mut left = bounded_walk::MAX_ENTRIES;
    folders
        .iter()
        .any(|path| path.is_dir() && bounded_walk::may_contain(path, &mut left, &is_unsafe))
}

/// Checks that `xargs` would not split or unquote the name.
fn is_unsplit_name(name: &str) -> bool {
    name.chars()
        .all(|c| c.is_ascii_alphanumeric() || "_-.+,@=%/".contains(c))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit())
}
