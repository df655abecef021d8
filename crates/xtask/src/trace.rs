//! Reports which test proves which requirement. Ids are defined in `docs/requirements.toml`,
//! `docs/model-behaviours.toml` and `conformance/requirements.toml`; tests and cases name them (see [`marks`]).

mod behaviours;
mod kit;
mod marks;
mod modules;
mod table;
#[cfg(test)]
mod tests;

use crate::workspace::root;
use anyhow::{Context, Result, bail, ensure};
use behaviours::Behaviour;
use kit::TestKit;
use marks::{MarkError, Proof};
use modules::NamedModules;
use std::{collections::BTreeMap, fmt::Write as _, fs};
use table::{GROUPS, Requirement, RequirementId, Table};
use tidy::RepoFile;

/// File with turnery's own requirements.
const OWN_FILE: &str = "docs/requirements.toml";

/// File with the rules of the protocol, which the suite checks against any agent.
const PROTOCOL_FILE: &str = "conformance/requirements.toml";

/// File with the requirements of the official test kit.
const KIT_FILE: &str = "docs/acp-kit.toml";

/// File with the behaviours of model APIs.
const BEHAVIOURS_FILE: &str = "docs/model-behaviours.toml";

/// Page for users with the behaviours of model APIs.
const MODELS_PAGE: &str = "docs/models.md";

/// Requirements with the tests that prove them.
struct Trace {
    table: Table,
    kit: TestKit,
    behaviours: Vec<Behaviour>,
    proofs: BTreeMap<RequirementId, Vec<Proof>>,
}

/// Status of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProofStatus {
    Proved,
    Missing,
    Waived,
    Later,
}

/// Runs `cargo xtask trace`, `cargo xtask trace --missing` or `cargo xtask trace ID ...`.
pub(crate) fn run(wanted: &[String]) -> Result<()> {
    let trace = read_trace()?;
    let only_missing = wanted == ["--missing"];
    if wanted.is_empty() || only_missing {
        let missing: Vec<&RequirementId> = trace.ids_with_status(ProofStatus::Missing).collect();
        for id in trace.table.keys() {
            if !only_missing || missing.contains(&id) {
                print!("{}", trace.render(id));
            }
        }
        print!("{}", trace.summary());
        ensure!(
            missing.is_empty(),
            "{} ids have neither a test nor a waiver; `cargo xtask trace --missing` lists them",
            missing.len()
        );
        let stale = trace.proved_but_later();
        ensure!(
            stale.is_empty(),
            "proved by now, so take their `later` away: {}",
            stale.join(", ")
        );
        let open = trace.unproved_kit_requirements();
        ensure!(
            open.is_empty(),
            "of the official kit not proved: {}",
            open.join(", ")
        );
        let page = trace.model_page()?;
        ensure!(
            page == read_file(MODELS_PAGE)?,
            "{MODELS_PAGE} is out of date: run `cargo xtask models`"
        );
        return Ok(());
    }
    for text in wanted {
        if trace.kit.contains_key(text) {
            print!("{}", trace.render_kit_requirement(text));
            continue;
        }
        let known = RequirementId::parse(text).filter(|id| trace.table.contains_key(id));
        let id = known.with_context(|| format!("there is no requirement {text:?}"))?;
        print!("{}", trace.render(&id));
    }
    Ok(())
}

/// Runs `cargo xtask models`: renders the table in `docs/models.md`.
pub(crate) fn write_model_page() -> Result<()> {
    let page = read_trace()?.model_page()?;
    fs::write(root().join(MODELS_PAGE), page).context(MODELS_PAGE)
}

fn read_file(path: &str) -> Result<String> {
    fs::read_to_string(root().join(path)).with_context(|| path.to_owned())
}

/// Reads the table and all marks. Reports all their errors at once.
fn read_trace() -> Result<Trace> {
    let mut table = table::parse(&read_file(OWN_FILE)?, &read_file(PROTOCOL_FILE)?)
        .with_context(|| format!("failed to read {OWN_FILE} and {PROTOCOL_FILE}"))?;
    let behaviours = behaviours::parse(&read_file(BEHAVIOURS_FILE)?, &mut table)
        .and_then(|behaviours| table::check_entries(&table).map(|()| behaviours))
        .with_context(|| format!("failed to read {BEHAVIOURS_FILE}"))?;
    let kit = kit::parse(&read_file(KIT_FILE)?, &table)
        .with_context(|| format!("failed to read {KIT_FILE}"))?;
    let mut proofs = Vec::new();
    let mut errors = Vec::new();
    let mut modules = NamedModules::default();
    for RepoFile { path, text } in tidy::files() {
        let Some(read) = marks::mark_reader(&path) else {
            continue;
        };
        modules.add_file(&path, &text);
        let (found, wrong) = read(&path, &text);
        proofs.extend(found);
        errors.extend(wrong);
    }
    let never_run = proofs
        .iter()
        .filter(|proof| !modules.is_tested(&proof.file));
    errors.extend(never_run.map(|proof| proof.error("nothing runs this file".to_owned())));
    let mut trace = build_trace(table, kit, proofs, errors)?;
    trace.behaviours = behaviours;
    Ok(trace)
}

