//! Runs a prompt under several configurations at once and continues the session from the winner. One lane,
//! one commit, one answer (UP-17, R4, S6).

mod apply_winner;
mod candidate;
mod candidate_client;
mod group_output;
mod judging;
mod resolve;

pub(super) use resolve::Evaluation;

use super::{
    PromptError, PromptResult,
    background::OverdueCommit,
    budget::Budget,
    commit_retry,
    group_commit::{CandidateCommit, GroupCommitSender},
    loop_plan::LoopPlan,
    prompt_guard::PromptGuard,
    prompt_run::{refused_result, unstored_result},
    prompt_scope::PromptScope,
    result::{PromptEnd, missing_outcome},
    task::SessionTask,
};
use candidate::{CandidatePlace, CandidateRun};
use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use judging::WinnerDecision;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{Mutex, mpsc},
    time::Instant,
};
use turnery_engine::{
    CommitError, LimitKind, LoopRecord, Outcome, ReachedLimit, TurnStop,
    parallel_group::{parallel_start_event, record_winner},
};
use turnery_store::Commit;
use turnery_tools::{CandidateFolders, FolderChanges, FolderChangesError};

/// Time that the group waits for its candidates after a cancel. Practically unlimited, because each candidate
/// ends within its own grace period.
const CANDIDATE_GRACE: Duration = Duration::from_secs(24 * 60 * 60);

type RunningCandidates =
    FuturesUnordered<BoxFuture<'static, (CandidateRun, Result<(), PromptError>)>>;

impl SessionTask {
    /// Makes the folders of the candidates if they need any, runs the evaluation, and removes the folders.
    pub(super) async fn run_evaluation(
        &mut self,
        plan: LoopPlan,
        evaluation: Evaluation,
        scope: &mut PromptScope,
        guard: &mut PromptGuard,
    ) -> PromptEnd {
        if !evaluation.needs_folders() {
            let group = self.run_group(plan, &evaluation, None, scope, guard);
            return group.boxed().await;
        }
        let (workspace, session_id) = (
            Arc::clone(&self.env.workspace),
            self.conversation.info.id.clone(),
        );
        let count = evaluation.candidates.len();
        let making = async { CandidateFolders::create(&workspace, &session_id, count).await };
        let folders = match guard.run_guarded(self, making, Duration::ZERO).await? {
            Some(made) => made?,
            None => return Ok(PromptResult::new(Outcome::Stopped(TurnStop::Cancelled))),
        };
        let group = self.run_group(plan, &evaluation, Some(&folders), scope, guard);
        let end = group.boxed().await;
        if faulty!(KeepCandidateFolders) {
            std::mem::forget(folders);
            return end;
        }
        folders.remove().await;
        end
    }

