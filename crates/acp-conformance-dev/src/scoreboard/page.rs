//! Renders the page of the scoreboard: agents side by side, SDK examples apart from them, common failures, and
//! then each agent in detail. Failures of required rules are open, all others are folded.

use super::{
    agent_results::{AgentResults, BROKEN_VERDICTS, FailureReason},
    manual_checks::ManualChecks,
};
use acp_conformance::{
    report::{self, REPORTED_SLOWDOWN},
    requirements::{Level, Requirements, Rule},
    verdict::Verdict,
};
use askama::Template;

/// Columns: a heading and the levels that it counts.
const COLUMNS: [(&str, &[Level]); 5] = [
    ("MUST", &[Level::Must, Level::MustNot]),
    ("fact", &[Level::Fact]),
    ("SHOULD", &[Level::Should, Level::ShouldNot]),
    ("interop", &[Level::Interop]),
    ("MAY", &[Level::May]),
];

/// Length of a shown reason. Unit: characters.
const MAX_SHOWN_CHARS: usize = 200;

/// Page of `templates/scoreboard.md`.
#[derive(Template)]
#[template(path = "scoreboard.md")]
struct ScoreboardPage<'a> {
    requirements: &'a Requirements,
    agents: Vec<&'a AgentResults>,
    examples: Vec<&'a AgentResults>,
    missing: &'a [&'a str],
    checked: &'a ManualChecks,
    /// Number of cases.
    cases: usize,
    /// Number of agents that must break a rule for it to be a common failure.
    many: usize,
    /// Rules that many agents break, each with these agents, the most frequent first.
    common_failures: Vec<(&'a Rule, Vec<&'a str>)>,
}

/// Renders the page. `missing`: names of known agents without a result.
pub(super) fn render_page(
    requirements: &Requirements,
    all_results: &[AgentResults],
    missing: &[&str],
    checked: &ManualChecks,
    cases: usize,
) -> String {
    let is_example = |results: &&AgentResults| results.is_example;
    let (examples, mut agents): (Vec<_>, Vec<_>) = all_results.iter().partition(is_example);
    agents.sort_by_key(|agent| sort_key(requirements, agent));
    let many = agents.len().div_ceil(2).max(2);
    let rules = requirements.rules.iter();
    let mut common_failures: Vec<(&Rule, Vec<&str>)> = rules
        .map(|rule| (rule, agents_breaking(rule, &agents)))
        .filter(|(_, breakers)| breakers.len() >= many)
        .collect();
    common_failures.sort_by_key(|(_, agents)| std::cmp::Reverse(agents.len()));
    let page = ScoreboardPage {
        requirements,
        agents,
        examples,
        missing,
        checked,
        cases,
        many,
        common_failures,
    };
    // Writing to a string cannot fail.
    page.render().unwrap_or_default()
}

/// Returns the sort key: agents that break the fewest MUST rules come first, then the fewest facts, and so on;
/// agents that could not be played come last.
fn sort_key(requirements: &Requirements, results: &AgentResults) -> (bool, Vec<usize>, String) {
    let broken = COLUMNS.map(|(_, levels)| {
        let (passed, judged) = results.count_passed_and_judged(requirements, levels);
        judged - passed
    });
    let name = results.name.clone();
    (results.rules.is_empty(), broken.to_vec(), name)
}

fn agents_breaking<'a>(rule: &Rule, agents: &[&'a AgentResults]) -> Vec<&'a str> {
    let breaks = |agent: &&&AgentResults| {
        let found = agent.rules.get(&rule.id);
        found.is_some_and(|found| BROKEN_VERDICTS.contains(&found.verdict))
    };
    let breakers = agents.iter().filter(breaks);
    breakers.map(|agent| agent.name.as_str()).collect()
}

impl ScoreboardPage<'_> {
    /// Renders the table that compares agents.
    fn table(&self, all_results: &[&AgentResults]) -> String {
        let headings: String = COLUMNS.map(|(heading, _)| format!(" {heading} |")).concat();
        let line = "--:|".repeat(2 + COLUMNS.len());
        let head =
            format!("| | version |{headings} not applicable | not reached |\n|---|---|{line}\n");
        let rows = all_results.iter().map(|results| self.row(results));
        head + &rows.collect::<String>()
    }

    fn row(&self, results: &AgentResults) -> String {
        let name = &results.name;
        let revision = match &results.revision {
            _ if results.rules.is_empty() => String::new(),
            Some(revision) if *revision == self.requirements.revision => String::new(),
            other => format!(", revision {}", other.as_deref().unwrap_or("unknown")),
        };
        let version = escape_cell(results.version().unwrap_or("?"));
        let cells = COLUMNS.map(|(_, levels)| {
            match results.count_passed_and_judged(self.requirements, levels) {
                (_, 0) => " – |".to_owned(),
                (passed, judged) => format!(" {passed} of {judged} |"),
            }
        });
        let count = |verdict| results.ids_with_verdict(verdict).len();
        let (missing, unreached) = (count(Verdict::NotApplicable), count(Verdict::NotReached));
        let cells = cells.concat();
        format!("| [{name}](#{name}){revision} | {version} |{cells} {missing} | {unreached} |\n")
    }

    /// Returns how many rules of these levels could be judged.
    fn judged(&self, results: &AgentResults, levels: &[Level]) -> usize {
        results.count_passed_and_judged(self.requirements, levels).1
    }

    fn folded_lists<'s>(&self, results: &'s AgentResults) -> [(&'static str, &'s [String]); 2] {
        [
            ("Steps that ended their case", &results.run_problems),
            (
                "Failed in one play, and not in the last",
                &results.flaky_failures,
            ),
        ]
    }

    /// Renders the broken rules of these levels, by level.
    fn broken_rules(&self, results: &AgentResults, levels: &[Level]) -> Vec<String> {
        let rules = levels.iter().flat_map(|level| {
            let rules = self.requirements.rules.iter();
            rules.filter(move |rule| rule.level == *level)
        });
        let found = rules.filter_map(|rule| Some((rule, results.rules.get(&rule.id)?)));
        let broken = found.filter(|(_, found)| BROKEN_VERDICTS.contains(&found.verdict));
        let render = |(rule, why): (&Rule, &Option<FailureReason>)| {
            let mut text = format!("- **{}**, {}: {}.\n", rule.id, rule.level, rule.says);
            if let Some(why) = why {
                text.push_str(&format!("  {}\n", format_reason(why)));
            }
            let notes = self.checked.checked.iter();
            for note in notes.filter(|note| note.is_about(results, rule)) {
                text.push_str(&format!("  *By hand:* {}\n", note.how));
            }
            text
        };
        broken
            .map(|(rule, found)| render((rule, &found.why)))
            .collect()
    }
}

fn format_reason(why: &FailureReason) -> String {
    let place = match why.line {
        0 => format!("[{0}](cases/{0}.case)", why.case),
        line => format!("[{0}](cases/{0}.case), line {line}", why.case),
    };
    let came = why.received.as_ref();
    let came = came.map_or(String::new(), |came| {
        format!("; came {}", format_code(came))
    });
    format!("In {place}: {}{came}", format_code(&why.text))
}

/// Formats text as code, so that it is not read as Markdown.
fn format_code(text: &str) -> String {
    let shown = report::truncate_chars(text, MAX_SHOWN_CHARS);
    format!("`{}`", report::sanitize_line(&shown).replace('`', "'"))
}

/// Escapes text for a table cell.
fn escape_cell(text: &str) -> String {
    report::sanitize_line(text).replace('|', "\\|")
}

#[cfg(test)]
mod tests;
