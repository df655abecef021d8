//! Plays the suite through the proxy, once without a fault and once with each fault, with as few cases as
//! possible.

use super::{FaultExpectation, FaultExpectations, MutationRow, MutationTable};
use crate::{
    broken_agent::{Recording, read_recordings},
    faults::{self, Direction, Fault, FaultInjector},
};
use acp_conformance::{
    AgentFacts, AgentSpec, Case, CaseOutcome, PlayOptions, play_suite,
    scratch::ScratchFolder,
    suite::{play_one, run_parallel},
};
use serde_json::Value;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        mpsc::{self, Receiver, SyncSender},
    },
    time::{Duration, Instant},
};

/// Inputs of a mutation run.
#[derive(Debug)]
pub struct MutationPlan<'a> {
    /// Cases of the suite.
    pub cases: &'a [Case],
    /// Conforming agent.
    pub agent: &'a AgentSpec,
    /// Path of the proxy.
    pub proxy: &'a Path,
    /// Options for playing the conforming agent, and the number of cases played at once.
    pub options: &'a PlayOptions,
    /// Time limit of a step while a fault is tried. Unexpected results are tried again with the usual
    /// patience.
    pub fault_patience: Duration,
    /// True to play only a few cases per fault, preferably those that cite its rules: quick, and blind to
    /// most false alarms.
    pub nearest_cases_only: bool,
    /// Names of the faults to try; empty tries all.
    pub only: &'a [String],
}

/// Parsed lines of a case, by process.
type ParsedRecordings = Vec<Vec<(Direction, Vec<u8>, Value)>>;

/// Rules that failed and other problems, each with the case and the reason.
type FailedRules = BTreeMap<String, String>;

/// Case with the lines recorded while it was played without a fault.
struct BaselineCase<'a> {
    case: &'a Case,
    recordings: ParsedRecordings,
    /// Failures without any fault.
    failures: FailedRules,
}

/// Number of false alarms per fault that are tried again when few cases are played.
const MAX_RETRIED_CASES: usize = 2;
/// Number of cases played per fault, and per rule of the fault, when few cases are played.
const NEAREST_CASES: usize = 3;
/// Rules about the start and exit of a process and its leftover children.
const PROCESS_RULES: [&str; 6] = ["TR-3", "TR-4", "TR-6", "TR-7", "TR-11", "INIT-14"];
/// Number of faults tried in parallel.
const PARALLEL_FAULTS: usize = 16;

/// Plays the suite with each selected fault and compares the failed rules with `expected`. Calls `on_row`
/// with the final row of each fault.
///
/// # Errors
/// If the agent or the proxy cannot be started, or recordings cannot be written.
pub fn run_mutations(
    plan: &MutationPlan<'_>,
    expected: &FaultExpectations,
    rules: &BTreeSet<String>,
    on_row: &(dyn Fn(&MutationRow) + Sync),
) -> Result<MutationTable, String> {
    let started_at = Instant::now();
    let no_folder = |error| format!("cannot create a folder for recordings: {error}");
    let scratch = ScratchFolder::current().map_err(no_folder)?;
    let folder = scratch.create_case_folder().map_err(no_folder)?;
    let preflight = play_suite(
        &[],
        &plan.agent_through_proxy(&[]),
        plan.options,
        None,
        &|_| (),
    )?;
    if let Some(why) = preflight.unplayed_reason {
        return Err(why);
    }
    let facts = preflight.facts;
    let mut baseline = play_baseline(plan, &facts, folder.path())?;
    let is_selected =
        |fault: &&'static Fault| plan.only.is_empty() || plan.only.iter().any(|n| n == fault.name);
    let tried: Vec<_> = faults::all()
        .filter(is_selected)
        .filter_map(|fault| Some((fault, expected.faults.get(fault.name)?)))
        .collect();
    let affected = run_parallel(plan.options.jobs, tried.len(), &|fault| {
        let cases = baseline.iter().enumerate();
        let affected =
            cases.filter(|(_, baseline_case)| baseline_case.is_changed_by(tried[fault].0));
        Ok(affected.map(|(case, _)| case).collect::<Vec<_>>())
    })?;
    // A small process spawns others faster.
    baseline
        .iter_mut()
        .for_each(|baseline_case| baseline_case.recordings.clear());
    let (taken, returned) = mpsc::sync_channel(plan.options.jobs.max(1));
    let permits = (taken, Mutex::new(returned));
    let tried: Vec<_> = tried
        .into_iter()
        .zip(affected)
        .map(|((fault, expected), affected)| FaultTrial {
            plan,
            facts: &facts,
            baseline: &baseline,
            fault,
            expected,
            affected_cases: affected,
            permits: &permits,
        })
        .collect();
    // Start the slowest faults first, so that no slow fault runs alone at the end.
    let mut order: Vec<usize> = (0..tried.len()).collect();
    order.sort_by_cached_key(|fault| {
        let trial = &tried[*fault];
        Reverse((trial.longest_wait(), trial.affected_cases.len()))
    });
    let mut rows = run_parallel(PARALLEL_FAULTS, order.len(), &|place| {
        let row = tried[order[place]].run()?;
        if row.is_right() {
            on_row(&row);
        }
        Ok((order[place], row))
    })?;
    rows.sort_by_key(|(fault, _)| *fault);
    let mut rows: Vec<MutationRow> = rows.into_iter().map(|(_, row)| row).collect();
    // Try wrong rows again when all others are done: a row is wrong only if it is wrong twice.
    let wrong: Vec<usize> = (0..rows.len())
        .filter(|fault| !rows[*fault].is_right())
        .collect();
    let again = run_parallel(PARALLEL_FAULTS, wrong.len(), &|place| {
        tried[wrong[place]].run()
    })?;
    for (fault, mut row) in wrong.into_iter().zip(again) {
        row.first_complaint = Some(rows[fault].complaint());
        on_row(&row);
        rows[fault] = row;
    }
    let broken = expected.broken_rules();
    let reasoned = |rule: &String| expected.unbroken_rules.contains_key(rule);
    let unbroken = rules
        .iter()
        .filter(|rule| !broken.contains(rule.as_str()) && !reasoned(rule));
    let wrong = baseline
        .iter()
        .filter(|baseline_case| !baseline_case.failures.is_empty())
        .map(|baseline_case| {
            let wrong = baseline_case.failures.iter();
            let wrong: Vec<_> = wrong.map(|(rule, why)| format!("{rule} ({why})")).collect();
            wrong.join(", ")
        });
    Ok(MutationTable {
        baseline_failures: wrong.collect(),
        rows,
        uncovered_rules: unbroken.cloned().collect(),
        took: started_at.elapsed(),
    })
}

