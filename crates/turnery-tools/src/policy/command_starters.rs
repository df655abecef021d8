//! Recognises programs whose arguments name other programs: runners of environments, interpreters, and options
//! that pass a line to a shell.

use super::{
    command_line::SimpleCommand,
    command_wrappers::{is_interpreter, may_be_option, may_be_script},
    program_name::{ProgramName, base_name},
    rule::{ExtraArgs, is_assignment, match_args, may_follow_options},
    shell_word::{MatchCertainty, ShellWord},
};

/// Programs that start the command after these words; `_` matches any word but an option, `*` all words to `--`.
const COMMAND_RUNNERS: &[&[&str]] = &[
    &["R", "CMD"],
    &["asdf", "exec"],
    &["aws-vault", "exec", "_"],
    &["bear"],
    &["buildah", "unshare"],
    &["bun", "x"],
    &["bundle", "exec"],
    &["bundler", "exec"],
    &["bunx"],
    &["cabal", "exec"],
    &["ccache"],
    &["chamber", "exec", "*"],
    &["conda", "run"],
    &["cross-env"],
    &["direnv", "exec", "_"],
    &["distcc"],
    &["doppler", "run"],
    &["dotenv"],
    &["dotenv", "run"],
    &["dotenvx", "run"],
    &["env-cmd"],
    &["fnm", "exec"],
    &["foreman", "run"],
    &["goenv", "exec"],
    &["hatch", "env", "run"],
    &["hatch", "run"],
    &["honcho", "run"],
    &["infisical", "run"],
    &["ip", "netns", "exec", "_"],
    &["lerna", "exec"],
    &["mamba", "run"],
    &["micromamba", "run"],
    &["mise", "exec", "*"],
    &["mise", "x", "*"],
    &["mpiexec"],
    &["mpirun"],
    &["nodenv", "exec"],
    &["npm", "exec"],
    &["npm", "x"],
    &["npx"],
    &["op", "run"],
    &["opam", "exec"],
    &["pdm", "run"],
    &["pipenv", "run"],
    &["pipx", "run"],
    &["pixi", "exec"],
    &["pixi", "run"],
    &["pnpm", "dlx"],
    &["pnpm", "exec"],
    &["pnpx"],
    &["podman", "unshare"],
    &["poetry", "run"],
    &["pyenv", "exec"],
    &["rbenv", "exec"],
    &["rtx", "exec", "*"],
    &["rtx", "x", "*"],
    &["rustup", "run", "_"],
    &["rye", "run"],
    &["sccache"],
    &["stack", "exec"],
    &["tox", "exec"],
    &["uv", "run"],
    &["uv", "tool", "run"],
    &["uvx"],
    &["volta", "run"],
    &["yarn", "dlx"],
    &["yarn", "exec"],
];

/// Commands that pass a line to a shell or start a program from anywhere among their arguments. First the
/// program and its first words, before which options may occur; then words or options of which one must also
/// occur, unless there are none.
const SHELL_LINE_STARTERS: &[(&[&str], &[&str])] = &[
    (&["bun", "exec"], &[]),
    (&["cross-env-shell"], &[]),
    (&["git", "bisect"], &["run"]),
    (&["git", "filter-branch"], &[]),
    (&["git", "for-each-repo"], &[]),
    (&["git", "rebase"], &["--exec", "-x"]),
    (&["git", "submodule"], &["foreach"]),
    (&["nix", "develop"], &["--command", "-c"]),
    (&["nix", "shell"], &["--command", "-c"]),
    (&["nix-shell"], &["--command", "--run"]),
];

/// Interpreters whose first argument may be a subcommand.
const INTERPRETERS_WITH_SUBCOMMANDS: &[&str] = &["R", "bun", "deno", "node", "nodejs", "tsx"];

/// Programs of [`COMMAND_WRAPPERS`](super::command_wrappers) that do nothing but start the command after these words.
const PLAIN_WRAPPERS: &[&[&str]] = &[
    &["chronic"],
    &["nice"],
    &["nice", "-n", "_"],
    &["nohup"],
    &["setsid"],
    &["time"],
    &["timeout", "_"],
];

