//! Finds the files of a session that command lines of the user's own hooks and servers name.

use super::guarded_paths::fold_path;
use crate::workspace::{names_through_links, normalise_lexically};
use std::{
    env,
    path::{Path, PathBuf},
};

/// Maximum number of places at which a path in a shell line may end, from where it begins.
const MAX_ENDS: usize = 16;

/// Beginnings of a path in the home folder.
const HOME_PREFIXES: &[&str] = &["~/", "$HOME/", "${HOME}/"];

/// Returns the files in `roots` that the words of command lines name by a path that is absolute or begins at the home
/// folder: as a word, in the value of an option, or inside a shell line with its quotes and escapes. `roots` have their
/// links resolved. A file is returned by its name, by where its links lead and by each name on the way, since a link may be
/// replaced; it need not exist. Existing folders are left out.
pub fn program_files<'a>(
    words: impl IntoIterator<Item = &'a str>,
    roots: &[PathBuf],
) -> Vec<PathBuf> {
    let home = env::home_dir().unwrap_or_default();
    find_program_files(words, roots, &home.to_string_lossy())
}

fn find_program_files<'a>(
    words: impl IntoIterator<Item = &'a str>,
    roots: &[PathBuf],
    home: &str,
) -> Vec<PathBuf> {
    let roots: Vec<PathBuf> = roots.iter().map(|root| fold_path(root)).collect();
    let is_here = |path: &PathBuf| {
        let folded = fold_path(path);
        roots.iter().any(|root| folded.starts_with(root)) && !path.is_dir()
    };
    let mut files = Vec::new();
    for word in words {
        let unquoted = word.replace(['\'', '"', '\\'], "");
        for text in [word, &unquoted] {
            let expand = |text: String, begin: &&str| text.replace(begin, &format!("{home}/"));
            let expanded = HOME_PREFIXES.iter().fold(text.to_owned(), expand);
            // A folder's name may end like one of the beginnings: `build~/`.
            for path in named_paths(&expanded)
                .chain(named_paths(text))
                .map(Path::new)
            {
                let mut names = names_through_links(path);
                names.push(normalise_lexically(path));
                files.extend(names.into_iter().filter(is_here));
            }
        }
    }
    files.sort();
    files.dedup();
    files
}

/// Returns all texts that may be an absolute path. One may begin at any slash, since a value may touch its option
/// (`-f/x`).
fn named_paths(text: &str) -> impl Iterator<Item = &str> {
    let ends_path = |c: char| !(c.is_alphanumeric() || "/._-+".contains(c));
    text.match_indices('/').flat_map(move |(start, _)| {
        let rest = text.get(start..).unwrap_or_default();
        let ends = rest.match_indices(ends_path).map(|(end, _)| end);
        let ends = ends.take(MAX_ENDS).chain([rest.len()]);
        ends.filter_map(|end| rest.get(..end))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink};

    #[test]
    fn files_are_found_in_command_lines() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        let root = home.join("project");
        fs::create_dir(&root).unwrap();
        symlink(root.join("later.sh"), home.join("link.sh")).unwrap();
        symlink("/usr/bin/python3", root.join("python")).unwrap();
        // On the way to a file outside: a link to a folder above the project, and one to a link in it.
        symlink(&home, home.join("up")).unwrap();
        symlink(root.join("python"), home.join("hook")).unwrap();
        fs::create_dir_all(home.join("far/away")).unwrap();
        symlink("../far/away", root.join("lib")).unwrap();
        let (p, h) = (root.display(), home.display());
        for (word, file) in [
            (format!("{p}/h.sh"), Some("h.sh")),
            (format!("{p}/tools/h.sh"), Some("tools/h.sh")),
            (format!("{h}/link.sh"), Some("later.sh")),
            (format!("sh {p}/my\\ d/pre.sh"), Some("my d/pre.sh")),
            (format!("'{p}/my d/pre.sh' now"), Some("my d/pre.sh")),
            (format!("-f{p}/h.mk"), Some("h.mk")),
            (format!("--file={p}/h.mk"), Some("h.mk")),
            (format!("sh ${{X:-{p}/h.sh}}"), Some("h.sh")),
            (format!("mkdir -p {p}/no; sh {p}/no/../h.sh"), Some("h.sh")),
            (format!("X={p}/lib:{p}/a.sh"), Some("a.sh")),
            (format!("{p}/python"), Some("python")),
            (format!("{h}/PROJECT/h.sh"), Some("h.sh")),
            (format!("{h}/up/project/python"), Some("python")),
            (format!("{h}/hook"), Some("python")),
            (format!("{p}/lib/h.sh"), Some("lib/h.sh")),
            (format!("{p}/lib/../../project/python"), Some("python")),
            (format!("file://{p}/h.mjs?v=1"), Some("h.mjs")),
            (format!("file://{p}/h.mjs#a"), Some("h.mjs")),
            (format!("[{p}/h.sh]"), Some("h.sh")),
            (format!("{p}/build~/h.sh"), Some("build~/h.sh")),
            (format!("{p}/@a/h.js"), Some("@a/h.js")),
            ("sh ~/project/h.sh".to_owned(), Some("h.sh")),
            ("sh \"$HOME\"/project/h.sh".to_owned(), Some("h.sh")),
            ("sh ${HOME}/x/../project/h.sh".to_owned(), Some("h.sh")),
            (format!("{p}"), None),
            (format!("{h}/elsewhere.sh"), None),
            ("h.sh".to_owned(), None),
        ] {
            let roots = std::slice::from_ref(&root);
            let found = find_program_files([word.as_str()], roots, &h.to_string());
            match file {
                Some(file) => {
                    let is_meant = |it: &PathBuf| fold_path(it) == fold_path(&root.join(file));
                    assert!(found.iter().any(is_meant), "{word}: {found:?}");
                }
                None => assert_eq!(found, [] as [PathBuf; 0], "{word}"),
            }
        }
    }
}
