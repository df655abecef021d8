//! Evaluating: a prompt under several configurations at once, one of which becomes what the session goes
//! on from. One lane, one commit, one answer (UP-17, R4, S6).

mod entrant;
mod showing;

use super::{
    CANDIDATES, PromptError, PromptOptions, PromptResult, Session, StartError, Task, Ticket,
    background::OverdueCommit,
    committing,
    leaf::{RunningModel, Said},
    mail::{Tries, Work},
    plan::Plan,
    prompting::{Scope, not_stored, refused},
    task::PromptEnd,
    watch::{Attended, Watch},
};
use crate::{
    CancellationToken, Candidate, Pick,
    evaluate::{Case, answer_of},
    sink::Listener,
    trace_sink::Call,
};
use entrant::{Entrant, GroupStore, Offer};
use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use std::{future::poll_fn, sync::Arc, time::Duration};
use tokio::{
    sync::mpsc,
    time::{Instant, timeout},
};
use turnery_engine::{
    CommitFault, Content, Detail, LimitKind, LoopId, LoopRecord, Outcome, TurnStop, Usage,
    group::{Judged, announcement, eligible, named, preferred, settle},
    usage::source,
};
use turnery_models::{Model, Thinking};
use turnery_store::Commit;

/// Candidates hear a cancel themselves and end within their own grace.
const UNHURRIED: Duration = Duration::from_secs(24 * 60 * 60);

/// A contest, with its models found.
pub(super) struct Contest {
    entrants: Vec<(Arc<dyn Model>, Option<Thinking>)>,
    pick: Pick,
    judge: Arc<dyn Model>,
    /// What cancels the prompt.
    cancel: (CancellationToken, CancellationToken),
}

impl Contest {
    /// The models that it may call.
    pub(super) fn models(&self) -> Vec<&Arc<dyn Model>> {
        let judge = match self.pick {
            Pick::Judge(_) => Some(&self.judge),
            Pick::First | Pick::FewestTokens | Pick::MostTokens => None,
        };
        let entrants = self.entrants.iter().map(|(model, _)| model);
        entrants.chain(judge).collect()
    }
}

/// Who wins, what that took, and the limit that kept the judge from choosing.
struct Decision {
    winner: usize,
    judged: Judged,
    limit: Option<Detail>,
}

type Running = FuturesUnordered<BoxFuture<'static, (Entrant, Result<(), PromptError>)>>;

impl Session {
    /// Queue a prompt that is tried under several configurations at once (LOOP-70); without any, under
    /// the session's own. One wins: its answer is shown, and the next prompt follows it. The others are
    /// kept as well, and can be gone on from with [`branch`](Self::branch).
    ///
    /// The candidates are no freer than [`Mode::Plan`](turnery_tools::Mode::Plan): they are at work in
    /// one folder, so they read and search, and change nothing. What is said to the prompt meanwhile
    /// becomes the next prompt. An empty input lets the model go on, as [`go_on`](Self::go_on) does.
    /// Hooks are asked in each of them; one that does not let a candidate begin does not let any begin.
    /// Sub-agents of a candidate change nothing either. At most [`CANDIDATES`] are taken.
    /// The result's loops are those of all candidates, in their order, and so is its usage; what a
    /// judge spent stands in their `parallel_group`.
    pub fn evaluate(
        &self,
        input: Vec<Content>,
        candidates: Vec<Candidate>,
        pick: Pick,
        options: PromptOptions,
    ) -> Result<Ticket, StartError> {
        if candidates.len() > CANDIDATES {
            return Err(StartError::Candidates(candidates.len()));
        }
        let work = match input.is_empty() {
            true => Work::Continue,
            false => Work::Say(input),
        };
        let tries = Tries { candidates, pick };
        self.queue_for(work, options, Listener::default(), Some(tries))
    }
}

