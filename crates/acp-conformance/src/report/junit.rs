//! Renders a report for build servers: each rule is a JUnit test, which fails if the rule fails the run.

use super::{
    contents::{JudgedRule, Report},
    sanitize::sanitize_char,
};
use crate::{outcome::Finding, verdict::Verdict};
use std::fmt::{self, Write};

/// Renders a report as JUnit XML.
#[must_use]
pub fn render_junit(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_suite(&mut text, report);
    text
}

/// Escapes markup for use in an element or attribute, and replaces unsafe characters.
fn escape_markup(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars().map(sanitize_char) {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
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

fn write_suite(text: &mut String, report: &Report) -> fmt::Result {
    let tests = report.rules.iter().map(|rule| test_result(report, rule));
    let (mut failures, mut skipped) = (0, 0);
    for test in tests {
        match test {
            TestResult::Failed | TestResult::UnexpectedPass => failures += 1,
            TestResult::Skipped => skipped += 1,
            TestResult::Passed | TestResult::PassedWithRemark => {}
        }
    }
    let errors = report.early_end_findings().count() + report.faulty_cases().count();
    writeln!(text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(
        text,
        "<testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\" time=\"{}\">",
        escape_markup(&format!("acp-conformance {}", report.agent.name)),
        report.rules.len() + errors,
        std::time::Duration::from_millis(report.took_ms).as_secs_f64(),
    )?;
    for rule in &report.rules {
        write_rule(text, rule, &test_result(report, rule))?;
    }
    for found in report.early_end_findings() {
        let name = escape_markup(&format!("{}, line {}", found.case, found.line));
        let why = escape_markup(&found.why);
        writeln!(
            text,
            "  <testcase classname=\"case\" name=\"{name}\"><error message=\"{why}\">"
        )?;
        writeln!(
            text,
            "{}</error></testcase>",
            escape_markup(&format_finding(found))
        )?;
    }
    for (case, fault) in report.faulty_cases() {
        let (case, fault) = (escape_markup(case), escape_markup(fault));
        writeln!(
            text,
            "  <testcase classname=\"case\" name=\"{case}\"><error message=\"{fault}\"/></testcase>"
        )?;
    }
    let deaths = report.unexpected_exits();
    if !deaths.is_empty() {
        writeln!(text, "  <system-err>")?;
        for death in deaths {
            writeln!(text, "{}", escape_markup(&death.message()))?;
            writeln!(text, "{}", escape_markup(&death.last_lines.join("\n")))?;
        }
        writeln!(text, "  </system-err>")?;
    }
    writeln!(text, "</testsuite>")
}

fn write_rule(text: &mut String, rule: &JudgedRule, test: &TestResult) -> fmt::Result {
    let name = escape_markup(&format!("{} {}", rule.id, rule.says));
    let level = rule.level;
    write!(text, "  <testcase classname=\"{level}\" name=\"{name}\"")?;
    let verdict = rule.verdict.name();
    let reason = rule.reason.as_deref().unwrap_or(verdict);
    let places = || rule.findings.iter().map(format_finding).collect::<String>();
    match test {
        TestResult::Passed => writeln!(text, "/>"),
        TestResult::Skipped => {
            let reason = escape_markup(reason);
            writeln!(text, "><skipped message=\"{reason}\"/></testcase>")
        }
        TestResult::UnexpectedPass => writeln!(
            text,
            "><failure type=\"unexpected pass\" message=\"it was expected to be broken, and is not\"/></testcase>"
        ),
        TestResult::PassedWithRemark => {
            let expected = rule.expected_suffix();
            let remark = escape_markup(&format!("{verdict}{expected}\n{}", places()));
            writeln!(text, "><system-out>{remark}</system-out></testcase>")
        }
        TestResult::Failed => {
            let why = rule.findings.first().map_or(reason, |found| &found.why);
            let why = escape_markup(why);
            writeln!(text, "><failure type=\"{verdict}\" message=\"{why}\">")?;
            writeln!(text, "{}</failure></testcase>", escape_markup(&places()))
        }
    }
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
