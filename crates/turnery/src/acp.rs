//! `turnery acp`: an editor on stdin and stdout.

use crate::{
    args::{AcpArgs, Global},
    config::environment,
    login::page,
    logs,
    parts::Parts,
    runtime::FailoverRuntime,
    watchdog::Watchdog,
};
use std::{process::ExitCode, sync::Arc, time::Duration};
use turnery_acp::{KeyPages, Login, ServeOptions, Stdio, serve as serve_client};
use turnery_agent::CancellationToken;
use turnery_models::Providers as _;
use turnery_store::Store;

/// How long a thread that still runs may take to end once the connection has (TR-6: 2 s in all).
const RUNTIME_SHUTDOWN: Duration = Duration::from_millis(100);

/// How long all of that may take from the end of input or a signal on, while nothing advances.
const LEAVE: Duration = Duration::from_millis(1800);

/// How long the store of sessions may take to close, however late it is.
const DISK: Duration = Duration::from_millis(100);

/// Serve until the editor leaves, or a signal says so.
pub(crate) fn serve(global: &Global, args: AcpArgs) -> anyhow::Result<ExitCode> {
    // First of all: from here on nothing else can write to the editor's pipe (TR-3).
    let stdio = Stdio::take()?;
    logs::never_wait();
    let stop = CancellationToken::new();
    let runtime = FailoverRuntime::new()?;
    let watchdog = {
        let input = stdio.input.try_clone()?;
        let stop = stop.clone();
        Watchdog::start(Some(input.into()), args.drain, move || stop.cancel())?
    };
    let parts = Parts::read(global, args.choice.into());
    // Read meanwhile: the first answer says how a person logs in.
    parts.reach.look_ahead();
    let login = login(&parts);
    let reach = Arc::clone(&parts.reach);
    let store: Arc<dyn Store> = Arc::new(parts.store()?.inline(runtime.inline()));
    let agent = Arc::new(parts.agent_over(Arc::clone(&store)));
    let served = runtime.runtime.block_on(async {
        tokio::spawn(watchdog.clone().answer());
        // The first session offers what is found.
        tokio::spawn(async move {
            reach.discover().await;
            if let Some(silent) = reach.served().silent(&reach.now()) {
                tracing::warn!(
                    "{} at {} does not answer with a list of models: until it does, sessions begin with another model",
                    silent.name,
                    silent.shown_url()
                );
            }
        });
        let options = ServeOptions {
            stop,
            v2: args.acp_v2,
            drain: args.drain,
            login,
        };
        let (input, output) = stdio.ends();
        // A task of its own, so that the runtime's threads do all the work.
        tokio::spawn(serve_client(agent, input, output, options)).await
    });
    watchdog.beat();
    runtime.end(RUNTIME_SHUTDOWN);
    watchdog.beat();
    // A drain has taken as long as the prompts took.
    let since = watchdog.leaving_since().filter(|_| !args.drain);
    let spent = since.map_or(Duration::ZERO, |since| since.elapsed());
    // Let the store put away what it holds, while there is time. A disk that hangs does not keep us.
    if !watchdog.drop_within(store, LEAVE.saturating_sub(spent).max(DISK)) {
        tracing::warn!("the store of sessions takes too long to close");
    }
    watchdog.beat();
    tracing::debug!("served until {:?}", served??);
    Ok(ExitCode::SUCCESS)
}

/// How a person logs in, if this program can be found to be started for that.
fn login(parts: &Parts) -> Option<Login> {
    let reach = Arc::clone(&parts.reach);
    let pages = parts.places.keys().ok().map(|keys| -> KeyPages {
        let reach = Arc::clone(&parts.reach);
        Arc::new(move |provider| page::open(&reach, &keys, provider))
    });
    let home = environment::process("TURNERY_HOME").and_then(|home| {
        let home = std::path::absolute(home).ok()?;
        Some(home.to_str()?.to_owned())
    });
    Some(Login {
        program: std::env::current_exe().ok()?,
        args: vec!["login".to_owned()],
        env: home
            .map(|home| ("TURNERY_HOME".to_owned(), home))
            .into_iter()
            .collect(),
        forget: Arc::new(move || reach.forget()),
        pages,
    })
}
