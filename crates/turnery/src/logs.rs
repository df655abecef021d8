//! Logs: everything for people that is not the answer. To stderr, never to stdout (TR-3, TR-4).

mod backlog;

use backlog::Backlog;
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
use turnery_tools::visible;

/// How long the end of the process waits for somebody to read what was said last.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// Set once nothing may wait for stderr any more.
static BACKLOG: OnceLock<Arc<Backlog>> = OnceLock::new();

/// Write logs to stderr: warnings, and more with `-v`, `TURNERY_LOG` or `RUST_LOG`. Keep what this gives
/// to the end of the process.
#[must_use]
pub(crate) fn start(verbose: u8) -> LastWords {
    let wish = ["TURNERY_LOG", "RUST_LOG"]
        .iter()
        .find_map(|name| crate::config::environment::process(name));
    let format = fmt()
        .with_writer(|| Stderr)
        .with_ansi(colour())
        .without_time();
    // A filter with targets costs its own start-up time: only for those who asked for one.
    match (wish, verbose) {
        (Some(wish), 0) => listen(format.with_env_filter(EnvFilter::new(wish)).finish()),
        (_, 0) => listen(
            format
                .with_target(false)
                .with_max_level(LevelFilter::WARN)
                .finish(),
        ),
        (_, 1) => listen(
            format
                .with_env_filter(EnvFilter::new("warn,turnery=debug"))
                .finish(),
        ),
        (_, _) => listen(format.with_max_level(LevelFilter::TRACE).finish()),
    }
    LastWords
}

/// Nothing of the MCP library is logged, whatever was wished for: its errors have URLs in them and its
/// traces whole messages, and both may hold secrets (MCP-5). What matters of it we say ourselves.
fn listen(subscriber: impl Subscriber + Send + Sync + 'static) {
    let silenced = filter_fn(|event| !event.target().starts_with("rmcp"));
    subscriber.with(silenced).init();
}

/// From now on nobody waits for stderr to be read. For a process that somebody else's program started,
/// which may never read it; a person's shell does.
pub(crate) fn never_wait() {
    let _ = BACKLOG.set(Backlog::new(io::stderr()));
}

/// Dropped at the end of the process, also when it panics: what was said last is written.
#[derive(Debug)]
pub(crate) struct LastWords;

impl Drop for LastWords {
    fn drop(&mut self) {
        if let Some(backlog) = BACKLOG.get() {
            backlog.flush(LAST_WORDS);
        }
    }
}

/// Takes whole lines, each in one write.
struct Stderr;

impl Write for Stderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match BACKLOG.get() {
            Some(backlog) => backlog.add(line),
            None => io::stderr().write_all(line)?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether stderr takes colour.
pub(crate) fn colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) && io::stderr().is_terminal()
}

/// Say something on stderr, with nothing hidden in it: it may quote a provider or a server. A stderr that is gone
/// is nothing to fail over.
pub(crate) fn say(text: &str) {
    let text = visible(text);
    let _ = Stderr.write_all(format!("turnery: {text}\n").as_bytes());
}

/// Say on stderr what went wrong.
pub(crate) fn complain(error: &anyhow::Error) {
    say(&format!("{error:#}"));
}

/// A panic is a bug of ours: say so on stderr, in one line that can be pasted.
pub(crate) fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        say(&format!(
            "this is a bug in turnery {}, please report it: {panic}",
            env!("CARGO_PKG_VERSION")
        ));
    }));
}
