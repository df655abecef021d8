//! Git: what changed, told by file and function, and a commit message for it.

use super::{
    intent::Ask,
    output::{count, fenced, list},
    replay::{Halt, Replay},
    rules::pattern,
};

pub(super) fn changes(ask: Ask, replay: &mut Replay<'_>) -> Result<(), Halt> {
    if ask == Ask::Log {
        let log = git("git log --oneline -n 15", replay)?;
        replay.say(format!("The latest commits:\n\n{}", fenced(&log, "")));
        return Ok(());
    }
    let status = git("git status --short --branch", replay)?;
    let entries: Vec<&str> = status
        .lines()
        .filter(|line| !line.starts_with("##"))
        .collect();
    let branch = status
        .lines()
        .find_map(|line| line.strip_prefix("## "))
        .map(|line| line.split("...").next().unwrap_or(line).to_owned())
        .unwrap_or_default();
    if entries.is_empty() {
        let log = git("git log --oneline -n 5", replay)?;
        replay.say(format!(
            "Nothing is uncommitted{}. The latest commits:\n\n{}",
            on(&branch),
            fenced(&log, "")
        ));
        return Ok(());
    }
    let diff = git("git diff HEAD --no-color --unified=0", replay)?;
    let files = read(&diff, &entries);
    let added: usize = files.iter().map(|file| file.added).sum();
    let removed: usize = files.iter().map(|file| file.removed).sum();
    if ask == Ask::Summary {
        replay.say(format!(
            "{} changed{}, +{added} -{removed} lines:\n",
            count(files.len(), "file"),
            on(&branch)
        ));
        let lines: Vec<String> = files.iter().map(Changed::in_a_line).collect();
        replay.say(list(&lines, 40));
        replay.say("\nA commit message could be:\n\n");
    }
    replay.say(fenced(&message(&files), ""));
    if ask == Ask::CommitMessage {
        replay.say("\nIt tells what was touched; why, you know better than I do.\n");
    }
    Ok(())
}

fn on(branch: &str) -> String {
    if branch.is_empty() {
        String::new()
    } else {
        format!(" on {branch}")
    }
}

fn git(command: &'static str, replay: &mut Replay<'_>) -> Result<String, Halt> {
    let (printed, code) = replay.shell(command)?;
    match code {
        Some(0) | None => Ok(printed),
        Some(_) if printed.contains("not a git repository") => Err(Halt::Stop(
            "This folder is not in a git repository.".to_owned(),
        )),
        Some(_) if printed.contains("HEAD") => Err(Halt::Stop(
            "This repository has no commit yet, so there is nothing to compare with.".to_owned(),
        )),
        Some(code) => Err(Halt::Stop(format!(
            "`{command}` failed with exit code {code}: {printed}"
        ))),
    }
}

/// One file that changed.
struct Changed {
    path: String,
    state: &'static str,
    added: usize,
    removed: usize,
    touched: Vec<String>,
}

impl Changed {
    fn in_a_line(&self) -> String {
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

fn read(diff: &str, entries: &[&str]) -> Vec<Changed> {
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
fn message(files: &[Changed]) -> String {
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
