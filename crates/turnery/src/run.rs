//! `turnery run`: runs one prompt on the same engine as in an editor. Also runs the commands of `turnery
//! sessions` that call a model: continue, rerun, branch, compact.
//!
//! `--format json` prints one object at the end. `--format stream-json` prints one object per line: each event
//! as `{"type": "event", ...}` with the fields of [`turnery_engine::Event`], then the object that `json`
//! prints, `{"type": "result", ...}`; see [`result::RunResult`] and `schemas/run.json`.

pub(crate) mod exit;
mod job;
mod output_thread;
mod permission_prompt;
mod progress;
mod prompt_input;
mod queued_prompt;
mod result;
mod text_writer;
pub(crate) mod try_models;

pub(crate) use job::loop_number;

use crate::{
    app::{App, resolve_cwd},
    args::{
        AttachedFiles, FIRST_PROMPT, GlobalOptions, OutputFormat, RunAgainCommand, RunArgs,
        RunOptions,
    },
    config::Config,
    logs,
    runtime::current_thread_runtime,
    telemetry::{self, Telemetry},
    watchdog::{self, Watchdog},
};
use anyhow::{Context as _, anyhow};
use futures_util::future::BoxFuture;
use job::{Job, JobAction, SessionTarget};
use prompt_input::SilentStdin;
use queued_prompt::{QueuedRun, RanPrompt, WaitCancelledError};
use result::RunResult;
use std::{
    fs,
    io::{self, IsTerminal as _},
    path::Path,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
};
use turnery_agent::{
    CancellationToken, ClientPorts, FinishRule, PromptError, PromptOptions, Session, Settings,
    TraceSink, ValueSchema,
};
use turnery_engine::Content;
use turnery_store::{MemoryStore, Store};

/// Time for tasks that still run once the process is to exit.
const RUNTIME_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// Time for the session store to close.
const STORE_CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs `turnery run`. `flags` are those before the command.
pub(crate) fn run(global: &GlobalOptions, args: RunArgs, flags: &Config) -> ExitCode {
    let RunArgs {
        prompt,
        cwd,
        session,
        continue_newest,
        queue,
        no_store,
        attached,
        output_schema,
        try_args: tries,
        options: RunOptions { format, choice },
    } = args;
    let target = match (session, continue_newest) {
        (Some(id), _) => SessionTarget::InFolder(id, cwd),
        (None, true) => SessionTarget::Newest(cwd),
        (None, false) => SessionTarget::New(cwd),
    };
    execute_job(global, format, || {
        tries.check_count()?;
        let schema = output_schema.as_deref().map(read_schema).transpose()?;
        let content = read_content(prompt.as_deref(), &attached)?;
        let is_continued = !matches!(target, SessionTarget::New(_));
        if queue {
            check_queue(is_continued && tries.is_empty(), format)?;
        }
        let work = match (tries.is_empty(), content.is_empty()) {
            // Where the last prompt stopped.
            (true, true) if is_continued && !queue => JobAction::Continue,
            (true, _) => JobAction::Prompt(required(content)?),
            (false, _) => JobAction::TryModels(tries, required(content)?),
        };
        Ok(Job {
            action: work,
            target,
            format,
            schema,
            flags: Config::from(choice).over(flags),
            no_store,
            is_queued: queue,
        })
    })
}

/// Fails if a prompt with these arguments cannot wait in a session.
fn check_queue(is_prompt_of_session: bool, format: OutputFormat) -> anyhow::Result<()> {
    anyhow::ensure!(
        is_prompt_of_session,
        "--queue is for one prompt in a stored session: use it with --session or --continue, and without --try"
    );
    anyhow::ensure!(
        format != OutputFormat::StreamJson,
        "--queue works with --format text and json; `turnery sessions follow --json` prints the events of a session \
         that runs elsewhere"
    );
    Ok(())
}

/// Reads the schema of a value that a prompt must end with.
fn read_schema(path: &Path) -> anyhow::Result<Arc<ValueSchema>> {
    let shown = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    let schema = serde_json::from_str(&text).with_context(|| format!("{shown} is not JSON"))?;
    let schema = ValueSchema::new(schema).with_context(|| shown.to_string())?;
    Ok(Arc::new(schema))
}

