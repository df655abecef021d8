//! Markdown: a report for a page of a repository.

use super::{Report, letters::line};
use crate::{requirements::Level, verdict::Verdict};
use std::fmt::{self, Write};

/// A report as Markdown.
#[must_use]
pub fn markdown(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write(&mut text, report);
    text
}

fn write(text: &mut String, report: &Report) -> fmt::Result {
    let agent = &report.agent;
    let version = agent.version.as_deref().unwrap_or("");
    writeln!(text, "# {} {}\n", plain(&agent.name), plain(version))?;
    writeln!(
        text,
        "{} cases, rules of {}, `{}`.\n",
        report.cases.len(),
        report.revision,
        line(&agent.command).replace('`', "'")
    )?;
    let used: Vec<Verdict> = Verdict::ALL
        .into_iter()
        .filter(|verdict| report.rules.iter().any(|rule| rule.verdict == *verdict))
        .collect();
    let names: Vec<&str> = used.iter().map(|verdict| verdict.name()).collect();
    writeln!(text, "| level | {} |", names.join(" | "))?;
    writeln!(text, "|---|{}", "---:|".repeat(used.len()))?;
    for level in Level::ALL {
        let counts = used
            .iter()
            .map(|verdict| report.count(level, *verdict).to_string());
        let counts: Vec<String> = counts.collect();
        writeln!(text, "| {level} | {} |", counts.join(" | "))?;
    }
    let bad: Vec<_> = report
        .rules
        .iter()
        .filter(|rule| rule.verdict.is_bad())
        .collect();
    if !bad.is_empty() {
        writeln!(
            text,
            "\n| rule | level | verdict | it says | what was wrong |"
        )?;
        writeln!(text, "|---|---|---|---|---|")?;
    }
    for rule in bad {
        let found = rule.findings.first();
        let found = found.map(|found| format!("{} (case {})", found.why, found.case));
        writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            rule.id,
            rule.level,
            rule.verdict.name(),
            plain(&rule.says),
            plain(&found.unwrap_or_default())
        )?;
    }
    for found in report.cases.iter().filter_map(|case| case.broken.as_ref()) {
        let why = plain(&found.why);
        writeln!(
            text,
            "\nThe case {} ended early in line {}: {why}",
            plain(&found.case),
            found.line
        )?;
    }
    for remark in report.unseen_remarks() {
        writeln!(text, "\n{}", plain(&remark))?;
    }
    Ok(())
}

/// Text that is no markup.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in line(text).chars() {
        match letter {
            '|' | '<' | '>' | '*' | '_' | '`' | '[' | ']' | '\\' | '#' | '&' | '!' => {
                plain.push('\\');
                plain.push(letter);
            }
            other => plain.push(other),
        }
    }
    plain
}
