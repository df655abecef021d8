//! Builds the results of the suite for one agent, rule by rule, and counts them by level.

use super::path_redactor::PathRedactor;
use acp_conformance::{
    SuiteResult,
    profile::Profile,
    report::truncate_chars,
    requirements::{Level, Requirements},
    verdict::{Verdict, judge_rules},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// Verdicts that count as broken; a MAY need not be kept.
pub(super) const BROKEN_VERDICTS: [Verdict; 2] = [Verdict::Fail, Verdict::Warn];

/// Length of a stored text. Unit: characters.
const MAX_TEXT_CHARS: usize = 400;

/// Results of the suite for one agent.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct AgentResults {
    /// Name of the profile.
    pub name: String,
    /// Description of the agent.
    pub about: String,
    /// True for an SDK example.
    #[serde(default)]
    pub is_example: bool,
    /// Revision of the rules, if recorded.
    #[serde(default)]
    pub revision: Option<String>,
    /// Installed packages, with versions.
    pub packages: Vec<String>,
    /// Name and version that the agent reports; empty if it reports neither.
    #[serde(rename = "says")]
    pub reported_agent: String,
    /// Known peculiarities.
    pub peculiarities: Vec<String>,
    /// Result of each rule, by id.
    pub rules: BTreeMap<String, RuleResult>,
    /// Cases that ended early at a step without a rule, and errors of the suite itself.
    #[serde(rename = "broken")]
    pub run_problems: Vec<String>,
    /// Failures that did not recur in the last play of their case.
    #[serde(rename = "once")]
    pub flaky_failures: Vec<String>,
    /// Duration of the run.
    pub took: Duration,
    /// Average factor by which time limits were extended in the first play of all cases, if recorded.
    #[serde(default)]
    pub slowdown: Option<f64>,
}

/// Result of a rule.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct RuleResult {
    /// Verdict on the rule.
    pub verdict: Verdict,
    /// Reason, from the first case that found it.
    pub why: Option<FailureReason>,
}

/// Reason why a rule is broken.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct FailureReason {
    /// Name of the case.
    pub case: String,
    /// Line in the case.
    pub line: usize,
    /// Explanation of the failure.
    pub text: String,
    /// Text of the step.
    pub step: String,
    /// Received line, if the failure concerns a single line.
    #[serde(rename = "came")]
    pub received: Option<String>,
}

impl AgentResults {
    /// Builds the results of an agent after a suite. `flaky` lists failures that did not recur. Paths of this
    /// machine are removed.
    #[must_use]
    pub fn from_run(
        profile: &Profile,
        played: &SuiteResult,
        flaky: &[String],
        requirements: &Requirements,
        redactor: &PathRedactor,
    ) -> Self {
        let short = |text: &str| truncate_chars(&redactor.redact(text), MAX_TEXT_CHARS);
        let mut results = Self::new(profile);
        results.flaky_failures = flaky.iter().map(|text| short(text)).collect();
        let info = &played.facts.initialize["agentInfo"];
        let words = ["name", "version"].map(|field| info[field].as_str());
        results.reported_agent = words.into_iter().flatten().collect::<Vec<_>>().join(" ");
        results.revision = Some(requirements.revision.clone());
        results.took = played.elapsed;
        results.slowdown = Some(played.slowdown);
        for outcome in &played.outcomes {
            if let Some(fault) = &outcome.error {
                results
                    .run_problems
                    .push(format!("{}: {}", outcome.case, short(fault)));
            }
            if let Some(finding) = &outcome.failed_step {
                let text = format!("{}, {}", outcome.case, short(&finding.to_string()));
                results.run_problems.push(text);
            }
        }
        for judged in judge_rules(requirements, &played.outcomes, &BTreeSet::new()).rules {
            let finding = judged.findings.first();
            let why = finding.map(|finding| FailureReason {
                case: finding.case.clone(),
                line: finding.line,
                text: short(&finding.why),
                step: short(&finding.step),
                received: finding.received.as_deref().map(short),
            });
            let verdict = judged.verdict;
            let found = RuleResult { verdict, why };
            results.rules.insert(judged.rule.id.clone(), found);
        }
        results
    }

    /// Builds the results of an agent that could not be played at all.
    #[must_use]
    pub fn unplayable(profile: &Profile, fault: String) -> Self {
        let mut results = Self::new(profile);
        results.run_problems.push(fault);
        results
    }

