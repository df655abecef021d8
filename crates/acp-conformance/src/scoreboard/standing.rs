//! Standing: what the suite found about one agent, rule by rule, as it is kept in a file.

use crate::{Played, Ruling, outcome::Finding, profile::Profile};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, time::Duration};

/// So much of a text is kept. Unit: characters.
const KEPT: usize = 400;

/// How an agent stands.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Standing {
    /// The name of its profile.
    pub name: String,
    /// What it is.
    pub about: String,
    /// The packages and versions that were installed.
    pub packages: Vec<String>,
    /// The name and version it says it is.
    pub says: String,
    /// What is odd about it.
    pub peculiarities: Vec<String>,
    /// What came of each rule that some case is about.
    pub rules: BTreeMap<String, Verdict>,
    /// Cases that ended early, at a step that is no check; and faults of the suite itself.
    pub broken: Vec<String>,
    /// How long it took.
    pub took: Duration,
}

/// What came of a rule.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Verdict {
    /// In a word.
    pub state: State,
    /// Why not, and where: of the first case that found it.
    pub why: Option<Why>,
}

/// What can come of a rule.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The agent has not what it is about.
    NotApplicable,
    /// A step before it failed.
    NotReached,
    /// It held wherever it was looked at.
    Passed,
    /// It was broken.
    Failed,
}

/// Why a rule did not pass.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Why {
    /// The case.
    pub case: String,
    /// Its line.
    pub line: usize,
    /// What was wrong, or what is missing.
    pub text: String,
    /// The step.
    pub step: String,
    /// What came, if it is one line.
    pub came: Option<String>,
}

impl Standing {
    /// How an agent stands after a suite.
    #[must_use]
    pub fn of(profile: &Profile, played: &Played) -> Self {
        let mut standing = Self::new(profile);
        let info = &played.facts.initialize["agentInfo"];
        let word = |field: &str| info[field].as_str().unwrap_or("?");
        standing.says = format!("{} {}", word("name"), word("version"));
        standing.took = played.took;
        for outcome in &played.outcomes {
            if let Some(fault) = &outcome.fault {
                standing.broken.push(format!("{}: {fault}", outcome.case));
            }
            if let Some(finding) = &outcome.broken {
                let text = format!("{}, {}", outcome.case, short(&finding.to_string()));
                standing.broken.push(text);
            }
            for check in &outcome.checks {
                let (state, why) = match &check.result {
                    Ruling::Passed => (State::Passed, None),
                    Ruling::Failed(finding) => {
                        (State::Failed, Some(Why::of(&outcome.case, finding)))
                    }
                    Ruling::NotReached => (State::NotReached, None),
                    Ruling::NotApplicable(missing) => {
                        let why = Why {
                            case: outcome.case.clone(),
                            line: check.line,
                            text: missing.clone(),
                            ..Why::default()
                        };
                        (State::NotApplicable, Some(why))
                    }
                };
                standing.take(&check.rule, Verdict { state, why });
            }
        }
        standing
    }

    /// An agent that could not be played at all.
    #[must_use]
    pub fn unable(profile: &Profile, fault: String) -> Self {
        let mut standing = Self::new(profile);
        standing.broken.push(fault);
        standing
    }

    fn new(profile: &Profile) -> Self {
        let packages = profile.install.iter();
        let packages = packages.flat_map(|install| install.npm.iter().chain(&install.pip));
        Self {
            name: profile.name.clone(),
            about: profile.about.clone(),
            packages: packages.cloned().collect(),
            says: String::new(),
            peculiarities: profile.peculiarities.clone(),
            rules: BTreeMap::new(),
            broken: Vec::new(),
            took: Duration::ZERO,
        }
    }

    /// Of all that came of a rule the worst counts; a pass counts more than what could not be looked at.
    fn take(&mut self, rule: &str, verdict: Verdict) {
        match self.rules.get_mut(rule) {
            Some(before) if before.state >= verdict.state => {}
            Some(before) => *before = verdict,
            None => {
                self.rules.insert(rule.to_owned(), verdict);
            }
        }
    }
}

impl Why {
    fn of(case: &str, finding: &Finding) -> Self {
        Self {
            case: case.to_owned(),
            line: finding.line,
            text: short(&finding.why),
            step: short(&finding.step),
            came: finding.came.as_deref().map(short),
        }
    }
}

fn short(text: &str) -> String {
    let mut short: String = text.chars().take(KEPT).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing() -> Standing {
        let text = "name = \"x\"\nabout = \"An agent.\"\ncommand = [\"x\"]\napi = \"gemini\"\n[install]\nversion = \"1\"\nnpm = [\"x@1\"]\ncommand = [\"y\"]";
        Standing::new(&Profile::parse("x", text).unwrap())
    }

    fn taken(states: &[State]) -> State {
        let mut standing = standing();
        for (index, state) in states.iter().enumerate() {
            let why = Some(Why {
                line: index,
                ..Why::default()
            });
            standing.take("R-1", Verdict { state: *state, why });
        }
        standing.rules["R-1"].state
    }

    #[test]
    fn the_worst_counts_and_a_pass_more_than_nothing() {
        use State::{Failed, NotApplicable, NotReached, Passed};
        assert_eq!(taken(&[NotApplicable, Passed]), Passed);
        assert_eq!(taken(&[Passed, NotReached, NotApplicable]), Passed);
        assert_eq!(taken(&[Passed, Failed, Passed]), Failed);
        assert_eq!(taken(&[NotApplicable, NotReached]), NotReached);
    }

    #[test]
    fn the_first_reason_is_kept() {
        let mut standing = standing();
        for line in [3, 9] {
            let why = Some(Why {
                line,
                ..Why::default()
            });
            let state = State::Failed;
            standing.take("R-1", Verdict { state, why });
        }
        assert_eq!(standing.rules["R-1"].why.as_ref().unwrap().line, 3);
        assert_eq!(standing.packages, ["x@1"]);
    }

    #[test]
    fn a_standing_is_read_as_it_was_written() {
        let mut standing = standing();
        standing.take(
            "R-1",
            Verdict {
                state: State::NotReached,
                why: None,
            },
        );
        let text = serde_json::to_string(&standing).unwrap();
        assert_eq!(serde_json::from_str::<Standing>(&text).unwrap(), standing);
    }
}