impl Task {
    /// Find the models of a contest. Nothing has begun yet.
    pub(super) fn contest(
        &self,
        tries: Tries,
        own: Option<&Arc<dyn Model>>,
        cancel: (CancellationToken, CancellationToken),
    ) -> Result<Contest, PromptError> {
        let own = own.unwrap_or(&self.model);
        let found = tries.candidates.iter().map(|candidate| {
            let model = self.models.model(&candidate.model)?;
            Ok((model, candidate.thinking))
        });
        let mut entrants = found.collect::<Result<Vec<_>, PromptError>>()?;
        if entrants.is_empty() {
            entrants.push((Arc::clone(own), None));
        }
        let judge = match &tries.pick {
            Pick::Judge(Some(name)) => self.models.model(name)?,
            Pick::Judge(None) | Pick::First | Pick::FewestTokens | Pick::MostTokens => {
                Arc::clone(own)
            }
        };
        Ok(Contest {
            entrants,
            pick: tries.pick,
            judge,
            cancel,
        })
    }

    /// Run all candidates, choose, commit, and show the winner.
    pub(super) async fn evaluate(
        &mut self,
        mut plan: Plan,
        contest: Contest,
        scope: &mut Scope,
        watch: &mut Watch,
    ) -> PromptEnd {
        let mut ids = Vec::new();
        for (model, _) in &contest.entrants {
            scope.model = Some(Arc::clone(model));
            let loop_id = scope.next_loop(self);
            if let Err(reason) = self.may_begin(&plan, &loop_id, scope, watch).await? {
                return Ok(refused(reason));
            }
            ids.push(loop_id);
        }
        let now = turnery_store::now();
        for loop_id in &ids {
            let event = announcement(&self.info.id, loop_id, &ids, now);
            self.store.append(&watch.lane, loop_id, vec![event]);
        }
        plan.group.clone_from(&ids);
        let began = Instant::now();
        let (sender, mut arrivals) = mpsc::channel(ids.len());
        let mut running = self.begin_all(&plan, &contest, scope, watch, &ids, &sender);
        drop(sender);
        let gathered = gather(&mut running, &mut arrivals, ids.len());
        let offers = attended(watch.attend(self, gathered, UNHURRIED).await)??;
        let mut records: Vec<LoopRecord> = offers
            .iter()
            .map(|offer| LoopRecord::clone(&offer.commit.records[0]))
            .collect();
        scope.budget.add_time(began.elapsed());
        let began = Instant::now();
        let decision = self.choose(&plan, &contest, &records, scope, watch).await;
        scope.budget.add_time(began.elapsed());
        let Decision {
            winner,
            judged,
            limit,
        } = decision;
        settle(&mut records, winner, &judged);
        let records: Vec<Arc<LoopRecord>> = records.into_iter().map(Arc::new).collect();
        let title = offers[winner].commit.title.clone();
        let switches = matches!(records[winner].outcome, Some(Outcome::FrameSwitch { .. }));
        let commit = Commit {
            lane: watch.lane.clone(),
            expected_head: self.info.head_version,
            records: records.clone(),
            tip: winner,
            title: title.clone(),
            release: !switches,
        };
        let outcome = records[winner].outcome.clone();
        let outcome = outcome.unwrap_or(Outcome::Stopped(TurnStop::RuntimeError));
        let known = records[winner].detail.clone();
        let detail = match &outcome {
            Outcome::Finished(_) | Outcome::FrameSwitch { .. } => {
                known.or(limit).or_else(|| limit_of(&records))
            }
            Outcome::Stopped(_) => known,
        };
        // A candidate knows what the others had spent when it ended, not what they spent afterwards.
        let detail = match detail {
            None
            | Some(Detail::Limit {
                kind: LimitKind::Tokens | LimitKind::Cost,
                ..
            }) => scope.budget.passed().or(detail),
            other => other,
        };
        let mut result = PromptResult::new(outcome, detail);
        let committing = committing::commit(Arc::clone(&self.store), commit).boxed();
        let committed = match watch.wait_for_store(self, committing).await {
            Ok(committed) => committed,
            Err(committing) => {
                let commit = OverdueCommit {
                    store: Arc::clone(&self.store),
                    lane: watch.lane.clone(),
                    records: records.clone(),
                    journalling: None,
                    committing,
                };
                self.background.start(commit.finish());
                watch.stop_renewing();
                result.usage = records.iter().map(|record| record.usage).fold(
                    result.usage,
                    |mut sum, usage| {
                        sum += usage;
                        sum
                    },
                );
                result.loops = records;
                return Ok(not_stored(result));
            }
        };
        for offer in offers {
            let _ = offer.stored.send(committed.clone());
        }
        // Each has its answer, so none of them waits any more.
        let mut entrants = Vec::new();
        while let Some((entrant, ended)) = running.next().await {
            ended?;
            entrants.push(entrant);
        }
        entrants.sort_by_key(|entrant| ids.iter().position(|id| *id == entrant.loop_id));
        let views: Vec<_> = entrants
            .iter()
            .map(|it| it.task.history.messages())
            .collect();
        let head = committed.map_err(|error| lost(error.to_string()))?;
        if !switches {
            watch.stop_renewing();
        }
        let title_is_new = title.is_some();
        self.follow(&records[winner], head, entrants, title);
        self.show(&records, winner, title_is_new, watch).await;
        for (record, messages) in records.into_iter().zip(views) {
            result.usage += record.usage;
            result.loops.push(Arc::clone(&record));
            self.tell_of(record, messages, scope, watch).await;
        }
        scope.model = Some(Arc::clone(&contest.entrants[winner].0));
        match self.next_frame(&result, ids[winner].clone()) {
            Some(plan) => self.loops_of(plan, result, scope, watch).await,
            None => Ok(result),
        }
    }

