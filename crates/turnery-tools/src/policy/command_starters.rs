//! Recognises programs whose arguments name other programs: runners of environments, interpreters, and options
//! that pass a line to a shell.

use super::{
    command_line::SimpleCommand,
    command_wrappers::{is_interpreter, may_be_option},
    program_name::{ProgramName, base_name},
    rule::{MatchCertainty, is_assignment, words_follow_options},
    shell_word::ShellWord,
};

/// Programs that start the command after these words; `_` matches any word.
const COMMAND_RUNNERS: &[&[&str]] = &[
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
    &["chamber", "exec", "_"],
    &["conda", "run"],
    &["cross-env"],
    &["cross-env-shell"],
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
    &["mise", "exec"],
    &["mise", "x"],
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
    &["rtx", "exec"],
    &["rtx", "x"],
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

/// Commands that pass a line to a shell, or words in any order to a program: their first words, and the options
/// or words of which one must be among the others; none are needed if the list is empty.
const SHELL_LINE_STARTERS: &[(&[&str], &[&str])] = &[
    (&["bun", "exec"], &[]),
    (&["git", "bisect"], &["run"]),
    (&["git", "filter-branch"], &[]),
    (&["git", "for-each-repo"], &[]),
    (&["git", "rebase"], &["--exec", "-x"]),
    (&["git", "submodule"], &["foreach"]),
    (&["nix", "develop"], &["--command", "-c"]),
    (&["nix", "shell"], &["--command", "-c"]),
    (&["nix-shell"], &["--command", "--run"]),
];

/// Command that the arguments of a runner name.
pub(crate) enum StartedWords<'a> {
    Nothing,
    Unknown,
    Words(&'a [ShellWord]),
}

/// Finds the words of the command that a runner starts.
pub(crate) fn started_words(command: &SimpleCommand) -> StartedWords<'_> {
    let program = ProgramName::new(&command.name);
    let starters = COMMAND_RUNNERS
        .iter()
        .filter_map(|words| words.split_first());
    let fits = starters
        .filter(|(name, _)| program.is(name))
        .map(|(_, words)| (match_leading_args(&command.args, words), words.len()));
    match fits.max() {
        _ if passes_shell_line(&program, &command.args) => StartedWords::Unknown,
        None | Some((MatchCertainty::No, _)) => StartedWords::Nothing,
        Some((MatchCertainty::Maybe, _)) => StartedWords::Unknown,
        Some((MatchCertainty::Yes, skipped)) => {
            let words = command.args.get(skipped..).unwrap_or_default();
            // Runners may set variables for the command.
            let is_before = |word: &ShellWord| {
                word.known_text()
                    .is_some_and(|it| it == "--" || is_assignment(it))
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

/// Returns true for an option without a value, such as `--version`. Alone it names no command.
fn is_bare_option(word: &ShellWord) -> bool {
    let option = word.known_text().and_then(|word| word.strip_prefix('-'));
    option
        .is_some_and(|option| option.len() == 1 || option.starts_with('-') && !option.contains('='))
}

/// Returns the script or module that an interpreter runs, as the command that it is.
pub(crate) fn started_script(command: &SimpleCommand) -> Option<SimpleCommand> {
    let program = ProgramName::new(&command.name);
    if !is_interpreter(&program) && !program.is_in(&[".", "source"]) {
        return None;
    }
    let first = command.args.first().and_then(ShellWord::known_text)?;
    let skipped = match first {
        "-m" if program.starts_with("py") => 1,
        "run" if program.is_in(&["bun", "deno"]) => {
            let is_option =
                |word: &ShellWord| word.known_text().is_some_and(|it| it.starts_with('-'));
            1 + command
                .args
                .iter()
                .skip(1)
                .take_while(|word| is_option(word))
                .count()
        }
        _ => 0,
    };
    let script = command.args.get(skipped)?.known_text()?;
    (!script.starts_with('-')).then(|| SimpleCommand {
        name: script.to_owned(),
        args: command.args.get(skipped + 1..).unwrap_or_default().to_vec(),
        ..command.clone()
    })
}

/// Matches the first arguments against the words. An option before them may have a value, so the first word
/// is then uncertain.
fn match_leading_args(args: &[ShellWord], words: &[&str]) -> MatchCertainty {
    let known = || -> Vec<&str> {
        let known = words.iter().filter(|word| **word != "_");
        known.copied().collect()
    };
    let mut given = args.iter().map(ShellWord::known_text);
    for word in words {
        match given.next() {
            Some(Some(arg)) if *word == "_" || arg == *word => {}
            Some(None) => return MatchCertainty::Maybe,
            Some(Some(_)) | None if words_follow_options(&known(), args) => {
                return MatchCertainty::Maybe;
            }
            Some(Some(_)) | None => return MatchCertainty::No,
        }
    }
    MatchCertainty::Yes
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
                && words.iter().all(|wanted| has(&|word| word == *wanted))
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
        assert!(COMMAND_RUNNERS.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(SHELL_LINE_STARTERS.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