    /// Runs all candidates, selects the winner, commits and shows it, and applies its changes.
    async fn run_group(
        &mut self,
        mut plan: LoopPlan,
        evaluation: &Evaluation,
        folders: Option<&CandidateFolders>,
        scope: &mut PromptScope,
        guard: &mut PromptGuard,
    ) -> PromptEnd {
        let sandbox = &self.env.settings.sandbox;
        let workspaces = folders.iter().flat_map(|folders| {
            (0..evaluation.candidates.len()).map(|index| folders.workspace(index, sandbox))
        });
        let workspaces = workspaces.map(|workspace| workspace.map(Arc::new));
        let workspaces = workspaces.collect::<Result<Vec<_>, _>>()?;
        let mut ids = Vec::new();
        for candidate in &evaluation.candidates {
            scope.model = Some(Arc::clone(&candidate.model));
            let loop_id = scope.next_loop_id(self);
            if let Err(reason) = self.ask_before_loop(&plan, &loop_id, scope, guard).await? {
                return Ok(refused_result(reason));
            }
            ids.push(loop_id);
        }
        let now = turnery_store::now();
        for loop_id in &ids {
            let event = parallel_start_event(
                &self.conversation.info.id,
                &self.env.settings.agent_id,
                loop_id,
                &ids,
                now,
            );
            self.env.store.append(&guard.lane, loop_id, vec![event]);
        }
        plan.parallel_group.clone_from(&ids);
        let began = Instant::now();
        let (sender, mut arrivals) = mpsc::channel(ids.len());
        self.output.publisher.push_candidates(&ids);
        let questions = Arc::<Mutex<Duration>>::default();
        let places: Vec<CandidatePlace> = ids
            .iter()
            .enumerate()
            .map(|(index, loop_id)| CandidatePlace {
                index,
                label: evaluation.label(index),
                loop_id: loop_id.clone(),
                workspace: workspaces.get(index).map(Arc::clone),
                questions: Arc::clone(&questions),
            })
            .collect();
        let mut running = self.start_candidates(&plan, evaluation, scope, guard, places, &sender);
        drop(sender);
        let collected = collect_results(&mut running, &mut arrivals, ids.len());
        let results = guard.run_guarded(self, collected, CANDIDATE_GRACE).await?;
        let results = results
            .ok_or_else(|| lost_error("a candidate did not end although it was cancelled"))??;
        let mut records: Vec<LoopRecord> = results
            .iter()
            .map(|ended| LoopRecord::clone(&ended.commit.records[0]))
            .collect();
        let asked = *questions.lock().await;
        scope.budget.add_time(began.elapsed().saturating_sub(asked));
        // Collected before a judge may change the folders.
        let collecting = collect_changes(folders, &records);
        let mut changes = guard
            .run_guarded(self, collecting, Duration::ZERO)
            .await?
            .unwrap_or_default();
        let began = Instant::now();
        let WinnerDecision {
            winner,
            mut judge_report,
            limit,
        } = self
            .choose_winner(&plan, evaluation, &records, &workspaces, scope, guard)
            .await;
        scope.budget.add_time(began.elapsed());
        let place = match faulty!(ApplyLoserChanges) {
            true => changes.len().saturating_sub(winner + 1),
            false => winner,
        };
        let changes = changes.get_mut(place).and_then(Option::take);
        let (pending, result_changes) = match changes {
            Some(changes) => {
                let judged = judge_report.command.as_ref();
                let label = evaluation.label_with_check(winner, &ids[winner], judged);
                let report = &mut judge_report;
                apply_winner::check_changes(changes, label, &ids[winner], report).await
            }
            None => (None, None),
        };
        record_winner(&mut records, winner, &judge_report);
        let records: Vec<Arc<LoopRecord>> = records.into_iter().map(Arc::new).collect();
        let title = results[winner].commit.title.clone();
        let switches = matches!(records[winner].outcome, Some(Outcome::FrameSwitch { .. }));
        let commit = Commit {
            lane: guard.lane.clone(),
            expected_head: self.conversation.info.head_version,
            records: records.clone(),
            tip: winner,
            title: title.clone(),
            release: !switches && pending.is_none(),
            // What the other candidates requested never happens.
            effects: results[winner].commit.effects.clone(),
        };
        let (outcome, limit) = group_outcome(&records, winner, limit, &scope.budget);
        let mut result = PromptResult {
            changes: result_changes,
            ..PromptResult::new(outcome)
        };
        let (store, outbox) = (Arc::clone(&self.env.store), self.env.effect_outbox.clone());
        let interrupted = self.conversation.interrupted.clone();
        let committing =
            commit_retry::commit_with_retry(store, commit, outbox, interrupted).boxed();
        let committed = match guard.wait_for_store(self, committing).await {
            Ok(committed) => committed,
            Err(committing) => {
                let commit = OverdueCommit {
                    store: Arc::clone(&self.env.store),
                    lane: guard.lane.clone(),
                    records: records.clone(),
                    journalling: None,
                    committing,
                };
                self.background.start(commit.finish());
                guard.stop_renewing();
                for record in &records {
                    result.usage += record.usage;
                }
                result.loops = records;
                if let Some(pending) = pending {
                    result.changes =
                        Some(apply_winner::keep(&pending, "the prompt was cancelled").await);
                }
                return Ok(unstored_result(result));
            }
        };
        for ended in results {
            let _ = ended.stored.send(committed.clone());
        }
        // Each candidate has its commit result, so none of them waits any more.
        let mut candidates = Vec::new();
        while let Some((candidate, ended)) = running.next().await {
            if let Err(error) = ended {
                return Err(apply_winner::keep_unstored(error, pending.as_ref()).await);
            }
            candidates.push(candidate);
        }
        candidates.sort_by_key(|candidate| ids.iter().position(|id| *id == candidate.loop_id));
        let views: Vec<_> = candidates
            .iter()
            .map(|it| it.task.conversation.history.messages())
            .collect();
        let head = committed.map_err(|error| lost_error(error.to_string()))?;
        if !switches && pending.is_none() {
            guard.stop_renewing();
        }
        let title_is_new = title.is_some();
        self.adopt_winner(&records[winner], head, candidates, title);
        self.show_group(&records, winner, title_is_new, guard).await;
        for (record, messages) in records.into_iter().zip(views) {
            result.usage += record.usage;
            result.loops.push(Arc::clone(&record));
            self.notify_after_loop(record, messages, scope, guard).await;
        }
        scope.model = Some(Arc::clone(&evaluation.candidates[winner].model));
        if let Some(pending) = pending {
            let winner = ids[winner].clone();
            return self
                .apply_winner(pending, winner, result, scope, guard)
                .await;
        }
        match self.plan_next_frame(&result, ids[winner].clone()) {
            Some(plan) => self.run_loops(plan, result, limit, scope, guard).await,
            None => Ok(result),
        }
    }

