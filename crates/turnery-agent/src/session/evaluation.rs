//! Runs a prompt under several configurations at once and continues the session from the winner. One lane,
//! one commit, one answer (UP-17, R4, S6).

mod candidate;
mod group_output;

use super::{
    PromptError, PromptResult,
    background::OverdueCommit,
    budget::Budget,
    command::EvaluationRequest,
    commit_retry,
    group_commit::{CandidateCommit, GroupCommitSender},
    loop_plan::LoopPlan,
    prompt_guard::PromptGuard,
    prompt_run::{refused_result, unstored_result},
    prompt_scope::PromptScope,
    result::{PromptEnd, missing_outcome},
    running_call::{RunningModel, StreamItem},
    task::SessionTask,
};
use crate::{
    cancels::Cancels,
    evaluate::{JudgeInput, SelectionStrategy, final_answer},
    trace_sink::ModelCallContext,
};
use candidate::CandidateRun;
use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use std::{future::poll_fn, sync::Arc, time::Duration};
use tokio::{
    sync::mpsc,
    time::{Instant, timeout},
};
use turnery_engine::{
    CommitError, Content, LimitKind, LoopId, LoopRecord, Outcome, ReachedLimit, TurnStop, Usage,
    parallel_group::{
        JudgeReport, eligible_candidates, parallel_start_event, parse_judge_reply, record_winner,
        select_candidate,
    },
    usage::source,
};
use turnery_models::{Model, Thinking};
use turnery_store::Commit;

/// Time that the group waits for its candidates after a cancel. Practically unlimited, because each candidate
/// ends within its own grace period.
const CANDIDATE_GRACE: Duration = Duration::from_secs(24 * 60 * 60);

/// Evaluation with its models resolved.
pub(super) struct Evaluation {
    candidates: Vec<(Arc<dyn Model>, Option<Thinking>)>,
    strategy: SelectionStrategy,
    judge: Arc<dyn Model>,
    cancels: Cancels,
}

impl Evaluation {
    /// Returns the models that the evaluation may call.
    pub(super) fn models(&self) -> Vec<&Arc<dyn Model>> {
        let judge = match self.strategy {
            SelectionStrategy::Judge(_) => Some(&self.judge),
            SelectionStrategy::First
            | SelectionStrategy::FewestTokens
            | SelectionStrategy::MostTokens => None,
        };
        let candidates = self.candidates.iter().map(|(model, _)| model);
        candidates.chain(judge).collect()
    }
}

/// Winner, the judge's report, and the limit that kept the judge from choosing.
struct WinnerDecision {
    winner: usize,
    judge_report: JudgeReport,
    limit: Option<ReachedLimit>,
}

type RunningCandidates =
    FuturesUnordered<BoxFuture<'static, (CandidateRun, Result<(), PromptError>)>>;

impl SessionTask {
    /// Resolves the models of an evaluation. Starts nothing.
    pub(super) fn resolve_evaluation(
        &self,
        request: EvaluationRequest,
        own: Option<&Arc<dyn Model>>,
        cancels: Cancels,
    ) -> Result<Evaluation, PromptError> {
        let own = own.unwrap_or(&self.env.model);
        let found = request.candidates.iter().map(|candidate| {
            let model = self.env.models.model(&candidate.model)?;
            Ok((model, candidate.thinking))
        });
        let mut candidates = found.collect::<Result<Vec<_>, PromptError>>()?;
        if candidates.is_empty() {
            candidates.push((Arc::clone(own), None));
        }
        let judge = match &request.strategy {
            SelectionStrategy::Judge(Some(name)) => self.env.models.model(name)?,
            SelectionStrategy::Judge(None)
            | SelectionStrategy::First
            | SelectionStrategy::FewestTokens
            | SelectionStrategy::MostTokens => Arc::clone(own),
        };
        Ok(Evaluation {
            candidates,
            strategy: request.strategy,
            judge,
            cancels,
        })
    }

