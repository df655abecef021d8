//! Finds the paths that the words of a command may name, also within a word: `--file=.env`, `f=@.env;type=x`.

use super::{
    command_line::SimpleCommand,
    command_starters::git_subcommand,
    git,
    program_name::{self, ProgramName},
};
use crate::Workspace;
use std::{collections::BTreeSet, path::PathBuf};

/// Maximum number of separators inside a name that ends at a separator; a name that ends with the word may
/// contain any number.
const MAX_NAME_SEPARATORS: usize = 3;

/// Maximum number of groups of short options in a word.
const MAX_OPTION_GROUPS: usize = 8;

/// Starts of addresses of files; the name of a host may follow.
const FILE_ADDRESSES: &[&str] = &["file://", "fileb://"];

/// Programs whose words are often sentences.
const TEXT_PROGRAMS: &[&str] = &["echo", "gh", "git", "glab", "printf"];

/// Returns every path that a known argument of the command may name.
pub(super) fn named_paths(
    command: &SimpleCommand,
    bases: &[PathBuf],
    workspace: &Workspace,
) -> Vec<PathBuf> {
    let is_usual = program_name::is_system_program(&command.name, bases, workspace);
    let words = match git_subcommand(command) {
        Some([first, args @ ..]) if is_usual && first.known_text() == Some("commit") => {
            git::words_but_messages(args)
        }
        Some(_) | None => command.known_args().collect(),
    };
    let mut folders = bases.to_vec();
    if git::is_git(command) {
        folders.extend(git::working_folders(command, bases).into_iter().flatten());
        folders.sort();
        folders.dedup();
    }
    let shows_text = is_usual && ProgramName::new(&command.name).is_in(TEXT_PROGRAMS);
    let parts = words.into_iter().flat_map(|it| named_parts(it, shows_text));
    all_paths(parts.collect(), &folders, workspace)
}

/// Returns the paths of the program if its name is a path. A shell reads a file that is no program as a script, and
/// shows lines of it.
pub(super) fn program_paths(
    command: &SimpleCommand,
    bases: &[PathBuf],
    workspace: &Workspace,
) -> Vec<PathBuf> {
    let name = Some(command.name.as_str()).filter(|name| name.contains('/'));
    all_paths(name.into_iter().collect(), bases, workspace)
}

fn all_paths(names: BTreeSet<&str>, bases: &[PathBuf], workspace: &Workspace) -> Vec<PathBuf> {
    let paths = names
        .into_iter()
        .flat_map(|name| bases.iter().map(move |base| base.join(name)));
    paths
        .flat_map(|path| workspace.all_path_aliases(&path))
        .collect()
}

