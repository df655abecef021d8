//! The shell tool: its specification, how its calls are shown and judged, and where they run.

use crate::{
    access::Access,
    call_errors::{execution_error, validation_error},
    grace,
    shell::{client_terminal, command_preview, hidden_variables, local_process, run_plan},
    tool::{PreparedCall, ToolCx},
    typed_tool::TypedTool,
    workspace::Workspace,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    borrow::Cow,
    path::{Path, PathBuf},
    time::Duration,
};
use turnery_engine::{CallDetail, CallKind, ToolEnvelope, ToolError, ToolErrorKind};

const DEFAULT_TIMEOUT_MS: u64 = 120_000;
const MAX_TIMEOUT_MS: u64 = 600_000;

/// Runs shell commands.
#[derive(Debug)]
pub struct Shell {
    hidden_env: Vec<String>,
    passed_env: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShellArgs {
    /// The command line, for bash.
    command: String,
    /// The folder to run it in; the working directory if absent. Better than `cd`.
    cwd: Option<String>,
    /// Milliseconds after which it is stopped: 120000 if absent, at most 600000.
    #[schemars(range(min = 1, max = MAX_TIMEOUT_MS))]
    timeout_ms: Option<u64>,
    /// Only for a command that failed because it was confined: why it has to run without. The user is asked.
    outside_sandbox: Option<String>,
}

impl Default for Shell {
    /// Hides the variables of [`HIDDEN_ENV`](crate::shell::HIDDEN_ENV).
    fn default() -> Self {
        Self::hiding([])
    }
}

impl Shell {
    /// Creates a shell whose commands see neither these environment variables nor those of
    /// [`HIDDEN_ENV`](crate::shell::HIDDEN_ENV). A `*` at either end of a name stands for any text.
    #[must_use]
    pub fn hiding<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            hidden_env: hidden_variables(names),
            passed_env: Vec::new(),
        }
    }

    /// Passes these variables to commands even if they are hidden by a pattern.
    #[must_use]
    pub fn passing<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.passed_env
            .extend(names.into_iter().map(str::to_uppercase));
        self
    }
}

/// Rejects values that the schema cannot exclude.
fn check(args: &ShellArgs) -> Result<(), ToolError> {
    if args.command.trim().is_empty() {
        return Err(validation_error("command is empty: give a command line"));
    }
    if args
        .outside_sandbox
        .as_ref()
        .is_some_and(|reason| reason.trim().is_empty())
    {
        return Err(validation_error(
            "outside_sandbox is empty: say why the command has to run outside the sandbox, or leave it out",
        ));
    }
    if args.command.contains('\0') {
        return Err(validation_error(
            "command has a NUL character in it, which no shell can read: leave it out",
        ));
    }
    Ok(())
}

fn resolve_cwd(args: &ShellArgs, workspace: &Workspace) -> Result<PathBuf, ToolError> {
    match &args.cwd {
        None => Ok(workspace.cwd().to_owned()),
        Some(cwd) => workspace
            .resolve(cwd)
            .map_err(|refused| validation_error(format!("cannot run in that folder: {refused}"))),
    }
}

fn limit(timeout_ms: Option<u64>) -> Duration {
    let wanted = timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS);
    Duration::from_millis(wanted.clamp(1, MAX_TIMEOUT_MS))
}

/// Has no locations, because an editor cannot open a folder.
fn detail(args: &ShellArgs, cwd: &Path, workspace: &Workspace) -> CallDetail {
    let elsewhere = (cwd != workspace.cwd()).then_some(cwd);
    let mut artifacts = command_preview::render_command(&args.command, elsewhere);
    let mut shown = args.command.trim().to_owned();
    if let Some(reason) = run_plan::reason_to_leave(args.outside_sandbox.as_deref(), workspace) {
        shown = format!("Outside the sandbox: {shown}");
        artifacts.push(command_preview::reason(reason));
    }
    CallDetail {
        title: shown,
        kind: CallKind::Execute,
        locations: Vec::new(),
        artifacts,
    }
}

impl TypedTool for Shell {
    type Args = ShellArgs;
    const NAME: &'static str = "shell";
    const KIND: CallKind = CallKind::Execute;

