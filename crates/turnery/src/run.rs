//! `turnery run`: one prompt, the same engine as in an editor, for people and scripts. And what
//! `turnery sessions` does with loops that have run: continue, rerun, branch, compact.
//!
//! `--format json` prints one object at the end, `--format stream-json` one object a line: every
//! event as `{"type": "event", ...}` with the fields of [`turnery_engine::Event`], then the object
//! that `json` prints: `{"type": "result", ...}`, see [`result::RunResult`] and `schemas/run.json`.

mod ask;
pub(crate) mod exit;
mod job;
mod progress;
mod prompt;
mod result;
mod screen;
mod text;
pub(crate) mod tries;

pub(crate) use job::number;

use crate::{
    args::{Again, Choices, FIRST_PROMPT, Format, Global, How, RunArgs},
    config::Choice,
    logs,
    parts::{Parts, folder},
    runtime::runtime,
    watchdog::{self, Watchdog},
};
use anyhow::{Context as _, anyhow};
use job::{Job, Place, Work};
use prompt::SilentStdin;
use result::RunResult;
use std::{
    io::{self, IsTerminal as _},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
};
use turnery_agent::{CancellationToken, Ports, PromptError, PromptResult, Session, Settings};
use turnery_engine::Content;
use turnery_store::Store;

/// How long what still runs may take to end once the process is to leave.
const RUNTIME_SHUTDOWN: Duration = Duration::from_secs(1);

/// How long the store of sessions may take to close.
const CLOSE_STORE: Duration = Duration::from_secs(5);

/// Carry out `turnery run`.
pub(crate) fn run(global: &Global, args: RunArgs) -> ExitCode {
    let RunArgs {
        prompt,
        cwd,
        session,
        continue_newest,
        image,
        audio,
        tries,
        how,
    } = args;
    let place = match (session, continue_newest) {
        (Some(id), _) => Place::Here(id, cwd),
        (None, true) => Place::Newest(cwd),
        (None, false) => Place::New(cwd),
    };
    carry_out(global, how.format, || {
        tries.check()?;
        let content = prepare(prompt.as_deref(), &image, &audio)?;
        let work = match tries.is_empty() {
            true => Work::Say(content),
            false => Work::Try(tries, content),
        };
        Ok(Job { work, place, how })
    })
}

/// Carry out what `turnery sessions` does with loops that have run. `flags` stood before the command.
pub(crate) fn again(global: &Global, again: Again, flags: Choices) -> ExitCode {
    let (Again::Continue { how, .. }
    | Again::Rerun { how, .. }
    | Again::Branch { how, .. }
    | Again::Compact { how, .. }) = &again;
    let how = How {
        format: how.format,
        choice: how.choice.clone().or(flags),
    };
    carry_out(global, how.format, || {
        let (id, work) = match again {
            Again::Continue { id, .. } => (id, Work::GoOn),
            Again::Rerun { id, which, .. } => (id, Work::Rerun(which)),
            Again::Compact { id, .. } => (id, Work::Compact),
            Again::Branch {
                id, from, prompt, ..
            } => {
                let content = prepare(prompt.as_deref(), &[], &[])?;
                (id, Work::Branch(from, content))
            }
        };
        let place = Place::There(id);
        Ok(Job { work, place, how })
    })
}

fn carry_out(
    global: &Global,
    format: Format,
    job: impl FnOnce() -> anyhow::Result<Job>,
) -> ExitCode {
    let began = Instant::now();
    let mut result = match job() {
        Ok(job) => in_runtime(global, job).unwrap_or_else(|error| {
            let mut result = RunResult::failed(&error);
            if is_broken_pipe(&error) {
                // `turnery run ... | head` has what it wanted.
                result.error = None;
            }
            result
        }),
        // What is wrong here is wrong with the command line.
        Err(error) => RunResult::misused(&error),
    };
    result.duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    if let Some(error) = &result.error {
        logs::complain(&anyhow!("{error}"));
    }
    let written = match format {
        Format::Text => Ok(()),
        Format::Json | Format::StreamJson => screen::line(&mut io::stdout().lock(), &result),
    };
    match written {
        Ok(()) => ExitCode::from(result.exit_code),
        Err(_) => ExitCode::from(result.exit_code.max(exit::ERROR)),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// The prompt: the argument, what is piped in, pictures and recordings.
fn prepare(
    prompt: Option<&str>,
    images: &[PathBuf],
    audio: &[PathBuf],
) -> anyhow::Result<Vec<Content>> {
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
            (Some(_), true) => SilentStdin::Tell,
            (Some(_), false) => SilentStdin::GoOn,
        };
        prompt::piped(stdin, silence, logs::say)?
    };
    let content = prompt::content(prompt::text(argument, &piped), images, audio)?;
    anyhow::ensure!(
        !content.is_empty(),
        "there is no prompt; write it as an argument or pipe it in: turnery run {FIRST_PROMPT:?}"
    );
    Ok(content)
}

