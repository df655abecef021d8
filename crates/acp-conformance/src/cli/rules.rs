//! Runs `list` and `coverage`, which print the rules and their checks.

use super::load::{load_cases, load_requirements};
use acp_conformance::{
    Case,
    requirements::{Level, Rule},
    verdict::cases_citing,
};
use anyhow::Result;
use clap::Args;
use std::{
    io::{self, Write},
    path::PathBuf,
};

/// Arguments of `list`.
#[derive(Args)]
pub(crate) struct ListArgs {
    /// Only rules of these levels: must, must-not, fact, should, should-not, interop, may.
    #[arg(long, value_delimiter = ',', value_parser = parse_level)]
    level: Vec<Level>,
}

/// Arguments of `coverage`.
#[derive(Args)]
pub(crate) struct CoverageArgs {
    /// Folder of the cases, instead of the built-in ones.
    #[arg(long)]
    cases: Option<PathBuf>,
}

pub(crate) fn parse_level(name: &str) -> Result<Level, String> {
    let names = || Level::ALL.map(Level::name).join(", ");
    Level::from_name(name).ok_or_else(|| format!("there is no such level; there are {}", names()))
}

pub(crate) fn print_rules(args: &ListArgs, out: &mut dyn Write) -> Result<()> {
    let requirements = load_requirements()?;
    writeln!(out, "# {}", requirements.revision)?;
    for rule in &requirements.rules {
        if args.level.is_empty() || args.level.contains(&rule.level) {
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

pub(crate) fn print_coverage(args: &CoverageArgs, out: &mut dyn Write) -> Result<()> {
    let requirements = load_requirements()?;
    let paths: Vec<PathBuf> = args.cases.iter().cloned().collect();
    let cases = load_cases(&paths, &requirements)?;
    let mut counts = [0; 3];
    for rule in &requirements.rules {
        let (count, what) = match (&checks_of_rule(rule, &cases)[..], &rule.untestable) {
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

/// Returns the checks of a rule: its cases, and a note if it is always watched.
pub(crate) fn checks_of_rule<'a>(rule: &'a Rule, cases: &'a [Case]) -> Vec<&'a str> {
    let watched = rule.watched.then_some("(always watched)");
    watched
        .into_iter()
        .chain(cases_citing(&rule.id, cases))
        .collect()
}

/// Treats a broken pipe as success.
pub(crate) fn ignore_broken_pipe(result: Result<()>) -> Result<()> {
    match result {
        Err(error) if is_broken_pipe(&error) => Ok(()),
        other => other,
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
