//! The page of the scoreboard: all agents side by side, then what each breaks, in words.

use super::{Checked, Standing, Why};
use crate::{
    requirements::{Level, Requirements},
    verdict::Verdict,
};
use std::fmt::Write;

/// The columns: a heading, and the levels that count in it.
const COLUMNS: [(&str, &[Level]); 5] = [
    ("MUST, MUST NOT", &[Level::Must, Level::MustNot]),
    ("fact", &[Level::Fact]),
    ("SHOULD, SHOULD NOT", &[Level::Should, Level::ShouldNot]),
    ("interop", &[Level::Interop]),
    ("MAY", &[Level::May]),
];

/// What is broken: only MAY is free not to be kept.
const BROKEN: [Verdict; 2] = [Verdict::Fail, Verdict::Warn];

/// So much of a reason is shown. Unit: characters.
const SHOWN: usize = 200;

pub(super) fn page(
    requirements: &Requirements,
    standings: &[Standing],
    checked: &Checked,
    cases: usize,
) -> String {
    let mut page = String::new();
    // Writing into a String cannot fail.
    let _ = write(&mut page, requirements, standings, checked, cases);
    page
}

fn write(
    page: &mut String,
    requirements: &Requirements,
    standings: &[Standing],
    checked: &Checked,
    cases: usize,
) -> std::fmt::Result {
    writeln!(page, "# Results\n")?;
    writeln!(
        page,
        "Made by `acp-conformance scoreboard`: {} rules of revision {}, {cases} cases, the agents as they come from npm\n\
         and PyPI, each pointed at the suite's own model by its [profile](profiles). Nothing here is written by hand but\n\
         the notes of `checked.toml`, which say how a failure was found to be the agent's and not the suite's. What\n\
         failed was played again, alone and with more patience, and is counted by what came of that.\n",
        requirements.rules.len(),
        requirements.revision,
    )?;
    writeln!(page, "Rules passed, of those that could be judged:\n")?;
    write!(page, "| agent | says it is |")?;
    for (heading, _) in COLUMNS {
        write!(page, " {heading} |")?;
    }
    writeln!(page, " not applicable | not reached | took |")?;
    writeln!(page, "|{}", "---|".repeat(5 + COLUMNS.len()))?;
    for standing in standings {
        write!(page, "| [{0}](#{0}) | {1} |", standing.name, standing.says)?;
        for (_, levels) in COLUMNS {
            let (passed, judged) = passed(requirements, standing, levels);
            write!(page, " {passed} of {judged} |")?;
        }
        let count = |verdict| {
            let found = standing.rules.values();
            found.filter(|found| found.verdict == verdict).count()
        };
        let (missing, unreached) = (count(Verdict::NotApplicable), count(Verdict::NotReached));
        let seconds = standing.took.as_secs();
        writeln!(page, " {missing} | {unreached} | {seconds} s |")?;
    }
    for standing in standings {
        agent(page, requirements, standing, checked)?;
    }
    Ok(())
}

/// How many rules of these levels passed, of how many that passed or did not.
fn passed(requirements: &Requirements, standing: &Standing, levels: &[Level]) -> (usize, usize) {
    let rules = requirements.rules.iter();
    let rules = rules.filter(|rule| levels.contains(&rule.level));
    let found = rules.filter_map(|rule| standing.rules.get(&rule.id));
    let verdicts: Vec<Verdict> = found.map(|found| found.verdict).collect();
    let of = |wanted: &[Verdict]| verdicts.iter().filter(|one| wanted.contains(one)).count();
    let passed = of(&[Verdict::Pass]);
    (passed, passed + of(&BROKEN) + of(&[Verdict::Noted]))
}

fn agent(
    page: &mut String,
    requirements: &Requirements,
    standing: &Standing,
    checked: &Checked,
) -> std::fmt::Result {
    writeln!(page, "\n## {}\n", standing.name)?;
    write!(page, "{}", standing.about)?;
    if !standing.packages.is_empty() {
        write!(page, " Installed: `{}`.", standing.packages.join("`, `"))?;
    }
    for peculiarity in &standing.peculiarities {
        write!(page, " {peculiarity}")?;
    }
    writeln!(page)?;
    for (heading, levels) in COLUMNS {
        let rules = requirements.rules.iter();
        let failed: Vec<_> = rules
            .filter(|rule| levels.contains(&rule.level))
            .filter_map(|rule| Some((rule, standing.rules.get(&rule.id)?)))
            .filter(|(_, found)| BROKEN.contains(&found.verdict))
            .collect();
        if failed.is_empty() {
            continue;
        }
        writeln!(page, "\nBroken, {heading}:\n")?;
        for (rule, found) in failed {
            write!(page, "- **{}** {}", rule.id, rule.says)?;
            if let Some(why) = &found.why {
                reason(page, why)?;
            }
            writeln!(page)?;
            let notes = checked
                .checked
                .iter()
                .filter(|check| check.agent == standing.name && check.rules.contains(&rule.id));
            for note in notes {
                writeln!(page, "  Checked: {}", note.how)?;
            }
        }
    }
    let lists = [
        (
            "Cases that ended at a step that is no check",
            &standing.broken,
        ),
        (
            "Failed once, and not when played again alone",
            &standing.once,
        ),
    ];
    for (heading, items) in lists.iter().filter(|(_, items)| !items.is_empty()) {
        writeln!(page, "\n{heading}:\n")?;
        for item in *items {
            writeln!(page, "- {}", code(item))?;
        }
    }
    Ok(())
}

fn reason(page: &mut String, why: &Why) -> std::fmt::Result {
    let place = if why.line == 0 {
        why.case.clone()
    } else {
        format!("{}, line {}", why.case, why.line)
    };
    write!(page, " ({place}: {}", code(&why.text))?;
    if let Some(came) = &why.came {
        write!(page, "; came {}", code(came))?;
    }
    write!(page, ")")
}

/// Text that nobody is to read as Markdown.
fn code(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("`{}`", shown.replace('`', "'").replace('\n', " "))
}

#[cfg(test)]
mod tests;
