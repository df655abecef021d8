//! Changed: files, lines and functions read from the status and the diff, and a message for them.

use crate::offline::rules::pattern;

/// One file that changed.
pub(super) struct Changed {
    path: String,
    state: &'static str,
    pub(super) added: usize,
    pub(super) removed: usize,
    touched: Vec<String>,
}

impl Changed {
    pub(super) fn in_a_line(&self) -> String {
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

pub(super) fn read(diff: &str, entries: &[&str]) -> Vec<Changed> {
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
    let mut current: Option<usize> = None;
    let mut header = false;
    for line in diff.lines() {
        if let Some(paths) = line.strip_prefix("diff --git ") {
            header = true;
            current = files
                .iter()
                .position(|file| paths.ends_with(&format!(" b/{}", file.path)));
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
            file.added += 1;
            if let Some(name) = defines(&line[1..])
                && !file.touched.contains(&name)
            {
                file.touched.push(name);
            }
        } else if !header && line.starts_with('-') {
            file.removed += 1;
        }
    }
    files
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
pub(super) fn message(files: &[Changed]) -> String {
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
    let found = if files.len() == 1 {
        shared.iter().rev().find(plain)
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
