//! The page of the scoreboard: agents side by side, the examples of the SDKs apart from them, what many of them
//! break, and then each by itself, in words.

mod section;

use super::{Checked, Standing};
use crate::{
    report,
    requirements::{Level, Requirements, Rule},
    verdict::Verdict,
};
use std::fmt::Write;

/// The columns: a heading, and the levels that count in it.
const COLUMNS: [(&str, &[Level]); 5] = [
    ("MUST", &[Level::Must, Level::MustNot]),
    ("fact", &[Level::Fact]),
    ("SHOULD", &[Level::Should, Level::ShouldNot]),
    ("interop", &[Level::Interop]),
    ("MAY", &[Level::May]),
];

/// What is broken: only MAY is free not to be kept.
const BROKEN: [Verdict; 2] = [Verdict::Fail, Verdict::Warn];

const HOW_TO_READ: &str = "\
Each cell says how many rules were kept, of those that could be judged. A rule counts once for an agent, however many
cases look at it, and it is kept only if none of them saw it broken. Who breaks fewest MUST comes first. turnery comes
from the same repository as this suite.

- **MUST** counts MUST NOT too, and **SHOULD** SHOULD NOT. A **fact** is what the protocol states without such a word.
  **interop** is written nowhere, but clients and the official SDKs insist on it. What is only allowed, **MAY**, need not
  be kept.
- **not applicable**: the agent does not have what the rule is about, and does not say that it has.
- **not reached**: something else failed before it could be seen.
- What failed was played again, alone and with more patience, and once more if another rule failed then. The last
  play counts.
- What stands behind *By hand* was seen again without the suite, on a plain pipe.
";

const EXAMPLES: &str = "\
Agents are begun by copying these, so it is good to know what comes along. They have no model, and most of what the
protocol says of tools, files and terminals cannot be asked of them. They are no match for the agents above, nor for
each other.
";

/// Renders the page. `missing`: names of known agents without a result.
pub(super) fn page(
    requirements: &Requirements,
    standings: &[Standing],
    missing: &[&str],
    checked: &Checked,
    cases: usize,
) -> String {
    let mut page = String::new();
    // Writing into a String cannot fail.
    let _ = write(&mut page, requirements, standings, missing, checked, cases);
    page
}

fn write(
    page: &mut String,
    requirements: &Requirements,
    standings: &[Standing],
    missing: &[&str],
    checked: &Checked,
    cases: usize,
) -> std::fmt::Result {
    let is_example = |standing: &&Standing| standing.is_example;
    let (examples, mut agents): (Vec<_>, Vec<_>) = standings.iter().partition(is_example);
    agents.sort_by_key(|agent| order(requirements, agent));
    writeln!(page, "# How agents keep the protocol\n")?;
    writeln!(
        page,
        "Agents: {}. Examples of the official SDKs: {}. The {cases} [cases](cases) look at {} [rules](requirements.toml) of\n\
         revision {}. Each agent comes as its registry has it, is pointed at the suite's own model by its\n\
         [profile](profiles), runs without a network, and is asked the same. `acp-conformance scoreboard` made this page.\n",
        agents.len(),
        examples.len(),
        requirements.rules.len(),
        requirements.revision,
    )?;
    if !missing.is_empty() {
        let names = missing.join(", ");
        writeln!(page, "Not played, so not on this page: {names}.\n")?;
    }
    writeln!(page, "## Agents\n")?;
    table(page, requirements, &agents)?;
    writeln!(page, "\n{HOW_TO_READ}")?;
    stumbles(page, requirements, &agents)?;
    if !examples.is_empty() {
        writeln!(page, "## Examples of the official SDKs\n\n{EXAMPLES}")?;
        table(page, requirements, &examples)?;
        writeln!(page)?;
    }
    writeln!(page, "## One by one")?;
    for standing in agents.into_iter().chain(examples) {
        section::section(page, requirements, standing, checked)?;
    }
    Ok(())
}

