//! Standing: what the suite found about one agent, rule by rule, as it is kept in a file.

use super::places::Places;
use crate::{
    Played,
    outcome::Finding,
    profile::Profile,
    requirements::Requirements,
    verdict::{Verdict, judge},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// So much of a text is kept. Unit: characters.
const KEPT: usize = 400;

/// How an agent stands.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Standing {
    /// The name of its profile.
    pub name: String,
    /// What it is.
    pub about: String,
    /// It is an example of an SDK.
    #[serde(default)]
    pub is_example: bool,
    /// Revision of the rules that it was played with, if it was recorded.
    #[serde(default)]
    pub revision: Option<String>,
    /// The packages and versions that were installed.
    pub packages: Vec<String>,
    /// The name and version it says it is; empty if it says neither.
    pub says: String,
    /// What is odd about it.
    pub peculiarities: Vec<String>,
    /// What came of each rule.
    pub rules: BTreeMap<String, Found>,
    /// Cases that ended early, at a step that is no check; and faults of the suite itself.
    pub broken: Vec<String>,
    /// What failed in one play and not in the last.
    pub once: Vec<String>,
    /// How long it took.
    pub took: Duration,
    /// Real seconds for each second of the bounds in the first play of all cases, if it was recorded.
    #[serde(default)]
    pub slowdown: Option<f64>,
}

/// What came of a rule.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Found {
    /// In a word.
    pub verdict: Verdict,
    /// Why, and where: of the first case that found it.
    pub why: Option<Why>,
}

/// Why a rule is not kept.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Why {
    /// The case.
    pub case: String,
    /// Its line.
    pub line: usize,
    /// What was wrong.
    pub text: String,
    /// The step.
    pub step: String,
    /// What came, if it is one line.
    pub came: Option<String>,
}

