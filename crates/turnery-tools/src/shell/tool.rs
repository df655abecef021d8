//! The shell tool: what the model is told of it, how its calls are shown and judged, and where they run.

use super::{
    confined::{self, RunPlan},
    environment::HIDDEN_ENV,
    lent, local, title,
};
use crate::{Access, Prepared, Tool, ToolCx, Workspace, grace};
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::task::spawn_blocking;
use turnery_engine::{CallDetail, CallKind, FailureKind, ToolEnvelope, ToolFailure, ToolSpec};

const DEFAULT_TIMEOUT_MS: u64 = 120_000;
const LONGEST_TIMEOUT_MS: u64 = 600_000;

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
    /// Why it has to run outside the sandbox.
    outside_sandbox: Option<String>,
}

impl Default for Shell {
    /// With [`HIDDEN_ENV`] hidden.
    fn default() -> Self {
        Self::hiding([])
    }
}

impl Shell {
    /// A shell whose commands see neither these environment variables nor those of [`HIDDEN_ENV`].
    /// A `*` in front stands for anything.
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
                    "maximum": LONGEST_TIMEOUT_MS,
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

    /// The same shell, whose commands see these variables whatever is hidden.
    #[must_use]
    pub fn passing<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.passed_env
            .extend(names.into_iter().map(str::to_uppercase));
        self
    }
}

fn parse(args: &Value) -> Result<Args, ToolFailure> {
    let args = Args::deserialize(args)
        .map_err(|error| invalid(format!("the arguments of shell do not fit: {error}")))?;
    if args.command.trim().is_empty() {
        return Err(invalid("command is empty: give a command line".to_owned()));
    }
    if args
        .outside_sandbox
        .as_ref()
        .is_some_and(|reason| reason.trim().is_empty())
    {
        return Err(invalid(
            "outside_sandbox is empty: say why the command has to run outside the sandbox, or leave it out"
                .to_owned(),
        ));
    }
    if args.command.contains('\0') {
        return Err(invalid(
            "command has a NUL character in it, which no shell can read: leave it out".to_owned(),
        ));
    }
    Ok(args)
}

fn invalid(message: String) -> ToolFailure {
    ToolFailure {
        kind: FailureKind::Validation,
        message,
        details: None,
    }
}

fn folder(args: &Args, workspace: &Workspace) -> Result<PathBuf, ToolFailure> {
    match &args.cwd {
        None => Ok(workspace.cwd().to_owned()),
        Some(cwd) => workspace
            .resolve(cwd)
            .map_err(|refused| invalid(format!("cannot run in that folder: {refused}"))),
    }
}

fn limit(timeout_ms: Option<u64>) -> Duration {
    let wanted = timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS);
    Duration::from_millis(wanted.clamp(1, LONGEST_TIMEOUT_MS))
}

/// Without locations: a folder is nothing that an editor can open.
fn detail(args: &Args, cwd: &Path, workspace: &Workspace) -> CallDetail {
    let elsewhere = (cwd != workspace.cwd()).then_some(cwd);
    let mut artifacts = title::whole(&args.command, elsewhere);
    let mut shown = args.command.trim().to_owned();
    if let Some(reason) = confined::reason_to_leave(args.outside_sandbox.as_deref(), workspace) {
        shown = format!("Outside the sandbox: {shown}");
        artifacts.push(title::reason(reason));
    }
    CallDetail {
        title: shown,
        kind: CallKind::Execute,
        locations: Vec::new(),
        artifacts,
    }
}

/// Where the command runs, and how. Found out on another thread, where no session waits for the disk.
async fn plan(args: &Args, cwd: &Path, cx: &ToolCx) -> Result<RunPlan, ToolFailure> {
    let (line, outside) = (args.command.clone(), args.outside_sandbox.clone());
    let (cwd, workspace, limits) = (cwd.to_owned(), Arc::clone(&cx.workspace), cx.line_limits);
    let planning =
        spawn_blocking(move || confined::plan(&line, &cwd, outside.as_deref(), limits, &workspace));
    planning.await.map_err(|_| ToolFailure {
        kind: FailureKind::ExecutionError,
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
        let Ok(args) = parse(args) else {
            return CallDetail::default();
        };
        let cwd = args.cwd.as_deref().unwrap_or_default();
        detail(&args, &workspace.absolute(cwd), workspace)
    }

    fn prepare<'a>(
        &'a self,
        args: &'a Value,
        cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<Prepared, ToolFailure>> {
        Box::pin(async move {
            let args = parse(args)?;
            let cwd = folder(&args, &cx.workspace)?;
            let detail = detail(&args, &cwd, &cx.workspace);
            let leaves =
                confined::reason_to_leave(args.outside_sandbox.as_deref(), &cx.workspace).is_some();
            let command = args.command;
            let access = match leaves {
                true => Access::RunOutside { command, cwd },
                false => Access::Run { command, cwd },
            };
            Ok(Prepared { access, detail })
        })
    }

    fn run<'a>(&'a self, args: &'a Value, cx: &'a ToolCx) -> BoxFuture<'a, ToolEnvelope> {
        Box::pin(async move {
            let started = parse(args).and_then(|args| {
                let cwd = folder(&args, &cx.workspace)?;
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
                let lent = lent::run(terminals, &args.command, &cwd, limit, plan.git, detail, cx);
                if let Some(envelope) = lent.await {
                    return envelope;
                }
            }
            let surroundings = local::Surroundings {
                hidden: &self.hidden_env,
                passed: &self.passed_env,
                confinement: plan.confinement.as_ref(),
                runs_readers: plan.runs_readers,
                git: plan.git,
            };
            match local::run(&args.command, &cwd, limit, surroundings, cx).await {
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
                    ToolEnvelope::failed(FailureKind::ExecutionError, reason)
                }
            }
        })
    }

    /// The command's own timeout is kept here, so that what it printed is not lost; this one is
    /// for when even that fails.
    fn timeout(&self, args: &Value) -> Duration {
        limit(args.get("timeout_ms").and_then(Value::as_u64)) + 3 * grace::COMMAND
    }
}
