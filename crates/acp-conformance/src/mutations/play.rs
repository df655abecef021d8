//! play: the suite through the proxy, once without and once with each fault, as few cases as will do.

use super::{Expected, ExpectedFault, Row, Table};
use crate::{
    Agent, Case, Facts, Options, Outcome,
    broken::{Recording, recordings},
    faults::{self, Breaker, Fault, Way},
    play_all,
    scratch::Scratch,
};
use serde_json::Value;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
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
    /// Only a few cases a fault, those that name its rules first: quick, and blind to most false alarms.
    pub near: bool,
    /// Only these faults; all if there are none.
    pub only: &'a [String],
}

/// The lines of a case, parsed.
type Parsed = Vec<Vec<(Way, Vec<u8>, Value)>>;

/// Rules that failed, or what else was wrong, each with the case and the reason.
type Failed = BTreeMap<String, String>;

/// A case and what passed in it.
struct Heard<'a> {
    case: &'a Case,
    said: Parsed,
    /// What fails without any fault.
    wrong: Failed,
}

/// So many false alarms of one fault are looked at twice when few cases are played: more say nothing new.
const ENOUGH: usize = 2;
/// So many cases are played of those that are near to a fault, and to each of its rules.
const NEAR: usize = 3;
/// The rules about how a process begins, ends, and what it leaves behind.
const OF_THE_PROCESS: [&str; 6] = ["TR-3", "TR-4", "TR-6", "TR-7", "TR-11", "INIT-14"];
/// So many faults are tried side by side.
const AT_ONCE: usize = 16;

/// Play all, and hold what comes against the table. `over` is told of each fault when it has been tried.
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
    let no_folder = |error| format!("no folder to write to: {error}");
    let scratch = Scratch::present().map_err(no_folder)?;
    let folder = scratch.case().map_err(no_folder)?;
    let asked = play_all(&[], &plan.through(&[]), plan.options, None, &|_| ())?;
    if let Some(why) = asked.stopped {
        return Err(why);
    }
    let facts = asked.facts;
    let mut heard = without_fault(plan, &facts, folder.path())?;
    let wanted = |fault: &&Fault| plan.only.is_empty() || plan.only.iter().any(|n| n == fault.name);
    let tried: Vec<_> = faults::all()
        .filter(wanted)
        .filter_map(|fault| Some((fault, expected.faults.get(fault.name)?)))
        .collect();
    let touched = in_parallel(plan.options.jobs, tried.len(), &|fault| {
        let cases = heard.iter().enumerate();
        let touched = cases.filter(|(_, heard)| heard.is_changed_by(tried[fault].0));
        Ok(touched.map(|(case, _)| case).collect::<Vec<_>>())
    })?;
    // A small process starts others quickly.
    heard.iter_mut().for_each(|heard| heard.said.clear());
    let permits = Permits::new(plan.options.jobs.max(1));
    let tried: Vec<_> = tried
        .into_iter()
        .zip(touched)
        .map(|((fault, expected), touched)| Trial {
            plan,
            facts: &facts,
            heard: &heard,
            fault,
            expected,
            touched,
            permits: &permits,
        })
        .collect();
    // The longest first, so that none is left over when all others are done.
    let mut order: Vec<usize> = (0..tried.len()).collect();
    order.sort_by_cached_key(|fault| {
        let trial = &tried[*fault];
        Reverse((trial.longest_wait(), trial.touched.len()))
    });
    let mut rows = in_parallel(AT_ONCE, order.len(), &|place| {
        let row = tried[order[place]].run()?;
        if row.is_right() {
            over(&row);
        }
        Ok((order[place], row))
    })?;
    rows.sort_by_key(|(fault, _)| *fault);
    let mut rows: Vec<Row> = rows.into_iter().map(|(_, row)| row).collect();
    // Once more, when all others are done: a row is wrong if it comes out wrong twice.
    let wrong: Vec<usize> = (0..rows.len())
        .filter(|fault| !rows[*fault].is_right())
        .collect();
    let again = in_parallel(AT_ONCE, wrong.len(), &|place| tried[wrong[place]].run())?;
    for (fault, mut row) in wrong.into_iter().zip(again) {
        row.first_complaint = Some(rows[fault].complaint());
        over(&row);
        rows[fault] = row;
    }
    let broken = expected.broken();
    let reasoned = |rule: &String| expected.without.contains_key(rule);
    let unbroken = rules
        .iter()
        .filter(|rule| !broken.contains(rule.as_str()) && !reasoned(rule));
    let wrong = heard
        .iter()
        .filter(|heard| !heard.wrong.is_empty())
        .map(|heard| {
            let wrong = heard.wrong.iter();
            let wrong: Vec<_> = wrong.map(|(rule, why)| format!("{rule} ({why})")).collect();
            wrong.join(", ")
        });
    Ok(Table {
        wrong_without_fault: wrong.collect(),
        rows,
        unbroken: unbroken.cloned().collect(),
        took: begun.elapsed(),
    })
}