    /// Runs all candidates, selects the winner, commits and shows it.
    pub(super) async fn run_evaluation(
        &mut self,
        mut plan: LoopPlan,
        evaluation: Evaluation,
        scope: &mut PromptScope,
        guard: &mut PromptGuard,
    ) -> PromptEnd {
        let mut ids = Vec::new();
        for (model, _) in &evaluation.candidates {
            scope.model = Some(Arc::clone(model));
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
        let mut running = self.start_candidates(&plan, &evaluation, scope, guard, &ids, &sender);
        drop(sender);
        let collected = collect_results(&mut running, &mut arrivals, ids.len());
        let results = guard.run_guarded(self, collected, CANDIDATE_GRACE).await?;
        let results = results
            .ok_or_else(|| lost_error("a candidate did not end although it was cancelled"))??;
        let mut records: Vec<LoopRecord> = results
            .iter()
            .map(|ended| LoopRecord::clone(&ended.commit.records[0]))
            .collect();
        scope.budget.add_time(began.elapsed());
        let began = Instant::now();
        let WinnerDecision {
            winner,
            judge_report,
            limit,
        } = self
            .choose_winner(&plan, &evaluation, &records, scope, guard)
            .await;
        scope.budget.add_time(began.elapsed());
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
            release: !switches,
            // What the other candidates requested never happens.
            effects: results[winner].commit.effects.clone(),
        };
        let (outcome, limit) = group_outcome(&records, winner, limit, &scope.budget);
        let mut result = PromptResult::new(outcome);
        let (store, outbox) = (Arc::clone(&self.env.store), self.env.effect_outbox.clone());
        let committing = commit_retry::commit_with_retry(store, commit, outbox).boxed();
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
                return Ok(unstored_result(result));
            }
        };
        for ended in results {
            let _ = ended.stored.send(committed.clone());
        }
        // Each candidate has its commit result, so none of them waits any more.
        let mut candidates = Vec::new();
        while let Some((candidate, ended)) = running.next().await {
            ended?;
            candidates.push(candidate);
        }
        candidates.sort_by_key(|candidate| ids.iter().position(|id| *id == candidate.loop_id));
        let views: Vec<_> = candidates
            .iter()
            .map(|it| it.task.conversation.history.messages())
            .collect();
        let head = committed.map_err(|error| lost_error(error.to_string()))?;
        if !switches {
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
        scope.model = Some(Arc::clone(&evaluation.candidates[winner].0));
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
        ids: &[LoopId],
        results: &mpsc::Sender<CandidateCommit>,
    ) -> RunningCandidates {
        let candidates = evaluation.candidates.iter().zip(ids).enumerate();
        let begun = candidates.map(|(index, ((model, thinking), loop_id))| {
            let group = GroupCommitSender {
                index,
                results: results.clone(),
            };
            let candidate = CandidateRun {
                loop_id: loop_id.clone(),
                task: self.for_candidate(model, group),
                guard: guard.for_candidate(evaluation.cancels.clone()),
                scope: scope.for_candidate(model, *thinking),
            };
            candidate.run(plan.clone()).boxed()
        });
        begun.collect()
    }

    /// Selects the winner, with the judge's help if the prompt has a turn left for that.
    async fn choose_winner(
        &mut self,
        plan: &LoopPlan,
        evaluation: &Evaluation,
        records: &[LoopRecord],
        scope: &PromptScope,
        guard: &mut PromptGuard,
    ) -> WinnerDecision {
        let eligible = eligible_candidates(records);
        let rule = evaluation.strategy.selection_rule();
        let mut decision = WinnerDecision {
            winner: select_candidate(records, &eligible, rule),
            judge_report: JudgeReport::default(),
            limit: None,
        };
        if !matches!(evaluation.strategy, SelectionStrategy::Judge(_)) || eligible.len() < 2 {
            return decision;
        }
        let name = evaluation.judge.info().name.clone();
        let undecided = |what: &str, why: &str| {
            Some(format!(
                "the judge {name} {what} ({why}), so the first answer was taken"
            ))
        };
        if let Err(limit) = scope.budget.take_turn() {
            decision.judge_report.issue = undecided("was not asked", &limit.text);
            decision.limit = Some(limit);
            return decision;
        }
        let history = plan
            .base_history
            .as_ref()
            .unwrap_or(&self.conversation.history);
        let answers = eligible.iter().map(|it| final_answer(&records[*it]));
        let request = JudgeInput {
            session_id: self.conversation.info.id.clone(),
            earlier: &history.messages(),
            input: &plan.input,
            answers: answers.collect(),
        }
        .to_request();
        let call = ModelCallContext {
            session_id: self.conversation.info.id.clone(),
            loop_id: records[0].loop_id.clone(),
            source: source::EVALUATION,
            model: &name,
        };
        let tracer = self.env.tracer.clone();
        let judge = Arc::clone(&evaluation.judge);
        let judged = timeout(scope.budget.time_left(), async {
            let mut running = RunningModel::start(judge, request, tracer.begin(call));
            loop {
                if let StreamItem::End(end) = poll_fn(|cx| running.poll(cx, true)).await {
                    return end;
                }
            }
        });
        decision.judge_report.model = Some(name.to_string());
        let why = match guard.run_guarded(self, judged, Duration::ZERO).await {
            Ok(Some(Ok(Ok(response)))) => {
                let usage = response.usage.map(Usage::normalized).unwrap_or_default();
                let price = self.env.price(&*evaluation.judge);
                scope.budget.add_call_usage(&usage, price);
                decision.judge_report.usage = usage;
                let reply = response.content.iter().filter_map(Content::as_text);
                let choice = parse_judge_reply(&reply.collect::<String>(), eligible.len());
                if let Some(place) = choice {
                    decision.winner = eligible[place];
                    return decision;
                }
                "it named no answer".to_owned()
            }
            Ok(Some(Ok(Err(error)))) => error.to_string(),
            Ok(Some(Err(_))) => {
                let limit = decision.limit.insert(scope.budget.duration_limit());
                limit.text.clone()
            }
            Ok(None) => "the prompt was cancelled".to_owned(),
            // The commit will report it.
            Err(_) => "the session was taken over".to_owned(),
        };
        decision.judge_report.issue = undecided("did not choose", &why);
        decision
    }

    /// Continues the session from the winner; call ids of the others stay reserved.
    fn adopt_winner(
        &mut self,
        record: &LoopRecord,
        head: u64,
        candidates: Vec<CandidateRun>,
        title: Option<String>,
    ) {
        self.conversation.info.head_version = head;
        self.conversation.info.updated_at = turnery_store::now();
        if record.on_chain {
            self.conversation.info.tip_loop_id = Some(record.loop_id.clone());
            self.conversation.frame_id.clone_from(&record.frame_id);
        }
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
