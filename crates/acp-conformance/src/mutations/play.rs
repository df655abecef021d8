//! play: the suite through the proxy, once without and once with each fault, as few cases as will do.

use super::{Expected, Row, Table};
use crate::{
    Agent, Case, Facts, Options, Outcome,
    broken::{Recording, recordings},
    faults::{self, Breaker, Fault, Way},
    play_all,
};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// What is to be played.
#[derive(Debug)]
pub struct Plan<'a> {
    /// All cases.
    pub cases: &'a [Case],
    /// The right agent.
    pub agent: &'a Agent,
    /// The command of the proxy.
    pub proxy: &'a Path,
    /// How the right agent is played; how many cases at once.
    pub options: &'a Options,
    /// How long a step waits while a fault is tried. Rows that come out wrong are tried again with the usual patience.
    pub patience: Duration,
    /// Only these faults; all if there are none.
    pub only: &'a [String],
}

/// The lines of a case, parsed.
type Parsed = Vec<Vec<(Way, Vec<u8>, Value)>>;

/// A case and what passed in it.
struct Heard<'a> {
    case: &'a Case,
    said: Parsed,
}

/// Play all, and hold what comes against the table.
///
/// # Errors
/// The agent or the proxy cannot be started, or nothing can be written down.
pub fn mutations(
    plan: &Plan<'_>,
    expected: &Expected,
    rules: &BTreeSet<String>,
    over: &(dyn Fn(&Row) + Sync),
) -> Result<Table, String> {
    let begun = Instant::now();
    let folder = tempfile::tempdir().map_err(|error| format!("no folder to write to: {error}"))?;
    let facts = play_all(&[], &plan.through(&[]), plan.options, None, &|_| ())?.facts;
    let (heard, wrong) = without_fault(plan, &facts, folder.path())?;
    let wanted = |fault: &&Fault| plan.only.is_empty() || plan.only.iter().any(|n| n == fault.name);
    let faults: Vec<_> = faults::all().filter(wanted).collect();
    let rows = Mutex::new(Vec::new());
    let tried = in_parallel(plan.options.jobs, faults.len(), &|index| {
        let Some(known) = expected.faults.get(faults[index].name) else {
            return Ok(());
        };
        let row = row(plan, &facts, faults[index], &heard, known)?;
        over(&row);
        rows.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((index, row));
        Ok(())
    });
    tried?;
    let mut rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    rows.sort_by_key(|(index, _)| *index);
    let broken = expected.broken();
    let reasoned = |rule: &String| expected.without.contains_key(rule);
    let unbroken = rules
        .iter()
        .filter(|rule| !broken.contains(rule.as_str()) && !reasoned(rule));
    Ok(Table {
        wrong_without_fault: wrong,
        rows: rows.into_iter().map(|(_, row)| row).collect(),
        unbroken: unbroken.cloned().collect(),
        took: begun.elapsed(),
    })
}

