//! `turnery tool`: calls tools directly, without a model and without permission checks.

use crate::{
    app::{App, resolve_cwd},
    args::{GlobalOptions, ToolCommand},
    config::Config,
    run::exit,
    runtime::current_thread_runtime,
    terminal_text::replace_control_chars,
};
use anyhow::Context as _;
use serde_json::Value;
use std::{
    io::{self, IsTerminal as _, Read as _, Write as _},
    process::ExitCode,
    sync::Arc,
};
use tokio::sync::mpsc;
use turnery_agent::CancellationToken;
use turnery_engine::{Content, ToolCall, ToolEnvelope};
use turnery_tools::{HiddenFiles, Origin, SandboxSupport, ToolCx, Toolbox, Workspace};

/// Maximum length of arguments read from stdin; the rest is not read, which usually leaves invalid JSON.
/// Unit: bytes.
const MAX_ARGUMENT_BYTES: u64 = 16 << 20;

/// Runs `turnery tool`.
pub(crate) fn run(
    global: &GlobalOptions,
    flags: Config,
    what: ToolCommand,
) -> anyhow::Result<ExitCode> {
    match what {
        ToolCommand::List { json } => list_tools(json),
        ToolCommand::Call {
            name,
            args,
            cwd,
            json,
        } => {
            let args = match parse_arguments(&args) {
                Ok(args) => args,
                Err(error) => {
                    crate::logs::report_error(&error);
                    return Ok(ExitCode::from(exit::USAGE));
                }
            };
            let cwd = resolve_cwd(cwd)?;
            let app = App::load(global, flags);
            let sandbox = app.settings(std::slice::from_ref(&cwd))?.sandbox;
            let workspace = Workspace::local(cwd)?.with_sandbox(sandbox);
            let runtime = current_thread_runtime()?;
            let done = runtime.block_on(call_tool(name, args, workspace));
            runtime.shutdown_timeout(std::time::Duration::from_secs(1));
            match done? {
                Some(envelope) => write_result(&envelope, json),
                None => Ok(ExitCode::from(exit::CANCELLED)),
            }
        }
    }
}

fn list_tools(json: bool) -> anyhow::Result<ExitCode> {
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

fn parse_arguments(text: &str) -> anyhow::Result<Value> {
    let mut piped = String::new();
    let text = match text {
        "-" => {
            io::stdin()
                .lock()
                .take(MAX_ARGUMENT_BYTES)
                .read_to_string(&mut piped)
                .context("cannot read the arguments from stdin")?;
            &piped
        }
        text => text,
    };
    serde_json::from_str(text)
        .context("the arguments are no JSON; write them like '{\"path\": \"Cargo.toml\"}'")
}

/// Calls the tool; returns `None` if Ctrl-C came first.
async fn call_tool(
    name: String,
    args: Value,
    workspace: Workspace,
) -> anyhow::Result<Option<ToolEnvelope>> {
    let (progress, mut reports) = mpsc::channel(64);
    let cancel = CancellationToken::new();
    let cx = ToolCx {
        call_id: "call".into(),
        origin: Origin::default(),
        workspace: Arc::new(workspace),
        hidden: HiddenFiles::default(),
        line_limits: turnery_tools::CommandLineLimits::default(),
        progress,
        cancel: cancel.clone(),
        trace: turnery_tools::TraceContext::default(),
        caller: None,
        host: None,
    };
    let call = ToolCall::new(cx.call_id.clone(), name, args);
    let toolbox = Toolbox::coding();
    // Arguments are validated as in a model's call, but no policy applies.
    if let Err(failure) = toolbox.prepare(&call, &cx).await {
        return Ok(Some(failure.into()));
    }
    let mut run = std::pin::pin!(toolbox.run(&call, &cx));
    loop {
        tokio::select! {
            envelope = &mut run => return Ok(Some(envelope)),
            // Output streamed during the call is part of the result as well.
            _ = reports.recv() => {}
            interrupted = tokio::signal::ctrl_c() => {
                interrupted?;
                cancel.cancel();
                return Ok(None);
            }
        }
    }
}

fn write_result(envelope: &ToolEnvelope, json: bool) -> anyhow::Result<ExitCode> {
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
                        writeln!(out, "{}", replace_control_chars(text.trim_end()))?
                    }
                    Content::Text { text } => writeln!(out, "{}", text.trim_end_matches('\n'))?,
                    Content::Image(image) => writeln!(out, "(a picture, {})", image.mime_type)?,
                    Content::Audio(audio) => writeln!(out, "(a recording, {})", audio.mime_type)?,
                    Content::Document(document) => {
                        let name = replace_control_chars(&document.name);
                        writeln!(out, "(a document, {name})")?
                    }
                    Content::Thinking { .. } | Content::ToolCall(_) | Content::Opaque { .. } => {}
                }
            }
        }
        Err(failure) => writeln!(
            io::stderr(),
            "turnery: {}",
            replace_control_chars(&failure.message)
        )?,
    }
    Ok(code)
}
