//! `list` and `coverage`: the rules, and what checks them.

use super::{cases, requirements};
use acp_conformance::{
    Case, oracle,
    requirements::{Level, Rule},
    verdict::cases_of,
};
use anyhow::Result;
use clap::Args;
use std::{
    io::{self, Write},
    path::PathBuf,
};

/// `list`.
#[derive(Args)]
pub(crate) struct List {
    /// Only rules of these levels: must, must-not, fact, should, should-not, interop, may.
    #[arg(long, value_delimiter = ',', value_parser = level)]
    level: Vec<Level>,
}

/// `coverage`.
#[derive(Args)]
pub(crate) struct Coverage {
    /// The folder of the cases, instead of those that come along.
    #[arg(long)]
    cases: Option<PathBuf>,
}

pub(crate) fn level(name: &str) -> Result<Level, String> {
    let names = || Level::ALL.map(Level::name).join(", ");
    Level::named(name).ok_or_else(|| format!("there is no such level; there are {}", names()))
}

pub(crate) fn list(list: &List, out: &mut dyn Write) -> Result<()> {
    let requirements = requirements()?;
    writeln!(out, "# {}", requirements.revision)?;
    for rule in &requirements.rules {
        if list.level.is_empty() || list.level.contains(&rule.level) {
            let kit = if rule.kit.is_empty() {
                String::new()
            } else {
                format!("  [{}]", rule.kit.join(", "))
            };
            writeln!(
                out,
                "{:<10}{:<11}{}{kit}",
                rule.id,
                rule.level.name(),
                rule.says
            )?;
        }
    }
    Ok(())
}

pub(crate) fn coverage(coverage: &Coverage, out: &mut dyn Write) -> Result<()> {
    let requirements = requirements()?;
    let paths: Vec<PathBuf> = coverage.cases.iter().cloned().collect();
    let cases = cases(&paths, &requirements)?;
    let mut counts = [0; 3];
    for rule in &requirements.rules {
        let (count, what) = match (&checks(rule, &cases)[..], &rule.untestable) {
            ([], Some(reason)) => (1, format!("untestable: {reason}")),
            ([], None) => (2, "UNCHECKED".to_owned()),
            (checks, _) => (0, checks.join(", ")),
        };
        counts[count] += 1;
        writeln!(out, "{:<10}{:<11}{what}", rule.id, rule.level.name())?;
    }
    let [checked, untestable, unchecked] = counts;
    writeln!(
        out,
        "{checked} checked, {untestable} untestable, {unchecked} unchecked"
    )?;
    Ok(())
}

/// What checks a rule.
pub(crate) fn checks<'a>(rule: &'a Rule, cases: &'a [Case]) -> Vec<&'a str> {
    let is_watched = oracle::RULES.contains(&rule.id.as_str());
    let watched = is_watched.then_some("(always watched)");
    watched
        .into_iter()
        .chain(cases_of(&rule.id, cases))
        .collect()
}

/// To a pipe whose reader may go away.
pub(crate) fn printed(result: Result<()>) -> Result<()> {
    match result {
        Err(error) if is_closed(&error) => Ok(()),
        other => other,
    }
}

fn is_closed(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
