//! Runs `show`: prints the text of a built-in case, or a rule with its source and cases.

use super::{
    load::{load_cases, load_requirements},
    rules::checks_of_rule,
};
use acp_conformance::{embedded, suggestions::unknown_name_message};
use anyhow::{Result, bail};
use clap::Args;
use std::io::Write;

/// Arguments of `show`.
#[derive(Args)]
pub(crate) struct ShowArgs {
    /// Built-in case or rule.
    name: String,
}

pub(crate) fn print_case_or_rule(args: &ShowArgs, out: &mut dyn Write) -> Result<()> {
    let name = &*args.name;
    if let Some(text) = embedded::text(name) {
        write!(out, "{text}")?;
        return Ok(());
    }
    let requirements = load_requirements()?;
    let Some(rule) = requirements.find_rule(name) else {
        let names: Vec<&str> = embedded::names().collect();
        let ids = requirements.rules.iter().map(|rule| &*rule.id);
        bail!(unknown_name_message(
            name,
            "rule and no case",
            ids.chain(names)
        ));
    };
    let cases = load_cases(&[], &requirements)?;
    writeln!(out, "{} ({}): {}", rule.id, rule.level, rule.says)?;
    writeln!(out, "source: {}", rule.source)?;
    if !rule.kit.is_empty() {
        writeln!(out, "official test kit: {}", rule.kit.join(", "))?;
    }
    match (&checks_of_rule(rule, &cases)[..], &rule.untestable) {
        ([], Some(reason)) => writeln!(out, "untestable: {reason}")?,
        ([], None) => writeln!(out, "no case checks it")?,
        (checks, _) => writeln!(out, "checked by: {}", checks.join(", "))?,
    }
    Ok(())
}
