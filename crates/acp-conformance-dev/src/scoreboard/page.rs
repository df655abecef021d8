//! Renders the page of the scoreboard: agents side by side, SDK examples apart from them, common failures, and
//! then each agent in detail.

mod section;

use super::{
    manual_checks::ManualChecks,
    standing::{AgentStanding, BROKEN_VERDICTS},
};
use acp_conformance::{
    report,
    requirements::{Level, Requirements, Rule},
    verdict::Verdict,
};
use std::fmt::Write;

/// Columns: a heading and the levels that it counts.
const COLUMNS: [(&str, &[Level]); 5] = [
    ("MUST", &[Level::Must, Level::MustNot]),
    ("fact", &[Level::Fact]),
    ("SHOULD", &[Level::Should, Level::ShouldNot]),
    ("interop", &[Level::Interop]),
    ("MAY", &[Level::May]),
];

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

const EXAMPLES_NOTE: &str = "\
Agents are begun by copying these, so it is good to know what comes along. They have no model, and most of what the
protocol says of tools, files and terminals cannot be asked of them. They are no match for the agents above, nor for
each other.
";

/// Renders the page. `missing`: names of known agents without a result.
pub(super) fn render_page(
    requirements: &Requirements,
    standings: &[AgentStanding],
    missing: &[&str],
    checked: &ManualChecks,
    cases: usize,
) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut page, requirements, standings, missing, checked, cases);
    page
}

fn write_page(
    page: &mut String,
    requirements: &Requirements,
    standings: &[AgentStanding],
    missing: &[&str],
    checked: &ManualChecks,
    cases: usize,
) -> std::fmt::Result {
    let is_example = |standing: &&AgentStanding| standing.is_example;
    let (examples, mut agents): (Vec<_>, Vec<_>) = standings.iter().partition(is_example);
    agents.sort_by_key(|agent| sort_key(requirements, agent));
    writeln!(page, "# How agents keep the protocol\n")?;
    writeln!(
        page,
        "Agents: {}. Examples of the official SDKs: {}. The {cases} [cases](cases) look at {} [rules](requirements.toml) of\n\
         revision {}. Each agent comes as its registry has it, is pointed at the suite's own model by its\n\
         [profile](profiles), runs without a network, and is asked the same. `acp-conformance-dev scoreboard` made this page.\n",
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
    write_agent_table(page, requirements, &agents)?;
    writeln!(page, "\n{HOW_TO_READ}")?;
    write_common_failures(page, requirements, &agents)?;
    if !examples.is_empty() {
        writeln!(page, "## Examples of the official SDKs\n\n{EXAMPLES_NOTE}")?;
        write_agent_table(page, requirements, &examples)?;
        writeln!(page)?;
    }
    writeln!(page, "## One by one")?;
    for standing in agents.into_iter().chain(examples) {
        section::write_section(page, requirements, standing, checked)?;
    }
    Ok(())
}

/// Returns the sort key: agents that break the fewest MUST rules come first, then the fewest facts, and so on;
/// agents that could not be played come last.
fn sort_key(requirements: &Requirements, standing: &AgentStanding) -> (bool, Vec<usize>, String) {
    let broken = COLUMNS.map(|(_, levels)| {
        let (passed, judged) = standing.kept_and_judged(requirements, levels);
        judged - passed
    });
    let name = standing.name.clone();
    (standing.rules.is_empty(), broken.to_vec(), name)
}

fn write_agent_table(
    page: &mut String,
    requirements: &Requirements,
    standings: &[&AgentStanding],
) -> std::fmt::Result {
    write!(page, "| | version |")?;
    for (heading, _) in COLUMNS {
        write!(page, " {heading} |")?;
    }
    writeln!(page, " not applicable | not reached |")?;
    writeln!(page, "|---|---|{}", "--:|".repeat(2 + COLUMNS.len()))?;
    for standing in standings {
        let version = escape_cell(standing.version().unwrap_or("?"));
        write!(page, "| [{0}](#{0})", standing.name)?;
        match &standing.revision {
            _ if standing.rules.is_empty() => {}
            Some(revision) if *revision == requirements.revision => {}
            other => write!(page, ", revision {}", other.as_deref().unwrap_or("unknown"))?,
        }
        write!(page, " | {version} |")?;
        for (_, levels) in COLUMNS {
            match standing.kept_and_judged(requirements, levels) {
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

/// Writes the rules that many agents break, the most frequent first.
fn write_common_failures(
    page: &mut String,
    requirements: &Requirements,
    agents: &[&AgentStanding],
) -> std::fmt::Result {
    let many = agents.len().div_ceil(2).max(2);
    let rules = requirements.rules.iter();
    let mut broken: Vec<(&Rule, Vec<&str>)> = rules
        .map(|rule| (rule, agents_breaking(rule, agents)))
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
        writeln!(
            page,
            "| {id}, {level} | {} | {names} |",
            escape_cell(&rule.says)
        )?;
    }
    writeln!(page)
}

fn agents_breaking<'a>(rule: &Rule, agents: &[&'a AgentStanding]) -> Vec<&'a str> {
    let breaks = |agent: &&&AgentStanding| {
        let found = agent.rules.get(&rule.id);
        found.is_some_and(|found| BROKEN_VERDICTS.contains(&found.verdict))
    };
    let breakers = agents.iter().filter(breaks);
    breakers.map(|agent| agent.name.as_str()).collect()
}

/// Escapes text for a table cell.
fn escape_cell(text: &str) -> String {
    report::sanitize_line(text).replace('|', "\\|")
}

#[cfg(test)]
mod tests;