/// Runs the `turnery sessions` commands that call a model. `flags` are those before the command.
pub(crate) fn run_session_command(
    global: &GlobalOptions,
    again: RunAgainCommand,
    flags: &Config,
) -> ExitCode {
    let (RunAgainCommand::Continue { how, .. }
    | RunAgainCommand::Rerun { how, .. }
    | RunAgainCommand::Branch { how, .. }
    | RunAgainCommand::Compact { how, .. }) = &again;
    let RunOptions { format, choice } = (**how).clone();
    execute_job(global, format, || {
        let (id, work) = match again {
            RunAgainCommand::Continue { id, .. } => (id, JobAction::Continue),
            RunAgainCommand::Rerun { id, which, .. } => (id, JobAction::Rerun(which)),
            RunAgainCommand::Compact { id, .. } => (id, JobAction::Compact),
            RunAgainCommand::Branch {
                id, from, prompt, ..
            } => {
                let content = read_content(prompt.as_deref(), &AttachedFiles::default())?;
                (id, JobAction::Branch(from, required(content)?))
            }
        };
        let target = SessionTarget::Stored(id);
        Ok(Job {
            action: work,
            target,
            format,
            schema: None,
            flags: Config::from(choice).over(flags),
            no_store: false,
            is_queued: false,
        })
    })
}

fn execute_job(
    global: &GlobalOptions,
    format: OutputFormat,
    job: impl FnOnce() -> anyhow::Result<Job>,
) -> ExitCode {
    let began = Instant::now();
    let telemetry = Telemetry::start();
    let mut result = match job() {
        Ok(job) => run_in_runtime(global, job, &telemetry).unwrap_or_else(|error| {
            let mut result = RunResult::from_error(&error);
            if is_broken_pipe(&error) {
                // A reader that closes the pipe early, as in `turnery run ... | head`, is not an error.
                result.error = None;
            }
            result
        }),
        // Errors at this point are errors of the command line.
        Err(error) => RunResult::from_usage_error(&error),
    };
    result.duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    if let Some(error) = &result.error {
        logs::report_error(&anyhow!("{error}"));
    }
    let written = match format {
        OutputFormat::Text => match &result.submitted_value {
            Some(value) => output_thread::write_json_line(&mut io::stdout().lock(), value),
            None => Ok(()),
        },
        OutputFormat::Json | OutputFormat::StreamJson => {
            output_thread::write_json_line(&mut io::stdout().lock(), &result)
        }
    };
    // After the result, which need not wait for a slow collector.
    telemetry.finish(telemetry::FLUSH_TIMEOUT, || {});
    match written {
        Ok(()) => ExitCode::from(result.exit_code),
        Err(_) => ExitCode::from(result.exit_code.max(exit::ERROR)),
    }
}

pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// Returns the content, which must not be empty.
fn required(content: Vec<Content>) -> anyhow::Result<Vec<Content>> {
    anyhow::ensure!(
        !content.is_empty(),
        "there is no prompt; write it as an argument or pipe it in: turnery run {FIRST_PROMPT:?}"
    );
    Ok(content)
}

/// Returns the content of the prompt: the argument, piped stdin and files.
fn read_content(prompt: Option<&str>, attached: &AttachedFiles) -> anyhow::Result<Vec<Content>> {
    let argument = prompt
        .map(str::trim)
        .filter(|text| !text.is_empty() && *text != "-");
    let stdin = io::stdin();
    let piped = if stdin.is_terminal() {
        anyhow::ensure!(
            prompt != Some("-"),
            "the prompt is to come from stdin, but nothing is piped in"
        );
        Vec::new()
    } else {
        let silence = match (argument, io::stderr().is_terminal()) {
            (None, _) => SilentStdin::Wait,
            (Some(_), true) => SilentStdin::WarnAndWait,
            (Some(_), false) => SilentStdin::Skip,
        };
        prompt_input::read_stdin(stdin, silence, logs::print_message)?
    };
    prompt_input::build_content(prompt_input::join_prompt(argument, &piped), attached)
}

fn run_in_runtime(
    global: &GlobalOptions,
    job: Job,
    telemetry: &Telemetry,
) -> anyhow::Result<RunResult> {
    let runtime = current_thread_runtime()?;
    // The runtime handles signals as well; the watchdog is for a runtime that is stuck.
    let watchdog = Watchdog::start(None, false, || {})?;
    let app = App::load(global, job.flags.clone());
    let store: Arc<dyn Store> = match job.no_store {
        true => Arc::new(MemoryStore::new()),
        false => app.open_store(None)?,
    };
    let trace = telemetry.sink(&app.live_providers);
    let result = runtime.block_on(async {
        tokio::spawn(watchdog.clone().run_heartbeat());
        run_job(app, Arc::clone(&store), trace, job).await
    });
    watchdog.beat();
    // Drops running tasks, and with them the processes that they started.
    runtime.shutdown_timeout(RUNTIME_SHUTDOWN_TIMEOUT);
    if !watchdog.drop_within(store, STORE_CLOSE_TIMEOUT) {
        tracing::warn!("the store of sessions takes too long to close");
    }
    watchdog.stand_down();
    result
}

