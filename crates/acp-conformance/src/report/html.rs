//! HTML: a report as one page that needs nothing else.

use super::{Found, JudgedRule, PlayedCase, Report, ending::counted, letters::letter};
use crate::{requirements::Level, verdict::Verdict};
use std::fmt::{self, Write};

const STYLE: &str = include_str!("report.css");

/// A report as a page.
#[must_use]
pub fn html(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write(&mut text, report);
    text
}

/// Text in which nothing is markup, neither in an element nor in an attribute.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars().map(letter) {
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

fn write(text: &mut String, report: &Report) -> fmt::Result {
    let agent = &report.agent;
    let title = escape(&agent.title());
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
        counted(report.cases.len(), ["case", "cases"]),
        report.rules.len(),
        escape(&report.revision),
        escape(&report.suite),
        std::time::Duration::from_millis(report.took_ms).as_secs_f64(),
        escape(&agent.command)
    )?;
    writeln!(text, "<p>{}.</p>", escape(&report.ending()))?;
    if let Some(slowdown) = report.told_slowdown() {
        writeln!(text, "<p>Note: {}.</p>", escape(&slowdown))?;
    }
    if let Some(hint) = report.hint() {
        writeln!(text, "<p>{}.</p>", escape(&hint))?;
    }
    write_counts(text, report)?;
    let bad = report.bad();
    if !bad.is_empty() {
        writeln!(text, "<h2>What is wrong</h2>")?;
    }
    for rule in bad {
        write_rule(text, rule)?;
    }
    for id in &report.unexpected_passes {
        let id = escape(id);
        writeln!(
            text,
            "<p class=\"fail\">{id} was expected to be broken, and is not.</p>"
        )?;
    }
    for (case, fault) in report.faults() {
        let (case, fault) = (escape(case), escape(fault));
        writeln!(
            text,
            "<p class=\"fail\">The case {case} is at fault itself: {fault}</p>"
        )?;
    }
    for remark in report.flaky_remarks().chain(report.unseen_remarks()) {
        writeln!(text, "<p class=\"warn\">{}</p>", escape(&remark))?;
    }
    write_table(text, report)?;
    let failed: Vec<&PlayedCase> = report.cases.iter().filter(|case| !case.passed).collect();
    if !failed.is_empty() {
        writeln!(text, "<h2>Cases that did not pass</h2>")?;
    }
    for case in failed {
        write_case(text, case)?;
    }
    writeln!(text, "</body>\n</html>")
}

fn class(verdict: Verdict) -> &'static str {
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
            match report.count(level, *verdict) {
                0 => write!(text, "<td></td>")?,
                count => write!(text, "<td class=\"{}\">{count}</td>", class(*verdict))?,
            }
        }
        writeln!(text, "</tr>")?;
    }
    writeln!(text, "</table>")
}

fn write_rule(text: &mut String, rule: &JudgedRule) -> fmt::Result {
    let verdict = rule.verdict;
    let expected = rule.as_expected();
    writeln!(text, "<section id=\"{}\">", escape(&rule.id))?;
    writeln!(
        text,
        "<h3><span class=\"{}\">{}{expected}</span> {} <small>{}</small></h3>",
        class(verdict),
        verdict.name(),
        escape(&rule.id),
        rule.level
    )?;
    writeln!(
        text,
        "<p>{} <small>{}</small></p>",
        escape(&rule.says),
        escape(&rule.source)
    )?;
    for found in &rule.findings {
        write_found(text, found)?;
    }
    writeln!(text, "</section>")
}

fn write_found(text: &mut String, found: &Found) -> fmt::Result {
    let case = escape(&found.case);
    writeln!(
        text,
        "<p class=\"why\">{} <small><a href=\"#case-{case}\">{case}</a>, line {}</small></p>",
        escape(&found.why),
        found.line
    )?;
    writeln!(text, "<dl>")?;
    let step = Some(&found.step).filter(|step| !step.is_empty());
    let lines = [
        ("step", step),
        ("sent", found.sent.as_ref()),
        ("came", found.came.as_ref()),
    ];
    for (what, line) in lines {
        if let Some(line) = line {
            writeln!(
                text,
                "<dt>{what}</dt><dd><code>{}</code></dd>",
                escape(line)
            )?;
        }
    }
    writeln!(text, "</dl>")
}

fn write_table(text: &mut String, report: &Report) -> fmt::Result {
    writeln!(text, "<h2>All rules</h2>\n<table>")?;
    writeln!(
        text,
        "<tr><th>rule</th><th>level</th><th>verdict</th><th>it says</th></tr>"
    )?;
    for rule in &report.rules {
        let reason = rule.reason.as_ref();
        let reason = reason.map(|reason| format!(" <small>{}</small>", escape(reason)));
        writeln!(
            text,
            "<tr><td>{}</td><td>{}</td><td class=\"{}\">{}{}</td><td>{}</td></tr>",
            escape(&rule.id),
            rule.level,
            class(rule.verdict),
            rule.verdict.name(),
            reason.unwrap_or_default(),
            escape(&rule.says)
        )?;
    }
    writeln!(text, "</table>")
}

fn write_case(text: &mut String, case: &PlayedCase) -> fmt::Result {
    let name = escape(&case.name);
    writeln!(text, "<details id=\"case-{name}\">")?;
    writeln!(text, "<summary>{name}: {}</summary>", escape(&case.purpose))?;
    if let Some(broken) = &case.broken {
        write_found(text, broken)?;
    }
    writeln!(text, "<pre>")?;
    for said in &case.transcript {
        let line = format!("{:>8} {} {}", said.at_ms, said.by.sign(), said.text);
        if said.marked {
            writeln!(text, "<mark>{}</mark>", escape(&line))?;
        } else {
            writeln!(text, "{}", escape(&line))?;
        }
    }
    writeln!(text, "</pre>")?;
    if !case.stderr.is_empty() {
        writeln!(text, "<p>stderr:</p>\n<pre>{}</pre>", escape(&case.stderr))?;
    }
    writeln!(text, "</details>")
}
