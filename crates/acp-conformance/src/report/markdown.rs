//! Renders a report for a page of a repository.

use super::{
    contents::{JudgedRule, Report},
    exit_summary::format_count,
    rule_groups::{GroupFinding, RuleGroup},
    sanitize::sanitize_line,
};
use crate::{requirements::Level, verdict::Verdict};
use askama::Template;

/// Page of `templates/report.md`.
#[derive(Template)]
#[template(path = "report.md")]
struct MarkdownPage<'a> {
    report: &'a Report,
    /// Number of cases, with its noun.
    cases: String,
    command: String,
    /// Names of the verdicts that some rule has.
    verdicts: Vec<&'static str>,
    /// Levels that some rule has, each with the number of rules for each of these verdicts.
    levels: Vec<(Level, Vec<String>)>,
}

/// Renders a report as Markdown.
#[must_use]
pub fn render_markdown(report: &Report) -> String {
    let mut verdicts = Verdict::ALL.to_vec();
    verdicts.retain(|verdict| report.rules.iter().any(|rule| rule.verdict == *verdict));
    let mut levels = Level::ALL.to_vec();
    levels.retain(|level| report.rules.iter().any(|rule| rule.level == *level));
    let counts = |level| {
        let counts = verdicts.iter();
        let counts = counts.map(|verdict| report.rule_count(level, *verdict).to_string());
        (level, counts.collect())
    };
    let page = MarkdownPage {
        report,
        cases: format_count(report.cases.len(), ["case", "cases"]),
        command: sanitize_line(&report.agent.command).replace('`', "'"),
        levels: levels.into_iter().map(counts).collect(),
        verdicts: verdicts.iter().map(|verdict| verdict.name()).collect(),
    };
    // Writing to a string cannot fail.
    page.render().unwrap_or_default()
}

/// Returns the rules of a group, each with what was wrong: the finding for the first rule, and a reference to it for
/// the others.
fn rows<'a>(group: &'a RuleGroup<'_>) -> impl Iterator<Item = (&'a JudgedRule, String)> {
    let what = match group.findings.first() {
        Some(GroupFinding::First(found, _)) => format!("{} (case {})", found.why, found.case),
        Some(GroupFinding::Repeated(_, rule)) => format!("as {rule}"),
        None => String::new(),
    };
    let others = std::iter::repeat_with(|| format!("as {}", group.rules[0].id));
    let rules = group.rules.iter().copied();
    rules.zip(std::iter::once(what).chain(others))
}

/// Escapes Markdown markup.
fn escape(text: impl AsRef<str>) -> String {
    let mut plain = String::new();
    for letter in sanitize_line(text.as_ref()).chars() {
        if "|<>*_`[]\\#&!".contains(letter) {
            plain.push('\\');
        }
        plain.push(letter);
    }
    plain
}