/// A fault to be tried.
struct Trial<'a> {
    plan: &'a Plan<'a>,
    facts: &'a Facts,
    heard: &'a [Heard<'a>],
    fault: &'a Fault,
    expected: &'a ExpectedFault,
    /// The cases that the fault changes.
    touched: Vec<usize>,
    /// Limits how many cases all faults together play at once.
    permits: &'a Permits,
}

impl Trial<'_> {
    /// How long a case may wait for what the fault takes away.
    fn longest_wait(&self) -> Option<Duration> {
        let cases = self.touched.iter().map(|case| self.heard[*case].case);
        let lines = cases.flat_map(|case| &case.lines);
        let broken = lines.filter(|line| {
            let mut rules = line.rules.iter();
            rules.any(|rule| self.expected.breaks.contains(rule))
        });
        broken.filter_map(|line| line.within).max()
    }

    /// Tries the fault with the cases that it changes.
    fn run(&self) -> Result<Row, String> {
        let mut row = Row {
            fault: self.fault.name.to_owned(),
            does: self.expected.does.clone(),
            breaks: self.expected.breaks.clone(),
            may: self.expected.also.clone(),
            failed: BTreeMap::new(),
            cases: 0,
            first_complaint: None,
        };
        let few = self
            .plan
            .near
            .then(|| few(self.heard, &self.touched, &row.breaks));
        self.play(&mut row, few.as_deref().unwrap_or(&self.touched))?;
        // What has not failed yet is looked for once more, and in every case that names it: what a fault changes may
        // depend on who was quicker when all was written down.
        let missed: BTreeSet<&str> = row.missed().map(String::as_str).collect();
        let names = |case: &usize| {
            let rules = self.heard[*case].case.rules();
            rules.iter().any(|rule| missed.contains(rule))
        };
        let named: Vec<usize> = (0..self.heard.len()).filter(names).collect();
        self.play(&mut row, &named)?;
        Ok(row)
    }

    /// Plays cases with the fault, and adds what failed to the row.
    fn play(&self, row: &mut Row, cases: &[usize]) -> Result<(), String> {
        let jobs = self.plan.options.jobs;
        let hurried = Options {
            patience: self.plan.patience,
            real_time: true,
            ..self.plan.options.clone()
        };
        let enough = if self.plan.near { ENOUGH } else { usize::MAX };
        let mut strange: Vec<(usize, Failed)> = Vec::new();
        let played = in_parallel(jobs, cases.len(), &|index| {
            self.play_case(cases[index], &hurried)
        });
        for (case, failed) in cases.iter().zip(played?) {
            row.cases += 1;
            if failed.keys().all(|rule| row.allows(rule)) {
                row.add(failed);
            } else if strange.len() < enough {
                strange.push((*case, failed));
            }
        }
        // A busy machine must not look like a fault: what comes out wrong is tried again, with patience, and only
        // what is wrong both times is.
        let played = in_parallel(jobs, strange.len(), &|index| {
            self.play_case(strange[index].0, self.plan.options)
        });
        for ((_, first), mut failed) in strange.iter().zip(played?) {
            failed.retain(|rule, _| row.allows(rule) || first.contains_key(rule));
            row.add(failed);
        }
        Ok(())
    }

    fn play_case(&self, case: usize, options: &Options) -> Result<Failed, String> {
        let Heard { case, wrong, .. } = &self.heard[case];
        let fault = ["--fault".to_owned(), self.fault.name.to_owned()];
        let permit = self.permits.acquire();
        let outcome = one(case, &self.plan.through(&fault), options, self.facts)?;
        drop(permit);
        let mut failed = failures(&outcome);
        failed.retain(|rule, _| !wrong.contains_key(rule));
        Ok(failed)
    }
}

/// Permits to play a case.
struct Permits {
    available: Mutex<usize>,
    released: Condvar,
}

/// One that is released when this is dropped.
struct Permit<'a>(&'a Permits);

