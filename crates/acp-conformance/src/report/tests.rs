//! Tests of rendered reports.

mod exit_summary;
mod junit;
mod rule_groups;
mod unexpected_exits;

use super::*;
use crate::{
    facts::AgentFacts,
    outcome::{CaseOutcome, CheckResult, Finding, RuleCheck, TranscriptEntry, TranscriptSource},
    requirements::{Level, Requirements},
    suite::SuiteResult,
    verdict::{FailurePolicy, Verdict, judge_rules},
};
use std::{collections::BTreeSet, fs, path::PathBuf, time::Duration};

const RULES: &str = r#"
revision = "r1"
[rules.A-1]
level = "MUST"
says = "it <answers>"
source = "docs"
[rules.A-2]
level = "SHOULD"
says = "it is | quick"
source = "docs"
[rules.A-3]
level = "fact"
says = "it forks"
source = "docs"
[rules.A-4]
level = "MUST NOT"
says = "it holds"
source = "docs"
kit = ["ACP-X-001"]
"#;

fn finding() -> Finding {
    Finding {
        case: "some-case".to_owned(),
        line: 7,
        step: "answered {\"a\": 1} @ A-1".to_owned(),
        sent: Some("{\"id\":1}".to_owned()),
        received: Some("{\"text\":\"<script>alert('x')</script>\"}".to_owned()),
        why: "/a is missing & \"gone\"".to_owned(),
        entry: Some(1),
    }
}

fn report_expecting(expected: &[&str], broken: bool) -> Report {
    report_with(CheckResult::Passed, expected, broken, false)
}

/// Returns a report in which the last rule has this result.
fn report_with(last: CheckResult, expected: &[&str], broken: bool, strict: bool) -> Report {
    let check = |rule: &str, result| RuleCheck {
        rule: rule.to_owned(),
        line: 7,
        result,
    };
    let entry = |by, text: &str| TranscriptEntry {
        at: Duration::from_millis(5),
        by,
        text: text.to_owned(),
    };
    let outcome = CaseOutcome {
        case: "some-case".to_owned(),
        purpose: "It shows <something>.".to_owned(),
        checks: vec![
            check("A-1", CheckResult::Failed(finding())),
            check("A-2", CheckResult::Failed(finding())),
            check("A-3", CheckResult::NotApplicable("fork".to_owned())),
            check("A-4", last),
        ],
        failed_step: broken.then(finding),
        error: None,
        unexpected_exit: None,
        transcript: vec![
            entry(TranscriptSource::Case, "{\"id\":1}"),
            entry(TranscriptSource::Agent, "{\"text\":\"<script>\"}"),
        ],
        stderr: "a <log>\u{7}\n".to_owned(),
        elapsed: Duration::from_millis(12),
    };
    report_of_case(RULES, outcome, expected, strict)
}

/// Returns a report on one case.
fn report_of_case(rules: &str, outcome: CaseOutcome, expected: &[&str], strict: bool) -> Report {
    let requirements = Requirements::parse(rules).expect("a table");
    let expected: BTreeSet<String> = expected.iter().map(|id| (*id).to_owned()).collect();
    let outcomes = [outcome];
    let verdicts = judge_rules(&requirements, &outcomes, &expected);
    let played = SuiteResult {
        unplayed_reason: None,
        facts: AgentFacts::default(),
        outcomes: outcomes.to_vec(),
        elapsed: Duration::from_millis(1500),
        slowdown: 1.0,
        patience: Duration::from_secs(20),
    };
    let agent = TestedAgent {
        name: "An <agent>".to_owned(),
        version: Some("1.0".to_owned()),
        command: "agent --acp".to_owned(),
        profile: None,
    };
    let policy = FailurePolicy {
        requirements: &requirements,
        expected: &expected,
        strict,
    };
    Report::new(agent, &policy, &verdicts, &played, &[])
}

/// Returns a table of rules with these ids and levels.
fn rule_table(rules: &[(&str, &str)]) -> String {
    let rules = rules.iter().map(|(id, level)| {
        format!("[rules.{id}]\nlevel = \"{level}\"\nsays = \"says {id}\"\nsource = \"docs\"\n")
    });
    format!("revision = \"r1\"\n{}", rules.collect::<String>())
}

