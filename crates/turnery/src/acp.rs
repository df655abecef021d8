//! `turnery acp`: serves an editor on stdin and stdout.

use crate::{
    app::App,
    args::{AcpArgs, GlobalOptions},
    config::{Config, environment},
    login::key_page,
    logs,
    runtime::FailoverRuntime,
    telemetry::{MIN_FLUSH_TIMEOUT, Telemetry},
    watchdog::Watchdog,
};
use std::{process::ExitCode, sync::Arc, time::Duration};
use turnery_acp::{KeyPageOpener, Login, ServeOptions, Stdio, serve as serve_client};
use turnery_agent::CancellationToken;
use turnery_models::ProviderSource as _;
use turnery_store::{MemoryStore, Store};
use turnery_tools::SandboxSupport;

/// Time for threads that still run after the connection has ended (TR-6: 2 s in all).
const RUNTIME_SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(100);

/// Limit for the whole shutdown, from the end of input or the signal, while nothing advances.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(1800);

/// Minimum time granted to the session store for closing, even when the shutdown is late.
const MIN_STORE_CLOSE_TIMEOUT: Duration = Duration::from_millis(100);

/// Serves until the end of input or a signal. `flags` are those before the command.
pub(crate) fn serve(
    global: &GlobalOptions,
    args: AcpArgs,
    flags: &Config,
) -> anyhow::Result<ExitCode> {
    // Must come first: from here on nothing else can write to the editor's pipe (TR-3).
    let stdio = Stdio::take()?;
    logs::write_in_background();
    let stop = CancellationToken::new();
    let runtime = FailoverRuntime::new()?;
    let watchdog = {
        let input = stdio.input.try_clone()?;
        let stop = stop.clone();
        Watchdog::start(Some(input.into()), args.drain, move || stop.cancel())?
    };
    let mut app = App::load(global, Config::from(args.choice).over(flags));
    app.settings_resolver.runs_queued_prompts = true;
    let store: Arc<dyn Store> = match args.no_store {
        true => Arc::new(MemoryStore::new()),
        false => match app.open_store(Some(runtime.inline())) {
            // No session can be opened: the editor is told why when it opens one.
            Err(_) if app.settings_resolver.is_broken() => Arc::new(MemoryStore::new()),
            opened => opened?,
        },
    };
    // The `initialize` response lists the login methods, so the key file is read first, in the background.
    app.live_providers.read_on(runtime.runtime.handle());
    app.live_providers.prefetch();
    // The first session waits for the store.
    store.prepare();
    let login = login_methods(&app);
    let live_providers = Arc::clone(&app.live_providers);
    let watched = Arc::clone(&live_providers);
    let telemetry = Telemetry::start();
    let trace = telemetry.sink(&app.live_providers);
    let agent = Arc::new(app.into_agent(Arc::clone(&store), trace));
    let served = runtime.runtime.block_on(async {
        tokio::spawn(watchdog.clone().run_heartbeat());
        let first_response = CancellationToken::new();
        let responded = first_response.clone();
        // The first session offers the models that are found.
        tokio::spawn(async move {
            responded.cancelled().await;
            // Before the first session, which reports it. On another thread, since it waits for the kernel.
            tokio::task::spawn_blocking(SandboxSupport::detect);
            live_providers.discover().await;
            let lists = live_providers.model_lists();
            if let Some(silent) = lists.silent_server(&live_providers.current()) {
                match lists.refusal(silent) {
                    Some(refusal) => tracing::warn!("{refusal} Sessions begin with another model."),
                    None => tracing::warn!(
                        "{} at {} does not answer with a list of models: until it does, sessions begin with another model",
                        silent.name,
                        silent.display_url()
                    ),
                }
            }
        });
        let options = ServeOptions {
            stop,
            v2: args.acp_v2,
            drain: args.drain,
            login,
            first_response,
        };
        let (input, output) = stdio.into_input_output();
        // A separate task, so that the runtime's threads do all the work.
        tokio::spawn(serve_client(agent, input, output, options)).await
    });
    watchdog.beat();
    // Beside the rest of the shutdown.
    watched.stop_watching();
    runtime.shutdown(RUNTIME_SHUTDOWN_TIMEOUT);
    watchdog.beat();
    // A drain takes as long as its prompts; that time does not count.
    let since = watchdog.leaving_since().filter(|_| !args.drain);
    let spent = || since.map_or(Duration::ZERO, |since| since.elapsed());
    let left = || SHUTDOWN_TIMEOUT.saturating_sub(spent());
    // Let the store flush while there is time. A hanging disk must not delay the exit.
    if !watchdog.drop_within(store, left().max(MIN_STORE_CLOSE_TIMEOUT)) {
        tracing::warn!("the store of sessions takes too long to close");
    }
    telemetry.finish(left().max(MIN_FLUSH_TIMEOUT), || watchdog.beat());
    watchdog.beat();
    tracing::debug!("served until {:?}", served??);
    Ok(ExitCode::SUCCESS)
}

/// Returns the login methods, or `None` if the path of this executable is unknown.
fn login_methods(app: &App) -> Option<Login> {
    let live_providers = Arc::clone(&app.live_providers);
    let pages = app.paths.key_file().ok().map(|keys| -> KeyPageOpener {
        let live_providers = Arc::clone(&app.live_providers);
        Arc::new(move |provider| key_page::open(&live_providers, &keys, provider))
    });
    let home = environment::process_variable("TURNERY_HOME").and_then(|home| {
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
        forget_keys: Arc::new(move || live_providers.forget_keys()),
        key_page_opener: pages,
    })
}
