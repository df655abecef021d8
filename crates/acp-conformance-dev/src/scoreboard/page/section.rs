//! Renders the failures of one agent: those of required rules are open, all others are folded.

use crate::scoreboard::{
    manual_checks::ManualChecks,
    standing::{AgentStanding, BROKEN_VERDICTS, FailureReason, RuleResult},
};
use acp_conformance::{
    report::{self, REPORTED_SLOWDOWN},
    requirements::{Level, Requirements, Rule},
    verdict::Verdict,
};
use std::fmt::Write;

/// Length of a shown reason. Unit: characters.
const MAX_SHOWN_CHARS: usize = 200;

/// Levels whose failures are open.
const OPEN_LEVELS: [Level; 3] = [Level::Must, Level::MustNot, Level::Fact];

/// Levels whose failures are folded.
const FOLDED_LEVELS: [Level; 3] = [Level::Should, Level::ShouldNot, Level::Interop];

pub(super) fn write_section(
    page: &mut String,
    requirements: &Requirements,
    standing: &AgentStanding,
    checked: &ManualChecks,
) -> std::fmt::Result {
    writeln!(page, "\n### {}\n", standing.name)?;
    write!(page, "{}", standing.about)?;
    for peculiarity in &standing.peculiarities {
        write!(page, " {peculiarity}")?;
    }
    if !standing.packages.is_empty() {
        write!(page, " Installed: `{}`.", standing.packages.join("`, `"))?;
    }
    if !standing.says.is_empty() {
        write!(page, " It calls itself {}.", format_code(&standing.says))?;
    }
    match &standing.revision {
        _ if standing.rules.is_empty() => {}
        Some(revision) if *revision == requirements.revision => {}
        Some(revision) => write!(
            page,
            " It was played with revision {revision} of the rules."
        )?,
        None => write!(
            page,
            " Which revision of the rules it was played with is not recorded."
        )?,
    }
    match standing.slowdown {
        None if standing.rules.is_empty() => {}
        None => write!(
            page,
            " How busy the machine was is not recorded: bounds of time may have been longer than written."
        )?,
        Some(slowdown) if slowdown >= REPORTED_SLOWDOWN => write!(
            page,
            " The machine was busy, so bounds of time were {slowdown:.1} times longer than written."
        )?,
        Some(_) => {}
    }
    writeln!(page, "\n")?;
    if standing.rules.is_empty() {
        writeln!(page, "It could not be played.")?;
    }
    let broken = |levels| broken_rules(requirements, standing, levels);
    let open = broken(&OPEN_LEVELS);
    if open.is_empty() && !standing.rules.is_empty() {
        let (_, must) = standing.kept_and_judged(requirements, &[Level::Must, Level::MustNot]);
        let (_, facts) = standing.kept_and_judged(requirements, &[Level::Fact]);
        writeln!(page, "It keeps all {must} MUST and {facts} facts.")?;
    }
    for (rule, found) in open {
        write_rule(page, rule, found, standing, checked)?;
    }
    let folded = broken(&FOLDED_LEVELS);
    if !folded.is_empty() {
        let count = |levels: &[Level]| {
            let rules = folded.iter();
            rules
                .filter(|(rule, _)| levels.contains(&rule.level))
                .count()
        };
        let (should, interop) = (count(&FOLDED_LEVELS[..2]), count(&FOLDED_LEVELS[2..]));
        open_details(page, &format!("{should} SHOULD, {interop} interop"))?;
        for (rule, found) in folded {
            write_rule(page, rule, found, standing, checked)?;
        }
        writeln!(page, "\n</details>")?;
    }
    let unreached = standing.rules.iter();
    let unreached: Vec<&str> = unreached
        .filter(|(_, found)| found.verdict == Verdict::NotReached)
        .map(|(id, _)| id.as_str())
        .collect();
    if !unreached.is_empty() {
        writeln!(page, "\nNot reached: {}.", unreached.join(", "))?;
    }
    let lists = [
        ("Steps that ended their case", &standing.broken),
        ("Failed in one play, and not in the last", &standing.once),
    ];
    for (heading, items) in lists.iter().filter(|(_, items)| !items.is_empty()) {
        open_details(page, &format!("{heading}: {}", items.len()))?;
        for item in *items {
            writeln!(page, "- {}", format_code(item))?;
        }
        writeln!(page, "\n</details>")?;
    }
    Ok(())
}

fn open_details(page: &mut String, summary: &str) -> std::fmt::Result {
    writeln!(page, "\n<details><summary>{summary}</summary>\n")
}

/// Returns the broken rules of these levels, by level.
fn broken_rules<'a>(
    requirements: &'a Requirements,
    standing: &'a AgentStanding,
    levels: &[Level],
) -> Vec<(&'a Rule, &'a RuleResult)> {
    let of_level = |level: &Level| {
        let level = *level;
        let rules = requirements.rules.iter();
        rules
            .filter(move |rule| rule.level == level)
            .filter_map(|rule| Some((rule, standing.rules.get(&rule.id)?)))
            .filter(|(_, found)| BROKEN_VERDICTS.contains(&found.verdict))
    };
    levels.iter().flat_map(of_level).collect()
}

fn write_rule(
    page: &mut String,
    rule: &Rule,
    found: &RuleResult,
    standing: &AgentStanding,
    checked: &ManualChecks,
) -> std::fmt::Result {
    let level = rule.level.name();
    writeln!(page, "- **{}**, {level}: {}.", rule.id, rule.says)?;
    if let Some(why) = &found.why {
        writeln!(page, "  {}", format_reason(why))?;
    }
    let notes = checked.checked.iter();
    for note in notes.filter(|note| note.is_about(standing, rule)) {
        writeln!(page, "  *By hand:* {}", note.how)?;
    }
    Ok(())
}

fn format_reason(why: &FailureReason) -> String {
    let place = match why.line {
        0 => format!("[{0}](cases/{0}.case)", why.case),
        line => format!("[{0}](cases/{0}.case), line {line}", why.case),
    };
    let came = why.came.as_ref();
    let came = came.map_or(String::new(), |came| {
        format!("; came {}", format_code(came))
    });
    format!("In {place}: {}{came}", format_code(&why.text))
}

/// Formats text as code, so that it is not read as Markdown.
fn format_code(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_SHOWN_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("`{}`", report::sanitize_line(&shown).replace('`', "'"))
}
