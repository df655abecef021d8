//! `turnery acp`: an editor on stdin and stdout.

use crate::{
    args::Global,
    config::Choice,
    parts::{Parts, runtime},
};
use std::{process::ExitCode, sync::Arc, time::Duration};
use tokio::signal::unix::{SignalKind, signal};
use turnery_acp::{ServeOptions, Stdio, serve as serve_client};
use turnery_agent::CancellationToken;

/// How long what still runs may take to end once the client has gone (TR-6: 2 s in all).
const GOODBYE: Duration = Duration::from_millis(500);

/// Serve until the editor leaves, or a signal says so. `v2`: also the draft of the protocol's second
/// version.
pub(crate) fn serve(global: &Global, flags: Choice, v2: bool) -> anyhow::Result<ExitCode> {
    // First of all: from here on nothing else can write to the editor's pipe (TR-3).
    let stdio = Stdio::take()?;
    let agent = Arc::new(Parts::read(global, flags).agent()?);
    let runtime = runtime()?;
    let served = runtime.block_on(async {
        let stop = CancellationToken::new();
        stop_on_signals(&stop)?;
        let options = ServeOptions {
            stop,
            v2,
            ..ServeOptions::default()
        };
        let (input, output) = stdio.ends();
        serve_client(agent, input, output, options).await
    });
    runtime.shutdown_timeout(GOODBYE);
    tracing::debug!("served until {:?}", served?);
    Ok(ExitCode::SUCCESS)
}

fn stop_on_signals(stop: &CancellationToken) -> std::io::Result<()> {
    for kind in [
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::hangup(),
    ] {
        let mut signals = signal(kind)?;
        let stop = stop.clone();
        tokio::spawn(async move {
            if signals.recv().await.is_some() {
                stop.cancel();
            }
        });
    }
    Ok(())
}