impl Permits {
    fn new(count: usize) -> Self {
        Self {
            available: Mutex::new(count),
            released: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        self.available
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn acquire(&self) -> Permit<'_> {
        let available = self.released.wait_while(self.lock(), |count| *count == 0);
        *available.unwrap_or_else(PoisonError::into_inner) -= 1;
        Permit(self)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.0.lock() += 1;
        self.0.released.notify_one();
    }
}

/// Of the cases that a fault changes: for each rule that it breaks a few that name it, and a few in any case.
fn few(heard: &[Heard<'_>], touched: &[usize], breaks: &BTreeSet<String>) -> Vec<usize> {
    let names = |case: usize| {
        let rules = heard[case].case.rules().into_iter();
        rules.filter(|rule| breaks.contains(*rule))
    };
    let mut few = touched.to_vec();
    few.sort_by_key(|case| names(*case).next().is_none());
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut kept = 0;
    few.retain(|case| {
        let new = names(*case).filter(|rule| {
            let often = seen.entry(rule).or_default();
            *often += 1;
            *often <= NEAR
        });
        let keep = new.count() > 0 || kept < NEAR;
        kept += usize::from(keep);
        keep
    });
    few
}

fn one(case: &Case, agent: &Agent, options: &Options, facts: &Facts) -> Result<Outcome, String> {
    let options = Options {
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

/// The rules that failed; in brackets what makes the runner blame itself. A case that ended at a step without
/// a rule says nothing: what it did not reach did not fail.
fn failures(outcome: &Outcome) -> Failed {
    let why = |why: &str| format!("{}: {why}", outcome.case);
    let failed = outcome
        .findings()
        .map(|(rule, said)| (rule.to_owned(), why(&said.to_string())));
    let fault = outcome.fault.iter();
    let fault = fault.map(|fault| (format!("({}: {fault})", outcome.case), why("the runner's")));
    failed.chain(fault).collect()
}

impl Row {
    fn add(&mut self, failed: Failed) {
        for (rule, why) in failed {
            self.failed.entry(rule).or_insert(why);
        }
    }
}

impl Heard<'_> {
    /// Would the fault change anything of what was said? One of the process can only be seen where a case looks at it.
    fn is_changed_by(&self, fault: &Fault) -> bool {
        if fault.habit().is_some() {
            let rules = self.case.rules();
            return rules.iter().any(|rule| OF_THE_PROCESS.contains(rule));
        }
        self.said.iter().any(|process| {
            let mut breaker = Breaker::new(Some(fault));
            let mut lines = process.iter();
            lines.any(|(way, raw, value)| breaker.changes(*way, raw, value.clone()))
        })
    }
}

/// A case that ends early without naming a rule is wrong here, too.
fn without_fault<'a>(
    plan: &Plan<'a>,
    facts: &Facts,
    folder: &Path,
) -> Result<Vec<Heard<'a>>, String> {
    let play = |index: usize, often: &str| {
        let case = &plan.cases[index];
        let folder: PathBuf = folder.join(format!("{index}{often}"));
        std::fs::create_dir(&folder).map_err(|error| error.to_string())?;
        let agent = plan.through(&["--record".to_owned(), folder.display().to_string()]);
        let outcome = one(case, &agent, plan.options, facts)?;
        let mut wrong = failures(&outcome);
        let broken = outcome.broken.iter();
        wrong.extend(broken.map(|finding| (format!("({finding})"), case.name.clone())));
        let said = recordings(&folder).map_err(|error| error.to_string())?;
        let said = said.into_iter().map(parsed).collect();
        Ok(Heard { case, said, wrong })
    };
    in_parallel(plan.options.jobs, plan.cases.len(), &|index| {
        let once = play(index, "")?;
        // As with faults: only what is wrong twice is.
        if once.wrong.is_empty() {
            Ok(once)
        } else {
            play(index, "again")
        }
    })
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

/// What `work` makes of each index below `many`, so many at once.
fn in_parallel<T: Send>(
    jobs: usize,
    many: usize,
    work: &(dyn Fn(usize) -> Result<T, String> + Sync),
) -> Result<Vec<T>, String> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut made = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= many {
                return Ok(made);
            }
            match work(index) {
                Ok(thing) => made.push((index, thing)),
                Err(error) => {
                    // Nobody begins another.
                    next.store(many, Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
    };
    let made: Result<Vec<_>, String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.clamp(1, many.max(1)))
            .map(|_| scope.spawn(worker))
            .collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, _>| {
            worker
                .join()
                .unwrap_or_else(|_| Err("the runner panicked".to_owned()))
        };
        workers.into_iter().map(join).collect()
    });
    let mut made: Vec<_> = made?.into_iter().flatten().collect();
    made.sort_by_key(|(index, _)| *index);
    Ok(made.into_iter().map(|(_, thing)| thing).collect())
}