/// Returns the parts of a word that may be a path: from its start, a separator, the letters of short options or
/// the start of an address, to a separator or its end. In a text, punctuation ends no name.
fn named_parts(word: &str, is_text: bool) -> Vec<&str> {
    let separators = word.match_indices(is_separator);
    let after_separators = separators.filter_map(|(at, found)| {
        let start = at + found.len();
        let rest = word.get(start..)?;
        let name = rest.get(..name_ends(rest).next().unwrap_or(rest.len()))?;
        // The dot of a pattern such as `a[.]b` is no folder.
        let is_pattern = matches!(found, "[" | "]") && matches!(name, "." | "..");
        (!is_pattern).then_some(start)
    });
    let lowercase = word.to_ascii_lowercase();
    let addresses = FILE_ADDRESSES
        .iter()
        .flat_map(|address| lowercase.match_indices(address))
        .flat_map(|(at, found)| {
            let host = at + found.len();
            let path = word.get(host..).and_then(|rest| rest.find('/'));
            [Some(host), path.map(|path| host + path)]
        });
    let starts = std::iter::once(0).chain(after_separators);
    let mut parts: Vec<&str> = starts
        .clone()
        .chain(addresses.flatten())
        .filter_map(|start| word.get(start..))
        .flat_map(|rest| {
            let ends = name_ends(rest).filter(|at| !is_text || !is_punctuation(rest, *at));
            let ends = ends.take(MAX_NAME_SEPARATORS + 1).chain([rest.len()]);
            ends.filter_map(|end| rest.get(..end))
        })
        .collect();
    // Values attached to short options: `-Csecrets`, `-xfsecrets`, `-vsecrets:/x`, `-Wp,-include.env`.
    let groups = starts.filter_map(|start| {
        let short = word.get(start..)?.strip_prefix('-')?;
        (!short.starts_with('-')).then_some(short)
    });
    for short in groups.take(MAX_OPTION_GROUPS) {
        let first = name_ends(short).next().unwrap_or(short.len());
        let ends = name_ends(short)
            .take(MAX_NAME_SEPARATORS + 1)
            .chain([short.len()]);
        let ends: Vec<usize> = ends.collect();
        let values = short.char_indices().skip(1).flat_map(|(at, _)| {
            // After the first separator, what follows is a name or another group.
            let ends = ends
                .iter()
                .filter(move |end| **end > at && (at <= first || **end == short.len()));
            ends.filter_map(move |end| short.get(at..*end))
        });
        parts.extend(values);
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Returns the places where a name may end: at separators. Filters of programs such as `.[0]` name no folder.
fn name_ends(text: &str) -> impl Iterator<Item = usize> + Clone {
    let ends = text.match_indices(is_separator).map(|(at, _)| at);
    ends.filter(move |at| text.get(..at + 1) != Some(".["))
}

/// Returns true for characters that separate a name from others, in lists, addresses, settings and scripts
/// (`r .env`, `.read .env`, `$(file <.env)`).
fn is_separator(c: char) -> bool {
    c.is_whitespace() || "=,:;@|?!#'\"`<>()[]{}".contains(c)
}

/// Returns true for a colon or question mark before a blank, as in the subject of a commit (`src: add x`).
fn is_punctuation(text: &str, at: usize) -> bool {
    let rest = text
        .get(at..)
        .and_then(|rest| rest.strip_prefix([':', '?']));
    rest.is_some_and(|rest| rest.starts_with(char::is_whitespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_end_at_separators_and_at_the_end() {
        for (word, part) in [
            (".env", ".env"),
            ("--env=.env", ".env"),
            ("f=@.env;type=text/plain", ".env"),
            (".env:/x", ".env"),
            ("-v.env:/x", ".env"),
            ("type=bind,src=/w/.env,dst=/x", "/w/.env"),
            ("id=x,src=.env,type=file", ".env"),
            ("lib.jar:out", "lib.jar"),
            ("concat:.env|a.txt", ".env"),
            ("file://.env", ".env"),
            ("fileb://.env", ".env"),
            ("file://localhost/w/.env", "/w/.env"),
            ("file:///w/.env", "/w/.env"),
            ("File://localhost/w/.env", "/w/.env"),
            ("file:secret.db?mode=ro", "secret.db"),
            ("file:secret.db? ", "secret.db"),
            ("secret.jar: ", "secret.jar"),
            ("./secrets[dev]", "./secrets"),
            ("secret.ppm[0]", "secret.ppm"),
            ("jar:file:secret.jar!/x", "secret.jar"),
            ("-v./a,b.env:/x", "./a,b.env"),
            ("-vsecrets:/x", "secrets"),
            ("-Wp,-include.env,-DX", ".env"),
            ("link-arg=-od/keep", "d/keep"),
            ("CFLAGS=-include.env", ".env"),
            ("attach [secrets/k.db] as s", "secrets/k.db"),
            ("files=[a,.env]", ".env"),
            ("a.html#top", "a.html"),
            ("x=a:b.txt;type=y", "a:b.txt"),
            ("-xf.env", ".env"),
            ("$(file <.env)", ".env"),
        ] {
            assert!(
                named_parts(word, false).contains(&part),
                "{word}: {:?}",
                named_parts(word, false)
            );
        }
        assert!(!named_parts("src: add x", true).contains(&"src"));
        for filter in [".[]", ".[0].x", "a[.]b", "[.]rs"] {
            assert!(!named_parts(filter, false).contains(&"."), "{filter}");
        }
        // The path of an address elsewhere is no file here.
        assert!(!named_parts("https://example.org/", false).contains(&"/"));
    }

    #[test]
    fn long_words_have_few_parts() {
        let word = "a,".repeat(4_000);
        assert!(named_parts(&word, false).len() < 6 * word.len());
    }
}
