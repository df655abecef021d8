//! Renders a report as one self-contained HTML page.

use super::{
    contents::{JudgedRule, PlayedCase, Report, ReportFinding},
    exit_summary::format_count,
    sanitize::sanitize_char,
};
use crate::{requirements::Level, verdict::Verdict};
use std::fmt::{self, Write};

const STYLE: &str = include_str!("report.css");

/// Renders a report as HTML.
#[must_use]
pub fn render_html(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut text, report);
    text
}

/// Escapes markup for use in an element or attribute.
pub(super) fn escape_markup(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars().map(sanitize_char) {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

fn write_page(text: &mut String, report: &Report) -> fmt::Result {
    let agent = &report.agent;
    let title = escape_markup(&agent.title());
    writeln!(
        text,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">"
    )?;
    writeln!(
        text,
        "<meta name=\"viewport\" content=\"width=device-width\">"
    )?;
    writeln!(text, "<title>{title}: ACP conformance</title>")?;
    writeln!(text, "<style>\n{STYLE}</style>\n</head>\n<body>")?;
    writeln!(text, "<h1>{title}</h1>")?;
    writeln!(
        text,
        "<p>{}, {} rules of {}, played by acp-conformance {} in {:.1} s: <code>{}</code></p>",
        format_count(report.cases.len(), ["case", "cases"]),
        report.rules.len(),
        escape_markup(&report.revision),
        escape_markup(&report.suite),
        std::time::Duration::from_millis(report.took_ms).as_secs_f64(),
        escape_markup(&agent.command)
    )?;
    writeln!(text, "<p>{}.</p>", escape_markup(&report.exit_summary()))?;
    if let Some(slowdown) = report.slowdown_note() {
        writeln!(text, "<p>Note: {}.</p>", escape_markup(&slowdown))?;
    }
    if let Some(hint) = report.profile_hint() {
        writeln!(text, "<p>{}.</p>", escape_markup(&hint))?;
    }
    write_counts(text, report)?;
    let bad = report.bad_rules();
    if !bad.is_empty() {
        writeln!(text, "<h2>What is wrong</h2>")?;
    }
    for rule in bad {
        write_rule(text, rule)?;
    }
    for id in &report.unexpected_passes {
        let id = escape_markup(id);
        writeln!(
            text,
            "<p class=\"fail\">{id} was expected to be broken, and is not.</p>"
        )?;
    }
    for (case, fault) in report.faulty_cases() {
        let (case, fault) = (escape_markup(case), escape_markup(fault));
        writeln!(
            text,
            "<p class=\"fail\">The case {case} is at fault itself: {fault}</p>"
        )?;
    }
    for remark in report.flaky_remarks().chain(report.unseen_warnings()) {
        writeln!(text, "<p class=\"warn\">{}</p>", escape_markup(&remark))?;
    }
    write_rule_table(text, report)?;
    let failed: Vec<&PlayedCase> = report.cases.iter().filter(|case| !case.passed).collect();
    if !failed.is_empty() {
        writeln!(text, "<h2>Cases that did not pass</h2>")?;
    }
    for case in failed {
        write_case(text, case)?;
    }
    writeln!(text, "</body>\n</html>")
}

fn css_class(verdict: Verdict) -> &'static str {
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

fn write_counts(text: &mut String, report: &Report) -> fmt::Result {
    let used: Vec<Verdict> = Verdict::ALL
        .into_iter()
        .filter(|verdict| report.rules.iter().any(|rule| rule.verdict == *verdict))
        .collect();
    write!(text, "<table>\n<tr><th>level</th>")?;
    for verdict in &used {
        write!(text, "<th>{}</th>", verdict.name())?;
    }
    writeln!(text, "</tr>")?;
    for level in Level::ALL {
        if report.rules.iter().all(|rule| rule.level != level) {
            continue;
        }
        write!(text, "<tr><td>{level}</td>")?;
        for verdict in &used {
            match report.rule_count(level, *verdict) {
                0 => write!(text, "<td></td>")?,
                count => write!(text, "<td class=\"{}\">{count}</td>", css_class(*verdict))?,
            }
        }
        writeln!(text, "</tr>")?;
    }
    writeln!(text, "</table>")
}

fn write_rule(text: &mut String, rule: &JudgedRule) -> fmt::Result {
    let verdict = rule.verdict;
    let expected = rule.expected_suffix();
    writeln!(text, "<section id=\"{}\">", escape_markup(&rule.id))?;
    writeln!(
        text,
        "<h3><span class=\"{}\">{}{expected}</span> {} <small>{}</small></h3>",
        css_class(verdict),
        verdict.name(),
        escape_markup(&rule.id),
        rule.level
    )?;
    writeln!(
        text,
        "<p>{} <small>{}</small></p>",
        escape_markup(&rule.says),
        escape_markup(&rule.source)
    )?;
    for found in &rule.findings {
        write_finding(text, found)?;
    }
    writeln!(text, "</section>")
}

fn write_finding(text: &mut String, finding: &ReportFinding) -> fmt::Result {
    let case = escape_markup(&finding.case);
    writeln!(
        text,
        "<p class=\"why\">{} <small><a href=\"#case-{case}\">{case}</a>, line {}</small></p>",
        escape_markup(&finding.why),
        finding.line
    )?;
    writeln!(text, "<dl>")?;
    let step = Some(&finding.step).filter(|step| !step.is_empty());
    let lines = [
        ("step", step),
        ("sent", finding.sent.as_ref()),
        ("came", finding.came.as_ref()),
    ];
    for (what, line) in lines {
        if let Some(line) = line {
            writeln!(
                text,
                "<dt>{what}</dt><dd><code>{}</code></dd>",
                escape_markup(line)
            )?;
        }
    }
    writeln!(text, "</dl>")
}

fn write_rule_table(text: &mut String, report: &Report) -> fmt::Result {
    writeln!(text, "<h2>All rules</h2>\n<table>")?;
    writeln!(
        text,
        "<tr><th>rule</th><th>level</th><th>verdict</th><th>it says</th></tr>"
    )?;
    for rule in &report.rules {
        let reason = rule.reason.as_ref();
        let reason = reason.map(|reason| format!(" <small>{}</small>", escape_markup(reason)));
        writeln!(
            text,
            "<tr><td>{}</td><td>{}</td><td class=\"{}\">{}{}</td><td>{}</td></tr>",
            escape_markup(&rule.id),
            rule.level,
            css_class(rule.verdict),
            rule.verdict.name(),
            reason.unwrap_or_default(),
            escape_markup(&rule.says)
        )?;
    }
    writeln!(text, "</table>")
}

fn write_case(text: &mut String, case: &PlayedCase) -> fmt::Result {
    let name = escape_markup(&case.name);
    writeln!(text, "<details id=\"case-{name}\">")?;
    writeln!(
        text,
        "<summary>{name}: {}</summary>",
        escape_markup(&case.purpose)
    )?;
    if let Some(broken) = &case.broken {
        write_finding(text, broken)?;
    }
    writeln!(text, "<pre>")?;
    for said in &case.transcript {
        let line = format!("{:>8} {} {}", said.at_ms, said.by.sign(), said.text);
        if said.marked {
            writeln!(text, "<mark>{}</mark>", escape_markup(&line))?;
        } else {
            writeln!(text, "{}", escape_markup(&line))?;
        }
    }
    writeln!(text, "</pre>")?;
    if !case.stderr.is_empty() {
        writeln!(
            text,
            "<p>stderr:</p>\n<pre>{}</pre>",
            escape_markup(&case.stderr)
        )?;
    }
    writeln!(text, "</details>")
}
