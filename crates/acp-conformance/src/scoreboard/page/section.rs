//! Section: what one agent breaks, in words. What it must keep stands open, all else is folded.

use super::{BROKEN, COLUMNS, passed};
use crate::{
    report::{self, TOLD_SLOWDOWN},
    requirements::{Level, Requirements, Rule},
    scoreboard::{Checked, Found, Standing, Why},
    verdict::Verdict,
};
use std::fmt::Write;

/// So much of a reason is shown. Unit: characters.
const SHOWN: usize = 200;

/// What is told at once.
const OPEN: [Level; 3] = [Level::Must, Level::MustNot, Level::Fact];

/// What is told to those who ask.
const FOLDED: [Level; 3] = [Level::Should, Level::ShouldNot, Level::Interop];

pub(super) fn section(
    page: &mut String,
    requirements: &Requirements,
    standing: &Standing,
    checked: &Checked,
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
        write!(page, " It calls itself {}.", code(&standing.says))?;
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
        Some(slowdown) if slowdown >= TOLD_SLOWDOWN => write!(
            page,
            " The machine was busy, so bounds of time were {slowdown:.1} times longer than written."
        )?,
        Some(_) => {}
    }
    writeln!(page, "\n")?;
    if standing.rules.is_empty() {
        writeln!(page, "It could not be played.")?;
    }
    let told = |levels| broken(requirements, standing, levels);
    let open = told(&OPEN);
    if open.is_empty() && !standing.rules.is_empty() {
        let (_, must) = passed(requirements, standing, COLUMNS[0].1);
        let (_, facts) = passed(requirements, standing, COLUMNS[1].1);
        writeln!(page, "It keeps all {must} MUST and {facts} facts.")?;
    }
    for (rule, found) in open {
        entry(page, rule, found, standing, checked)?;
    }
    let folded = told(&FOLDED);
    if !folded.is_empty() {
        let count = |levels: &[Level]| {
            let rules = folded.iter();
            rules
                .filter(|(rule, _)| levels.contains(&rule.level))
                .count()
        };
        let (should, interop) = (count(&FOLDED[..2]), count(&FOLDED[2..]));
        fold(page, &format!("{should} SHOULD, {interop} interop"))?;
        for (rule, found) in folded {
            entry(page, rule, found, standing, checked)?;
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
        fold(page, &format!("{heading}: {}", items.len()))?;
        for item in *items {
            writeln!(page, "- {}", code(item))?;
        }
        writeln!(page, "\n</details>")?;
    }
    Ok(())
}

fn fold(page: &mut String, summary: &str) -> std::fmt::Result {
    writeln!(page, "\n<details><summary>{summary}</summary>\n")
}

/// The rules of these levels that it breaks, by level.
fn broken<'a>(
    requirements: &'a Requirements,
    standing: &'a Standing,
    levels: &[Level],
) -> Vec<(&'a Rule, &'a Found)> {
    let of_level = |level: &Level| {
        let level = *level;
        let rules = requirements.rules.iter();
        rules
            .filter(move |rule| rule.level == level)
            .filter_map(|rule| Some((rule, standing.rules.get(&rule.id)?)))
            .filter(|(_, found)| BROKEN.contains(&found.verdict))
    };
    levels.iter().flat_map(of_level).collect()
}

fn entry(
    page: &mut String,
    rule: &Rule,
    found: &Found,
    standing: &Standing,
    checked: &Checked,
) -> std::fmt::Result {
    let level = rule.level.name();
    writeln!(page, "- **{}**, {level}: {}.", rule.id, rule.says)?;
    if let Some(why) = &found.why {
        writeln!(page, "  {}", reason(why))?;
    }
    let notes = checked.checked.iter();
    for note in notes.filter(|note| note.is_about(standing, rule)) {
        writeln!(page, "  *By hand:* {}", note.how)?;
    }
    Ok(())
}

fn reason(why: &Why) -> String {
    let place = match why.line {
        0 => format!("[{0}](cases/{0}.case)", why.case),
        line => format!("[{0}](cases/{0}.case), line {line}", why.case),
    };
    let came = why.came.as_ref();
    let came = came.map_or(String::new(), |came| format!("; came {}", code(came)));
    format!("In {place}: {}{came}", code(&why.text))
}

/// Text that nobody is to read as Markdown.
fn code(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("`{}`", report::line(&shown).replace('`', "'"))
}
