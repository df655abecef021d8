//! Pretty: a report for a terminal.

use super::{Found, Report, letters::line};
use crate::{requirements::Level, verdict::Verdict};
use std::fmt::{self, Write};

/// A report in plain text: what is wrong first, then the counts.
#[must_use]
pub fn pretty(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write(&mut text, report);
    text
}

fn write(text: &mut String, report: &Report) -> fmt::Result {
    for rule in report.rules.iter().filter(|rule| rule.verdict.is_bad()) {
        let expected = if rule.is_expected {
            ", as expected"
        } else {
            ""
        };
        writeln!(
            text,
            "{}  {} ({}){expected}: {}",
            rule.verdict.name(),
            rule.id,
            rule.level,
            rule.says
        )?;
        for found in &rule.findings {
            write_found(text, found)?;
        }
    }
    for found in report.cases.iter().filter_map(|case| case.broken.as_ref()) {
        writeln!(text, "a case ended early")?;
        write_found(text, found)?;
    }
    for id in &report.unexpected_passes {
        writeln!(text, "{id} was expected to be broken, and is not")?;
    }
    for remark in report.unseen_remarks() {
        writeln!(text, "{}", line(&remark))?;
    }
    let agent = &report.agent;
    let version = line(agent.version.as_deref().unwrap_or(""));
    writeln!(
        text,
        "\n{} {version}: {} cases in {:.1} s, rules of {}",
        line(&agent.name),
        report.cases.len(),
        std::time::Duration::from_millis(report.took_ms).as_secs_f64(),
        report.revision
    )?;
    for level in Level::ALL {
        let counts = Verdict::ALL.into_iter().filter_map(|verdict| {
            let count = report.count(level, verdict);
            (count > 0).then(|| format!("{count} {}", verdict.name()))
        });
        let counts: Vec<String> = counts.collect();
        writeln!(text, "{:>10}  {}", level.name(), counts.join(", "))?;
    }
    Ok(())
}

fn write_found(text: &mut String, found: &Found) -> fmt::Result {
    writeln!(
        text,
        "    {}, line {}: {}",
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
