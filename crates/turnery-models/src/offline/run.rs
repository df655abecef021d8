//! Run: the tests, the build, the linter or a command, and what came of it.

use super::{
    failures::Report,
    intent::Job,
    output::{count, fenced, list},
    project::Project,
    replay::{Halt, Replay},
    rules::pattern,
};
use serde_json::json;

pub(super) fn run(job: &Job, replay: &mut Replay<'_>) -> Result<(), Halt> {
    let command = if let Job::Command(command) = job {
        command.clone()
    } else {
        let listing = replay.must("list_dir", json!({"path": ".", "depth": 1}))?;
        let Some(project) = Project::of(&listing) else {
            return Err(Halt::Stop(
                "I do not know how to do that here: there is no Cargo.toml, package.json, go.mod, pyproject.toml, Makefile or CMakeLists.txt in this folder. Say the command, for example: run `make test`.".to_owned(),
            ));
        };
        let command = project.command(job);
        replay.say(format!("This is {}: I run `{command}`.\n", project.name()));
        command
    };
    let (printed, code) = replay.shell(&command)?;
    let failed = code != Some(0);
    let mut report = Report::of(&printed);
    if !failed {
        report.failures.clear();
    }
    replay.say(verdict(job, &command, &report, code, failed));
    if failed || matches!(job, Job::Lint | Job::Build) {
        tell(&report, &printed, failed, replay);
    } else if let Job::Command(_) = job {
        replay.say(format!("\n{}", fenced(&tail(&printed, 30), "")));
    }
    Ok(())
}

fn verdict(job: &Job, command: &str, report: &Report, code: Option<i32>, failed: bool) -> String {
    let ended = match (failed, code) {
        (false, _) => String::new(),
        (true, Some(code)) => format!(", exit code {code}"),
        (true, None) => ", it did not come to its end".to_owned(),
    };
    let counts = report.counts();
    let counts = if counts.is_empty() {
        String::new()
    } else {
        format!(": {counts}")
    };
    let what = match (job, failed) {
        (Job::Tests(_), false) => "The tests pass",
        (Job::Tests(_), true) if report.broke_off() => {
            "The tests were not run, because the code does not compile"
        }
        (Job::Tests(_), true) => "The tests fail",
        (Job::Build, false) => "The build works",
        (Job::Build, true) => "The build fails",
        (Job::Lint, false) => "The linter is done",
        (Job::Lint, true) => "The linter complains",
        (Job::Command(_), false) => "The command succeeded",
        (Job::Command(_), true) => "The command failed",
    };
    format!("{what}{counts} (`{command}`{ended}).\n")
}

pub(super) fn tell(report: &Report, printed: &str, failed: bool, replay: &mut Replay<'_>) {
    match report.failures.first() {
        Some(first) => {
            replay.say(format!("\nFirst: {}\n", first.place_and_name()));
            if !first.message.is_empty() {
                replay.say(fenced(&first.message, ""));
            }
            let rest: Vec<String> = report.failures[1..]
                .iter()
                .map(|failure| failure.in_a_line())
                .collect();
            if !rest.is_empty() {
                replay.say(format!(
                    "\nThen {}:\n{}",
                    count(rest.len(), "other"),
                    list(&rest, 20)
                ));
            }
        }
        None if let Some(name) = missing(printed) => replay.say(format!(
            "\n`{name}` is not installed here, or not where programs are looked for.\n"
        )),
        None if failed && printed.is_empty() => replay.say("It printed nothing.\n"),
        None if failed => replay.say(format!(
            "\nI recognise no failure in what it printed. It ends with:\n\n{}",
            fenced(&tail(printed, 20), "")
        )),
        None => {}
    }
    let warnings: Vec<String> = report
        .warnings
        .iter()
        .map(|warning| warning.in_a_line())
        .collect();
    if !warnings.is_empty() {
        replay.say(format!(
            "\n{}:\n{}",
            count(warnings.len(), "warning"),
            list(&warnings, 10)
        ));
    }
}

/// The program or module without which a command could not begin.
pub(super) fn missing(printed: &str) -> Option<&str> {
    let form = pattern!(
        r"(?m)^(?:\S*: )?(?:line \d+: )?(?:\S*: No module named |(?:sh: \d+: )?)([\w.\-]+?)(?:: command not found|: not found)?$"
    );
    let last = printed.trim_end().lines().last()?;
    let says = ["command not found", ": not found", "No module named"];
    says.iter().any(|text| last.contains(text)).then_some(())?;
    Some(form.captures(last)?.get(1)?.as_str())
}

fn tail(text: &str, most: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(most)..].join("\n")
}

/// What the compiler says about one of its error codes.
pub(super) fn explain_code(code: &str, replay: &mut Replay<'_>) -> Result<(), Halt> {
    let (printed, exit) = replay.shell(&format!("rustc --explain {code}"))?;
    if exit != Some(0) || printed.is_empty() {
        return Err(Halt::Stop(format!(
            "`rustc --explain {code}` gave no explanation:\n\n{}\nThe list of all codes is at https://doc.rust-lang.org/error_codes/",
            fenced(&tail(&printed, 10), "")
        )));
    }
    replay.say(format!("{code}, as rustc explains it:\n\n"));
    let lines: Vec<&str> = printed.lines().collect();
    replay.say(lines[..lines.len().min(80)].join("\n"));
    if lines.len() > 80 {
        replay.say(format!(
            "\n\n… {} more: `rustc --explain {code}`",
            count(lines.len() - 80, "line")
        ));
    }
    Ok(())
}
