//! trace: which test proves which requirement. The ids are in `docs/requirements.toml` and
//! `docs/requirements-acp.toml`; tests name what they prove in comments (see [`marks`]).

mod kit;
mod marks;
mod modules;
mod table;
#[cfg(test)]
mod tests;

use crate::steps::root;
use anyhow::{Context, Result, bail, ensure};
use kit::Kit;
use marks::{Fault, Proof};
use modules::Modules;
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    process::{Command, Stdio},
};
use table::{GROUPS, Id, Requirement, Table};

/// The files of the table.
const FILES: [&str; 2] = ["docs/requirements.toml", "docs/requirements-acp.toml"];

/// The official test kit's own requirements.
const KIT: &str = "docs/acp-kit.toml";

/// The table with the tests that prove each id.
struct Trace {
    table: Table,
    kit: Kit,
    proofs: BTreeMap<Id, Vec<Proof>>,
}

/// How an id stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Proved,
    Missing,
    Waived,
    Later,
}

/// `cargo xtask trace`, `cargo xtask trace --missing`, `cargo xtask trace ID ...`.
pub(crate) fn run(wanted: &[String]) -> Result<()> {
    let trace = read()?;
    let only_missing = wanted == ["--missing"];
    if wanted.is_empty() || only_missing {
        let missing: Vec<&Id> = trace.standing(Standing::Missing).collect();
        for id in trace.table.keys() {
            if !only_missing || missing.contains(&id) {
                print!("{}", trace.show(id));
            }
        }
        print!("{}", trace.summary());
        ensure!(
            missing.is_empty(),
            "{} ids have neither a test nor a waiver; `cargo xtask trace --missing` lists them",
            missing.len()
        );
        let stale = trace.stale();
        ensure!(
            stale.is_empty(),
            "proved by now, so take their `later` away: {}",
            stale.join(", ")
        );
        let open = trace.kit_open();
        ensure!(
            open.is_empty(),
            "of the official kit not proved: {}",
            open.join(", ")
        );
        return Ok(());
    }
    for text in wanted {
        if trace.kit.contains_key(text) {
            print!("{}", trace.show_asked(text));
            continue;
        }
        let known = Id::parse(text).filter(|id| trace.table.contains_key(id));
        let id = known.with_context(|| format!("there is no requirement {text:?}"))?;
        print!("{}", trace.show(&id));
    }
    Ok(())
}

/// Read the table and all marks; what is wrong with them is one error that lists everything.
fn read() -> Result<Trace> {
    let mut table = Table::new();
    for file in FILES {
        let text = fs::read_to_string(root().join(file)).context(file)?;
        let read = table::parse(&text).with_context(|| format!("failed to read {file}"))?;
        for (id, requirement) in read {
            ensure!(!table.contains_key(&id), "{file} has {id} a second time");
            table.insert(id, requirement);
        }
    }
    let text = fs::read_to_string(root().join(KIT)).context(KIT)?;
    let kit = kit::parse(&text, &table).with_context(|| format!("failed to read {KIT}"))?;
    let mut proofs = Vec::new();
    let mut faults = Vec::new();
    let mut modules = Modules::default();
    for path in tracked()? {
        let Some(read) = marks::reader(&path) else {
            continue;
        };
        // A file that was deleted and not yet committed as such.
        let Ok(text) = fs::read_to_string(root().join(&path)) else {
            continue;
        };
        modules.read(&path, &text);
        let (found, wrong) = read(&path, &text);
        proofs.extend(found);
        faults.extend(wrong);
    }
    let never_run = proofs.iter().filter(|proof| !modules.reach(&proof.file));
    faults.extend(never_run.map(|proof| proof.fault("nothing runs this file".to_owned())));
    join(table, kit, proofs, faults)
}

/// Lay the marks beside the table.
fn join(table: Table, kit: Kit, found: Vec<Proof>, mut faults: Vec<Fault>) -> Result<Trace> {
    let mut proofs: BTreeMap<Id, Vec<Proof>> = BTreeMap::new();
    for proof in found {
        match table.get(&proof.id) {
            Some(Requirement {
                waived: Some(_), ..
            }) => faults.push(proof.fault(format!(
                "{} is waived and proved here: take the waiver away",
                proof.id
            ))),
            Some(_) => proofs.entry(proof.id).or_default().push(proof),
            None => faults.push(proof.fault(format!("there is no requirement {}", proof.id))),
        }
    }
    if faults.is_empty() {
        return Ok(Trace { table, kit, proofs });
    }
    let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    bail!("marks that are wrong:\n{}", lines.join("\n"))
}