    /// Starts one task for each candidate, all from the same history (C-15).
    fn start_candidates(
        &self,
        plan: &LoopPlan,
        evaluation: &Evaluation,
        scope: &PromptScope,
        guard: &PromptGuard,
        places: Vec<CandidatePlace>,
        results: &mpsc::Sender<CandidateCommit>,
    ) -> RunningCandidates {
        let candidates = evaluation.candidates.iter().zip(places);
        let begun = candidates.map(|(candidate, place)| {
            let group = GroupCommitSender {
                index: place.index,
                results: results.clone(),
            };
            let format = self.env.final_answer_format();
            let mut scope = scope.for_candidate(&candidate.model, &candidate.config, format);
            // A frame would go on in the session's folder, without the changes.
            scope.may_switch &= place.workspace.is_none();
            let candidate = CandidateRun {
                loop_id: place.loop_id.clone(),
                task: self.for_candidate(candidate, place, group),
                guard: guard.for_candidate(evaluation.cancels.clone()),
                scope,
            };
            candidate.run(plan.clone()).boxed()
        });
        begun.collect()
    }

    /// Continues the session from the winner; call ids of the others stay reserved.
    fn adopt_winner(
        &mut self,
        record: &LoopRecord,
        head: u64,
        candidates: Vec<CandidateRun>,
        title: Option<String>,
    ) {
        self.conversation.advance(head, record);
        let (winner, others): (Vec<CandidateRun>, Vec<CandidateRun>) = candidates
            .into_iter()
            .partition(|candidate| candidate.loop_id == record.loop_id);
        for candidate in winner {
            self.conversation.history = candidate.task.conversation.history;
        }
        for candidate in others {
            self.conversation
                .history
                .remember_calls(&candidate.task.conversation.history);
        }
        // A title set meanwhile is kept.
        if self.conversation.info.title.is_none() {
            self.conversation.info.title = title;
        }
    }
}

/// Compares the folders of the candidates that finished with the common start, in their order. `None` for the others.
async fn collect_changes(
    folders: Option<&CandidateFolders>,
    records: &[LoopRecord],
) -> Vec<Option<Result<FolderChanges, FolderChangesError>>> {
    let mut changes = Vec::new();
    for (index, record) in records.iter().enumerate() {
        changes.push(match folders {
            Some(folders) if judging::has_finished(record) => Some(folders.changes(index).await),
            Some(_) | None => None,
        });
    }
    changes
}

/// Returns the prompt limit that stopped one of these loops. The bound on a single response does not count.
fn stopping_limit(records: &[Arc<LoopRecord>]) -> Option<ReachedLimit> {
    let limits = records.iter().filter_map(|it| it.outcome.as_ref()?.limit());
    let mut limits = limits.filter(|limit| limit.kind != LimitKind::Answer);
    limits.next().cloned()
}

/// Collects the ended loops, which wait for the commit, in the order of the candidates.
async fn collect_results(
    running: &mut RunningCandidates,
    arrivals: &mut mpsc::Receiver<CandidateCommit>,
    count: usize,
) -> Result<Vec<CandidateCommit>, PromptError> {
    let mut results = Vec::with_capacity(count);
    while results.len() < count {
        tokio::select! {
            biased;
            Some(ended) = arrivals.recv() => results.push(ended),
            Some((_, ended)) = running.next() => {
                ended?;
                return Err(lost_error("a candidate ended without a record; this is a bug in turnery"));
            }
            else => return Err(lost_error("all candidates ended without a record; this is a bug in turnery")),
        }
    }
    results.sort_by_key(|ended| ended.index);
    Ok(results)
}

/// Returns the outcome of a group, which is that of its winner, and the limit that the group reached. The limit
/// `judge_limit` kept the judge from choosing.
fn group_outcome(
    records: &[Arc<LoopRecord>],
    winner: usize,
    judge_limit: Option<ReachedLimit>,
    budget: &Budget,
) -> (Outcome, Option<ReachedLimit>) {
    let outcome = records[winner].outcome.clone();
    let outcome = outcome.unwrap_or_else(missing_outcome);
    let known = outcome.limit().cloned();
    let known = known.or(judge_limit).or_else(|| stopping_limit(records));
    // A candidate knows what the others had spent when it ended, but not their later spending.
    let limit = match known {
        None
        | Some(ReachedLimit {
            kind: LimitKind::Tokens | LimitKind::Cost,
            ..
        }) => budget.exceeded_limit().or(known),
        other => other,
    };
    let outcome = match (outcome, &limit) {
        (Outcome::Finished(finish, _), _) => Outcome::Finished(finish, limit.clone()),
        (Outcome::Stopped(TurnStop::MaxTurns(_)), Some(limit)) => {
            Outcome::Stopped(TurnStop::MaxTurns(limit.clone()))
        }
        (other, _) => other,
    };
    (outcome, limit)
}

fn lost_error(why: impl Into<String>) -> PromptError {
    PromptError::Lost(CommitError::Store(why.into()))
}