impl Standing {
    /// How an agent stands after a suite. `once`: what failed in one play only. Nothing tells where it was played.
    #[must_use]
    pub fn of(
        profile: &Profile,
        played: &Played,
        once: &[String],
        requirements: &Requirements,
        places: &Places,
    ) -> Self {
        let short = |text: &str| short(&places.hidden(text));
        let mut standing = Self::new(profile);
        standing.once = once.iter().map(|text| short(text)).collect();
        let info = &played.facts.initialize["agentInfo"];
        let words = ["name", "version"].map(|field| info[field].as_str());
        standing.says = words.into_iter().flatten().collect::<Vec<_>>().join(" ");
        standing.revision = Some(requirements.revision.clone());
        standing.took = played.took;
        standing.slowdown = Some(played.slowdown);
        for outcome in &played.outcomes {
            if let Some(fault) = &outcome.fault {
                standing
                    .broken
                    .push(format!("{}: {}", outcome.case, short(fault)));
            }
            if let Some(finding) = &outcome.broken {
                let text = format!("{}, {}", outcome.case, short(&finding.to_string()));
                standing.broken.push(text);
            }
        }
        for judged in judge(requirements, &played.outcomes, &BTreeSet::new()).rules {
            let finding = judged.findings.first();
            let why = finding.map(|(case, finding)| Why::of(case, finding, &short));
            let verdict = judged.verdict;
            let found = Found { verdict, why };
            standing.rules.insert(judged.rule.id.clone(), found);
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

    /// Its version: what was installed, else what it says.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        let installed = self.packages.first();
        let installed = installed.and_then(|package| package.rsplit(['@', '=']).next());
        installed.or_else(|| self.says.split(' ').nth(1))
    }

    fn new(profile: &Profile) -> Self {
        let packages = profile.install.iter();
        let packages = packages.flat_map(|install| {
            let cargo = install.cargo.first();
            install.npm.iter().chain(&install.pip).chain(cargo)
        });
        Self {
            name: profile.name.clone(),
            about: profile.about.clone(),
            is_example: profile.is_example,
            revision: None,
            packages: packages.cloned().collect(),
            says: String::new(),
            peculiarities: profile.peculiarities.clone(),
            rules: BTreeMap::new(),
            broken: Vec::new(),
            once: Vec::new(),
            took: Duration::ZERO,
            slowdown: None,
        }
    }
}

impl Why {
    fn of(case: &str, finding: &Finding, short: &dyn Fn(&str) -> String) -> Self {
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
    use crate::{Check, Facts, Outcome, Ruling};
    use std::path::Path;

    const PROFILE: &str = r#"
        name = "x"
        about = "An agent."
        command = ["x"]
        api = "gemini"
        [install]
        version = "1"
        npm = ["x@1"]
        command = ["y"]
    "#;

    #[test]
    fn a_standing_says_what_came_of_each_rule_and_is_read_as_it_was_written() {
        let profile = Profile::parse("x", PROFILE).unwrap();
        let finding = |line| Finding {
            line,
            step: "exit any".to_owned(),
            sent: None,
            came: Some("{}".to_owned()),
            why: "w".repeat(KEPT + 1),
            entry: None,
        };
        let check = |rule: &str, result| Check {
            rule: rule.to_owned(),
            line: 3,
            result,
        };
        let outcome = Outcome {
            case: "leaving".to_owned(),
            purpose: "p".to_owned(),
            checks: vec![
                check("TR-1", Ruling::Passed),
                check("TR-2", Ruling::Failed(finding(3))),
                check("TR-2", Ruling::Failed(finding(9))),
            ],
            broken: Some(finding(11)),
            ..Outcome::default()
        };
        let initialize = serde_json::json!({"agentInfo": {"name": "X", "version": "2"}});
        let played = Played {
            stopped: None,
            facts: Facts {
                initialize,
                ..Facts::default()
            },
            outcomes: vec![outcome],
            took: Duration::from_secs(4),
            slowdown: 2.5,
            patience: Duration::from_secs(20),
        };
        let requirements = Requirements::known().unwrap();
        let once = ["TR-1: leaving in /installed/x".to_owned()];
        let places = Places::new(Path::new("/installed")).unwrap();
        let standing = Standing::of(&profile, &played, &once, &requirements, &places);
        assert_eq!(standing.says, "X 2");
        assert_eq!(standing.packages, ["x@1"]);
        assert_eq!(standing.version(), Some("1"));
        assert_eq!(standing.revision.as_ref(), Some(&requirements.revision));
        assert_eq!(standing.slowdown, Some(2.5));
        assert_eq!(standing.once, ["TR-1: leaving in $SCRATCH/x"]);
        assert_eq!(standing.rules["TR-1"].verdict, Verdict::Pass);
        assert_eq!(standing.rules["TR-2"].verdict, Verdict::Fail);
        let why = standing.rules["TR-2"].why.clone().unwrap();
        assert_eq!((why.case.as_str(), why.line), ("leaving", 3));
        assert_eq!(why.text.chars().count(), KEPT + 1);
        assert!(why.text.ends_with("w…"));
        assert!(standing.broken[0].starts_with("leaving, line 11: w"));
        let text = serde_json::to_string(&standing).unwrap();
        assert_eq!(serde_json::from_str::<Standing>(&text).unwrap(), standing);
    }

    #[test]
    fn an_agent_that_cannot_be_played_stands_there_all_the_same() {
        let profile = Profile::parse("x", PROFILE).unwrap();
        let standing = Standing::unable(&profile, "it does not start".to_owned());
        assert_eq!(standing.broken, ["it does not start"]);
        assert!(standing.rules.is_empty());
        let of = |packages: &[&str], says: &str| {
            let standing = Standing {
                packages: packages.iter().map(|&package| package.to_owned()).collect(),
                says: says.to_owned(),
                ..standing.clone()
            };
            standing.version().map(str::to_owned)
        };
        assert_eq!(of(&["@x/y@1.2"], "Y 9"), Some("1.2".to_owned()));
        assert_eq!(of(&["z==3"], ""), Some("3".to_owned()));
        assert_eq!(of(&[], "Y 9"), Some("9".to_owned()));
        assert_eq!(of(&[], "Y"), None);
    }
}
