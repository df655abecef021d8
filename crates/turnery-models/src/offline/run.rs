//! Runs tests or a command and lists failures; summarizes uncommitted changes.

use super::{
    command_context::{
        CommandContext, CommandResult, code_block, count, last_lines, list, stop_with,
    },
    failures::parse_failures,
};
use serde_json::json;

/// Files that determine the test command of a project. A Makefile counts only if there is no other.
const TEST_COMMANDS: [(&str, &str); 5] = [
    ("Cargo.toml", "cargo test --no-fail-fast"),
    ("package.json", "npm test"),
    ("go.mod", "go test ./..."),
    ("pyproject.toml", "python3 -m pytest -q"),
    ("Makefile", "make test"),
];

/// The totals come last, so that they survive if the middle of a long output is omitted.
const DIFF_COMMAND: &str =
    "git diff HEAD --no-color --no-ext-diff --no-textconv --numstat --shortstat";

/// Runs the tests of the project in the working directory.
pub(super) fn run_tests(cx: &mut CommandContext) -> CommandResult {
    let listing = cx.call_or_stop("list_dir", json!({"path": ".", "depth": 1}))?;
    let names: Vec<_> = listing.lines().map(|it| it.split("  ").next()).collect();
    let is_there = |(file, _): &&(&str, &str)| names.contains(&Some(*file));
    let known = TEST_COMMANDS.iter().filter(is_there);
    let unclear = "How to test this is not clear. Say for example: run `make check`";
    match known.map(|(_, command)| *command).collect::<Vec<_>>()[..] {
        [command] | [command, "make test"] => run_command(command, cx),
        _ => stop_with(unclear.to_owned()),
    }
}

/// Runs a command; reports its status and its failures or the end of its output.
pub(super) fn run_command(command: &str, cx: &mut CommandContext) -> CommandResult {
    let (output, code) = cx.run_shell(command)?;
    let (failures, counts) = parse_failures(&output);
    let ended = if code == 0 { "succeeded" } else { "failed" };
    let (last, counted) = (code_block(&last_lines(&output, 30)), code_block(&counts));
    let mut text = format!("`{command}` {ended} (exit code {code}).\n{counted}");
    if is_truncated(&output) {
        text += "The middle of its output is missing, and so may be counts and failures.\n";
    }
    if code != 0 && !failures.is_empty() {
        return Ok(text + &list_failures(failures));
    }
    if !last.is_empty() && (code != 0 || counts.is_empty()) {
        text += &format!("The end of its output:\n{last}");
    }
    Ok(text)
}

/// Lists the failures in a text that the user gave.
pub(super) fn summarize_failures(output: &str) -> String {
    let (failures, counts) = parse_failures(output);
    match failures.is_empty() {
        true => "I recognise no failure in this text.".to_owned(),
        false => code_block(&counts) + &list_failures(failures),
    }
}

fn list_failures(failures: Vec<String>) -> String {
    let number = count(failures.len(), "failure");
    format!("I recognise {number}:\n{}", list(failures.into_iter(), 20))
}

fn is_truncated(output: &str) -> bool {
    output.contains(" left out here. To see it, narrow the command")
}

/// Summarizes uncommitted changes in the words and numbers of git.
pub(super) fn summarize_changes(cx: &mut CommandContext) -> CommandResult {
    let status = run_git("git status --short --branch", cx)?;
    let (branch, entries): (Vec<&str>, Vec<&str>) =
        status.lines().partition(|line| line.starts_with("## "));
    let (branch, entries) = (branch.concat().replace("## ", ""), entries.join("\n"));
    if entries.is_empty() {
        return Ok(format!("Nothing is uncommitted (branch: {branch})."));
    }
    let diff = run_git(DIFF_COMMAND, cx)?;
    let is_total = |line: &&str| line.starts_with(' ') && line.contains(" changed, ");
    let totals = (diff.lines().find(is_total)).unwrap_or("no tracked file changed");
    let new = entries.lines().filter(|it| it.starts_with("??")).count();
    let is_cut = is_truncated(&entries);
    let least = if is_cut { "at least " } else { "" };
    let (totals, status, lines) = (totals.trim(), code_block(&entries), code_block(&diff));
    let new = format!("untracked files or folders: {least}{new}");
    let head = format!("Uncommitted (branch: {branch}): {totals}; {new}");
    Ok(format!("{head}.\n{status}{lines}"))
}

/// Returns the output of a git command. A failing command ends the offline command too.
fn run_git(command: &str, cx: &mut CommandContext) -> CommandResult {
    let (text, code) = cx.run_shell(command)?;
    match code {
        0 => Ok(text),
        _ if text.contains("'HEAD'") => stop_with("Nothing was ever committed here.".to_owned()),
        _ => stop_with(format!("`{command}` failed: {}", text.trim())),
    }
}