    fn description(&self) -> Cow<'static, str> {
        "Run a shell command and get what it prints, then its exit code. It cannot ask for \
         input. Everything that it starts is stopped when it ends, so nothing can be left running in \
         the background. Of long output only the beginning and the end are given. To read, search and \
         edit files use the tools for that."
            .into()
    }

    /// Equal to the derived schema, in the order in which models have always received it.
    fn schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "command": {
                    "type": "string",
                    "description": "The command line, for bash."
                },
                "cwd": {
                    "type": "string",
                    "description": "The folder to run it in; the working directory if absent. Better than `cd`."
                },
                "timeout_ms": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_TIMEOUT_MS,
                    "description": "Milliseconds after which it is stopped: 120000 if absent, at most 600000."
                },
                "outside_sandbox": {
                    "type": "string",
                    "description": "Only for a command that failed because it was confined: why it has to run without. The user is asked."
                }
            },
            "required": ["command"],
            "additionalProperties": false
        })
    }

    fn describe(&self, args: &ShellArgs, workspace: &Workspace) -> CallDetail {
        if check(args).is_err() {
            return CallDetail::default();
        }
        let cwd = args.cwd.as_deref().unwrap_or_default();
        detail(args, &workspace.absolute(cwd), workspace)
    }

    async fn prepare(&self, args: ShellArgs, cx: &ToolCx) -> Result<PreparedCall, ToolError> {
        check(&args)?;
        let cwd = resolve_cwd(&args, &cx.workspace)?;
        let detail = detail(&args, &cwd, &cx.workspace);
        let leaves =
            run_plan::reason_to_leave(args.outside_sandbox.as_deref(), &cx.workspace).is_some();
        let command = args.command;
        let access = match leaves {
            true => Access::RunOutside { command, cwd },
            false => Access::Run { command, cwd },
        };
        Ok(PreparedCall { access, detail })
    }

    async fn run(&self, args: ShellArgs, cx: &ToolCx) -> Result<ToolEnvelope, ToolError> {
        check(&args)?;
        let cwd = resolve_cwd(&args, &cx.workspace)?;
        let limit = limit(args.timeout_ms);
        let outside = args.outside_sandbox.clone();
        let planning = run_plan::plan_call(args.command.clone(), cwd.clone(), outside, cx);
        let plan = planning.await.map_err(|_| {
            execution_error("the command was not run: turnery could not find out what it does")
        })?;
        if plan.may_use_terminals
            && let Some(terminals) = cx.workspace.terminals()
        {
            let detail = detail(&args, &cwd, &cx.workspace);
            let lent =
                client_terminal::run(terminals, &args.command, &cwd, limit, plan.git, detail, cx);
            if let Some(envelope) = lent.await {
                return Ok(envelope);
            }
        }
        let surroundings = local_process::ProcessSettings {
            hidden: &self.hidden_env,
            passed: &self.passed_env,
            confinement: plan.confinement.as_ref(),
            loads_no_project_code: plan.loads_no_project_code,
            git: plan.git,
        };
        match local_process::run(&args.command, &cwd, limit, surroundings, cx).await {
            Ok((ending, stopped, text)) => {
                let hint = plan.hint(&ending, &text);
                Ok(ending.envelope_with(text, &stopped, hint))
            }
            Err(error) => {
                let cwd = cwd.display();
                let reason = match error.raw_os_error() {
                    Some(_) => format!(
                        "could not start a shell in {cwd}: {error}. Check that the folder exists and that bash or sh is installed"
                    ),
                    None => format!("the command was not started in {cwd}: {error}"),
                };
                Ok(ToolEnvelope::failed(ToolErrorKind::ExecutionError, reason))
            }
        }
    }

    /// The command's own timeout is enforced by `run`, so that output is kept; this limit is a fallback.
    fn timeout(&self, args: &ShellArgs) -> Duration {
        limit(args.timeout_ms) + 3 * grace::COMMAND
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::schema_for;

    #[test]
    fn written_schema_equals_derived_schema() {
        assert_eq!(Shell::default().schema(), schema_for::<ShellArgs>());
    }
}