async fn run_job(
    app: App,
    store: Arc<dyn Store>,
    trace: Option<Arc<dyn TraceSink>>,
    job: Job,
) -> anyhow::Result<RunResult> {
    let Job {
        action: work,
        target,
        format,
        schema,
        flags,
        no_store: _,
        is_queued,
    } = job;
    let mut signals = TerminationSignals::listen()?;
    let begins_with = match &target {
        // Check the settings first, so that no unusable session is created.
        SessionTarget::New(cwd) => Some(app.usable_settings(resolve_cwd(cwd.clone())?).await?),
        SessionTarget::Newest(_) | SessionTarget::InFolder(..) | SessionTarget::Stored(_) => None,
    };
    let agent = app.into_agent(Arc::clone(&store), trace);
    if let Some(Settings { model, limits, .. }) = &begins_with {
        job::query_unlisted(&agent, &work.called_models(model)).await;
        job::check_media_support(&agent, model, work.new_content())?;
        job::check_prices(&agent, limits, work.called_models(model))?;
    }
    let cancel = CancellationToken::new();
    let (outbox, notices, final_text) =
        output_thread::start(format, schema.is_none(), cancel.clone())?;
    let ports = ClientPorts::local(
        Arc::new(permission_prompt::PermissionPrompter::new(notices.clone())),
        Box::new(outbox),
    );
    let session = job::open_session(&agent, &*store, &target, ports, &flags).await?;
    let name = session.options().model.name.clone();
    if begins_with.is_none() && job::query_unlisted(&agent, &[&name]).await {
        session.reload_model().await?;
    }
    job::check_media_support(&agent, &name, work.new_content())?;
    let is_value_required = schema.is_some();
    let options = PromptOptions {
        finish: schema.map_or(FinishRule::Prose, FinishRule::ValueOf),
        ..PromptOptions::cancelled_by(cancel.clone())
    };
    let result: BoxFuture<'_, anyhow::Result<RanPrompt>> = match work {
        JobAction::Prompt(content) if is_queued => {
            let queued = QueuedRun {
                session: &session,
                store: &*store,
                output: notices,
                options,
            };
            Box::pin(queued.run(job::expand_command(&session, content)))
        }
        work => {
            let ticket = work.start(&session, &*store, options).await?;
            Box::pin(async {
                let result = ticket.result().await.map_err(explain_busy)?;
                Ok(RanPrompt::here(result))
            })
        }
    };
    let mut ended = std::pin::pin!(finish_prompt(&session, result, final_text));
    let (
        RanPrompt {
            result,
            is_elsewhere,
        },
        text,
    ) = tokio::select! {
        ended = &mut ended => ended?,
        () = signals.next() => {
            cancel.cancel();
            logs::print_message("stopping; press Ctrl-C again to force it");
            tokio::select! {
                ended = &mut ended => match ended {
                    Err(error) if error.is::<WaitCancelledError>() => {
                        return Ok(RunResult::from_cancel(&session, &error));
                    }
                    ended => ended?,
                },
                () = signals.next() => {
                    let forced = anyhow!("cancelled by force; the answer was not stored");
                    return Ok(RunResult::from_cancel(&session, &forced));
                }
            }
        }
    };
    let price = |model: &str| agent.models().recorded_price(model);
    let (id, options) = (session.id().clone(), session.options());
    let mut ran = RunResult::from_prompt(id, options.model.name.to_string(), &result, text, price);
    ran.sandbox = (!is_elsewhere).then_some(options.sandbox);
    if is_value_required {
        ran.require_value(&result);
    }
    Ok(ran)
}

/// Adds what to do to the error of a session that another process holds.
fn explain_busy(error: PromptError) -> anyhow::Error {
    match error {
        PromptError::Busy { .. } => {
            anyhow!("{error}; with --queue, `turnery run` lets the prompt wait there")
        }
        error => error.into(),
    }
}

/// Waits for the end of the prompt and until all output is written.
async fn finish_prompt(
    session: &Session,
    result: impl Future<Output = anyhow::Result<RanPrompt>>,
    final_text: oneshot::Receiver<io::Result<String>>,
) -> anyhow::Result<(RanPrompt, String)> {
    let result = result.await;
    session.close().await;
    let final_text = final_text
        .await
        .context("the output thread has failed")?
        .context("cannot write the answer")?;
    Ok((result?, final_text))
}

/// Signals that end a command: SIGINT, SIGHUP and SIGTERM.
pub(crate) struct TerminationSignals {
    /// SIGHUP; `None` if `nohup` started this process.
    hangup: Option<Signal>,
    interrupt: Signal,
    terminate: Signal,
}

impl TerminationSignals {
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            hangup: match watchdog::ignores_hangup() {
                true => None,
                false => Some(signal(SignalKind::hangup())?),
            },
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    pub(crate) async fn next(&mut self) {
        tokio::select! {
            Some(_) = recv_optional(&mut self.hangup) => {}
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

async fn recv_optional(signal: &mut Option<Signal>) -> Option<()> {
    match signal {
        Some(signal) => signal.recv().await,
        None => None,
    }
}
