//! Logs: everything for people that is not the answer. To stderr, never to stdout (TR-3, TR-4).

use std::io::{IsTerminal as _, Write as _};
use tracing_subscriber::{EnvFilter, filter::LevelFilter, fmt};

/// Write logs to stderr: warnings, and more with `-v`, `TURNERY_LOG` or `RUST_LOG`.
pub(crate) fn start(verbose: u8) {
    let wish = ["TURNERY_LOG", "RUST_LOG"]
        .iter()
        .find_map(|name| crate::config::environment::process(name));
    let format = fmt()
        .with_writer(std::io::stderr)
        .with_ansi(colour())
        .without_time();
    // A filter with targets costs its own start-up time: only for those who asked for one.
    match (wish, verbose) {
        (Some(wish), 0) => format.with_env_filter(EnvFilter::new(wish)).init(),
        (_, 0) => format
            .with_target(false)
            .with_max_level(LevelFilter::WARN)
            .init(),
        (_, 1) => format
            .with_env_filter(EnvFilter::new("warn,turnery=debug"))
            .init(),
        (_, _) => format.with_max_level(LevelFilter::TRACE).init(),
    }
}

/// Whether stderr takes colour.
pub(crate) fn colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::io::stderr().is_terminal()
}

/// Say something on stderr. A stderr that is gone is nothing to fail over.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "turnery: {text}");
}

/// Say on stderr what went wrong.
pub(crate) fn complain(error: &anyhow::Error) {
    say(&format!("{error:#}"));
}

/// A panic is a bug of ours: say so on stderr, in one line that can be pasted.
pub(crate) fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let _ = writeln!(
            std::io::stderr().lock(),
            "turnery: this is a bug in turnery {}, please report it: {panic}",
            env!("CARGO_PKG_VERSION")
        );
    }));
}