/// Joins the marks with the table.
fn build_trace(
    table: Table,
    kit: TestKit,
    found: Vec<Proof>,
    mut faults: Vec<MarkError>,
) -> Result<Trace> {
    let mut proofs: BTreeMap<RequirementId, Vec<Proof>> = BTreeMap::new();
    for proof in found {
        match table.get(&proof.id) {
            Some(Requirement {
                waived: Some(_), ..
            }) => faults.push(proof.error(format!(
                "{} is waived and proved here: take the waiver away",
                proof.id
            ))),
            Some(_) => proofs.entry(proof.id).or_default().push(proof),
            None => faults.push(proof.error(format!("there is no requirement {}", proof.id))),
        }
    }
    if faults.is_empty() {
        let behaviours = Vec::new();
        return Ok(Trace {
            table,
            kit,
            behaviours,
            proofs,
        });
    }
    let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    bail!("marks that are wrong:\n{}", lines.join("\n"))
}

impl Trace {
    fn status_of(&self, id: &RequirementId) -> ProofStatus {
        let requirement = &self.table[id];
        if self.proofs.contains_key(id) {
            ProofStatus::Proved
        } else if requirement.waived.is_some() {
            ProofStatus::Waived
        } else if requirement.later.is_some() {
            ProofStatus::Later
        } else {
            ProofStatus::Missing
        }
    }

    fn ids_with_status(&self, wanted: ProofStatus) -> impl Iterator<Item = &RequirementId> {
        self.table
            .keys()
            .filter(move |id| self.status_of(id) == wanted)
    }

    /// Renders a requirement with its tests, or the reason why it has none.
    fn render(&self, id: &RequirementId) -> String {
        let requirement = &self.table[id];
        let mut text = match &requirement.level {
            Some(level) => format!("{id} ({level}): {}\n", requirement.says),
            None => format!("{id}: {}\n", requirement.says),
        };
        if let Some(differs) = &requirement.differs {
            let _ = writeln!(text, "    differs from the documents: {differs}");
        }
        for proof in self.proofs.get(id).into_iter().flatten() {
            let _ = writeln!(text, "    {proof}");
        }
        let _ = match (self.status_of(id), &requirement.waived, &requirement.later) {
            (ProofStatus::Waived, Some(reason), _) => writeln!(text, "    waived: {reason}"),
            (ProofStatus::Later, _, Some(work)) => writeln!(text, "    later: {work}"),
            (ProofStatus::Missing, ..) => writeln!(text, "    no test"),
            (ProofStatus::Proved, _, Some(work)) => writeln!(text, "    not for later: {work}"),
            (ProofStatus::Proved | ProofStatus::Waived | ProofStatus::Later, ..) => Ok(()),
        };
        text
    }

    /// Renders a requirement of the kit with its rules.
    fn render_kit_requirement(&self, id: &str) -> String {
        let asked = &self.kit[id];
        let tier = format!("{:?}", asked.tier).to_lowercase();
        let mut text = format!("{id} ({tier}): {}\n", asked.asks);
        text.extend(asked.rules.iter().map(|rule| self.render(rule)));
        text
    }

    /// Returns the page about the behaviours of model APIs as it should be.
    fn model_page(&self) -> Result<String> {
        let cell = |id: &RequirementId| match (self.status_of(id), &self.table[id].waived) {
            (ProofStatus::Proved, _) => "yes".to_owned(),
            (ProofStatus::Waived, Some(reason)) => format!("n/a: {reason}"),
            (ProofStatus::Waived | ProofStatus::Missing | ProofStatus::Later, _) => {
                "no test".to_owned()
            }
        };
        behaviours::render_page(&read_file(MODELS_PAGE)?, &self.behaviours, cell)
            .context(MODELS_PAGE)
    }

    /// Returns the requirements of the kit with an unproved rule.
    fn unproved_kit_requirements(&self) -> Vec<&str> {
        let proved = |rule| self.status_of(rule) == ProofStatus::Proved;
        let open = self
            .kit
            .iter()
            .filter(|(_, asked)| !asked.rules.iter().all(proved));
        open.map(|(id, _)| id.as_str()).collect()
    }

    /// Returns the ids that are marked as later but are already proved.
    fn proved_but_later(&self) -> Vec<String> {
        let proved = self.ids_with_status(ProofStatus::Proved);
        proved
            .filter(|id| self.table[id].later.is_some())
            .map(ToString::to_string)
            .collect()
    }

    /// Renders the counts of each group.
    fn summary(&self) -> String {
        let mut text = String::from("\ngroup       ids  proved  missing  waived  later\n");
        let mut line = |name: &str, ids: &[&RequirementId]| {
            let count = |wanted| ids.iter().filter(|id| self.status_of(id) == wanted).count();
            let _ = writeln!(
                text,
                "{name:9} {:5} {:7} {:8} {:7} {:6}",
                ids.len(),
                count(ProofStatus::Proved),
                count(ProofStatus::Missing),
                count(ProofStatus::Waived),
                count(ProofStatus::Later)
            );
        };
        for group in GROUPS {
            let ids: Vec<&RequirementId> = self
                .table
                .keys()
                .filter(|id| id.group() == *group)
                .collect();
            line(group, &ids);
        }
        line("all", &self.table.keys().collect::<Vec<_>>());
        let (all, left) = (self.kit.len(), self.unproved_kit_requirements().len());
        let _ = writeln!(text, "\nkit      {all:7} {:7}", all - left);
        text
    }
}