fn in_runtime(global: &Global, job: Job) -> anyhow::Result<RunResult> {
    let runtime = runtime()?;
    // Signals are heard by the runtime as well; this is for one that hears nothing.
    let watchdog = Watchdog::start(None, false, || {})?;
    let parts = Parts::read(global, Choice::from(job.how.choice.clone()));
    let store: Arc<dyn Store> = Arc::new(parts.store()?);
    let result = runtime.block_on(async {
        tokio::spawn(watchdog.clone().answer());
        converse(parts, Arc::clone(&store), job).await
    });
    watchdog.beat();
    // Drops what still runs, and with it the processes that it started.
    runtime.shutdown_timeout(RUNTIME_SHUTDOWN);
    if !watchdog.drop_within(store, CLOSE_STORE) {
        tracing::warn!("the store of sessions takes too long to close");
    }
    watchdog.stand_down();
    result
}

async fn converse(parts: Parts, store: Arc<dyn Store>, job: Job) -> anyhow::Result<RunResult> {
    let Job { work, place, how } = job;
    let mut signals = Signals::listen()?;
    let flags = Choice::from(how.choice);
    let begins_with = match &place {
        // A session that could never say anything is not made.
        Place::New(cwd) => Some(parts.usable_settings(folder(cwd.clone())?).await?),
        Place::Newest(_) | Place::Here(..) | Place::There(_) => None,
    };
    let agent = parts.agent_over(Arc::clone(&store));
    if let Some(Settings { model, limits, .. }) = &begins_with {
        job::check(&agent, model, work.content())?;
        job::check_prices(&agent, limits, work.models(model))?;
    }
    let cancel = CancellationToken::new();
    let (outbox, notices, seen) = screen::start(how.format, cancel.clone())?;
    let ports = Ports::local(Arc::new(ask::Asker::new(notices)), Box::new(outbox));
    let session = job::open(&agent, &*store, &place, ports, &flags).await?;
    let name = session.options().model.parse()?;
    job::check(&agent, &name, work.content())?;
    let ticket = work.start(&session, &*store, cancel.clone()).await?;

    let mut ended = std::pin::pin!(end(&session, ticket.result(), seen));
    let (result, seen) = tokio::select! {
        ended = &mut ended => ended?,
        () = signals.next() => {
            cancel.cancel();
            logs::say("stopping; press Ctrl-C again to force it");
            tokio::select! {
                ended = &mut ended => ended?,
                () = signals.next() => return Ok(RunResult::forced(&session)),
            }
        }
    };
    let price = |model: &str| agent.models().price_of(model);
    let model = session.options().model;
    Ok(RunResult::of(
        session.id().clone(),
        model,
        &result,
        seen,
        price,
    ))
}

/// The end of the prompt, with everything written.
async fn end(
    session: &Session,
    result: impl Future<Output = Result<PromptResult, PromptError>>,
    seen: oneshot::Receiver<io::Result<screen::Seen>>,
) -> anyhow::Result<(PromptResult, screen::Seen)> {
    let result = result.await;
    session.close().await;
    let seen = seen
        .await
        .context("writing the answer broke off")?
        .context("cannot write the answer")?;
    Ok((result?, seen))
}

/// Ctrl-C, a terminal that closes, and what a service manager sends.
struct Signals {
    /// `None` if `nohup` started this process.
    hangup: Option<Signal>,
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            hangup: match watchdog::ignores_hangup() {
                true => None,
                false => Some(signal(SignalKind::hangup())?),
            },
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            Some(_) = next_of(&mut self.hangup) => {}
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

async fn next_of(signal: &mut Option<Signal>) -> Option<()> {
    match signal {
        Some(signal) => signal.recv().await,
        None => None,
    }
}