/// Trial of one fault.
struct FaultTrial<'a> {
    plan: &'a MutationPlan<'a>,
    facts: &'a AgentFacts,
    baseline: &'a [BaselineCase<'a>],
    fault: &'static Fault,
    expected: &'a FaultExpectation,
    /// Indices of the cases that the fault changes.
    affected_cases: Vec<usize>,
    /// Channel with as many places as all faults together may play cases at once.
    permits: &'a (SyncSender<()>, Mutex<Receiver<()>>),
}

impl FaultTrial<'_> {
    /// Returns the longest time limit of a line that cites a rule the fault breaks.
    fn longest_wait(&self) -> Option<Duration> {
        let cases = self
            .affected_cases
            .iter()
            .map(|case| self.baseline[*case].case);
        let lines = cases.flat_map(|case| &case.lines);
        let broken = lines.filter(|line| {
            let mut rules = line.rules.iter();
            rules.any(|rule| self.expected.breaks.contains(rule))
        });
        broken.filter_map(|line| line.patience).max()
    }

    /// Tries the fault with the cases that it changes.
    fn run(&self) -> Result<MutationRow, String> {
        let mut row = MutationRow {
            fault: self.fault.name.to_owned(),
            description: self.expected.does.clone(),
            breaks: self.expected.breaks.clone(),
            may_fail: self.expected.may_fail.clone(),
            failed: BTreeMap::new(),
            case_count: 0,
            first_complaint: None,
        };
        let nearest = self
            .plan
            .nearest_cases_only
            .then(|| select_nearest_cases(self.baseline, &self.affected_cases, &row.breaks));
        self.play_cases(&mut row, nearest.as_deref().unwrap_or(&self.affected_cases))?;
        // Rules that have not failed yet are tried in every case that cites them: the recordings depend on
        // timing, so the replay may miss a case that the fault changes.
        let missed: BTreeSet<&str> = row.missed_rules().map(String::as_str).collect();
        let names = |case: &usize| {
            let rules = self.baseline[*case].case.cited_rules();
            rules.iter().any(|rule| missed.contains(rule))
        };
        let named: Vec<usize> = (0..self.baseline.len()).filter(names).collect();
        self.play_cases(&mut row, &named)?;
        Ok(row)
    }

    /// Plays cases with the fault, and adds the failures to the row.
    fn play_cases(&self, row: &mut MutationRow, cases: &[usize]) -> Result<(), String> {
        let jobs = self.plan.options.jobs;
        let hurried = PlayOptions {
            patience: self.plan.fault_patience,
            real_time: true,
            ..self.plan.options.clone()
        };
        let enough = if self.plan.nearest_cases_only {
            MAX_RETRIED_CASES
        } else {
            usize::MAX
        };
        let mut unexpected: Vec<(usize, FailedRules)> = Vec::new();
        let played = run_parallel(jobs, cases.len(), &|index| {
            self.play_case(cases[index], &hurried)
        });
        for (case, failed) in cases.iter().zip(played?) {
            row.case_count += 1;
            if failed.keys().all(|rule| row.allows_failure(rule)) {
                row.add_failures(failed);
            } else if unexpected.len() < enough {
                unexpected.push((*case, failed));
            }
        }
        // A busy machine must not look like a fault: unexpected failures are tried again with the usual
        // patience, and count only if they occur both times.
        let played = run_parallel(jobs, unexpected.len(), &|index| {
            self.play_case(unexpected[index].0, self.plan.options)
        });
        for ((_, first), mut failed) in unexpected.iter().zip(played?) {
            failed.retain(|rule, _| row.allows_failure(rule) || first.contains_key(rule));
            row.add_failures(failed);
        }
        Ok(())
    }

    fn play_case(&self, case: usize, options: &PlayOptions) -> Result<FailedRules, String> {
        let BaselineCase {
            case,
            failures: wrong,
            ..
        } = &self.baseline[case];
        let fault = ["--fault".to_owned(), self.fault.name.to_owned()];
        let agent = self.plan.agent_through_proxy(&fault);
        let (taken, returned) = self.permits;
        let _ = taken.send(());
        let outcome = play_one(case, &agent, options, self.facts, &|_| ());
        // Returned in any case: a panic while playing is an error, too.
        let returned = returned.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = returned.recv();
        let mut failed = failed_rules(&outcome?);
        failed.retain(|rule, _| !wrong.contains_key(rule));
        Ok(failed)
    }
}

