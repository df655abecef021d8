//! Renders a report for a page of a repository.

use super::{
    contents::Report,
    exit_summary::format_count,
    rule_groups::{GroupFinding, RuleGroup},
    sanitize::sanitize_line,
};
use crate::{requirements::Level, verdict::Verdict};
use std::fmt::{self, Write};

/// Renders a report as Markdown.
#[must_use]
pub fn render_markdown(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_document(&mut text, report);
    text
}

fn write_document(text: &mut String, report: &Report) -> fmt::Result {
    let agent = &report.agent;
    writeln!(text, "# {}\n", escape_markdown(&agent.title()))?;
    writeln!(
        text,
        "{}, rules of {}, `{}`.\n",
        format_count(report.cases.len(), ["case", "cases"]),
        report.revision,
        sanitize_line(&agent.command).replace('`', "'")
    )?;
    writeln!(text, "{}.\n", escape_markdown(&report.exit_summary()))?;
    if let Some(slowdown) = report.slowdown_note() {
        writeln!(text, "Note: {}.\n", escape_markdown(&slowdown))?;
    }
    if let Some(hint) = report.profile_hint() {
        writeln!(text, "{}.\n", escape_markdown(&hint))?;
    }
    for death in report.unexpected_exits() {
        writeln!(text, "{}\n", escape_markdown(&death.message()))?;
        for words in &death.last_lines {
            // Four spaces start a code block.
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
            .map(|verdict| report.rule_count(level, *verdict).to_string());
        let counts: Vec<String> = counts.collect();
        if counts.iter().any(|count| count != "0") {
            writeln!(text, "| {level} | {} |", counts.join(" | "))?;
        }
    }
    let groups = report.rule_groups();
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
    for found in report.early_end_findings() {
        let why = escape_markdown(&found.why);
        writeln!(
            text,
            "\nThe case {} ended early in line {}: {why}",
            escape_markdown(&found.case),
            found.line
        )?;
    }
    for (case, fault) in report.faulty_cases() {
        let (case, fault) = (escape_markdown(case), escape_markdown(fault));
        writeln!(text, "\nThe case {case} is at fault itself: {fault}")?;
    }
    for id in &report.unexpected_passes {
        writeln!(text, "\n{id} was expected to be broken, and is not.")?;
    }
    for remark in report.flaky_remarks().chain(report.unseen_warnings()) {
        writeln!(text, "\n{}", escape_markdown(&remark))?;
    }
    Ok(())
}

/// Writes a row for each rule, with the finding in the first row.
fn write_group(text: &mut String, group: &RuleGroup<'_>) -> fmt::Result {
    let mut what = match group.findings.first() {
        Some(GroupFinding::First(found, _)) => format!("{} (case {})", found.why, found.case),
        Some(GroupFinding::Repeated(_, rule)) => format!("as {rule}"),
        None => String::new(),
    };
    for rule in &group.rules {
        writeln!(
            text,
            "| {} | {} | {}{} | {} | {} |",
            rule.id,
            rule.level,
            rule.verdict.name(),
            rule.expected_suffix(),
            escape_markdown(&rule.says),
            escape_markdown(&what)
        )?;
        what = format!("as {}", group.rules[0].id);
    }
    Ok(())
}

/// Escapes Markdown markup.
fn escape_markdown(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in sanitize_line(text).chars() {
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
