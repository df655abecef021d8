//! Writes logs and messages to stderr, never to stdout (TR-3, TR-4).

mod backlog;

use backlog::StderrBacklog;
use std::{
    io::{self, IsTerminal as _, Write},
    sync::{Arc, OnceLock},
    time::Duration,
};
use tracing::Subscriber;
use tracing_subscriber::{
    EnvFilter,
    filter::{LevelFilter, filter_fn},
    fmt,
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};
use turnery_tools::escape_invisible;

/// Time that the end of the process waits for the last lines to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(100);

/// Set once writes to stderr must not block.
static BACKLOG: OnceLock<Arc<StderrBacklog>> = OnceLock::new();

/// Starts logging to stderr: warnings, and more with `-v`, `TURNERY_LOG` or `RUST_LOG`. The guard must be kept
/// until the end of the process.
#[must_use]
pub(crate) fn init(verbose: u8) -> FlushGuard {
    let wish = ["TURNERY_LOG", "RUST_LOG"]
        .iter()
        .find_map(|name| crate::config::environment::process_variable(name));
    let format = fmt()
        .with_writer(|| StderrWriter)
        .with_ansi(is_colour_enabled())
        .without_time();
    // A filter with targets slows the start-up, so it is built only on request.
    match (wish, verbose) {
        (Some(wish), 0) => init_subscriber(format.with_env_filter(EnvFilter::new(wish)).finish()),
        (_, 0) => init_subscriber(
            format
                .with_target(false)
                .with_max_level(LevelFilter::WARN)
                .finish(),
        ),
        (_, 1) => init_subscriber(
            format
                .with_env_filter(EnvFilter::new("warn,turnery=debug"))
                .finish(),
        ),
        (_, _) => init_subscriber(format.with_max_level(LevelFilter::DEBUG).finish()),
    }
    FlushGuard
}

/// Installs the subscriber without the MCP library's events, whatever the filter: its errors contain URLs and its
/// traces whole messages, both of which may hold secrets (MCP-5). turnery logs what matters itself.
fn init_subscriber(subscriber: impl Subscriber + Send + Sync + 'static) {
    let silenced = filter_fn(|event| !event.target().starts_with("rmcp"));
    subscriber.with(silenced).init();
}

/// Makes all further writes to stderr non-blocking. For processes started by a client, which may never read stderr;
/// a shell does.
pub(crate) fn write_in_background() {
    let _ = BACKLOG.set(StderrBacklog::new(io::stderr()));
}

/// Flushes the last lines when dropped, even after a panic.
#[derive(Debug)]
pub(crate) struct FlushGuard;

impl Drop for FlushGuard {
    fn drop(&mut self) {
        if let Some(backlog) = BACKLOG.get() {
            backlog.flush(FLUSH_TIMEOUT);
        }
    }
}

/// Writer of whole lines, each in one write.
struct StderrWriter;

impl Write for StderrWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match BACKLOG.get() {
            Some(backlog) => backlog.push_line(line),
            None => io::stderr().write_all(line)?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns true if stderr is a terminal and colour is not disabled.
pub(crate) fn is_colour_enabled() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) && io::stderr().is_terminal()
}

/// Prints a message to stderr with control characters made visible, since it may quote a provider or a server.
/// Errors of writing are ignored.
pub(crate) fn print_message(text: &str) {
    let text = escape_invisible(text);
    let _ = StderrWriter.write_all(format!("turnery: {text}\n").as_bytes());
}

/// Prints an error to stderr.
pub(crate) fn report_error(error: &anyhow::Error) {
    print_message(&format!("{error:#}"));
}

/// Installs a hook that reports a panic on stderr in one line that can be pasted into a bug report.
pub(crate) fn install_panic_hook() {
    std::panic::set_hook(Box::new(|panic| {
        print_message(&format!(
            "this is a bug in turnery {}, please report it: {panic}",
            env!("CARGO_PKG_VERSION")
        ));
    }));
}
