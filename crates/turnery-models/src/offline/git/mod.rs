//! Git: what changed, told by file and function, and a commit message for it.

mod changed;

use super::{
    intent::Ask,
    output::{count, fenced, list},
    replay::{Halt, Replay},
};
pub(super) use changed::{Changed, message, read};

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
    let diff = git(
        "git diff HEAD --no-color --numstat --patch --unified=0",
        replay,
    )?;
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
        Some(_) if printed.contains("HEAD") || printed.contains("any commits yet") => Err(Halt::Stop(
            "This repository has no commit yet, so there is nothing to tell or to compare with.".to_owned(),
        )),
        Some(code) => Err(Halt::Stop(format!(
            "`{command}` failed with exit code {code}: {printed}"
        ))),
    }
}
