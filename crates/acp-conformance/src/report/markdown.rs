//! Markdown: a report for a page of a repository.

use super::{
    Report,
    ending::counted,
    letters::line,
    order::{Group, Shown},
};
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
    writeln!(text, "# {}\n", plain(&agent.title()))?;
    writeln!(
        text,
        "{}, rules of {}, `{}`.\n",
        counted(report.cases.len(), ["case", "cases"]),
        report.revision,
        line(&agent.command).replace('`', "'")
    )?;
    writeln!(text, "{}.\n", plain(&report.ending()))?;
    if let Some(slowdown) = report.told_slowdown() {
        writeln!(text, "Note: {}.\n", plain(&slowdown))?;
    }
    if let Some(hint) = report.hint() {
        writeln!(text, "{}.\n", plain(&hint))?;
    }
    for death in report.deaths() {
        writeln!(text, "{}\n", plain(&death.says()))?;
        for words in &death.words {
            // So much before a line makes it code.
            writeln!(text, "    {words}")?;
        }
        writeln!(text)?;
    }
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
        if counts.iter().any(|count| count != "0") {
            writeln!(text, "| {level} | {} |", counts.join(" | "))?;
        }
    }
    let groups = report.groups();
    if !groups.is_empty() {
        writeln!(
            text,
            "\n| rule | level | verdict | it says | what was wrong |"
        )?;
        writeln!(text, "|---|---|---|---|---|")?;
    }
    for group in groups {
        write_group(text, &group)?;
    }
    for found in report.ended_early() {
        let why = plain(&found.why);
        writeln!(
            text,
            "\nThe case {} ended early in line {}: {why}",
            plain(&found.case),
            found.line
        )?;
    }
    for (case, fault) in report.faults() {
        let (case, fault) = (plain(case), plain(fault));
        writeln!(text, "\nThe case {case} is at fault itself: {fault}")?;
    }
    for id in &report.unexpected_passes {
        writeln!(text, "\n{id} was expected to be broken, and is not.")?;
    }
    for remark in report.flaky_remarks().chain(report.unseen_remarks()) {
        writeln!(text, "\n{}", plain(&remark))?;
    }
    Ok(())
}

/// A row for each rule, the finding in the first of them.
fn write_group(text: &mut String, group: &Group<'_>) -> fmt::Result {
    let mut what = match group.findings.first() {
        Some(Shown::Here(found, _)) => format!("{} (case {})", found.why, found.case),
        Some(Shown::Before(_, rule)) => format!("as {rule}"),
        None => String::new(),
    };
    for rule in &group.rules {
        writeln!(
            text,
            "| {} | {} | {}{} | {} | {} |",
            rule.id,
            rule.level,
            rule.verdict.name(),
            rule.as_expected(),
            plain(&rule.says),
            plain(&what)
        )?;
        what = format!("as {}", group.rules[0].id);
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