/// Returns the outcome of a case with these checks.
fn outcome_with_checks(checks: Vec<(&str, CheckResult)>) -> CaseOutcome {
    let checks = checks.into_iter().map(|(rule, result)| RuleCheck {
        rule: rule.to_owned(),
        line: 7,
        result,
    });
    CaseOutcome {
        case: "some-case".to_owned(),
        purpose: "It shows something.".to_owned(),
        checks: checks.collect(),
        ..CaseOutcome::default()
    }
}

/// Renders a report without colours.
fn render_plain(report: &Report) -> String {
    render_pretty(report, Colours::Off)
}

#[test]
fn rules_are_counted_by_level_and_verdict() {
    let report = report_expecting(&[], false);
    assert_eq!(report.rule_count(Level::Must, Verdict::Fail), 1);
    assert_eq!(report.rule_count(Level::Should, Verdict::Warn), 1);
    assert_eq!(report.rule_count(Level::Fact, Verdict::NotApplicable), 1);
    assert_eq!(report.rule_count(Level::MustNot, Verdict::Pass), 1);
    assert_eq!(report.counts.len(), 4);
}

#[test]
fn pretty_report_shows_failures_and_counts() {
    let text = render_plain(&report_expecting(&["A-2", "A-4"], true));
    for line in [
        "fail  A-1 (MUST, docs): it <answers>\n",
        "warn  A-2 (SHOULD, docs), as expected: it is | quick\n",
        "    some-case, line 7: /a is missing & \"gone\" (breaks A-2 too)\n",
        "      > {\"id\":1}\n",
        "a case ended early\n",
        "A-4 was expected to be broken, and is not\n",
        "An <agent> 1.0: 1 case in 1.5 s, rules of r1\n",
        "      MUST  1 fail\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn html_is_self_contained_and_agent_text_is_escaped() {
    let page = render_html(&report_expecting(&[], true));
    assert!(page.starts_with("<!DOCTYPE html>\n"));
    for part in [
        "<title>An &#60;agent&#62; 1.0: ACP conformance</title>",
        "<section id=\"A-1\">",
        "/a is missing &#38; &#34;gone&#34;",
        "&#60;script&#62;alert(&#39;x&#39;)&#60;/script&#62;",
        "<mark>       5 &#60; {&#34;text&#34;:&#34;&#60;script&#62;&#34;}</mark>",
        "<details id=\"case-some-case\">",
        "a &#60;log&#62;\u{fffd}",
        "not applicable <small>fork</small>",
    ] {
        assert!(page.contains(part), "{part}\n{page}");
    }
    for foreign in ["<script", "http:", "https:", "src=", "@import", "url("] {
        assert!(!page.contains(foreign), "{foreign}");
    }
}

/// Returns a report on an agent that tries to inject markup.
fn hostile_report() -> Report {
    let mut report = report_expecting(&["A-3"], true);
    let wild = "\u{1b}]0;x\u{7}\u{202e}\u{ffff}\nMUST 9 pass";
    report.agent.name = wild.to_owned();
    report.agent.version = Some(wild.to_owned());
    report.agent.command = wild.to_owned();
    let broken = report
        .cases
        .iter_mut()
        .filter_map(|case| case.failed_step.as_mut());
    let found = report.rules.iter_mut().flat_map(|rule| &mut rule.findings);
    for found in found.chain(broken) {
        found.why = wild.to_owned();
        found.received = Some(wild.to_owned());
        found.sent = Some(wild.to_owned());
        found.step = wild.to_owned();
    }
    report.rules[2].reason = Some(wild.to_owned());
    report.cases[0].transcript[1].text = wild.to_owned();
    report.cases[0].stderr = wild.to_owned();
    report
}

#[test]
fn agent_control_characters_are_replaced() {
    let report = hostile_report();
    for text in [
        render_plain(&report),
        render_markdown(&report),
        render_html(&report),
        render_junit(&report),
    ] {
        assert!(text.contains('\u{fffd}'), "{text}");
        let wild = |letter: char| {
            let known = letter == '\n' || !letter.is_control();
            !known || letter == '\u{202e}' || letter == '\u{ffff}'
        };
        assert!(!text.contains(wild), "{text:?}");
    }
    for text in [render_plain(&report), render_markdown(&report)] {
        let mut lines = text.lines();
        assert!(!lines.any(|line| line.starts_with("MUST 9")), "{text}");
    }
}

#[test]
fn unreached_rule_shows_the_failed_step() {
    let before = Finding {
        line: 5,
        step: "load $session".to_owned(),
        why: "a step before its check failed: nothing came".to_owned(),
        ..finding()
    };
    let report = report_with(CheckResult::NotReached(before), &[], false, false);
    let lines = "not reached  A-4 (MUST NOT, docs): it holds\n    some-case, line 5: a step before its check failed: nothing came\n      load $session\n";
    assert!(
        render_plain(&report).contains(lines),
        "{}",
        render_plain(&report)
    );
    let row = "| A-4 | MUST NOT | not reached | it holds | a step before its check failed: nothing came (case some-case) |\n";
    assert!(
        render_markdown(&report).contains(row),
        "{}",
        render_markdown(&report)
    );
    let why = "<p class=\"why\">a step before its check failed: nothing came <small><a href=\"#case-some-case\">some-case</a>, line 5</small></p>\n<dl>\n<dt>step</dt><dd><code>load $session</code></dd>";
    assert!(
        render_html(&report).contains(why),
        "{}",
        render_html(&report)
    );
    let failure =
        "<failure type=\"not reached\" message=\"a step before its check failed: nothing came\">";
    assert!(
        render_junit(&report).contains(failure),
        "{}",
        render_junit(&report)
    );
}

#[test]
fn unseen_expected_failure_is_a_warning() {
    let report = report_expecting(&["A-1", "A-3"], false);
    let remark = "warning: A-3 was expected to be broken, but is not applicable: fork";
    assert!(report.is_conformant());
    assert!(render_plain(&report).contains(&format!("{remark}\n")));
    assert!(render_markdown(&report).contains(&format!("\n{remark}\n")));
    assert!(render_html(&report).contains(&format!("<p class=\"warn\">{remark}</p>")));
}

#[test]
fn markdown_has_counts_and_failures() {
    let text = render_markdown(&report_expecting(&[], false));
    for line in [
        "# An \\<agent\\> 1.0\n",
        "| level | fail | warn | pass | not applicable |\n|---|---:|---:|---:|---:|\n",
        "\n1 case, rules of r1, `agent --acp`.\n",
        "| MUST | 1 | 0 | 0 | 0 |\n",
        "| A-1 | MUST | fail | it \\<answers\\> | /a is missing \\& \"gone\" (case some-case) |\n",
        "| A-2 | SHOULD | warn | it is \\| quick | as A-1 |\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn json_matches_its_schema() {
    let schema = schemars::schema_for!(Report).to_value();
    let report = serde_json::to_value(report_expecting(&[], true)).unwrap();
    assert!(jsonschema::is_valid(&schema, &report), "{report}");
    assert_eq!(report["rules"][0]["verdict"], "fail");
    assert_eq!(report["rules"][3]["kit"], serde_json::json!(["ACP-X-001"]));
    assert_eq!(report["cases"][0]["transcript"][1]["marked"], true);
    assert_eq!(report["cases"][0]["transcript"][1]["by"], "agent");
    let again: serde_json::Value =
        serde_json::from_str(&render_json(&report_expecting(&[], true))).unwrap();
    assert_eq!(again, report);
}

#[test]
fn schema_file_is_up_to_date() {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let file = root.join("schemas/conformance-report.json");
    let schema = schemars::schema_for!(Report).to_value();
    let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        fs::write(&file, &text).unwrap();
    }
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        text,
        "schemas/conformance-report.json is out of date: run the test again with UPDATE_SCHEMAS=1"
    );
}