/// Command that the arguments of a runner name.
pub(crate) enum StartedWords<'a> {
    Nothing,
    Unknown,
    Words(&'a [ShellWord]),
}

/// Finds the words of the command that a runner or a plain wrapper starts.
pub(crate) fn started_words(command: &SimpleCommand) -> StartedWords<'_> {
    let program = ProgramName::new(&command.name);
    let args = &command.args;
    let rows = COMMAND_RUNNERS.iter().chain(PLAIN_WRAPPERS);
    let fits = rows
        .filter_map(|words| words.split_first())
        .filter(|(name, _)| program.is(name))
        .map(|(_, words)| match_leading_args(args, words));
    match fits.max() {
        _ if passes_shell_line(&program, args) => StartedWords::Unknown,
        None | Some((MatchCertainty::No, _)) => StartedWords::Nothing,
        Some((MatchCertainty::Maybe, _)) => StartedWords::Unknown,
        Some((MatchCertainty::Yes, skipped)) => {
            let words = args.get(skipped..).unwrap_or_default();
            // Runners may set variables for the command; to these, `ruff==0.5` is the command.
            let sets_none = program.is_in(&["pipx", "uv", "uvx"]);
            let is_before = |word: &ShellWord| {
                word.known_text()
                    .is_some_and(|it| it == "--" || !sets_none && is_assignment(it))
            };
            let start = words
                .iter()
                .position(|word| !is_before(word))
                .unwrap_or(words.len());
            let words = words.get(start..).unwrap_or_default();
            match words {
                [only] if is_bare_option(only) => StartedWords::Nothing,
                _ => StartedWords::Words(words),
            }
        }
    }
}

/// Returns true if the command is opaque, unless it is a plain wrapper such as `nice` whose started command
/// is known. A variable set before that command, as `time` may do, keeps it opaque.
pub(crate) fn hides_command(command: &SimpleCommand) -> bool {
    let program = ProgramName::new(&command.name);
    let mut wrappers = PLAIN_WRAPPERS.iter().filter_map(|words| words.first());
    let found = match started_words(command) {
        StartedWords::Words(words) => words.len(),
        StartedWords::Nothing | StartedWords::Unknown => return command.is_opaque,
    };
    let mut before = command.args.iter().take(command.args.len() - found);
    let is_plain = wrappers.any(|name| program.is(name))
        && !before.any(|word| word.known_text().is_none_or(is_assignment));
    command.is_opaque && !is_plain
}

/// Returns true for an option before git's subcommand that has no value and starts no program.
pub(crate) fn is_harmless_git_flag(word: &str) -> bool {
    matches!(word, "--no-optional-locks" | "--no-pager" | "-P")
}

/// Returns the subcommand of git with its arguments; `None` if an option before it may start a program.
pub(crate) fn git_subcommand(command: &SimpleCommand) -> Option<&[ShellWord]> {
    if !ProgramName::new(&command.name).is("git") {
        return None;
    }
    let mut args = command.args.as_slice();
    loop {
        args = match args.first()?.known_text()? {
            "-C" => args.get(2..)?,
            flag if is_harmless_git_flag(flag) => args.get(1..)?,
            word => return (!word.starts_with('-')).then_some(args),
        }
    }
}

/// Returns true for an option without a value, such as `--version`. Alone it names no command.
fn is_bare_option(word: &ShellWord) -> bool {
    let option = word.known_text().and_then(|word| word.strip_prefix('-'));
    option
        .is_some_and(|option| option.len() == 1 || option.starts_with('-') && !option.contains('='))
}

/// Returns the words of the script or module that an interpreter certainly runs.
pub(crate) fn started_script(command: &SimpleCommand) -> Option<&[ShellWord]> {
    let program = ProgramName::new(&command.name);
    if !is_interpreter(&program) && !program.is_in(&[".", "source"]) {
        return None;
    }
    let first = command.args.first()?.known_text()?;
    let words = match first {
        "-m" if program.starts_with("py") => command.args.get(1..)?,
        _ => &command.args,
    };
    let script = words.first()?.known_text()?;
    let is_folder = matches!(base_name(script), "" | "." | "..");
    let is_certain = may_be_script(script) && !is_folder && !may_be_subcommand(&program, first);
    is_certain.then_some(words)
}

