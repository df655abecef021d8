//! Renders a report for build servers: each rule is a JUnit test, which fails if the rule fails the run.

use super::{
    contents::{JudgedRule, Report},
    sanitize::sanitize_lines,
};
use crate::{outcome::Finding, verdict::Verdict};
use askama::Template;
use std::time::Duration;

/// Values for the template `templates/report.xml`, which escapes every value.
#[derive(Template)]
#[template(path = "report.xml")]
struct JunitReport<'a> {
    report: &'a Report,
    tests: Vec<(&'a JudgedRule, TestResult)>,
    failures: usize,
    errors: usize,
    skipped: usize,
    seconds: f64,
}

/// Renders a report as JUnit XML.
#[must_use]
pub fn render_junit(report: &Report) -> String {
    let tests = report.rules.iter();
    let tests: Vec<_> = tests
        .map(|rule| (rule, test_result(report, rule)))
        .collect();
    let count = |is_its: fn(&TestResult) -> bool| {
        let tests = tests.iter();
        tests.filter(|(_, result)| is_its(result)).count()
    };
    let page = JunitReport {
        report,
        errors: report.early_end_findings().count() + report.faulty_cases().count(),
        failures: count(|it| matches!(it, TestResult::Failed | TestResult::UnexpectedPass)),
        skipped: count(|it| matches!(it, TestResult::Skipped)),
        seconds: Duration::from_millis(report.took_ms).as_secs_f64(),
        tests,
    };
    // Writing to a string cannot fail.
    let mut text = sanitize_lines(&page.render().unwrap_or_default());
    text.push('\n');
    text
}

/// Test result of a rule.
enum TestResult {
    Passed,
    /// The rule is broken, but does not count.
    PassedWithRemark,
    Failed,
    /// The rule was expected to be broken and passed.
    UnexpectedPass,
    Skipped,
}

fn test_result(report: &Report, rule: &JudgedRule) -> TestResult {
    if report.unexpected_passes.contains(&rule.id) {
        return TestResult::UnexpectedPass;
    }
    match rule.verdict {
        Verdict::Fail | Verdict::Warn | Verdict::NotReached if rule.is_counted => {
            TestResult::Failed
        }
        Verdict::Fail | Verdict::Warn | Verdict::NotReached => TestResult::PassedWithRemark,
        Verdict::Pass | Verdict::Noted => TestResult::Passed,
        Verdict::NotApplicable | Verdict::Unchecked | Verdict::Untestable => TestResult::Skipped,
    }
}

impl JudgedRule {
    /// Returns the reason for the verdict, or else the verdict.
    fn reason_or_verdict(&self) -> &str {
        self.reason.as_deref().unwrap_or(self.verdict.name())
    }

    /// Returns the explanation of the first failure, or else the reason for the verdict.
    fn first_reason(&self) -> &str {
        let found = self.findings.first();
        found.map_or(self.reason_or_verdict(), |found| &found.why)
    }
}

fn format_findings(rule: &JudgedRule) -> String {
    rule.findings.iter().map(format_finding).collect()
}

/// Formats a finding with its step and messages.
fn format_finding(finding: &Finding) -> String {
    let mut text = format!("{}, line {}: {}\n", finding.case, finding.line, finding.why);
    text += &format!("  {}\n", finding.step);
    for (sign, message) in [(">", &finding.sent), ("<", &finding.received)] {
        if let Some(message) = message {
            text += &format!("  {sign} {message}\n");
        }
    }
    text
}
