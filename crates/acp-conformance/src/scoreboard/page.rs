//! The page of the scoreboard: all agents side by side, then what each breaks, in words.

use super::{Checked, Rules, Standing, State, standing::Why};
use std::fmt::Write;

/// The columns: a heading, and the levels that count in it.
const COLUMNS: [(&str, &[&str]); 4] = [
    ("MUST, MUST NOT", &["MUST", "MUST NOT"]),
    ("SHOULD, SHOULD NOT", &["SHOULD", "SHOULD NOT"]),
    ("interop", &["interop"]),
    ("fact, MAY", &["fact", "MAY"]),
];

/// So much of a reason is shown. Unit: characters.
const SHOWN: usize = 200;

pub(super) fn page(
    rules: &Rules,
    standings: &[Standing],
    checked: &Checked,
    cases: usize,
) -> String {
    let mut page = String::new();
    // Writing into a String cannot fail.
    let _ = write(&mut page, rules, standings, checked, cases);
    page
}

fn write(
    page: &mut String,
    rules: &Rules,
    standings: &[Standing],
    checked: &Checked,
    cases: usize,
) -> std::fmt::Result {
    writeln!(page, "# Results\n")?;
    writeln!(
        page,
        "Made by `acp-conformance scoreboard`: {} rules of revision {}, {cases} cases, the agents as they come from npm\n\
         and PyPI, each pointed at the suite's own model by its [profile](profiles). Nothing here is written by hand but\n\
         the notes of `checked.toml`, which say how a failure was found to be the agent's and not the suite's.\n",
        rules.rules.len(),
        rules.revision,
    )?;
    writeln!(page, "Rules passed, of those that could be judged:\n")?;
    write!(page, "| agent | says it is |")?;
    for (heading, _) in COLUMNS {
        write!(page, " {heading} |")?;
    }
    writeln!(page, " not applicable | not reached | took |")?;
    writeln!(page, "|---|---|---|---|---|---|---|---|---|")?;
    for standing in standings {
        write!(page, "| [{0}](#{0}) | {1} |", standing.name, standing.says)?;
        for (_, levels) in COLUMNS {
            let (passed, judged) = passed(rules, standing, levels);
            write!(page, " {passed} of {judged} |")?;
        }
        let count = |state| {
            let verdicts = standing.rules.values();
            verdicts.filter(|verdict| verdict.state == state).count()
        };
        let (missing, unreached) = (count(State::NotApplicable), count(State::NotReached));
        let seconds = standing.took.as_secs();
        writeln!(page, " {missing} | {unreached} | {seconds} s |")?;
    }
    for standing in standings {
        agent(page, rules, standing, checked)?;
    }
    Ok(())
}

/// How many rules of these levels passed, of how many that passed or failed.
fn passed(rules: &Rules, standing: &Standing, levels: &[&str]) -> (usize, usize) {
    let states = standing.rules.iter().filter_map(|(id, verdict)| {
        let rule = rules.rules.get(id)?;
        levels
            .contains(&rule.level.as_str())
            .then_some(verdict.state)
    });
    let states: Vec<State> = states.collect();
    let of = |wanted: State| states.iter().filter(|state| **state == wanted).count();
    let passed = of(State::Passed);
    (passed, passed + of(State::Failed))
}

fn agent(
    page: &mut String,
    rules: &Rules,
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
        let failed: Vec<_> = standing
            .rules
            .iter()
            .filter(|(_, verdict)| verdict.state == State::Failed)
            .filter_map(|(id, verdict)| Some((id, rules.rules.get(id)?, &verdict.why)))
            .filter(|(_, rule, _)| levels.contains(&rule.level.as_str()))
            .collect();
        if failed.is_empty() {
            continue;
        }
        writeln!(page, "\nBroken, {heading}:\n")?;
        for (id, rule, why) in failed {
            write!(page, "- **{id}** {}", rule.says)?;
            if let Some(why) = why {
                reason(page, why)?;
            }
            writeln!(page)?;
            let notes = checked.checked.iter().filter(|check| {
                check.agent == standing.name && check.rules.iter().any(|rule| rule == id)
            });
            for note in notes {
                writeln!(page, "  Checked: {}", note.how)?;
            }
        }
    }
    if !standing.broken.is_empty() {
        writeln!(page, "\nCases that ended at a step that is no check:\n")?;
        for broken in &standing.broken {
            writeln!(page, "- {}", code(broken))?;
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
