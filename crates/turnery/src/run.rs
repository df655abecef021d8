//! `turnery run`: one prompt, the same engine as in an editor, for people and scripts.
//!
//! `--format json` prints one object at the end, `--format stream-json` one object a line: every
//! event as `{"type": "event", ...}` with the fields of [`turnery_engine::Event`], then the object
//! that `json` prints: `{"type": "result", ...}`, see [`RunResult`].

mod ask;
pub(crate) mod exit;
mod progress;
mod prompt;
mod screen;
mod text;

use crate::{
    args::{Format, Global, RunArgs},
    config::Choice,
    logs,
    parts::{Parts, folder, runtime},
};
use anyhow::{Context as _, anyhow};
use exit::Ending;
use prompt::Silence;
use serde::Serialize;
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
use turnery_agent::{
    Agent, CancellationToken, OpenRequest, Ports, PromptError, PromptResult, Session,
};
use turnery_engine::{Content, SessionId, Usage};
use turnery_store::ListQuery;

/// How long what still runs may take to end once the process is to leave.
const GOODBYE: Duration = Duration::from_secs(1);

/// What came of a run: the last line of `--format json` and `--format stream-json`.
#[derive(Debug, Serialize)]
struct RunResult {
    /// Always `result`.
    r#type: &'static str,
    /// For `--session`; absent when no session was opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<SessionId>,
    /// `finished`, `cancelled`, `refusal`, `limit`, `incomplete`, `provider_error`, `error`, ...
    outcome: &'static str,
    /// The Agent Client Protocol's word; `null` for a failure.
    stop_reason: Option<&'static str>,
    /// The model's last message.
    text: String,
    /// Tokens of all turns; absent when no prompt ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    /// Turns with the model.
    turns: u32,
    /// `provider/model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// From the start of the process.
    duration_ms: u64,
    /// What went wrong, for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The exit code of the process.
    exit_code: u8,
}