/// Returns the words of all scripts that an interpreter with subcommands may run.
pub(crate) fn possible_scripts(command: &SimpleCommand) -> impl Iterator<Item = &[ShellWord]> {
    let program = ProgramName::new(&command.name);
    let first = command.args.first().and_then(ShellWord::known_text);
    let count = match first {
        Some(first) if may_be_subcommand(&program, first) => command.args.len(),
        Some(_) | None => 0,
    };
    (0..count).filter_map(|at| command.args.get(at..))
}

/// Returns true if the first argument may be a subcommand, so that the script is a later one: `deno run x.ts`.
fn may_be_subcommand(program: &ProgramName, first: &str) -> bool {
    program.is_in(INTERPRETERS_WITH_SUBCOMMANDS) && !first.contains(['.', '/'])
}

/// Matches the first arguments against the words: returns the number of those before the command. An option before
/// them may have a value, so the first word is then uncertain.
fn match_leading_args(args: &[ShellWord], words: &[&str]) -> (MatchCertainty, usize) {
    let known: Vec<&str> = words
        .iter()
        .copied()
        .filter(|word| !matches!(*word, "_" | "*"))
        .collect();
    let is_end = |arg: &ShellWord| arg.known_text() == Some("--");
    let mut rest = args;
    for word in words {
        let first = rest.iter().position(|arg| !is_end(arg) || *word == "*");
        let arg = first.and_then(|first| rest.get(first));
        let fits = match (*word, arg.map(ShellWord::known_text)) {
            ("_" | "*", None) => return (MatchCertainty::No, 0),
            ("*", Some(_)) => rest.iter().position(is_end),
            ("_", Some(Some(arg))) if arg.starts_with('-') || is_assignment(arg) => None,
            (_, Some(None)) => None,
            (word, Some(Some(arg))) if word == "_" || arg == word => first,
            _ if may_follow_options(&known, args) => None,
            _ => return (MatchCertainty::No, 0),
        };
        match fits {
            Some(fits) => rest = rest.get(fits + 1..).unwrap_or_default(),
            None => return (MatchCertainty::Maybe, 0),
        }
    }
    (MatchCertainty::Yes, args.len() - rest.len())
}

/// Returns true for commands that pass a line to a shell. An unknown word may be any of the words.
fn passes_shell_line(program: &ProgramName, args: &[ShellWord]) -> bool {
    let has = |is_wanted: &dyn Fn(&str) -> bool| {
        let mut words = args.iter().map(ShellWord::known_text);
        words.any(|word| word.is_none_or(is_wanted))
    };
    SHELL_LINE_STARTERS.iter().any(|(words, passing)| {
        words.split_first().is_some_and(|(name, words)| {
            program.is(name)
                && (match_args(words, ExtraArgs::Any, args) != MatchCertainty::No
                    || may_follow_options(words, args))
                && (passing.is_empty()
                    || passing
                        .iter()
                        .any(|wanted| has(&|word| may_be_option(word, wanted))))
        })
    })
}

/// Returns the call of `git` that a program of git's own folder stands for: `git-push x` becomes `git push x`.
pub(crate) fn as_git_command(command: &SimpleCommand) -> Option<SimpleCommand> {
    let program = base_name(&command.name).to_ascii_lowercase();
    let subcommand = program.strip_prefix("git-")?;
    let mut git = command.clone();
    git.name = "git".to_owned();
    git.args
        .insert(0, ShellWord::Literal(subcommand.to_owned()));
    Some(git)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted_sets() {
        for rows in [COMMAND_RUNNERS, PLAIN_WRAPPERS] {
            assert!(rows.windows(2).all(|pair| pair[0] < pair[1]));
        }
        assert!(SHELL_LINE_STARTERS.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