    /// One task for each candidate, all from the same place (C-15).
    fn begin_all(
        &self,
        plan: &Plan,
        contest: &Contest,
        scope: &Scope,
        watch: &Watch,
        ids: &[LoopId],
        offers: &mpsc::Sender<Offer>,
    ) -> Running {
        let entrants = contest.entrants.iter().zip(ids).enumerate();
        let begun = entrants.map(|(place, ((model, thinking), loop_id))| {
            let store = GroupStore {
                session_id: self.info.id.clone(),
                store: Arc::clone(&self.store),
                place,
                offers: offers.clone(),
            };
            let (cancel, cancel_all) = contest.cancel.clone();
            let entrant = Entrant {
                loop_id: loop_id.clone(),
                task: self.for_candidate(model, *thinking, store),
                watch: watch.of_candidate(cancel, cancel_all),
                scope: scope.with_model(model),
            };
            entrant.run(plan.clone()).boxed()
        });
        begun.collect()
    }

    /// Finds the winner, with the judge's help if the prompt has a turn left for that.
    async fn choose(
        &mut self,
        plan: &Plan,
        contest: &Contest,
        records: &[LoopRecord],
        scope: &Scope,
        watch: &mut Watch,
    ) -> Decision {
        let eligible = eligible(records);
        let first = preferred(records, &eligible, contest.pick.preference());
        if !matches!(contest.pick, Pick::Judge(_)) || eligible.len() < 2 {
            return Decision {
                winner: first,
                judged: Judged::default(),
                limit: None,
            };
        }
        let name = contest.judge.info().name.clone();
        let undecided = |what: &str, why: &str| {
            Some(format!(
                "the judge {name} {what} ({why}), so the first answer was taken"
            ))
        };
        if let Err(limit) = scope.budget.take_turn() {
            let why = limit.sentence().unwrap_or_default();
            return Decision {
                winner: first,
                judged: Judged {
                    issue: undecided("was not asked", why),
                    ..Judged::default()
                },
                limit: Some(limit),
            };
        }
        let history = plan.base.as_ref().unwrap_or(&self.history).messages();
        let request = Case {
            session_id: self.info.id.clone(),
            earlier: &history,
            input: &plan.input,
            answers: eligible.iter().map(|it| answer_of(&records[*it])).collect(),
        }
        .request();
        let call = Call {
            session_id: self.info.id.clone(),
            loop_id: records[0].loop_id.clone(),
            source: source::EVALUATION,
            model: &name,
        };
        let tracing = self.tracing.clone();
        let judge = Arc::clone(&contest.judge);
        let asked = async {
            let mut running = RunningModel::call(judge, request, tracing.begin(call));
            loop {
                if let Said::End(end) = poll_fn(|cx| running.poll(cx, true)).await {
                    return end;
                }
            }
        };
        let mut judged = Judged {
            model: Some(name.to_string()),
            ..Judged::default()
        };
        let mut choice = None;
        let mut limit = None;
        let asked = timeout(scope.budget.time_left(), asked);
        let why = match watch.attend(self, asked, Duration::ZERO).await {
            Attended::Done(Ok(Ok(response))) => {
                judged.usage = response.usage.map(Usage::consistent).unwrap_or_default();
                let price = self.price(&*contest.judge);
                scope.budget.add_answer(&judged.usage, price);
                let reply = response.content.iter().filter_map(Content::as_text);
                choice = named(&reply.collect::<String>(), eligible.len());
                "it named no answer".to_owned()
            }
            Attended::Done(Ok(Err(fault))) => fault.to_string(),
            Attended::Done(Err(_)) => {
                let reached = limit.insert(scope.budget.time_up());
                reached.sentence().unwrap_or_default().to_owned()
            }
            Attended::Cancelled => "the prompt was cancelled".to_owned(),
            // The commit will say so.
            Attended::LaneLost => "the session was taken over".to_owned(),
        };
        match choice {
            Some(place) => Decision {
                winner: eligible[place],
                judged,
                limit,
            },
            None => {
                judged.issue = undecided("did not choose", &why);
                Decision {
                    winner: first,
                    judged,
                    limit,
                }
            }
        }
    }

