//! Changed: files, lines and functions read from the status and the diff, and a message for them.

use crate::offline::rules::pattern;

/// One file that changed.
pub(in crate::offline) struct Changed {
    path: String,
    state: &'static str,
    pub(in crate::offline) added: usize,
    pub(in crate::offline) removed: usize,
    touched: Vec<String>,
}

impl Changed {
    pub(in crate::offline) fn in_a_line(&self) -> String {
        let mut line = format!("{} ({}", self.path, self.state);
        if self.added + self.removed > 0 {
            line.push_str(&format!(", +{} -{}", self.added, self.removed));
        }
        line.push(')');
        if !self.touched.is_empty() {
            line.push_str(": ");
            line.push_str(
                &self
                    .touched
                    .iter()
                    .take(6)
                    .map(String::as_str)
                    .collect::<Vec<_>>()
                    .join(", "),
            );
        }
        line
    }
}

pub(in crate::offline) fn read(diff: &str, entries: &[&str]) -> Vec<Changed> {
    let mut files: Vec<Changed> = entries
        .iter()
        .filter_map(|entry| {
            let (state, path) = (entry.get(..2)?, entry.get(3..)?);
            let path = path.rsplit(" -> ").next().unwrap_or(path).trim_matches('"');
            Some(Changed {
                path: path.to_owned(),
                state: word(state),
                added: 0,
                removed: 0,
                touched: Vec::new(),
            })
        })
        .collect();
    // The counts come first, so they are whole even when a long diff was cut in its middle.
    let counted = counts(diff, &mut files);
    let mut current: Option<usize> = None;
    let mut header = false;
    let mut lines = diff.lines().peekable();
    while let Some(line) = lines.next() {
        let next = lines.peek().copied().unwrap_or_default();
        let paths = line.strip_prefix("diff --git ").or_else(|| {
            // Without git's header, the two lines with the names begin a file.
            (!header && line.starts_with("--- "))
                .then(|| next.strip_prefix("+++ "))
                .flatten()
                .map(|path| {
                    if path == "/dev/null" {
                        &line[4..]
                    } else {
                        path
                    }
                })
        });
        if let Some(paths) = paths {
            header = true;
            let paths = paths.split('\t').next().unwrap_or(paths);
            current = files.iter().position(|file| {
                paths
                    .strip_suffix(file.path.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
            });
        } else if line.starts_with("@@") {
            header = false;
        }
        let Some(file) = current.and_then(|at| files.get_mut(at)) else {
            continue;
        };
        if let Some(name) = line
            .strip_prefix("@@")
            .and_then(|rest| rest.split_once("@@"))
            .and_then(|(_, text)| defines(text))
        {
            if !file.touched.contains(&name) {
                file.touched.push(name);
            }
        } else if !header && line.starts_with('+') {
            file.added += usize::from(!counted);
            if let Some(name) = defines(&line[1..])
                && !file.touched.contains(&name)
            {
                file.touched.push(name);
            }
        } else if !header && line.starts_with('-') {
            file.removed += usize::from(!counted);
        }
    }
    files
}

/// Reads `added TAB removed TAB path` lines; false when there are none.
fn counts(diff: &str, files: &mut [Changed]) -> bool {
    let form = pattern!(r"^(\d+)\t(\d+)\t(.+)$");
    let mut counted = false;
    let head = diff
        .lines()
        .take_while(|line| !line.starts_with("diff --git "));
    for parts in head.filter_map(|line| form.captures(line)) {
        counted = true;
        if let Some(file) = files.iter_mut().find(|file| file.path == parts[3]) {
            file.added = parts[1].parse().unwrap_or(0);
            file.removed = parts[2].parse().unwrap_or(0);
        }
    }
    counted
}

fn word(state: &str) -> &'static str {
    match state.trim() {
        "??" | "A" | "AM" => "new",
        "D" => "removed",
        "UU" | "AA" => "in conflict",
        other if other.starts_with('R') => "renamed",
        _ => "changed",
    }
}

fn defines(line: &str) -> Option<String> {
    let form = pattern!(
        r"\b(fn|struct|enum|trait|class|interface|def|func|function)\s+(?:\([^)]*\)\s*)?([A-Za-z_]\w*)"
    );
    Some(form.captures(line)?[2].to_owned())
}

/// `area: change this and that`.
pub(in crate::offline) fn message(files: &[Changed]) -> String {
    let area = area(files);
    let mut touched: Vec<&str> = files
        .iter()
        .flat_map(|file| &file.touched)
        .map(String::as_str)
        .collect();
    touched.truncate(3);
    let names = |files: &[Changed]| {
        files
            .iter()
            .take(3)
            .map(|file| {
                file.path
                    .rsplit('/')
                    .find(|part| !part.is_empty())
                    .unwrap_or(&file.path)
                    .to_owned()
            })
            .collect::<Vec<_>>()
            .join(", ")
    };
    let verb = if files.iter().all(|file| file.state == "new") {
        "add"
    } else if files.iter().all(|file| file.state == "removed") {
        "remove"
    } else {
        "change"
    };
    let what = if touched.is_empty() {
        names(files)
    } else {
        touched.join(", ")
    };
    format!("{area}: {verb} {what}")
}

/// The folder or file that all changes share.
fn area(files: &[Changed]) -> String {
    let parts = |path: &str| {
        path.trim_end_matches('/')
            .split('/')
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let mut shared: Vec<String> = files
        .first()
        .map(|file| parts(&file.path))
        .unwrap_or_default();
    if files.len() == 1 && shared.len() > 1 {
        shared.pop();
    }
    for file in files {
        let other = parts(&file.path);
        let same = shared
            .iter()
            .zip(&other)
            .take_while(|(a, b)| a == b)
            .count();
        shared.truncate(same);
    }
    let plain =
        |part: &&String| !matches!(part.as_str(), "src" | "crates" | "packages" | "lib" | "app");
    let name = files
        .first()
        .and_then(|file| file.path.rsplit('/').next().map(str::to_owned));
    let found = if files.len() == 1 {
        shared.iter().rev().find(plain).or(name.as_ref())
    } else {
        shared.iter().find(plain)
    };
    match found {
        Some(part) => part
            .split('.')
            .next()
            .filter(|stem| !stem.is_empty())
            .unwrap_or(part)
            .to_owned(),
        None => "project".to_owned(),
    }
}
