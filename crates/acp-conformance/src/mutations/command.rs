//! command: `acp-conformance mutations`.

use super::{Expected, Plan, Row, Table, mutations};
use crate::{Agent, Options, faults, folder, near::unknown, profile::Profile};
use clap::{Args, ValueEnum, builder::RangedU64ValueParser};
use serde::Deserialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
    path::PathBuf,
    time::Duration,
};

/// Break the agent in every way there is, and see whether the suite finds just that.
#[derive(Args, Debug)]
pub struct Mutations {
    /// The right agent's command line, as a shell would read it; else that of the profile.
    #[arg(long)]
    agent: Option<String>,
    /// How the agent is pointed at the fake model: a name, or a file.
    #[arg(long, required_unless_present = "agent")]
    profile: Option<String>,
    /// Only these faults.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Only a few cases a fault: quick, and blind to most false alarms.
    #[arg(long)]
    near: bool,
    /// How many cases are played at once.
    #[arg(long, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    jobs: Option<usize>,
    /// The folder of the cases, if not those that come along are played.
    #[arg(long)]
    cases: Option<PathBuf>,
    /// Seconds to wait for a line of the right agent.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    patience: u64,
    /// Milliseconds to wait for a line of a broken one; what comes out wrong is tried again with more.
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..))]
    hurry: u64,
    /// What is printed.
    #[arg(long, value_enum, default_value_t = Format::Markdown)]
    format: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// A page for people.
    Markdown,
    /// For programs.
    Json,
}

/// The table of the rules, as far as it matters here.
#[derive(Deserialize)]
struct Rules {
    rules: BTreeMap<String, Rule>,
}

#[derive(Deserialize)]
struct Rule {
    level: String,
    untestable: Option<String>,
}

const RULES: &str = include_str!("../../../../conformance/requirements.toml");

/// The rules that some fault must break: all that can be broken, and that can be seen from outside.
fn breakable() -> Result<BTreeSet<String>, String> {
    let table: Rules = toml::from_str(RULES).map_err(|e| format!("requirements.toml: {e}"))?;
    let breakable = table
        .rules
        .into_iter()
        .filter(|(_, rule)| rule.untestable.is_none() && rule.level != "MAY");
    Ok(breakable.map(|(id, _)| id).collect())
}

impl Mutations {
    /// Play, print the table, and say whether it has neither hole nor false alarm.
    ///
    /// # Errors
    /// Something is missing or cannot be started.
    pub fn run(
        &self,
        out: &mut dyn Write,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<bool, String> {
        for name in &self.only {
            if faults::named(name).is_none() {
                let known = faults::all().map(|fault| fault.name);
                return Err(unknown(name, "fault", known));
            }
        }
        let profile = self.profile.as_deref().map(Profile::find).transpose();
        let words = self.agent.as_deref().unwrap_or_default().split_whitespace();
        let agent = Agent {
            command: Agent::from_here(words.map(str::to_owned).collect()),
            profile: profile.map_err(|error| error.to_string())?,
            ..Agent::default()
        };
        let usual = Options::default();
        let options = Options {
            patience: Duration::from_secs(self.patience),
            // Most of the time goes by in waiting for what a fault has taken away.
            jobs: self.jobs.unwrap_or(4 * usual.jobs),
            ..usual
        };
        let plan = Plan {
            cases: &folder::cases(self.cases.as_deref())?,
            agent: &agent,
            proxy: &proxy()?,
            options: &options,
            patience: Duration::from_millis(self.hurry),
            near: self.near,
            only: &self.only,
        };
        let over = |row: &Row| progress(&line(row));
        let table = mutations(&plan, &Expected::read()?, &breakable()?, &over)?;
        self.print(&table, out).map_err(|error| error.to_string())?;
        Ok(table.is_right())
    }

    fn print(&self, table: &Table, out: &mut dyn Write) -> io::Result<()> {
        match self.format {
            Format::Markdown => out.write_all(table.markdown().as_bytes()),
            Format::Json => writeln!(out, "{:#}", table.json()),
        }
    }
}

fn line(row: &Row) -> String {
    if row.is_right() {
        let first = row.first_complaint.iter();
        let first = first.map(|first| format!(" (flaky, first: {first})"));
        format!("ok    {}{}", row.fault, first.collect::<String>())
    } else {
        format!("WRONG {}: {}", row.fault, row.complaint())
    }
}

/// The broken agent lies beside this program.
fn proxy() -> Result<PathBuf, String> {
    let here = std::env::current_exe().map_err(|error| error.to_string())?;
    let proxy = here.with_file_name("acp-broken-agent");
    if proxy.is_file() {
        Ok(proxy)
    } else {
        Err(format!(
            "{} is not there; build it beside acp-conformance",
            proxy.display()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutations::Trap;

    #[test]
    fn every_fault_breaks_rules_that_there_are_and_every_rule_is_broken_or_has_a_reason() {
        let table: Rules = toml::from_str(RULES).unwrap();
        let expected = Expected::read().unwrap();
        let broken = expected.broken();
        for rule in broken
            .iter()
            .copied()
            .chain(expected.without.keys().map(String::as_str))
        {
            assert!(table.rules.contains_key(rule), "{rule} is no rule");
        }
        for (fault, what) in &expected.faults {
            assert!(!what.breaks.is_empty(), "{fault} breaks nothing");
            assert!(what.breaks.is_disjoint(&what.also), "{fault} says it twice");
            for rule in &what.also {
                assert!(table.rules.contains_key(rule), "{fault}: {rule} is no rule");
            }
        }
        assert_eq!(expected.traps.len(), 28);
        for (trap, what) in &expected.traps {
            match what {
                Trap::Faults(faults) => {
                    assert!(!faults.is_empty(), "{trap}");
                    for fault in faults {
                        assert!(expected.faults.contains_key(fault), "{trap}: {fault}");
                    }
                }
                Trap::Reason(reason) => assert!(!reason.is_empty(), "{trap}"),
            }
        }
        for rule in expected.without.keys() {
            assert!(
                !broken.contains(rule.as_str()),
                "{rule} has a reason and a fault"
            );
        }
        let hole =
            |rule: &String| !broken.contains(rule.as_str()) && !expected.without.contains_key(rule);
        let holes: Vec<_> = breakable().unwrap().into_iter().filter(hole).collect();
        assert_eq!(holes, Vec::<String>::new());
    }
}
