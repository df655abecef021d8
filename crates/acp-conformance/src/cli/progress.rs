//! Progress: which cases are over, on stderr; and what a terminal can show.

use acp_conformance::{
    Outcome,
    report::Colours,
    verdict::{Measure, Verdict},
};
use std::{
    env,
    ffi::OsStr,
    io::{self, IsTerminal, Write},
    sync::atomic::{AtomicUsize, Ordering},
};

/// Cases that are played.
pub(crate) struct Progress {
    all: usize,
    ended: AtomicUsize,
    /// One line is written over and over.
    is_live: bool,
}

impl Progress {
    pub(crate) fn new(all: usize) -> Self {
        let term = env::var_os("TERM");
        Self {
            all,
            ended: AtomicUsize::new(0),
            is_live: obeys(io::stderr().is_terminal(), term.as_deref()),
        }
    }

    /// A case is over. Where no line can be written over, only those are told of in which something is wrong.
    pub(crate) fn tell(&self, outcome: &Outcome, measure: &Measure<'_>) {
        let number = self.ended.fetch_add(1, Ordering::Relaxed) + 1;
        let (all, case) = (self.all, &outcome.case);
        let word = word(outcome, measure);
        // A progress that cannot be shown is no reason to end.
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

/// What is wrong in a case, in a word.
fn word(outcome: &Outcome, measure: &Measure<'_>) -> Option<&'static str> {
    if outcome.fault.is_some() {
        return Some("fault");
    }
    match measure.of_case(outcome) {
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

/// Whether colours can be shown there, and are wanted.
pub(crate) fn colours(place: &impl IsTerminal) -> Colours {
    let (term, no_color) = (env::var_os("TERM"), env::var_os("NO_COLOR"));
    chosen(place.is_terminal(), term.as_deref(), no_color.as_deref())
}

fn chosen(is_terminal: bool, term: Option<&OsStr>, no_color: Option<&OsStr>) -> Colours {
    let is_unwanted = no_color.is_some_and(|value| !value.is_empty());
    if obeys(is_terminal, term) && !is_unwanted {
        Colours::On
    } else {
        Colours::Off
    }
}

/// A terminal that moves its cursor when it is told to.
fn obeys(is_terminal: bool, term: Option<&OsStr>) -> bool {
    is_terminal && term != Some(OsStr::new("dumb"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_terminal_that_can_is_sent_colours_and_none_to_who_wants_none() {
        let colours = |is_terminal, term: &'static str, no_color: Option<&'static str>| {
            chosen(
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
        assert_eq!(chosen(true, None, None), Colours::On);
        assert!(obeys(true, Some(OsStr::new("xterm"))));
        assert!(!obeys(true, Some(OsStr::new("dumb"))));
        assert!(!obeys(false, Some(OsStr::new("xterm"))));
    }
}
