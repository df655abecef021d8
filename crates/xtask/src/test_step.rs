//! Runs all tests, and those that fail once more, one after another.

use crate::{
    ci::Retries,
    clients,
    postgres::PostgresServer,
    tee::{TeeOutput, tee},
    workspace::{cargo, recreate_empty_home, target_folder},
};
use anyhow::{Context, Result, ensure};
use std::{collections::BTreeSet, env, process::Command};

/// Arguments that every step shares, so that nothing is compiled twice: with other packages selected, cargo
/// would enable other features.
pub(crate) const TEST_ARGS: [&str; 3] = ["test", "--workspace", "--locked"];

/// Variable that lets the tests run where the sandbox is absent or partial.
const ALLOW_SANDBOX_GAP: &str = "ALLOW_SANDBOX_GAP";

/// Builds all test targets of the workspace.
pub(crate) fn build() -> Result<()> {
    crate::workspace::run_checked(cargo().args(TEST_ARGS).arg("--no-run"))
}

/// Runs all tests. If npm is installed, a test also compares the suite's schemas with the published ones.
pub(crate) fn run(retries: &mut Retries) -> Result<()> {
    // A failed download is reported by the step `clients`.
    let schemas = clients::published_schemas().unwrap_or_else(|error| {
        println!("== {error:#}");
        None
    });
    if schemas.is_none() {
        println!(
            "== the suite's schemas are not compared with the published ones: npm did not bring them"
        );
    }
    let server = PostgresServer::start()?;
    let command = || {
        let mut command = cargo();
        command.envs(server.variables());
        command.args(TEST_ARGS).arg("--no-fail-fast");
        command.envs(schemas.iter().map(|folder| ("ACP_SCHEMA", folder)));
        command
    };
    build()?;
    let is_allowed = env::var_os(ALLOW_SANDBOX_GAP).is_some_and(|value| !value.is_empty());
    check_sandbox(sandbox_gap(list_tools()?), is_allowed)?;
    let first = tee(command())?;
    if first.status.success() {
        return Ok(());
    }
    let failed = TestFailures::parse(&first.lines);
    ensure!(
        !failed.does_not_compile,
        "the tests do not compile: cargo ended with {}",
        first.status
    );
    println!("== failed: {}; once more, alone", failed.names());
    let mut again = command();
    again.args(["--", "--test-threads=1"]);
    if !failed.has_crashed {
        again.arg("--exact").args(&failed.tests);
    }
    let again = tee(again)?;
    check_rerun(&failed, &again).with_context(|| format!("failed twice, of {}", failed.names()))?;
    retries.record(failed.names());
    Ok(())
}

