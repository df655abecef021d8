//! Renders a report for a terminal.

use super::{
    contents::{JudgedRule, Report},
    exit_summary::format_count,
    rule_groups::GroupFinding,
    sanitize::sanitize_line,
};
use crate::{outcome::Finding, requirements::Level, verdict::Verdict};
use std::fmt::{self, Write};

/// Maximum number of rules that are listed in full if one failure kept them from being reached; more are only
/// named.
const MAX_LISTED_UNREACHED: usize = 3;

/// Use of colours in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// Colours, for a terminal that shows them.
    On,
    /// No colours.
    Off,
}

impl Colours {
    /// Paints a text in the colour of a verdict.
    fn paint(self, verdict: Verdict, text: &str) -> String {
        let code = match verdict {
            Verdict::Fail => "1;31",
            Verdict::Warn => "33",
            Verdict::NotReached => "35",
            Verdict::Pass => "32",
            Verdict::Noted | Verdict::NotApplicable | Verdict::Unchecked | Verdict::Untestable => {
                "2"
            }
        };
        match self {
            Self::On => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            Self::Off => text.to_owned(),
        }
    }
}

/// Renders a report as text: failures by weight, then the counts, and the reasons for the exit code.
#[must_use]
pub fn render_pretty(report: &Report, colours: Colours) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_report(&mut text, report, colours);
    text
}

fn write_report(text: &mut String, report: &Report, colours: Colours) -> fmt::Result {
    for death in report.unexpected_exits() {
        writeln!(text, "{}", colours.paint(Verdict::Fail, &death.message()))?;
        for words in &death.last_lines {
            writeln!(text, "    {words}")?;
        }
    }
    for group in report.rule_groups() {
        if group.rules.len() > MAX_LISTED_UNREACHED && group.rules[0].verdict == Verdict::NotReached
        {
            write_unreached(text, &group.rules, colours)?;
        } else {
            for rule in &group.rules {
                write_rule(text, rule, colours)?;
            }
        }
        for shown in &group.findings {
            match shown {
                GroupFinding::First(found, others) => write_finding(text, found, others)?,
                GroupFinding::Repeated(found, rule) => {
                    let case = sanitize_line(&found.case);
                    writeln!(text, "    {case}, line {}: as under {rule}", found.line)?;
                }
            }
        }
    }
    for found in report.early_end_findings() {
        writeln!(
            text,
            "{}",
            colours.paint(Verdict::Fail, "a case ended early")
        )?;
        write_finding(text, found, &[])?;
    }
    for (case, fault) in report.faulty_cases() {
        let (case, fault) = (sanitize_line(case), sanitize_line(fault));
        writeln!(text, "the case {case} is at fault itself: {fault}")?;
    }
    for id in &report.unexpected_passes {
        writeln!(text, "{id} was expected to be broken, and is not")?;
    }
    for remark in report.flaky_remarks() {
        writeln!(text, "{}", sanitize_line(&remark))?;
    }
    for remark in report.unseen_warnings() {
        writeln!(text, "{}", sanitize_line(&remark))?;
    }
    writeln!(
        text,
        "\n{}: {} in {:.1} s, rules of {}",
        sanitize_line(&report.agent.title()),
        format_count(report.cases.len(), ["case", "cases"]),
        std::time::Duration::from_millis(report.took_ms).as_secs_f64(),
        report.revision
    )?;
    for level in Level::ALL {
        let counts = Verdict::ALL.into_iter().filter_map(|verdict| {
            let count = report.rule_count(level, verdict);
            (count > 0).then(|| colours.paint(verdict, &format!("{count} {}", verdict.name())))
        });
        let counts: Vec<String> = counts.collect();
        if !counts.is_empty() {
            writeln!(text, "{:>10}  {}", level.name(), counts.join(", "))?;
        }
    }
    if let Some(reasons) = report.not_applicable_summary() {
        writeln!(text, "{}", sanitize_line(&reasons))?;
    }
    if let Some(slowdown) = report.slowdown_note() {
        writeln!(text, "note: {slowdown}")?;
    }
    if let Some(hint) = report.profile_hint() {
        writeln!(text, "hint: {hint}")?;
    }
    let is_good = report.is_conformant() && report.faulty_cases().next().is_none();
    let verdict = if is_good {
        Verdict::Pass
    } else {
        Verdict::Fail
    };
    writeln!(text, "{}", colours.paint(verdict, &report.exit_summary()))
}

fn write_rule(text: &mut String, rule: &JudgedRule, colours: Colours) -> fmt::Result {
    let expected = rule.expected_suffix();
    // The first source is the most authoritative.
    let source = rule.source.split([';', ',']).next().unwrap_or_default();
    writeln!(
        text,
        "{}  {} ({}, {source}){expected}: {}",
        colours.paint(rule.verdict, rule.verdict.name()),
        rule.id,
        rule.level,
        rule.says
    )
}

fn write_unreached(text: &mut String, rules: &[&JudgedRule], colours: Colours) -> fmt::Result {
    let ids: Vec<&str> = rules.iter().map(|rule| rule.id.as_str()).collect();
    let word = colours.paint(Verdict::NotReached, Verdict::NotReached.name());
    writeln!(text, "{word}  {} rules: {}", ids.len(), ids.join(", "))
}

fn write_finding(text: &mut String, finding: &Finding, others: &[&str]) -> fmt::Result {
    let others = if others.is_empty() {
        String::new()
    } else {
        format!(" (breaks {} too)", others.join(", "))
    };
    writeln!(
        text,
        "    {}, line {}: {}{others}",
        sanitize_line(&finding.case),
        finding.line,
        sanitize_line(&finding.why)
    )?;
    writeln!(text, "      {}", sanitize_line(&finding.step))?;
    for (sign, message) in [(">", &finding.sent), ("<", &finding.received)] {
        if let Some(message) = message {
            writeln!(text, "      {sign} {}", truncate_line(message))?;
        }
    }
    Ok(())
}

/// Shortens a line to a few lines of a terminal.
fn truncate_line(line: &str) -> String {
    const LONGEST: usize = 300;
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => sanitize_line(&line[..end]) + "…",
        None => sanitize_line(line),
    }
}
