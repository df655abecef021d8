//! `turnery tool`: the tools without a model. Whoever types the call wants it, so nothing is asked.

use crate::{args::Tool, parts::folder, run::exit, runtime::runtime, show::plain};
use anyhow::Context as _;
use serde_json::Value;
use std::{
    io::{self, IsTerminal as _, Read as _, Write as _},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
};
use tokio::sync::mpsc;
use turnery_agent::CancellationToken;
use turnery_engine::{Content, ToolCall, ToolEnvelope};
use turnery_tools::{Hidden, Origin, SandboxSupport, ToolCx, Toolbox, Workspace};

/// Arguments longer than this are refused. Unit: bytes.
const LONGEST: u64 = 16 << 20;

/// Carry out `turnery tool`.
pub(crate) fn run(what: Tool) -> anyhow::Result<ExitCode> {
    match what {
        Tool::List { json } => list(json),
        Tool::Call {
            name,
            args,
            cwd,
            json,
        } => {
            let args = match arguments(&args) {
                Ok(args) => args,
                Err(error) => {
                    crate::logs::complain(&error);
                    return Ok(ExitCode::from(exit::USAGE));
                }
            };
            let runtime = runtime()?;
            let done = runtime.block_on(call(name, args, cwd));
            runtime.shutdown_timeout(std::time::Duration::from_secs(1));
            match done? {
                Some(envelope) => print(&envelope, json),
                None => Ok(ExitCode::from(exit::CANCELLED)),
            }
        }
    }
}

fn list(json: bool) -> anyhow::Result<ExitCode> {
    let specs = Toolbox::coding().specs();
    let mut out = io::stdout().lock();
    if json {
        serde_json::to_writer_pretty(&mut out, &*specs)?;
        writeln!(out)?;
        return Ok(ExitCode::SUCCESS);
    }
    let width = specs.iter().map(|spec| spec.name.len()).max().unwrap_or(0);
    for spec in specs.iter() {
        let about = spec.description.split_inclusive(". ").next();
        writeln!(
            out,
            "{:width$}  {}",
            spec.name,
            about.unwrap_or_default().trim_end()
        )?;
    }
    writeln!(out, "\n{}.", SandboxSupport::detect().describe())?;
    Ok(ExitCode::SUCCESS)
}

fn arguments(text: &str) -> anyhow::Result<Value> {
    let mut piped = String::new();
    let text = match text {
        "-" => {
            io::stdin()
                .lock()
                .take(LONGEST)
                .read_to_string(&mut piped)
                .context("cannot read the arguments from stdin")?;
            &piped
        }
        text => text,
    };
    serde_json::from_str(text)
        .context("the arguments are no JSON; write them like '{\"path\": \"Cargo.toml\"}'")
}

/// Make the call; `None` if Ctrl-C came first.
async fn call(
    name: String,
    args: Value,
    cwd: Option<PathBuf>,
) -> anyhow::Result<Option<ToolEnvelope>> {
    let (progress, mut reports) = mpsc::channel(64);
    let cancel = CancellationToken::new();
    let cx = ToolCx {
        call_id: "call".into(),
        origin: Origin::default(),
        workspace: Arc::new(Workspace::local(folder(cwd)?)?),
        hidden: Hidden::default(),
        line_limits: turnery_tools::LineLimits::default(),
        progress,
        cancel: cancel.clone(),
        trace: turnery_tools::TraceContext::default(),
        host: None,
    };
    let call = ToolCall {
        call_id: cx.call_id.clone(),
        name,
        args: Arc::new(args),
    };
    let toolbox = Toolbox::coding();
    // The same look at the arguments that a call of a model's gets, but no policy.
    if let Err(failure) = toolbox.prepare(&call, &cx).await {
        return Ok(Some(failure.into()));
    }
    let mut run = std::pin::pin!(toolbox.run(&call, &cx));
    loop {
        tokio::select! {
            envelope = &mut run => return Ok(Some(envelope)),
            // What it prints on the way is in its result as well.
            _ = reports.recv() => {}
            interrupted = tokio::signal::ctrl_c() => {
                interrupted?;
                cancel.cancel();
                return Ok(None);
            }
        }
    }
}

fn print(envelope: &ToolEnvelope, json: bool) -> anyhow::Result<ExitCode> {
    let mut out = io::stdout().lock();
    let terminal = out.is_terminal();
    let code = ExitCode::from(match envelope.result {
        Ok(_) => 0,
        Err(_) => exit::ERROR,
    });
    if json {
        serde_json::to_writer_pretty(&mut out, envelope)?;
        writeln!(out)?;
        return Ok(code);
    }
    match &envelope.result {
        Ok(content) => {
            for item in content {
                match item {
                    Content::Text { text } if terminal => {
                        writeln!(out, "{}", plain(text.trim_end()))?
                    }
                    Content::Text { text } => writeln!(out, "{}", text.trim_end_matches('\n'))?,
                    Content::Image(image) => writeln!(out, "(a picture, {})", image.mime_type)?,
                    Content::Audio(audio) => writeln!(out, "(a recording, {})", audio.mime_type)?,
                    Content::Thinking { .. } | Content::ToolCall(_) | Content::Opaque { .. } => {}
                }
            }
        }
        Err(failure) => writeln!(io::stderr(), "turnery: {}", plain(&failure.message))?,
    }
    Ok(code)
}