/// Returns the output of `turnery tool list` without any configuration; its last line describes the sandbox.
fn list_tools() -> Result<String> {
    let home = recreate_empty_home()?;
    let output = Command::new(target_folder().join("debug/turnery"))
        .args(["tool", "list"])
        .current_dir(&home)
        .env_clear()
        .env("HOME", &home)
        .output()
        .context("could not start turnery")?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the line of `turnery tool list` about the sandbox if it is absent or partial here; tests of the
/// missing parts pass without testing anything. Also reports that the line is missing.
fn sandbox_gap(listing: String) -> Option<String> {
    let mut lines = listing.lines();
    let Some(line) = lines.rfind(|line| line.starts_with("Commands ")) else {
        return Some("turnery tool list does not say what confines commands".to_owned());
    };
    let is_complete = line.starts_with("Commands are confined by ") && !line.contains("; ");
    (!is_complete).then(|| line.to_owned())
}

/// Fails if there is a gap, or prints it if it is allowed.
fn check_sandbox(gap: Option<String>, is_allowed: bool) -> Result<()> {
    let Some(gap) = gap else {
        return Ok(());
    };
    let report = format!("not all of the sandbox can be tested on this machine: {gap}");
    ensure!(
        is_allowed,
        "{report}; to run the other tests all the same, set {ALLOW_SANDBOX_GAP}=1"
    );
    println!("== {report}");
    Ok(())
}

fn check_rerun(failed: &TestFailures, again: &TeeOutput) -> Result<()> {
    ensure!(
        again.status.success(),
        "{} ({})",
        TestFailures::parse(&again.lines).names(),
        again.status
    );
    for name in &failed.tests {
        // Output of a child process may separate this from the `ok`; the exit status confirms success.
        let passed = format!("test {name} ... ");
        let found = again.lines.iter().any(|line| line.contains(&passed));
        ensure!(found, "{name} was not run again");
    }
    Ok(())
}

/// Failures of a run of `cargo test`.
#[derive(Debug, Default, PartialEq, Eq)]
struct TestFailures {
    tests: BTreeSet<String>,
    /// True if a test program crashed, so that the results of its other tests are unknown.
    has_crashed: bool,
    does_not_compile: bool,
}

impl TestFailures {
    fn parse(lines: &[String]) -> Self {
        let mut failed = Self::default();
        for line in lines {
            let dashed = line
                .strip_prefix("---- ")
                .and_then(|rest| rest.strip_suffix(" stdout ----"));
            let told = line
                .strip_prefix("test ")
                .and_then(|rest| rest.strip_suffix(" ... FAILED"));
            if let Some(name) = dashed.or(told) {
                let name = name.strip_suffix(" - should panic").unwrap_or(name);
                failed.tests.insert(name.to_owned());
            }
            failed.has_crashed |= line.contains("process didn't exit successfully");
            failed.does_not_compile |= line.contains("could not compile");
        }
        failed.has_crashed |= failed.tests.is_empty();
        failed
    }

    fn names(&self) -> String {
        let crashed = self.has_crashed.then_some("a test program that crashed");
        let names = self.tests.iter().map(String::as_str).chain(crashed);
        names.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_failures(text: &str) -> TestFailures {
        TestFailures::parse(&text.lines().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn failed_tests_are_found_by_name() {
        let text = "\
test a::good ... ok
test a::bad ... FAILED
garbled test a::worse ... FAILED
---- a::worse stdout ----
test b::panics - should panic ... FAILED
error: 2 targets failed:";
        let failed = parse_failures(text);
        let names: Vec<&str> = failed.tests.iter().map(String::as_str).collect();
        assert_eq!(names, ["a::bad", "a::worse", "b::panics"]);
        assert!(!failed.has_crashed && !failed.does_not_compile);
    }

    #[test]
    fn crash_reruns_all_tests() {
        let crash = "\
test a::bad ... FAILED
  process didn't exit successfully: `target/debug/deps/b-1` (signal: 6, SIGABRT)";
        assert!(parse_failures(crash).has_crashed);
        assert!(parse_failures("error: no library targets found").has_crashed);
    }

    #[test]
    fn tests_that_do_not_compile_are_not_run_again() {
        let text = "error: could not compile `a` (lib test) due to 1 previous error";
        assert!(parse_failures(text).does_not_compile);
    }

    #[test]
    fn machine_without_the_whole_sandbox_is_reported() {
        let gap = |line: &str| sandbox_gap(format!("shell        Run a command.\n\n{line}\n"));
        for complete in [
            "Commands are confined by landlock (version 7) and seccomp.",
            "Commands are confined by sandbox-exec.",
        ] {
            assert_eq!(gap(complete), None);
        }
        for lacking in [
            "Commands cannot be confined here: the kernel has no landlock, or it is switched off.",
            "Commands are confined by landlock (version 5) and seccomp; signals to other processes are not confined \
             (needs Linux 6.12).",
        ] {
            assert_eq!(gap(lacking).as_deref(), Some(lacking));
        }
        assert!(gap("").is_some());
    }

    #[test]
    fn missing_sandbox_fails_unless_allowed() {
        let gap = || Some("Commands cannot be confined here: no landlock.".to_owned());
        for (gap, is_allowed, passes) in [
            (gap(), false, false),
            (gap(), true, true),
            (None, false, true),
        ] {
            let result = check_sandbox(gap, is_allowed);
            assert_eq!(result.is_ok(), passes, "{result:?}");
        }
    }

    #[test]
    fn test_missing_from_rerun_has_not_passed() {
        let failed = parse_failures("test a::bad ... FAILED");
        let status = Command::new("true").status().unwrap();
        let printed = |text: &str| TeeOutput {
            status,
            lines: vec![text.to_owned()],
        };
        let right = printed("test a::bad ... ok");
        assert!(check_rerun(&failed, &right).is_ok());
        let wrong = check_rerun(&failed, &printed("running 0 tests"));
        assert_eq!(wrong.unwrap_err().to_string(), "a::bad was not run again");
    }
}