    /// The session goes on from the winner, and no call of the others is ever made again by its id.
    fn follow(
        &mut self,
        record: &LoopRecord,
        head: u64,
        entrants: Vec<Entrant>,
        title: Option<String>,
    ) {
        self.info.head_version = head;
        self.info.updated_at = turnery_store::now();
        if record.on_chain {
            self.info.tip_loop_id = Some(record.loop_id.clone());
            self.frame_id.clone_from(&record.frame_id);
        }
        let (winner, others): (Vec<Entrant>, Vec<Entrant>) = entrants
            .into_iter()
            .partition(|entrant| entrant.loop_id == record.loop_id);
        for entrant in winner {
            self.history = entrant.task.history;
        }
        for entrant in others {
            self.history.remember(&entrant.task.history);
        }
        // One that was given meanwhile stays.
        if self.info.title.is_none() {
            self.info.title = title;
        }
    }
}

/// The limit of the prompt that stopped one of these loops. The bound on one answer is no such limit.
fn limit_of(records: &[Arc<LoopRecord>]) -> Option<Detail> {
    let limits = records.iter().filter_map(|record| record.detail.as_ref());
    let mut limits = limits.filter(|detail| match detail {
        Detail::Limit { kind, .. } => *kind != LimitKind::Answer,
        Detail::Provider { .. }
        | Detail::Refusal
        | Detail::Rejection { .. }
        | Detail::Runtime { .. }
        | Detail::Continued { .. } => false,
    });
    limits.next().cloned()
}

/// All loops, each over and waiting for the commit, in the order of the configurations.
async fn gather(
    running: &mut Running,
    arrivals: &mut mpsc::Receiver<Offer>,
    count: usize,
) -> Result<Vec<Offer>, PromptError> {
    let mut offers = Vec::with_capacity(count);
    while offers.len() < count {
        tokio::select! {
            biased;
            Some(offer) = arrivals.recv() => offers.push(offer),
            Some((_, ended)) = running.next() => {
                ended?;
                return Err(lost("a candidate ended without a record; this is a fault of turnery"));
            }
            else => return Err(lost("the candidates are gone; this is a fault of turnery")),
        }
    }
    offers.sort_by_key(|offer| offer.place);
    Ok(offers)
}

fn attended<T>(attended: Attended<T>) -> Result<T, PromptError> {
    match attended {
        Attended::Done(done) => Ok(done),
        Attended::LaneLost => Err(PromptError::Lost(CommitFault::LaneLost)),
        Attended::Cancelled => Err(lost("a candidate did not end although it was cancelled")),
    }
}

fn lost(why: impl Into<String>) -> PromptError {
    PromptError::Lost(CommitFault::Store(why.into()))
}