fn row(
    plan: &Plan<'_>,
    facts: &Facts,
    fault: &Fault,
    heard: &[Heard<'_>],
    known: &super::ExpectedFault,
) -> Result<Row, String> {
    let touched: Vec<_> = heard
        .iter()
        .filter(|heard| changes(fault, &heard.said))
        .collect();
    let mut row = Row {
        fault: fault.name.to_owned(),
        does: known.does.clone(),
        breaks: known.breaks.clone(),
        failed: BTreeSet::new(),
        cases: touched.len(),
    };
    let agent = plan.through(&["--fault".to_owned(), fault.name.to_owned()]);
    let mut strange = Vec::new();
    for heard in touched {
        let failed = failures(&one(
            heard.case,
            &agent,
            plan.options,
            plan.patience,
            facts,
        )?);
        if failed.is_subset(&row.breaks) {
            row.failed.extend(failed);
        } else {
            strange.push(heard.case);
        }
    }
    // A busy machine must not look like a fault: what comes out wrong is tried again, with patience.
    for case in strange {
        let outcome = one(case, &agent, plan.options, plan.options.patience, facts)?;
        row.failed.extend(failures(&outcome));
    }
    Ok(row)
}

fn one(
    case: &Case,
    agent: &Agent,
    options: &Options,
    patience: Duration,
    facts: &Facts,
) -> Result<Outcome, String> {
    let options = Options {
        patience,
        jobs: 1,
        ..options.clone()
    };
    let cases = std::slice::from_ref(case);
    let mut played = play_all(cases, agent, &options, Some(facts.clone()), &|_| ())?;
    played
        .outcomes
        .pop()
        .ok_or_else(|| format!("{} was not played", case.name))
}

/// The rules that failed; a case that ended without naming one stands in brackets.
fn failures(outcome: &Outcome) -> BTreeSet<String> {
    let mut failed: BTreeSet<_> = outcome
        .findings()
        .map(|(rule, _)| rule.to_owned())
        .collect();
    if let Some(fault) = &outcome.fault {
        failed.insert(format!("({}: {fault})", outcome.case));
    } else if let Some(finding) = &outcome.broken
        && failed.is_empty()
    {
        failed.insert(format!("({}: {finding})", outcome.case));
    }
    failed
}

/// Would the fault change anything of what was said?
fn changes(fault: &Fault, said: &Parsed) -> bool {
    fault.habit().is_some()
        || said.iter().any(|process| {
            let mut breaker = Breaker::new(Some(fault));
            process.iter().any(|(way, raw, value)| {
                !breaker
                    .parsed(*way, raw, value.clone())
                    .is_as_it_was(*way, raw)
            })
        })
}

fn without_fault<'a>(
    plan: &Plan<'a>,
    facts: &Facts,
    folder: &Path,
) -> Result<(Vec<Heard<'a>>, Vec<String>), String> {
    let found = Mutex::new(Vec::new());
    in_parallel(plan.options.jobs, plan.cases.len(), &|index| {
        let case = &plan.cases[index];
        let folder: PathBuf = folder.join(index.to_string());
        std::fs::create_dir(&folder).map_err(|error| error.to_string())?;
        let agent = plan.through(&["--record".to_owned(), folder.display().to_string()]);
        let outcome = one(case, &agent, plan.options, plan.options.patience, facts)?;
        let wrong = failures(&outcome);
        let said = recordings(&folder).map_err(|error| error.to_string())?;
        let said = said.into_iter().map(parsed).collect();
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        found.push((index, Heard { case, said }, wrong));
        Ok(())
    })?;
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by_key(|(index, ..)| *index);
    let mut wrong = Vec::new();
    let mut heard = Vec::new();
    for (_, case, failed) in found {
        if !failed.is_empty() {
            let failed: Vec<_> = failed.into_iter().collect();
            wrong.push(format!("{}: {}", case.case.name, failed.join(", ")));
        }
        heard.push(case);
    }
    Ok((heard, wrong))
}

fn parsed(recording: Recording) -> Vec<(Way, Vec<u8>, Value)> {
    recording
        .into_iter()
        .map(|(way, raw)| {
            let value = faults::parse(&raw);
            (way, raw, value)
        })
        .collect()
}

impl Plan<'_> {
    /// The agent behind the proxy.
    fn through(&self, options: &[String]) -> Agent {
        let wrap = |command: &[String]| {
            let mut wrapped = vec![self.proxy.display().to_string()];
            wrapped.extend_from_slice(options);
            wrapped.push("--".to_owned());
            wrapped.extend_from_slice(command);
            wrapped
        };
        let mut agent = self.agent.clone();
        if !agent.command.is_empty() {
            agent.command = wrap(&agent.command);
        } else if let Some(profile) = &mut agent.profile {
            profile.command = wrap(&profile.command);
            if let Some(install) = &mut profile.install {
                install.command = wrap(&install.command);
            }
        }
        agent
    }
}

/// Do `work` for each index below `many`, so many at once.
fn in_parallel(
    jobs: usize,
    many: usize,
    work: &(dyn Fn(usize) -> Result<(), String> + Sync),
) -> Result<(), String> {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.clamp(1, many.max(1)))
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        if index >= many {
                            return Ok(());
                        }
                        work(index)?;
                    }
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| {
            worker
                .join()
                .unwrap_or_else(|_| Err("the runner panicked".to_owned()))
        })
    })
}
