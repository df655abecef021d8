//! Runs `acp-conformance-dev mutations`.

use super::{FaultExpectations, MutationPlan, MutationRow, MutationTable, run_mutations};
use crate::faults;
use acp_conformance::{
    AgentSpec, PlayOptions, Requirements, case_folder, profile::Profile, requirements::Level,
    suggestions::unknown_name_message,
};
use clap::{Args, ValueEnum, builder::RangedU64ValueParser};
use std::{
    collections::BTreeSet,
    io::{self, Write},
    path::PathBuf,
    time::Duration,
};

/// Inject each known fault into an agent and check that exactly the expected rules fail.
#[derive(Args, Debug)]
pub struct MutationsArgs {
    /// Command line of the conforming agent, split at blanks, instead of that of the profile.
    #[arg(long)]
    agent: Option<String>,
    /// Profile that points the agent at the fake model: a name or a file.
    #[arg(long, required_unless_present = "agent")]
    profile: Option<String>,
    /// Only these faults.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Only a few cases per fault: quick, and blind to most false alarms.
    #[arg(long = "near")]
    nearest_cases_only: bool,
    /// Number of cases played at once.
    #[arg(long, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    jobs: Option<usize>,
    /// Folder of the cases, instead of the built-in ones.
    #[arg(long)]
    cases: Option<PathBuf>,
    /// Seconds to wait for a line from the conforming agent.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    patience: u64,
    /// Milliseconds to wait for a line from a broken agent; unexpected results are tried again with
    /// `--patience`.
    #[arg(long = "hurry", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..))]
    fault_patience: u64,
    /// Format of the table.
    #[arg(long, value_enum, default_value_t = MutationFormat::Markdown)]
    format: MutationFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum MutationFormat {
    /// Markdown page for people.
    Markdown,
    /// JSON for programs.
    Json,
}

/// Returns the rules that some fault must break: all testable rules except those of level MAY.
fn breakable_rules() -> Result<BTreeSet<String>, String> {
    let rules = Requirements::built_in()?.rules.into_iter();
    let breakable = rules.filter(|rule| rule.untestable.is_none() && rule.level != Level::May);
    Ok(breakable.map(|rule| rule.id).collect())
}

impl MutationsArgs {
    /// Plays the faults, prints the table, and returns true if it has neither a gap nor a false alarm.
    ///
    /// # Errors
    /// If the options name something unknown, or the agent or the proxy cannot be started.
    pub fn run(
        &self,
        out: &mut dyn Write,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<bool, String> {
        for name in &self.only {
            if faults::find(name).is_none() {
                let known = faults::all().map(|fault| fault.name);
                return Err(unknown_name_message(name, "fault", known));
            }
        }
        let profile = self.profile.as_deref().map(Profile::find).transpose();
        let words = self.agent.as_deref().unwrap_or_default().split_whitespace();
        let agent = AgentSpec {
            command: AgentSpec::make_program_absolute(words.map(str::to_owned).collect()),
            profile: profile.map_err(|error| error.to_string())?,
            ..AgentSpec::default()
        };
        let usual = PlayOptions::default();
        let options = PlayOptions {
            patience: Duration::from_secs(self.patience),
            // Most of the time is spent waiting for messages that a fault has dropped.
            jobs: self.jobs.unwrap_or(4 * usual.jobs),
            ..usual
        };
        let plan = MutationPlan {
            cases: &case_folder::cases(self.cases.as_slice())?,
            agent: &agent,
            proxy: &find_proxy()?,
            options: &options,
            fault_patience: Duration::from_millis(self.fault_patience),
            nearest_cases_only: self.nearest_cases_only,
            only: &self.only,
        };
        let on_row = |row: &MutationRow| progress(&progress_line(row));
        let table = run_mutations(
            &plan,
            &FaultExpectations::read()?,
            &breakable_rules()?,
            &on_row,
        )?;
        self.print_table(&table, out)
            .map_err(|error| error.to_string())?;
        Ok(table.is_right())
    }

    fn print_table(&self, table: &MutationTable, out: &mut dyn Write) -> io::Result<()> {
        match self.format {
            MutationFormat::Markdown => out.write_all(table.to_markdown().as_bytes()),
            MutationFormat::Json => writeln!(out, "{:#}", table.to_json()),
        }
    }
}

fn progress_line(row: &MutationRow) -> String {
    if row.is_right() {
        let first = row.first_complaint.iter();
        let first = first.map(|first| format!(" (flaky, first: {first})"));
        format!("ok    {}{}", row.fault, first.collect::<String>())
    } else {
        format!("WRONG {}: {}", row.fault, row.complaint())
    }
}

/// Returns the path of `acp-broken-agent`, which must be in the same folder as this program.
fn find_proxy() -> Result<PathBuf, String> {
    let here = std::env::current_exe().map_err(|error| error.to_string())?;
    let proxy = here.with_file_name("acp-broken-agent");
    if proxy.is_file() {
        Ok(proxy)
    } else {
        Err(format!(
            "{} does not exist; build it into the folder of this program",
            proxy.display()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutations::AgentMistake;

    #[test]
    fn faults_toml_names_known_rules_and_covers_all() {
        let requirements = Requirements::built_in().unwrap();
        let expected = FaultExpectations::read().unwrap();
        let broken = expected.broken_rules();
        for rule in broken
            .iter()
            .copied()
            .chain(expected.unbroken_rules.keys().map(String::as_str))
        {
            assert!(requirements.rule(rule).is_some(), "{rule} is no rule");
        }
        for (fault, what) in &expected.faults {
            assert!(!what.breaks.is_empty(), "{fault} breaks nothing");
            assert!(
                what.breaks.is_disjoint(&what.may_fail),
                "{fault} says it twice"
            );
            for rule in &what.may_fail {
                assert!(
                    requirements.rule(rule).is_some(),
                    "{fault}: {rule} is no rule"
                );
            }
        }
        assert_eq!(expected.agent_mistakes.len(), 28);
        for (trap, what) in &expected.agent_mistakes {
            match what {
                AgentMistake::Faults(faults) => {
                    assert!(!faults.is_empty(), "{trap}");
                    for fault in faults {
                        assert!(expected.faults.contains_key(fault), "{trap}: {fault}");
                    }
                }
                AgentMistake::Reason(reason) => assert!(!reason.is_empty(), "{trap}"),
            }
        }
        for rule in expected.unbroken_rules.keys() {
            assert!(
                !broken.contains(rule.as_str()),
                "{rule} has a reason and a fault"
            );
        }
        let hole = |rule: &String| {
            !broken.contains(rule.as_str()) && !expected.unbroken_rules.contains_key(rule)
        };
        let holes: Vec<_> = breakable_rules()
            .unwrap()
            .into_iter()
            .filter(hole)
            .collect();
        assert_eq!(holes, Vec::<String>::new());
    }
}