/// Selects a few of the cases that a fault changes, with a few for each rule that it breaks.
fn select_nearest_cases(
    baseline: &[BaselineCase<'_>],
    affected: &[usize],
    breaks: &BTreeSet<String>,
) -> Vec<usize> {
    let names = |case: usize| {
        let rules = baseline[case].case.cited_rules().into_iter();
        rules.filter(|rule| breaks.contains(*rule))
    };
    let mut nearest = affected.to_vec();
    nearest.sort_by_key(|case| names(*case).next().is_none());
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut kept = 0;
    nearest.retain(|case| {
        let new = names(*case).filter(|rule| {
            let often = seen.entry(rule).or_default();
            *often += 1;
            *often <= NEAREST_CASES
        });
        let keep = new.count() > 0 || kept < NEAREST_CASES;
        kept += usize::from(keep);
        keep
    });
    nearest
}

/// Returns the rules that failed, and an error of the suite itself as a key in parentheses. Rules that were
/// not reached have not failed.
fn failed_rules(outcome: &CaseOutcome) -> FailedRules {
    let why = |why: &str| format!("{}: {why}", outcome.case);
    let failed = outcome
        .findings()
        .map(|(rule, finding)| (rule.to_owned(), why(&finding.to_string())));
    let error = outcome.error.iter();
    let fault = error.map(|fault| (format!("({}: {fault})", outcome.case), why("the runner's")));
    failed.chain(fault).collect()
}

impl MutationRow {
    fn add_failures(&mut self, failed: FailedRules) {
        for (rule, why) in failed {
            self.failed.entry(rule).or_insert(why);
        }
    }
}

impl BaselineCase<'_> {
    /// Returns true if the fault would change a recorded line. For process faults, returns true if the case
    /// cites a rule about processes.
    fn is_changed_by(&self, fault: &'static Fault) -> bool {
        if fault.process_fault().is_some() {
            let rules = self.case.cited_rules();
            return rules.iter().any(|rule| PROCESS_RULES.contains(rule));
        }
        self.recordings.iter().any(|process| {
            let mut injector = FaultInjector::new(Some(fault));
            let mut lines = process.iter();
            lines.any(|(way, raw, value)| injector.would_change(*way, raw, value))
        })
    }
}

/// Plays all cases without a fault. A case that ends early without citing a rule fails here, too.
fn play_baseline<'a>(
    plan: &MutationPlan<'a>,
    facts: &AgentFacts,
    folder: &Path,
) -> Result<Vec<BaselineCase<'a>>, String> {
    let play = |index: usize, often: &str| {
        let case = &plan.cases[index];
        let folder: PathBuf = folder.join(format!("{index}{often}"));
        std::fs::create_dir(&folder).map_err(|error| error.to_string())?;
        let agent =
            plan.agent_through_proxy(&["--record".to_owned(), folder.display().to_string()]);
        let outcome = play_one(case, &agent, plan.options, facts, &|_| ())?;
        let mut wrong = failed_rules(&outcome);
        let broken = outcome.failed_step.iter();
        wrong.extend(broken.map(|finding| (format!("({finding})"), case.name.clone())));
        let recordings = read_recordings(&folder).map_err(|error| error.to_string())?;
        let recordings = recordings.into_iter().map(parse_lines).collect();
        Ok(BaselineCase {
            case,
            recordings,
            failures: wrong,
        })
    };
    run_parallel(plan.options.jobs, plan.cases.len(), &|index| {
        let once = play(index, "")?;
        // As with faults, only a repeated failure counts.
        if once.failures.is_empty() {
            Ok(once)
        } else {
            play(index, "again")
        }
    })
}

fn parse_lines(recording: Recording) -> Vec<(Direction, Vec<u8>, Value)> {
    recording
        .into_iter()
        .map(|(way, raw)| {
            let value = faults::parse_or_null(&raw);
            (way, raw, value)
        })
        .collect()
}

impl MutationPlan<'_> {
    /// Returns the agent with its command wrapped in the proxy.
    fn agent_through_proxy(&self, options: &[String]) -> AgentSpec {
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