    /// Returns the installed version, or else the reported one.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        let installed = self.packages.first();
        let installed = installed.and_then(|package| package.rsplit(['@', '=']).next());
        installed.or_else(|| self.reported_agent.split(' ').nth(1))
    }

    /// Returns the ids of the rules with this verdict.
    pub(super) fn ids_with_verdict(&self, verdict: Verdict) -> Vec<&str> {
        let rules = self.rules.iter();
        let rules = rules.filter(|(_, found)| found.verdict == verdict);
        rules.map(|(id, _)| id.as_str()).collect()
    }

    /// Returns how many rules of these levels were kept, and how many could be judged.
    pub(super) fn count_passed_and_judged(
        &self,
        requirements: &Requirements,
        levels: &[Level],
    ) -> (usize, usize) {
        let rules = requirements.rules.iter();
        let rules = rules.filter(|rule| levels.contains(&rule.level));
        let found = rules.filter_map(|rule| self.rules.get(&rule.id));
        let verdicts: Vec<Verdict> = found.map(|found| found.verdict).collect();
        let of = |wanted: &[Verdict]| verdicts.iter().filter(|one| wanted.contains(one)).count();
        let passed = of(&[Verdict::Pass]);
        (
            passed,
            passed + of(&BROKEN_VERDICTS) + of(&[Verdict::Noted]),
        )
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
            packages: packages.cloned().collect(),
            peculiarities: profile.peculiarities.clone(),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acp_conformance::{AgentFacts, CaseOutcome, CheckResult, Finding, RuleCheck};
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
    fn results_list_each_rule_and_round_trip() {
        let profile = Profile::parse("x", PROFILE).unwrap();
        let finding = |line| Finding {
            case: "leaving".to_owned(),
            line,
            step: "exit any".to_owned(),
            sent: None,
            received: Some("{}".to_owned()),
            why: "w".repeat(MAX_TEXT_CHARS + 1),
            entry: None,
        };
        let check = |rule: &str, result| RuleCheck {
            rule: rule.to_owned(),
            line: 3,
            result,
        };
        let outcome = CaseOutcome {
            case: "leaving".to_owned(),
            purpose: "p".to_owned(),
            checks: vec![
                check("TR-1", CheckResult::Passed),
                check("TR-2", CheckResult::Failed(finding(3))),
                check("TR-2", CheckResult::Failed(finding(9))),
            ],
            failed_step: Some(finding(11)),
            ..CaseOutcome::default()
        };
        let initialize = serde_json::json!({"agentInfo": {"name": "X", "version": "2"}});
        let played = SuiteResult {
            unplayed_reason: None,
            facts: AgentFacts {
                initialize,
                ..AgentFacts::default()
            },
            outcomes: vec![outcome],
            elapsed: Duration::from_secs(4),
            slowdown: 2.5,
            patience: Duration::from_secs(20),
        };
        let requirements = Requirements::built_in().unwrap();
        let once = ["TR-1: leaving in /installed/x".to_owned()];
        let places = PathRedactor::new(Path::new("/installed")).unwrap();
        let results = AgentResults::from_run(&profile, &played, &once, &requirements, &places);
        assert_eq!(results.reported_agent, "X 2");
        assert_eq!(results.packages, ["x@1"]);
        assert_eq!(results.version(), Some("1"));
        assert_eq!(results.revision.as_ref(), Some(&requirements.revision));
        assert_eq!(results.slowdown, Some(2.5));
        assert_eq!(results.flaky_failures, ["TR-1: leaving in $SCRATCH/x"]);
        assert_eq!(results.rules["TR-1"].verdict, Verdict::Pass);
        assert_eq!(results.rules["TR-2"].verdict, Verdict::Fail);
        let why = results.rules["TR-2"].why.clone().unwrap();
        assert_eq!((why.case.as_str(), why.line), ("leaving", 3));
        assert_eq!(why.text.chars().count(), MAX_TEXT_CHARS + 1);
        assert!(why.text.ends_with("w…"));
        assert!(results.run_problems[0].starts_with("leaving, line 11: w"));
        let text = serde_json::to_string(&results).unwrap();
        assert_eq!(
            serde_json::from_str::<AgentResults>(&text).unwrap(),
            results
        );
    }

    #[test]
    fn unplayable_agent_has_results_without_rules() {
        let profile = Profile::parse("x", PROFILE).unwrap();
        let results = AgentResults::unplayable(&profile, "it does not start".to_owned());
        assert_eq!(results.run_problems, ["it does not start"]);
        assert!(results.rules.is_empty());
        let of = |packages: &[&str], says: &str| {
            let results = AgentResults {
                packages: packages.iter().map(|&package| package.to_owned()).collect(),
                reported_agent: says.to_owned(),
                ..results.clone()
            };
            results.version().map(str::to_owned)
        };
        assert_eq!(of(&["@x/y@1.2"], "Y 9"), Some("1.2".to_owned()));
        assert_eq!(of(&["z==3"], ""), Some("3".to_owned()));
        assert_eq!(of(&[], "Y 9"), Some("9".to_owned()));
        assert_eq!(of(&[], "Y"), None);
    }
}