/// Who breaks least of what must be kept comes first, then of the facts, and so on; those that could not be played
/// come last.
fn order(requirements: &Requirements, standing: &Standing) -> (bool, Vec<usize>, String) {
    let broken = COLUMNS.map(|(_, levels)| {
        let (passed, judged) = passed(requirements, standing, levels);
        judged - passed
    });
    let name = standing.name.clone();
    (standing.rules.is_empty(), broken.to_vec(), name)
}

fn table(
    page: &mut String,
    requirements: &Requirements,
    standings: &[&Standing],
) -> std::fmt::Result {
    write!(page, "| | version |")?;
    for (heading, _) in COLUMNS {
        write!(page, " {heading} |")?;
    }
    writeln!(page, " not applicable | not reached |")?;
    writeln!(page, "|---|---|{}", "--:|".repeat(2 + COLUMNS.len()))?;
    for standing in standings {
        let version = cell(standing.version().unwrap_or("?"));
        write!(page, "| [{0}](#{0})", standing.name)?;
        match &standing.revision {
            _ if standing.rules.is_empty() => {}
            Some(revision) if *revision == requirements.revision => {}
            other => write!(page, ", revision {}", other.as_deref().unwrap_or("unknown"))?,
        }
        write!(page, " | {version} |")?;
        for (_, levels) in COLUMNS {
            match passed(requirements, standing, levels) {
                (_, 0) => write!(page, " – |")?,
                (passed, judged) => write!(page, " {passed} of {judged} |")?,
            }
        }
        let count = |verdict| {
            let found = standing.rules.values();
            found.filter(|found| found.verdict == verdict).count()
        };
        let (missing, unreached) = (count(Verdict::NotApplicable), count(Verdict::NotReached));
        writeln!(page, " {missing} | {unreached} |")?;
    }
    Ok(())
}

/// The rules that many agents break, those that most break first.
fn stumbles(
    page: &mut String,
    requirements: &Requirements,
    agents: &[&Standing],
) -> std::fmt::Result {
    let many = agents.len().div_ceil(2).max(2);
    let rules = requirements.rules.iter();
    let mut broken: Vec<(&Rule, Vec<&str>)> = rules
        .map(|rule| (rule, breakers(rule, agents)))
        .filter(|(_, breakers)| breakers.len() >= many)
        .collect();
    if broken.is_empty() {
        return Ok(());
    }
    broken.sort_by_key(|(_, agents)| std::cmp::Reverse(agents.len()));
    writeln!(page, "## What agents stumble over\n")?;
    writeln!(page, "The rules that {many} agents or more break:\n")?;
    writeln!(page, "| rule | what it asks | broken by |\n|---|---|---|")?;
    for (rule, agents) in broken {
        let (id, level) = (&rule.id, rule.level.name());
        let names = agents.join(", ");
        writeln!(page, "| {id}, {level} | {} | {names} |", cell(&rule.says))?;
    }
    writeln!(page)
}

fn breakers<'a>(rule: &Rule, agents: &[&'a Standing]) -> Vec<&'a str> {
    let breaks = |agent: &&&Standing| {
        let found = agent.rules.get(&rule.id);
        found.is_some_and(|found| BROKEN.contains(&found.verdict))
    };
    let breakers = agents.iter().filter(breaks);
    breakers.map(|agent| agent.name.as_str()).collect()
}

/// How many rules of these levels were kept, and how many could be judged.
fn passed(requirements: &Requirements, standing: &Standing, levels: &[Level]) -> (usize, usize) {
    let rules = requirements.rules.iter();
    let rules = rules.filter(|rule| levels.contains(&rule.level));
    let found = rules.filter_map(|rule| standing.rules.get(&rule.id));
    let verdicts: Vec<Verdict> = found.map(|found| found.verdict).collect();
    let of = |wanted: &[Verdict]| verdicts.iter().filter(|one| wanted.contains(one)).count();
    let passed = of(&[Verdict::Pass]);
    (passed, passed + of(&BROKEN) + of(&[Verdict::Noted]))
}

/// Text within a table.
fn cell(text: &str) -> String {
    report::line(text).replace('|', "\\|")
}

#[cfg(test)]
mod tests;
