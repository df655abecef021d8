//! Runs the tests or a command and sorts what failed; sums up uncommitted changes.

use super::{
    conversation::{Answer, Conversation, count, fenced, last_lines, list, stop},
    failures::parse,
};
use serde_json::json;

/// Files that tell how a project is tested. A Makefile counts only if there is no other.
const PROJECTS: [(&str, &str); 5] = [
    ("Cargo.toml", "cargo test --no-fail-fast"),
    ("package.json", "npm test"),
    ("go.mod", "go test ./..."),
    ("pyproject.toml", "python3 -m pytest -q"),
    ("Makefile", "make test"),
];

/// The totals come last, so they are there even if the middle of a long output is left out.
const DIFF: &str = "git diff HEAD --no-color --no-ext-diff --no-textconv --numstat --shortstat";

/// Runs the tests of the project in the working directory.
pub(super) fn tests(cx: &mut Conversation) -> Answer {
    let listing = cx.must("list_dir", json!({"path": ".", "depth": 1}))?;
    let names: Vec<_> = listing.lines().map(|it| it.split("  ").next()).collect();
    let known = PROJECTS
        .iter()
        .filter(|(file, _)| names.contains(&Some(file)));
    match known.map(|(_, command)| *command).collect::<Vec<_>>()[..] {
        [command] | [command, "make test"] => run(command, cx),
        _ => stop("How to test this is not clear. Say for example: run `make check`".to_owned()),
    }
}

/// Runs a command: how it ended, what failed, or the end of what it printed.
pub(super) fn run(command: &str, cx: &mut Conversation) -> Answer {
    let (output, code) = cx.shell(command)?;
    let (failures, counts) = parse(&output);
    let ended = if code == 0 { "succeeded" } else { "failed" };
    let (last, counted) = (fenced(&last_lines(&output, 30)), fenced(&counts));
    let mut text = format!("`{command}` {ended} (exit code {code}).\n{counted}");
    if is_cut(&output) {
        text += "The middle of its output is missing, and so may be counts and failures.\n";
    }
    if code != 0 && !failures.is_empty() {
        return Ok(text + &sorted(failures));
    }
    if !last.is_empty() && (code != 0 || counts.is_empty()) {
        text += &format!("The end of its output:\n{last}");
    }
    Ok(text)
}

/// Sorts the failures in a text that the user gave.
pub(super) fn sort(output: &str) -> String {
    let (failures, counts) = parse(output);
    match failures.is_empty() {
        true => "I recognise no failure in this text.".to_owned(),
        false => fenced(&counts) + &sorted(failures),
    }
}

fn sorted(failures: Vec<String>) -> String {
    let number = count(failures.len(), "failure");
    format!("I recognise {number}:\n{}", list(failures.into_iter(), 20))
}

fn is_cut(output: &str) -> bool {
    output.contains(" left out here. To see it, narrow the command")
}

/// Uncommitted changes, in git's own words and numbers.
pub(super) fn changes(cx: &mut Conversation) -> Answer {
    let status = git("git status --short --branch", cx)?;
    let (branch, entries): (Vec<&str>, Vec<&str>) =
        status.lines().partition(|line| line.starts_with("## "));
    let (branch, entries) = (branch.concat().replace("## ", ""), entries.join("\n"));
    if entries.is_empty() {
        return Ok(format!("Nothing is uncommitted (branch: {branch})."));
    }
    let diff = git(DIFF, cx)?;
    let totals = diff
        .lines()
        .find(|it| it.starts_with(' ') && it.contains(" changed, "));
    let totals = totals.unwrap_or("no tracked file changed");
    let new = entries.lines().filter(|it| it.starts_with("??")).count();
    let least = if is_cut(&entries) { "at least " } else { "" };
    let (totals, status, lines) = (totals.trim(), fenced(&entries), fenced(&diff));
    let new = format!("untracked files or folders: {least}{new}");
    let head = format!("Uncommitted (branch: {branch}): {totals}; {new}.");
    Ok(format!("{head}\n{status}{lines}"))
}

/// What a git command printed. One that fails ends this command too.
fn git(command: &str, cx: &mut Conversation) -> Answer {
    let (text, code) = cx.shell(command)?;
    match code {
        0 => Ok(text),
        _ if text.contains("'HEAD'") => stop("Nothing was ever committed here.".to_owned()),
        _ => stop(format!("`{command}` failed: {}", text.trim())),
    }
}
