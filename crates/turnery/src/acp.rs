//! `turnery acp`: an editor on stdin and stdout.

use crate::{
    args::{AcpArgs, Global},
    logs,
    parts::{Parts, runtime},
};
use std::{process::ExitCode, sync::Arc, time::Duration};
use tokio::signal::unix::{SignalKind, signal};
use turnery_acp::{ServeOptions, Stdio, serve as serve_client};
use turnery_agent::CancellationToken;

/// How long a thread that still runs may take to end once the connection has (TR-6: 2 s in all).
const GOODBYE: Duration = Duration::from_millis(100);

/// Serve until the editor leaves, or a signal says so.
pub(crate) fn serve(global: &Global, args: AcpArgs) -> anyhow::Result<ExitCode> {
    // First of all: from here on nothing else can write to the editor's pipe (TR-3).
    let stdio = Stdio::take()?;
    logs::never_wait()?;
    let agent = Arc::new(Parts::read(global, args.choice.into()).agent()?);
    let runtime = runtime()?;
    let served = runtime.block_on(async {
        let stop = CancellationToken::new();
        stop_on_signals(&stop)?;
        let options = ServeOptions {
            stop,
            v2: args.acp_v2,
            drain: args.drain,
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
