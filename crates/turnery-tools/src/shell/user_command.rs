//! Runs a command line of the user or the host, such as the tests that judge candidates. It needs no permission, and
//! is confined like the commands of the session, because it may run code that a model has written.

use super::{
    exit_status::CommandExit,
    hidden_variables,
    local_process::{self, ProcessSettings},
    run_plan,
};
use crate::{GitSettings, ToolCx};
use std::{fmt::Write as _, time::Duration};

/// Maximum output that is kept, from its beginning and its end. Unit: bytes.
const MAX_KEPT_BYTES: usize = 16 << 10;

/// How a command of the user ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserCommandOutput {
    /// Exit code; `None` if the command was killed, took too long or did not start.
    pub exit_code: Option<i32>,
    /// Beginning and end of the output; then, without an exit code, how the command ended.
    pub text: String,
}

/// Runs a command line in the working directory of `cx`, for at most `limit`. `hidden_env` are patterns of variables
/// that it does not see, in addition to [`HIDDEN_ENV`](super::HIDDEN_ENV). Dropping the future kills the command and
/// all that it started.
pub async fn run_user_command(
    line: &str,
    limit: Duration,
    hidden_env: &[String],
    cx: &ToolCx,
) -> UserCommandOutput {
    let not_started = |why: &dyn std::fmt::Display| UserCommandOutput {
        exit_code: None,
        text: format!("the command did not start: {why}"),
    };
    let cwd = cx.workspace.cwd();
    let plan = match run_plan::plan_call(line.to_owned(), cwd.to_owned(), None, cx).await {
        Ok(plan) => plan,
        Err(error) => return not_started(&error),
    };
    let settings = ProcessSettings {
        hidden: &hidden_variables(hidden_env.iter().map(String::as_str)),
        passed: &[],
        confinement: plan.confinement.as_ref(),
        loads_no_project_code: false,
        git: GitSettings::Unrestricted,
    };
    match local_process::run(line, cwd, limit, settings, cx).await {
        Ok((exit, _, output)) => {
            let mut text = shorten(&output);
            let (exit_code, why) = match exit {
                CommandExit::Exited(code) => (i32::try_from(code).ok(), None),
                CommandExit::Killed(signal) => (None, Some(format!("killed by signal {signal}"))),
                CommandExit::TimedOut(limit) => {
                    let seconds = limit.as_secs_f64();
                    (None, Some(format!("stopped after {seconds} s")))
                }
                CommandExit::Cancelled => (None, Some("cancelled".to_owned())),
                CommandExit::Unknown => (None, Some("ended without an exit code".to_owned())),
            };
            if let Some(why) = why {
                let _ = write!(text, "\n[{why}]");
            }
            UserCommandOutput { exit_code, text }
        }
        Err(error) => not_started(&error),
    }
}

/// Removes the middle of a text that is longer than [`MAX_KEPT_BYTES`].
fn shorten(text: &str) -> String {
    let half = MAX_KEPT_BYTES / 2;
    if text.len() <= MAX_KEPT_BYTES {
        return text.to_owned();
    }
    let start = &text[..text.floor_char_boundary(half)];
    let end = &text[text.ceil_char_boundary(text.len() - half)..];
    let left_out = text.len() - start.len() - end.len();
    format!("{start}\n[{left_out} bytes left out]\n{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_output_keeps_both_ends() {
        let long = format!("a{}z", "é".repeat(MAX_KEPT_BYTES));
        let kept = shorten(&long);
        assert!(kept.starts_with('a') && kept.ends_with('z'), "{kept}");
        assert!(kept.len() <= MAX_KEPT_BYTES + 40, "{}", kept.len());
        assert_eq!(shorten("short"), "short");
    }
}