/// The files of the repository: tracked, or new and not ignored.
fn tracked() -> Result<Vec<String>> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .stdin(Stdio::null())
        .output()
        .context("could not start git")?;
    ensure!(listed.status.success(), "git could not list the files");
    let mut paths: Vec<String> = String::from_utf8_lossy(&listed.stdout)
        .lines()
        .map(str::to_owned)
        .collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}

impl Trace {
    fn stands(&self, id: &Id) -> Standing {
        let requirement = &self.table[id];
        if self.proofs.contains_key(id) {
            Standing::Proved
        } else if requirement.waived.is_some() {
            Standing::Waived
        } else if requirement.later.is_some() {
            Standing::Later
        } else {
            Standing::Missing
        }
    }

    fn standing(&self, wanted: Standing) -> impl Iterator<Item = &Id> {
        self.table
            .keys()
            .filter(move |id| self.stands(id) == wanted)
    }

    /// One id: what it says, and its tests or why there is none.
    fn show(&self, id: &Id) -> String {
        let requirement = &self.table[id];
        let mut text = match &requirement.level {
            Some(level) => format!("{id} ({level}): {}\n", requirement.says),
            None => format!("{id}: {}\n", requirement.says),
        };
        for proof in self.proofs.get(id).into_iter().flatten() {
            let _ = writeln!(text, "    {proof}");
        }
        let _ = match (self.stands(id), &requirement.waived, &requirement.later) {
            (Standing::Waived, Some(reason), _) => writeln!(text, "    waived: {reason}"),
            (Standing::Later, _, Some(work)) => writeln!(text, "    later: {work}"),
            (Standing::Missing, ..) => writeln!(text, "    no test"),
            (Standing::Proved, _, Some(work)) => writeln!(text, "    not for later: {work}"),
            (Standing::Proved | Standing::Waived | Standing::Later, ..) => Ok(()),
        };
        text
    }

    /// One requirement of the kit: what it asks, and the rules that it comes down to.
    fn show_asked(&self, id: &str) -> String {
        let asked = &self.kit[id];
        let tier = format!("{:?}", asked.tier).to_lowercase();
        let mut text = format!("{id} ({tier}): {}\n", asked.asks);
        text.extend(asked.rules.iter().map(|rule| self.show(rule)));
        text
    }

    /// The requirements of the kit of which some rule is not proved.
    fn kit_open(&self) -> Vec<&str> {
        let proved = |rule| self.stands(rule) == Standing::Proved;
        let open = self
            .kit
            .iter()
            .filter(|(_, asked)| !asked.rules.iter().all(proved));
        open.map(|(id, _)| id.as_str()).collect()
    }

    /// What is said to come later and is there.
    fn stale(&self) -> Vec<String> {
        let proved = self.standing(Standing::Proved);
        proved
            .filter(|id| self.table[id].later.is_some())
            .map(ToString::to_string)
            .collect()
    }

    /// Numbers for each group.
    fn summary(&self) -> String {
        let mut text = String::from("\ngroup    ids  proved  missing  waived  later\n");
        let mut line = |name: &str, ids: &[&Id]| {
            let count = |wanted| ids.iter().filter(|id| self.stands(id) == wanted).count();
            let _ = writeln!(
                text,
                "{name:6} {:5} {:7} {:8} {:7} {:6}",
                ids.len(),
                count(Standing::Proved),
                count(Standing::Missing),
                count(Standing::Waived),
                count(Standing::Later)
            );
        };
        for group in GROUPS {
            let ids: Vec<&Id> = self
                .table
                .keys()
                .filter(|id| id.group() == *group)
                .collect();
            line(group, &ids);
        }
        line("all", &self.table.keys().collect::<Vec<_>>());
        let (all, left) = (self.kit.len(), self.kit_open().len());
        let _ = writeln!(text, "\nkit   {all:7} {:7}", all - left);
        text
    }
}
