//! Renders a report as one self-contained HTML page.

use super::{
    contents::{PlayedCase, Report, TestedAgent, TranscriptLine},
    exit_summary::format_count,
    sanitize::sanitize_lines,
};
use crate::{outcome::Finding, requirements::Level, verdict::Verdict};
use askama::Template;
use std::time::Duration;

/// Page of `templates/report.html`, which escapes every value.
#[derive(Template)]
#[template(path = "report.html")]
struct ReportPage<'a> {
    report: &'a Report,
    agent: &'a TestedAgent,
    /// Number of cases, with its noun.
    cases: String,
    seconds: String,
    /// Levels and verdicts that some rule has.
    levels: Vec<Level>,
    verdicts: Vec<Verdict>,
    /// Cases that did not pass.
    failed: Vec<&'a PlayedCase>,
}

/// Renders a report as HTML.
#[must_use]
pub fn render_html(report: &Report) -> String {
    let rules = &report.rules;
    let mut levels = Level::ALL.to_vec();
    levels.retain(|level| rules.iter().any(|rule| rule.level == *level));
    let mut verdicts = Verdict::ALL.to_vec();
    verdicts.retain(|verdict| rules.iter().any(|rule| rule.verdict == *verdict));
    let seconds = Duration::from_millis(report.took_ms).as_secs_f64();
    let page = ReportPage {
        report,
        agent: &report.agent,
        cases: format_count(report.cases.len(), ["case", "cases"]),
        seconds: format!("{seconds:.1}"),
        levels,
        verdicts,
        failed: report.cases.iter().filter(|case| !case.passed).collect(),
    };
    // Writing to a string cannot fail.
    let mut text = sanitize_lines(&page.render().unwrap_or_default());
    text.push('\n');
    text
}

impl ReportPage<'_> {
    fn rule_count(&self, level: &Level, verdict: &Verdict) -> usize {
        self.report.rule_count(*level, *verdict)
    }
}

impl Finding {
    /// Returns the step and the messages of the finding, as far as there are any, with their names.
    fn quoted_lines(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let step = Some(&self.step).filter(|step| !step.is_empty());
        let lines = [
            ("step", step),
            ("sent", self.sent.as_ref()),
            ("came", self.received.as_ref()),
        ];
        let lines = lines.into_iter();
        lines.filter_map(|(what, line)| Some((what, line?)))
    }
}

impl TranscriptLine {
    fn rendered(&self) -> String {
        format!("{:>8} {} {}", self.at_ms, self.by.marker(), self.text)
    }
}

/// Returns the CSS class of a verdict.
fn css_class(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Fail => "fail",
        Verdict::Warn => "warn",
        Verdict::NotReached => "unreached",
        Verdict::Pass => "pass",
        Verdict::Noted | Verdict::NotApplicable | Verdict::Unchecked | Verdict::Untestable => {
            "other"
        }
    }
}
