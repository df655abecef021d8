//! Reports finished cases on stderr, and detects what a terminal can display.

use acp_conformance::{
    CaseOutcome,
    report::Colours,
    verdict::{FailurePolicy, Verdict},
};
use std::{
    env,
    ffi::OsStr,
    io::{self, IsTerminal, Write},
    sync::atomic::{AtomicUsize, Ordering},
};

/// Progress of a run.
pub(crate) struct Progress {
    total: usize,
    finished: AtomicUsize,
    /// True if a single line is overwritten.
    is_live: bool,
}

impl Progress {
    pub(crate) fn new(all: usize) -> Self {
        let term = env::var_os("TERM");
        Self {
            total: all,
            finished: AtomicUsize::new(0),
            is_live: can_move_cursor(io::stderr().is_terminal(), term.as_deref()),
        }
    }

    /// Reports a finished case. Without a terminal, only cases with problems are reported.
    pub(crate) fn report_case(&self, outcome: &CaseOutcome, policy: &FailurePolicy<'_>) {
        let number = self.finished.fetch_add(1, Ordering::Relaxed) + 1;
        let (all, case) = (self.total, &outcome.case);
        let word = verdict_word(outcome, policy);
        // Failing to show progress must not end the run.
        let _ = match (self.is_live, word) {
            (true, _) => write!(
                io::stderr(),
                "\r\u{1b}[K[{number}/{all}] {} {case}",
                word.unwrap_or("ok")
            ),
            (false, Some(word)) => writeln!(io::stderr(), "{word} {case}"),
            (false, None) => Ok(()),
        };
    }

    pub(crate) fn clear(&self) {
        if self.is_live {
            let _ = write!(io::stderr(), "\r\u{1b}[K");
        }
    }
}

/// Returns a word for the problem of a case.
fn verdict_word(outcome: &CaseOutcome, policy: &FailurePolicy<'_>) -> Option<&'static str> {
    if outcome.error.is_some() {
        return Some("fault");
    }
    match policy.case_verdict(outcome) {
        Verdict::Fail => Some("FAIL"),
        Verdict::Warn => Some("warn"),
        Verdict::NotReached
        | Verdict::Pass
        | Verdict::Noted
        | Verdict::NotApplicable
        | Verdict::Unchecked
        | Verdict::Untestable => None,
    }
}

/// Returns `Colours::On` if `output` can show colours and `NO_COLOR` is unset.
pub(crate) fn detect_colours(output: &impl IsTerminal) -> Colours {
    let (term, no_color) = (env::var_os("TERM"), env::var_os("NO_COLOR"));
    choose_colours(output.is_terminal(), term.as_deref(), no_color.as_deref())
}

fn choose_colours(is_terminal: bool, term: Option<&OsStr>, no_color: Option<&OsStr>) -> Colours {
    let is_unwanted = no_color.is_some_and(|value| !value.is_empty());
    if can_move_cursor(is_terminal, term) && !is_unwanted {
        Colours::On
    } else {
        Colours::Off
    }
}

/// Returns true for a terminal that supports cursor movement.
fn can_move_cursor(is_terminal: bool, term: Option<&OsStr>) -> bool {
    is_terminal && term != Some(OsStr::new("dumb"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_need_a_capable_terminal_and_no_no_color() {
        let colours = |is_terminal, term: &'static str, no_color: Option<&'static str>| {
            choose_colours(
                is_terminal,
                Some(OsStr::new(term)),
                no_color.map(OsStr::new),
            )
        };
        assert_eq!(colours(true, "xterm", None), Colours::On);
        assert_eq!(colours(true, "xterm", Some("")), Colours::On);
        assert_eq!(colours(true, "xterm", Some("1")), Colours::Off);
        assert_eq!(colours(true, "dumb", None), Colours::Off);
        assert_eq!(colours(false, "xterm", None), Colours::Off);
        assert_eq!(choose_colours(true, None, None), Colours::On);
        assert!(can_move_cursor(true, Some(OsStr::new("xterm"))));
        assert!(!can_move_cursor(true, Some(OsStr::new("dumb"))));
        assert!(!can_move_cursor(false, Some(OsStr::new("xterm"))));
    }
}
