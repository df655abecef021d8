//! JUnit: a report for build servers. Each rule is a test.

use super::{Report, html::escape};
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

fn write(text: &mut String, report: &Report) -> fmt::Result {
    let count = |wanted: &[Verdict]| {
        let rules = report.rules.iter();
        rules.filter(|rule| wanted.contains(&rule.verdict)).count()
    };
    let broken = report.cases.iter().filter_map(|case| case.broken.as_ref());
    let errors = broken.clone().count();
    let skipped = [
        Verdict::NotApplicable,
        Verdict::Unchecked,
        Verdict::Untestable,
    ];
    writeln!(text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(
        text,
        "<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{errors}\" skipped=\"{}\" time=\"{}\">",
        escape(&format!("acp-conformance {}", report.agent.name)),
        report.rules.len() + errors,
        count(&[Verdict::Fail, Verdict::Warn, Verdict::NotReached]),
        count(&skipped),
        std::time::Duration::from_millis(report.took_ms).as_secs_f64(),
    )?;
    for rule in &report.rules {
        let name = escape(&format!("{} {}", rule.id, rule.says));
        write!(
            text,
            "  <testcase classname=\"{}\" name=\"{name}\"",
            rule.level
        )?;
        let reason = rule.reason.as_deref().unwrap_or(rule.verdict.name());
        match rule.verdict {
            Verdict::Pass | Verdict::Noted => writeln!(text, "/>")?,
            Verdict::NotApplicable | Verdict::Unchecked | Verdict::Untestable => {
                writeln!(
                    text,
                    "><skipped message=\"{}\"/></testcase>",
                    escape(reason)
                )?;
            }
            Verdict::Fail | Verdict::Warn | Verdict::NotReached => {
                let why = rule.findings.first().map_or(reason, |found| &found.why);
                let kind = rule.verdict.name();
                writeln!(
                    text,
                    "><failure type=\"{kind}\" message=\"{}\">",
                    escape(why)
                )?;
                for found in &rule.findings {
                    let came = found.came.as_deref().unwrap_or("nothing");
                    let line =
                        format!("{}, line {}: {}\n{came}", found.case, found.line, found.why);
                    writeln!(text, "{}", escape(&line))?;
                }
                writeln!(text, "</failure></testcase>")?;
            }
        }
    }
    for found in broken {
        let name = escape(&format!("{}, line {}", found.case, found.line));
        let why = escape(&found.why);
        writeln!(
            text,
            "  <testcase classname=\"case\" name=\"{name}\"><error message=\"{why}\"/></testcase>"
        )?;
    }
    writeln!(text, "</testsuite>")
}
