//! The shell tool: its specification, how its calls are shown and judged, and where they run.

use super::{
    client_terminal, command_preview,
    environment::HIDDEN_ENV,
    local_process,
    run_plan::{self, RunPlan},
};
use crate::{Access, PreparedCall, Tool, ToolCx, Workspace, grace};
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::task::spawn_blocking;
use turnery_engine::{CallDetail, CallKind, ToolEnvelope, ToolError, ToolErrorKind, ToolSpec};

const DEFAULT_TIMEOUT_MS: u64 = 120_000;
const MAX_TIMEOUT_MS: u64 = 600_000;

/// Runs shell commands.
#[derive(Debug)]
pub struct Shell {
    spec: ToolSpec,
    hidden_env: Vec<String>,
    passed_env: Vec<String>,
}

#[derive(Deserialize)]
struct Args {
    command: String,
    cwd: Option<String>,
    timeout_ms: Option<u64>,
    /// Reason to run outside the sandbox; `None` to run inside.
    outside_sandbox: Option<String>,
}

impl Default for Shell {
    /// Hides the variables of [`HIDDEN_ENV`].
    fn default() -> Self {
        Self::hiding([])
    }
}

impl Shell {
    /// Creates a shell whose commands see neither these environment variables nor those of [`HIDDEN_ENV`]. A
    /// leading `*` stands for any text.
    #[must_use]
    pub fn hiding<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let hidden_env = HIDDEN_ENV.iter().copied().chain(names);
        let hidden_env = hidden_env.map(str::to_uppercase).collect();
        let schema = json!({
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
        });
        let spec = ToolSpec {
            name: "shell".to_owned(),
            description: "Run a shell command and get what it prints, then its exit code. It cannot ask for \
                input. Everything that it starts is stopped when it ends, so nothing can be left running in \
                the background. Of long output only the beginning and the end are given. To read, search and \
                edit files use the tools for that."
                .to_owned(),
            schema: schema.into(),
        };
        Self {
            spec,
            hidden_env,
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

fn parse_shell_args(args: &Value) -> Result<Args, ToolError> {
    let args = Args::deserialize(args).map_err(|error| {
        validation_failure(format!("the arguments of shell do not fit: {error}"))
    })?;
    if args.command.trim().is_empty() {
        return Err(validation_failure(
            "command is empty: give a command line".to_owned(),
        ));
    }
    if args
        .outside_sandbox
        .as_ref()
        .is_some_and(|reason| reason.trim().is_empty())
    {
        return Err(validation_failure(
            "outside_sandbox is empty: say why the command has to run outside the sandbox, or leave it out"
                .to_owned(),
        ));
    }
    if args.command.contains('\0') {
        return Err(validation_failure(
            "command has a NUL character in it, which no shell can read: leave it out".to_owned(),
        ));
    }
    Ok(args)
}

fn validation_failure(message: String) -> ToolError {
    ToolError {
        kind: ToolErrorKind::Validation,
        message,
        details: None,
    }
}

fn resolve_cwd(args: &Args, workspace: &Workspace) -> Result<PathBuf, ToolError> {
    match &args.cwd {
        None => Ok(workspace.cwd().to_owned()),
        Some(cwd) => workspace
            .resolve(cwd)
            .map_err(|refused| validation_failure(format!("cannot run in that folder: {refused}"))),
    }
}

fn limit(timeout_ms: Option<u64>) -> Duration {
    let wanted = timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS);
    Duration::from_millis(wanted.clamp(1, MAX_TIMEOUT_MS))
}

/// Has no locations, because an editor cannot open a folder.
fn detail(args: &Args, cwd: &Path, workspace: &Workspace) -> CallDetail {
    let elsewhere = (cwd != workspace.cwd()).then_some(cwd);
    let mut artifacts = command_preview::whole(&args.command, elsewhere);
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

/// Returns where and how the command runs. Runs on another thread, so that no session waits for the disk.
async fn plan(args: &Args, cwd: &Path, cx: &ToolCx) -> Result<RunPlan, ToolError> {
    let (line, outside) = (args.command.clone(), args.outside_sandbox.clone());
    let (cwd, workspace, limits) = (cwd.to_owned(), Arc::clone(&cx.workspace), cx.line_limits);
    let planning =
        spawn_blocking(move || run_plan::plan(&line, &cwd, outside.as_deref(), limits, &workspace));
    planning.await.map_err(|_| ToolError {
        kind: ToolErrorKind::ExecutionError,
        message: "the command was not run: turnery could not find out what it does".to_owned(),
        details: None,
    })
}

impl Tool for Shell {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn kind(&self) -> CallKind {
        CallKind::Execute
    }

    fn describe(&self, args: &Value, workspace: &Workspace) -> CallDetail {
        let Ok(args) = parse_shell_args(args) else {
            return CallDetail::default();
        };
        let cwd = args.cwd.as_deref().unwrap_or_default();
        detail(&args, &workspace.absolute(cwd), workspace)
    }

    fn prepare<'a>(
        &'a self,
        args: &'a Value,
        cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<PreparedCall, ToolError>> {
        Box::pin(async move {
            let args = parse_shell_args(args)?;
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
        })
    }

    fn run<'a>(&'a self, args: &'a Value, cx: &'a ToolCx) -> BoxFuture<'a, ToolEnvelope> {
        Box::pin(async move {
            let started = parse_shell_args(args).and_then(|args| {
                let cwd = resolve_cwd(&args, &cx.workspace)?;
                Ok((args, cwd))
            });
            let (args, cwd) = match started {
                Ok(started) => started,
                Err(failure) => return failure.into(),
            };
            let limit = limit(args.timeout_ms);
            let plan = match plan(&args, &cwd, cx).await {
                Ok(plan) => plan,
                Err(failure) => return failure.into(),
            };
            if plan.may_use_terminals
                && let Some(terminals) = cx.workspace.terminals()
            {
                let detail = detail(&args, &cwd, &cx.workspace);
                let lent = client_terminal::run(
                    terminals,
                    &args.command,
                    &cwd,
                    limit,
                    plan.git,
                    detail,
                    cx,
                );
                if let Some(envelope) = lent.await {
                    return envelope;
                }
            }
            let surroundings = local_process::Surroundings {
                hidden: &self.hidden_env,
                passed: &self.passed_env,
                confinement: plan.confinement.as_ref(),
                runs_readers: plan.runs_readers,
                git: plan.git,
            };
            match local_process::run(&args.command, &cwd, limit, surroundings, cx).await {
                Ok((ending, stopped, text)) => {
                    let hint = plan.hint(&ending, &text);
                    ending.envelope_with(text, &stopped, hint)
                }
                Err(error) => {
                    let cwd = cwd.display();
                    let reason = match error.raw_os_error() {
                        Some(_) => format!(
                            "could not start a shell in {cwd}: {error}. Check that the folder exists and that bash or sh is installed"
                        ),
                        None => format!("the command was not started in {cwd}: {error}"),
                    };
                    ToolEnvelope::failed(ToolErrorKind::ExecutionError, reason)
                }
            }
        })
    }

    /// The command's own timeout is enforced by `run`, so that output is kept; this limit is a fallback.
    fn timeout(&self, args: &Value) -> Duration {
        limit(args.get("timeout_ms").and_then(Value::as_u64)) + 3 * grace::COMMAND
    }
}
