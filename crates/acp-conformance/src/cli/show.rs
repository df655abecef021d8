//! `show`: a case that comes along as it is written, or all that is known of a rule.

use super::{cases, requirements, table::checks};
use acp_conformance::{embedded, near::unknown};
use anyhow::{Result, bail};
use clap::Args;
use std::io::Write;

/// `show`.
#[derive(Args)]
pub(crate) struct Show {
    /// A case that comes along, or a rule.
    name: String,
}

pub(crate) fn show(show: &Show, out: &mut dyn Write) -> Result<()> {
    let name = &*show.name;
    if let Some(text) = embedded::text(name) {
        write!(out, "{text}")?;
        return Ok(());
    }
    let requirements = requirements()?;
    let Some(rule) = requirements.named(name) else {
        let names: Vec<&str> = embedded::names().collect();
        let ids = requirements.rules.iter().map(|rule| &*rule.id);
        bail!(unknown(name, "rule and no case", ids.chain(names)));
    };
    let cases = cases(&[], &requirements)?;
    writeln!(out, "{} ({}): {}", rule.id, rule.level, rule.says)?;
    writeln!(out, "source: {}", rule.source)?;
    if !rule.kit.is_empty() {
        writeln!(out, "official test kit: {}", rule.kit.join(", "))?;
    }
    match (&checks(rule, &cases)[..], &rule.untestable) {
        ([], Some(reason)) => writeln!(out, "untestable: {reason}")?,
        ([], None) => writeln!(out, "no case checks it")?,
        (checks, _) => writeln!(out, "checked by: {}", checks.join(", "))?,
    }
    Ok(())
}
