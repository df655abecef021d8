//! Renders a report for a terminal.

use super::{
    contents::{JudgedRule, Report},
    exit_summary::format_count,
    rule_groups::{GroupFinding, RuleGroup},
    sanitize::{sanitize_line, truncate_chars},
};
use crate::{outcome::Finding, requirements::Level, verdict::Verdict};
use askama::Template;
use std::time::Duration;

/// Maximum number of rules that are listed in full if one failure kept them from being reached; more are only
/// named.
const MAX_LISTED_UNREACHED: usize = 3;
/// Length of a listed message. Unit: characters.
const MAX_MESSAGE_CHARS: usize = 300;

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

/// Values of the template `templates/report.txt`.
#[derive(Template)]
#[template(path = "report.txt")]
struct PrettyReport<'a> {
    report: &'a Report,
    colours: Colours,
    title: String,
    /// Number of cases, with its noun.
    cases: String,
    seconds: String,
    /// Levels that some rule has, each with the painted numbers of its verdicts.
    levels: Vec<(Level, Vec<String>)>,
    /// Exit code with its reasons, painted.
    summary: String,
}

/// Renders a report as text: failures by weight, then the counts, and the reasons for the exit code.
#[must_use]
pub fn render_pretty(report: &Report, colours: Colours) -> String {
    let seconds = Duration::from_millis(report.took_ms).as_secs_f64();
    let counts = |level| {
        let counts = Verdict::ALL.into_iter().filter_map(|verdict| {
            let count = report.rule_count(level, verdict);
            (count > 0).then(|| colours.paint(verdict, &format!("{count} {}", verdict.name())))
        });
        (level, counts.collect())
    };
    let levels = Level::ALL.into_iter().map(counts);
    let is_good = report.is_conformant() && report.faulty_cases().next().is_none();
    let verdict = if is_good {
        Verdict::Pass
    } else {
        Verdict::Fail
    };
    let page = PrettyReport {
        report,
        colours,
        title: report.agent.title(),
        cases: format_count(report.cases.len(), ["case", "cases"]),
        seconds: format!("{seconds:.1}"),
        levels: levels
            .filter(|(_, counts): &(_, Vec<_>)| !counts.is_empty())
            .collect(),
        summary: colours.paint(verdict, &report.exit_summary()),
    };
    // Writing to a string cannot fail.
    let mut text = page.render().unwrap_or_default();
    text.push('\n');
    text
}

impl PrettyReport<'_> {
    fn paint_failure(&self, text: impl AsRef<str>) -> String {
        self.colours.paint(Verdict::Fail, text.as_ref())
    }

    fn verdict(&self, rule: &JudgedRule) -> String {
        self.colours.paint(rule.verdict, rule.verdict.name())
    }
}

fn is_long_unreached(group: &RuleGroup<'_>) -> bool {
    group.rules.len() > MAX_LISTED_UNREACHED && group.rules[0].verdict == Verdict::NotReached
}

/// Returns the first source of a rule, which is the most authoritative.
fn first_source(rule: &JudgedRule) -> &str {
    rule.source.split([';', ',']).next().unwrap_or_default()
}

fn join_ids(group: &RuleGroup<'_>) -> String {
    let ids: Vec<&str> = group.rules.iter().map(|rule| rule.id.as_str()).collect();
    ids.join(", ")
}

fn format_finding(finding: &Finding, others: &[&str]) -> String {
    let others = if others.is_empty() {
        String::new()
    } else {
        format!(" (breaks {} too)", others.join(", "))
    };
    let (case, why) = (sanitize_line(&finding.case), sanitize_line(&finding.why));
    let step = sanitize_line(&finding.step);
    let mut text = format!(
        "    {case}, line {}: {why}{others}\n      {step}\n",
        finding.line
    );
    for (sign, message) in [(">", &finding.sent), ("<", &finding.received)] {
        if let Some(message) = message {
            let message = sanitize_line(&truncate_chars(message, MAX_MESSAGE_CHARS));
            text.push_str(&format!("      {sign} {message}\n"));
        }
    }
    text
}
