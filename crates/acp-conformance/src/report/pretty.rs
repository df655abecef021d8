//! Pretty: a report for a terminal.

use super::{Found, JudgedRule, Report, ending::counted, letters::line, order::Shown};
use crate::{requirements::Level, verdict::Verdict};
use std::fmt::{self, Write};

/// More rules that one thing kept from being reached are named only.
const FEW: usize = 3;

/// Whether a text is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// For a terminal that shows them.
    On,
    /// For all else.
    Off,
}

impl Colours {
    /// A text in the colour of a verdict.
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

/// A report as text: what is wrong first, by its weight, then the counts, and last what made the exit code.
#[must_use]
pub fn pretty(report: &Report, colours: Colours) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write(&mut text, report, colours);
    text
}

fn write(text: &mut String, report: &Report, colours: Colours) -> fmt::Result {
    for death in report.deaths() {
        writeln!(text, "{}", colours.paint(Verdict::Fail, &death.says()))?;
        for words in &death.words {
            writeln!(text, "    {words}")?;
        }
    }
    for group in report.groups() {
        if group.rules.len() > FEW && group.rules[0].verdict == Verdict::NotReached {
            write_unreached(text, &group.rules, colours)?;
        } else {
            for rule in &group.rules {
                write_rule(text, rule, colours)?;
            }
        }
        for shown in &group.findings {
            match shown {
                Shown::Here(found, others) => write_found(text, found, others)?,
                Shown::Before(found, rule) => {
                    let case = line(&found.case);
                    writeln!(text, "    {case}, line {}: as under {rule}", found.line)?;
                }
            }
        }
    }
    for found in report.ended_early() {
        writeln!(
            text,
            "{}",
            colours.paint(Verdict::Fail, "a case ended early")
        )?;
        write_found(text, found, &[])?;
    }
    for (case, fault) in report.faults() {
        let (case, fault) = (line(case), line(fault));
        writeln!(text, "the case {case} is at fault itself: {fault}")?;
    }
    for id in &report.unexpected_passes {
        writeln!(text, "{id} was expected to be broken, and is not")?;
    }
    for remark in report.flaky_remarks() {
        writeln!(text, "{}", line(&remark))?;
    }
    for remark in report.unseen_remarks() {
        writeln!(text, "{}", line(&remark))?;
    }
    writeln!(
        text,
        "\n{}: {} in {:.1} s, rules of {}",
        line(&report.agent.title()),
        counted(report.cases.len(), ["case", "cases"]),
        std::time::Duration::from_millis(report.took_ms).as_secs_f64(),
        report.revision
    )?;
    for level in Level::ALL {
        let counts = Verdict::ALL.into_iter().filter_map(|verdict| {
            let count = report.count(level, verdict);
            (count > 0).then(|| colours.paint(verdict, &format!("{count} {}", verdict.name())))
        });
        let counts: Vec<String> = counts.collect();
        if !counts.is_empty() {
            writeln!(text, "{:>10}  {}", level.name(), counts.join(", "))?;
        }
    }
    if let Some(reasons) = report.not_applicable() {
        writeln!(text, "{}", line(&reasons))?;
    }
    if let Some(slowdown) = report.told_slowdown() {
        writeln!(text, "note: {slowdown}")?;
    }
    if let Some(hint) = report.hint() {
        writeln!(text, "hint: {hint}")?;
    }
    let is_good = report.is_kept() && report.faults().next().is_none();
    let verdict = if is_good {
        Verdict::Pass
    } else {
        Verdict::Fail
    };
    writeln!(text, "{}", colours.paint(verdict, &report.ending()))
}

fn write_rule(text: &mut String, rule: &JudgedRule, colours: Colours) -> fmt::Result {
    let expected = rule.as_expected();
    // The first of its sources says whose word it is.
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

fn write_found(text: &mut String, found: &Found, others: &[&str]) -> fmt::Result {
    let others = if others.is_empty() {
        String::new()
    } else {
        format!(" (breaks {} too)", others.join(", "))
    };
    writeln!(
        text,
        "    {}, line {}: {}{others}",
        line(&found.case),
        found.line,
        line(&found.why)
    )?;
    writeln!(text, "      {}", line(&found.step))?;
    for (sign, said) in [(">", &found.sent), ("<", &found.came)] {
        if let Some(said) = said {
            writeln!(text, "      {sign} {}", cut(said))?;
        }
    }
    Ok(())
}

/// So much of a line as fits on a few lines of a terminal.
fn cut(said: &str) -> String {
    const LONGEST: usize = 300;
    match said.char_indices().nth(LONGEST) {
        Some((end, _)) => line(&said[..end]) + "…",
        None => line(said),
    }
}
