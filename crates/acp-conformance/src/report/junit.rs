//! JUnit: a report for build servers. Each rule is a test, which fails if it makes the run fail.

use super::{Found, JudgedRule, Report, html::escape};
use crate::verdict::Verdict;
use std::fmt::{self, Write};

/// A report as JUnit XML.
#[must_use]
pub fn junit(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write(&mut text, report);
    text
}

/// What a rule is as a test.
enum Test {
    Passed,
    /// Something is wrong that does not count.
    Remarked,
    Failed,
    /// It was expected to be broken.
    Stale,
    Skipped,
}

fn test(report: &Report, rule: &JudgedRule) -> Test {
    if report.unexpected_passes.contains(&rule.id) {
        return Test::Stale;
    }
    match rule.verdict {
        Verdict::Fail | Verdict::Warn | Verdict::NotReached if rule.is_counted => Test::Failed,
        Verdict::Fail | Verdict::Warn | Verdict::NotReached => Test::Remarked,
        Verdict::Pass | Verdict::Noted => Test::Passed,
        Verdict::NotApplicable | Verdict::Unchecked | Verdict::Untestable => Test::Skipped,
    }
}

fn write(text: &mut String, report: &Report) -> fmt::Result {
    let tests = report.rules.iter().map(|rule| test(report, rule));
    let (mut failures, mut skipped) = (0, 0);
    for test in tests {
        match test {
            Test::Failed | Test::Stale => failures += 1,
            Test::Skipped => skipped += 1,
            Test::Passed | Test::Remarked => {}
        }
    }
    let errors = report.ended_early().count() + report.faults().count();
    writeln!(text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(
        text,
        "<testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\" time=\"{}\">",
        escape(&format!("acp-conformance {}", report.agent.name)),
        report.rules.len() + errors,
        std::time::Duration::from_millis(report.took_ms).as_secs_f64(),
    )?;
    for rule in &report.rules {
        write_rule(text, rule, &test(report, rule))?;
    }
    for found in report.ended_early() {
        let name = escape(&format!("{}, line {}", found.case, found.line));
        let why = escape(&found.why);
        writeln!(
            text,
            "  <testcase classname=\"case\" name=\"{name}\"><error message=\"{why}\">"
        )?;
        writeln!(text, "{}</error></testcase>", escape(&place(found)))?;
    }
    for (case, fault) in report.faults() {
        let (case, fault) = (escape(case), escape(fault));
        writeln!(
            text,
            "  <testcase classname=\"case\" name=\"{case}\"><error message=\"{fault}\"/></testcase>"
        )?;
    }
    let deaths = report.deaths();
    if !deaths.is_empty() {
        writeln!(text, "  <system-err>")?;
        for death in deaths {
            writeln!(text, "{}", escape(&death.says()))?;
            writeln!(text, "{}", escape(&death.words.join("\n")))?;
        }
        writeln!(text, "  </system-err>")?;
    }
    writeln!(text, "</testsuite>")
}

fn write_rule(text: &mut String, rule: &JudgedRule, test: &Test) -> fmt::Result {
    let name = escape(&format!("{} {}", rule.id, rule.says));
    let level = rule.level;
    write!(text, "  <testcase classname=\"{level}\" name=\"{name}\"")?;
    let verdict = rule.verdict.name();
    let reason = rule.reason.as_deref().unwrap_or(verdict);
    let places = || rule.findings.iter().map(place).collect::<String>();
    match test {
        Test::Passed => writeln!(text, "/>"),
        Test::Skipped => {
            let reason = escape(reason);
            writeln!(text, "><skipped message=\"{reason}\"/></testcase>")
        }
        Test::Stale => writeln!(
            text,
            "><failure type=\"unexpected pass\" message=\"it was expected to be broken, and is not\"/></testcase>"
        ),
        Test::Remarked => {
            let expected = rule.as_expected();
            let remark = escape(&format!("{verdict}{expected}\n{}", places()));
            writeln!(text, "><system-out>{remark}</system-out></testcase>")
        }
        Test::Failed => {
            let why = rule.findings.first().map_or(reason, |found| &found.why);
            let why = escape(why);
            writeln!(text, "><failure type=\"{verdict}\" message=\"{why}\">")?;
            writeln!(text, "{}</failure></testcase>", escape(&places()))
        }
    }
}

/// A finding with its step, and what was said.
fn place(found: &Found) -> String {
    let mut text = format!("{}, line {}: {}\n", found.case, found.line, found.why);
    text += &format!("  {}\n", found.step);
    for (sign, said) in [(">", &found.sent), ("<", &found.came)] {
        if let Some(said) = said {
            text += &format!("  {sign} {said}\n");
        }
    }
    text
}