/// Carry out `turnery run`.
pub(crate) fn run(global: &Global, args: RunArgs) -> ExitCode {
    let began = Instant::now();
    let format = args.format;
    let mut result = match prepare(&args) {
        Ok(input) => prompt_once(global, args, input).unwrap_or_else(|error| RunResult {
            // `turnery run ... | head` has what it wanted.
            error: (!is_broken_pipe(&error)).then(|| format!("{error:#}")),
            ..failed(&error)
        }),
        Err(error) => RunResult {
            outcome: "usage",
            exit_code: exit::USAGE,
            ..failed(&error)
        },
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

fn failed(error: &anyhow::Error) -> RunResult {
    RunResult {
        r#type: "result",
        session_id: None,
        outcome: "error",
        stop_reason: None,
        text: String::new(),
        usage: None,
        turns: 0,
        model: None,
        duration_ms: 0,
        error: Some(format!("{error:#}")),
        exit_code: exit::ERROR,
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// The prompt. What is wrong here is wrong with the command line.
fn prepare(args: &RunArgs) -> anyhow::Result<Vec<Content>> {
    let argument = args
        .prompt
        .as_deref()
        .map(str::trim)
        .filter(|text| !text.is_empty() && *text != "-");
    let stdin = io::stdin();
    let piped = if stdin.is_terminal() {
        anyhow::ensure!(
            args.prompt.as_deref() != Some("-"),
            "the prompt is to come from stdin, but nothing is piped in"
        );
        Vec::new()
    } else {
        let silence = match (argument, io::stderr().is_terminal()) {
            (None, _) => Silence::Wait,
            (Some(_), true) => Silence::Tell,
            (Some(_), false) => Silence::GoOn,
        };
        prompt::piped(stdin, silence, logs::say)?
    };
    let content = prompt::content(prompt::text(argument, &piped), &args.image)?;
    anyhow::ensure!(
        !content.is_empty(),
        "there is no prompt; write it as an argument or pipe it in: turnery run \"explain this project\""
    );
    Ok(content)
}

fn prompt_once(global: &Global, args: RunArgs, input: Vec<Content>) -> anyhow::Result<RunResult> {
    let runtime = runtime()?;
    let result = runtime.block_on(converse(global, args, input));
    // Drops what still runs, and with it the processes that it started.
    runtime.shutdown_timeout(GOODBYE);
    result
}

async fn converse(
    global: &Global,
    args: RunArgs,
    input: Vec<Content>,
) -> anyhow::Result<RunResult> {
    let mut signals = Signals::listen()?;
    let flags = Choice::from(args.choice.clone());
    let agent = Parts::read(global, flags.clone()).agent()?;
    let cwd = folder(args.cwd.clone())?;
    let cancel = CancellationToken::new();
    let (outbox, notices, seen) = screen::start(args.format, cancel.clone())?;
    let ports = Ports::local(Arc::new(ask::Asker::new(notices)), Box::new(outbox));
    let session = open(&agent, &args, cwd, ports, &flags).await?;
    let ticket = session.start(input, cancel.clone())?;

    let mut ended = std::pin::pin!(end(&session, ticket.result(), seen));
    let (result, seen) = tokio::select! {
        ended = &mut ended => ended?,
        () = signals.next() => {
            cancel.cancel();
            logs::say("stopping; press Ctrl-C again to force it");
            tokio::select! {
                ended = &mut ended => ended?,
                () = signals.next() => return Ok(forced(&session)),
            }
        }
    };
    let Ending {
        outcome,
        stop_reason,
        code,
        message,
    } = exit::of(&result);
    Ok(RunResult {
        r#type: "result",
        session_id: Some(session.id().clone()),
        outcome,
        stop_reason,
        text: seen.text,
        // All zeros: no provider said anything.
        usage: Some(result.usage).filter(|usage| *usage != Usage::default()),
        turns: seen.turns,
        model: Some(session.options().model),
        duration_ms: 0,
        error: message,
        exit_code: code,
    })
}

/// The session to prompt: a new one, the one that was named, or the newest of the folder.
async fn open(
    agent: &Agent,
    args: &RunArgs,
    cwd: PathBuf,
    ports: Ports,
    flags: &Choice,
) -> anyhow::Result<Session> {
    let request = OpenRequest {
        cwd: cwd.clone(),
        roots: Vec::new(),
    };
    let id = match &args.session {
        Some(id) => Some(SessionId::from(id.as_str())),
        None if args.continue_newest => Some(newest(agent, cwd).await?),
        None => None,
    };
    let Some(id) = id else {
        return Ok(agent.create(request, |_| ports).await?);
    };
    let session = agent.open(&id, request, false, |_| ports).await?;
    // A session keeps its own settings; what the command line says is newer.
    if let Some(model) = &flags.model {
        session.set_model(&model.to_string()).await?;
    }
    if let Some(mode) = flags.mode {
        session.set_mode(mode).await?;
    }
    if let Some(thinking) = flags.thinking {
        session.set_thinking(thinking).await?;
    }
    Ok(session)
}

async fn newest(agent: &Agent, cwd: PathBuf) -> anyhow::Result<SessionId> {
    let query = ListQuery {
        cwd: Some(cwd.clone()),
        limit: 1,
        ..ListQuery::default()
    };
    let page = agent.list(query).await?;
    let newest = page.sessions.into_iter().next().with_context(|| {
        format!(
            "no session was held in {} yet; leave out --continue",
            cwd.display()
        )
    })?;
    Ok(newest.id)
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

fn forced(session: &Session) -> RunResult {
    RunResult {
        session_id: Some(session.id().clone()),
        outcome: "cancelled",
        stop_reason: Some("cancelled"),
        exit_code: exit::CANCELLED,
        ..failed(&anyhow!("cancelled by force; the answer was not stored"))
    }
}

/// Ctrl-C, and what a supervisor sends.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
