//! Outcome: what came of one case, check by check, with all that was said.

use std::time::Duration;

/// What came of a case.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The name of the case.
    pub case: String,
    /// What it shows.
    pub purpose: String,
    /// What came of each rule that it cites or that was watched, in the order of its steps.
    pub checks: Vec<Check>,
    /// The step without a rule that failed and ended the case.
    pub broken: Option<Finding>,
    /// A fault of the case or of the runner itself: then nothing is said about the agent.
    pub fault: Option<String>,
    /// How the agent's process ended, if it did so though nobody had told it to.
    pub died: Option<String>,
    /// All that was said.
    pub transcript: Vec<Entry>,
    /// What the agent wrote to stderr: the beginning.
    pub stderr: String,
    /// How long it took.
    pub took: Duration,
}

/// What came of one rule in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The rule.
    pub rule: String,
    /// The line of the case; 0 for what is always watched.
    pub line: usize,
    /// What came of it.
    pub result: Ruling,
}

/// What can come of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// It held.
    Passed,
    /// It did not.
    Failed(Finding),
    /// This step before it failed.
    NotReached(Finding),
    /// The agent does not have what it is about.
    NotApplicable(String),
}

/// Begins the reason why a check was not reached; what was wrong with the step before it follows.
pub const BEFORE: &str = "a step before its check failed: ";

impl Ruling {
    /// A check that was not reached, because of what was wrong with a step before it.
    #[must_use]
    pub fn not_reached(before: &Finding) -> Self {
        Self::NotReached(Finding {
            why: format!("{BEFORE}{}", before.why),
            ..before.clone()
        })
    }
}

/// What was wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct Finding {
    /// The line of the case.
    pub line: usize,
    /// The line as it stands.
    pub step: String,
    /// What was sent last, if anything.
    pub sent: Option<String>,
    /// What came, if it is one line.
    pub came: Option<String>,
    /// What is wrong with it.
    pub why: String,
    /// The entry of the transcript that it is about.
    pub entry: Option<usize>,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Since the case began.
    pub at: Duration,
    /// What it is.
    pub kind: Kind,
    /// The line, or what happened, in words. Cut if it is very long.
    pub text: String,
}

/// What an entry of a transcript is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The case sent it.
    Sent,
    /// The client answered by itself.
    Answered,
    /// The agent said it.
    Came,
    /// Something happened to the process.
    Note,
}

impl Kind {
    /// How a transcript marks it.
    #[must_use]
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Sent => ">",
            Self::Answered => "»",
            Self::Came => "<",
            Self::Note => "·",
        }
    }
}

impl Outcome {
    /// Whether all that was checked held.
    #[must_use]
    pub fn is_passed(&self) -> bool {
        let mut failed = self.findings();
        self.fault.is_none() && self.broken.is_none() && failed.next().is_none()
    }

    /// Each failed check.
    pub fn findings(&self) -> impl Iterator<Item = (&str, &Finding)> {
        self.checks.iter().filter_map(|check| match &check.result {
            Ruling::Failed(finding) => Some((check.rule.as_str(), finding)),
            Ruling::Passed | Ruling::NotReached(_) | Ruling::NotApplicable(_) => None,
        })
    }
}
