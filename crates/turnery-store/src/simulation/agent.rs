//! A simulated session task: it claims a lane, journals and commits loops, and delivers effects.

use super::{
    loops::{JOURNALLED_EVENTS, KnownState, PromptLoop},
    request::{Request, Response},
    schedule::{Choice, Decision},
};
use crate::{
    ClaimOutcome, Commit, Lane, LoopBeginning, NextEffect, Owner, PendingEffect, StoreError,
    TakenEffect,
};
use serde_json::json;
use std::{sync::Arc, time::Duration};
use turnery_engine::SessionId;

/// Task of one session in one process.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) session: SessionId,
    pub(crate) owner: Owner,
    known: KnownState,
    stage: Stage,
    /// True while a request of the prompt is not answered.
    is_waiting: bool,
    lane: Option<Lane>,
    loops: Vec<RunningLoop>,
    /// Lanes that were lost or given up.
    pub(crate) old_lanes: Vec<Lane>,
    /// Commits that are over, successfully or not.
    pub(crate) old_commits: Vec<Commit>,
    effect: EffectStage,
}

#[derive(Debug)]
enum Stage {
    Idle,
    /// Sends this claim, again after a failure.
    Claiming(Request),
    Prompting,
    Committing {
        commit: Commit,
        attempts: u8,
    },
    Releasing,
}

#[derive(Debug)]
enum EffectStage {
    Idle,
    Waiting,
    Delivering(TakenEffect),
}

/// A loop that is not committed yet.
#[derive(Debug)]
struct RunningLoop {
    planned: PromptLoop,
    /// Number of events that have happened.
    shown: usize,
    /// True if the journal must be written again from the first event.
    must_restart: bool,
}

impl RunningLoop {
    fn new(planned: PromptLoop) -> Self {
        Self {
            planned,
            shown: 0,
            must_restart: false,
        }
    }
}

/// Number of times that a commit is tried.
const MAX_ATTEMPTS: u8 = 4;

impl Agent {
    pub(crate) fn new(session: SessionId, owner: Owner, known: KnownState) -> Self {
        Self {
            session,
            owner,
            known,
            stage: Stage::Idle,
            is_waiting: false,
            lane: None,
            loops: Vec::new(),
            old_lanes: Vec::new(),
            old_commits: Vec::new(),
            effect: EffectStage::Idle,
        }
    }

    /// Returns the next request of the prompt; `None` while the last one is not answered.
    pub(crate) fn go_on(&mut self, choice: Choice, marks: &mut u32) -> Option<Request> {
        if self.is_waiting {
            return None;
        }
        let request = match &mut self.stage {
            Stage::Idle => {
                let request = self.plan_claim(choice, marks);
                self.stage = Stage::Claiming(request.clone());
                request
            }
            Stage::Claiming(request) => match request {
                Request::Claim {
                    session,
                    owner,
                    beginning: Some(beginning),
                } if choice.is_one_in(Decision::Kind, 3) => {
                    // The claim may have taken effect.
                    let forget = Request::ForgetJournal {
                        session: session.clone(),
                        owner: owner.clone(),
                        loop_id: beginning.loop_id.clone(),
                    };
                    self.stage = Stage::Idle;
                    return Some(forget);
                }
                request => request.clone(),
            },
            Stage::Prompting => return self.prompt(choice, marks),
            Stage::Committing { commit, attempts } => {
                *attempts += 1;
                if *attempts > MAX_ATTEMPTS {
                    self.old_commits.push(commit.clone());
                    self.release()?
                } else {
                    Request::Commit(commit.clone())
                }
            }
            Stage::Releasing => self.release()?,
        };
        self.is_waiting = true;
        Some(request)
    }

    fn plan_loops(&mut self, choice: Choice, marks: &mut u32) {
        let count = 1 + u64::from(choice.is_one_in(Decision::Loops, 4));
        let first = self.known.last_number + 1;
        let planned = (first..first + count).map(|number| {
            *marks += 1;
            RunningLoop::new(PromptLoop {
                session: self.session.clone(),
                number: u32::try_from(number).expect("a small number"),
                mark: *marks,
                parent: self.known.tip.clone(),
            })
        });
        self.loops = planned.collect();
    }

    fn plan_claim(&mut self, choice: Choice, marks: &mut u32) -> Request {
        self.plan_loops(choice, marks);
        let shown = 1 + choice.below(Decision::Amount, 4);
        let beginning = self
            .loops
            .first()
            .filter(|_| choice.is_one_in(Decision::Kind, 2));
        Request::Claim {
            session: self.session.clone(),
            owner: self.owner.clone(),
            beginning: beginning.map(|it| {
                Arc::new(LoopBeginning {
                    expected_head: self.known.head,
                    loop_id: it.planned.id(),
                    events: it.planned.events()[..shown].to_vec(),
                })
            }),
        }
    }

    fn prompt(&mut self, choice: Choice, marks: &mut u32) -> Option<Request> {
        let lane = self.lane.clone()?;
        let head = match choice.below(Decision::Kind, 16) {
            // Journals more of a loop.
            0..7 => {
                let count = self.loops.len();
                let running = &mut self.loops[choice.below(Decision::Target, count)];
                if running.shown < JOURNALLED_EVENTS || running.must_restart {
                    let first = match running.must_restart {
                        true => 0,
                        false => running.shown,
                    };
                    let more = 1 + choice.below(Decision::Amount, 3);
                    running.shown = (running.shown + more).min(JOURNALLED_EVENTS);
                    running.must_restart = false;
                    let is_awaited = !choice.is_one_in(Decision::Await, 4);
                    self.is_waiting = is_awaited;
                    return Some(Request::Append {
                        lane,
                        loop_id: running.planned.id(),
                        events: running.planned.events()[first..running.shown].to_vec(),
                        is_awaited,
                    });
                }
                self.known.head
            }
            // Uses the id of a loop that is stored.
            12 if self.known.last_number > 0 => {
                self.known.last_number -= 1;
                self.plan_loops(choice, marks);
                self.known.head
            }
            // Gives the prompt up.
            13 => return self.release().inspect(|_| self.is_waiting = true),
            // Expects another head.
            14 => self.known.head + 1,
            15 => self.known.head.saturating_sub(1),
            _ => self.known.head,
        };
        let commit = self.plan_commit(lane, head, choice);
        self.stage = Stage::Committing {
            commit: commit.clone(),
            attempts: 1,
        };
        self.is_waiting = true;
        Some(Request::Commit(commit))
    }

    fn plan_commit(&self, lane: Lane, expected_head: u64, choice: Choice) -> Commit {
        let loops = self.loops.iter().enumerate();
        let records = loops.map(|(place, it)| it.planned.record(place == 0));
        let first = self.loops.first().map(|it| &it.planned);
        let name = first.map_or_else(String::new, |it| format!("{}/{}", it.id(), it.mark));
        let effects = (0..choice.below(Decision::Effects, 3)).map(|number| PendingEffect {
            session_id: self.session.clone(),
            key: format!("{name}.{number}"),
            tool_name: "notify".to_owned(),
            effect: json!({ "number": number }),
        });
        Commit {
            lane,
            expected_head,
            records: records.collect(),
            tip: 0,
            title: None,
            release: choice.is_one_in(Decision::Release, 2),
            effects: effects.collect(),
        }
    }

    /// Gives the lane up.
    fn release(&mut self) -> Option<Request> {
        match self.lane.take() {
            Some(lane) => {
                self.old_lanes.push(lane.clone());
                self.stage = Stage::Releasing;
                Some(Request::Release(lane))
            }
            None => {
                self.stage = Stage::Idle;
                None
            }
        }
    }

    fn lose_lane(&mut self) {
        self.old_lanes.extend(self.lane.take());
        self.stage = Stage::Idle;
    }

    /// Returns a request that extends the lease.
    pub(crate) fn renew(&self) -> Option<Request> {
        self.lane.clone().map(Request::Renew)
    }

    /// Takes the answer to a request of the prompt; `None` if it failed, with or without having taken effect.
    pub(crate) fn take_answer(
        &mut self,
        request: &Request,
        response: Option<&Response>,
        choice: Choice,
        marks: &mut u32,
    ) {
        let is_awaited = !matches!(
            request,
            Request::Append {
                is_awaited: false,
                ..
            }
        );
        self.is_waiting &= !is_awaited;
        match (request, response) {
            (Request::Claim { beginning, .. }, Some(Response::Claimed(Ok(outcome)))) => {
                let shown = beginning.as_ref().map_or(0, |it| it.events.len());
                self.begin_prompt(outcome, shown, choice, marks);
            }
            (Request::Claim { .. }, Some(_)) => self.stage = Stage::Idle,
            (Request::Append { loop_id, .. }, None) => {
                for running in &mut self.loops {
                    running.must_restart |= running.planned.id() == *loop_id;
                }
            }
            (Request::Append { .. }, Some(Response::Done(Err(_)))) => self.lose_lane(),
            (Request::Commit(commit), Some(Response::Committed(result))) => match result {
                Ok(version) => {
                    self.known.head = *version;
                    self.known.tip = commit.records.first().map(|it| it.loop_id.clone());
                    self.known.last_number += commit.records.len() as u64;
                    self.old_commits.push(commit.clone());
                    if commit.release {
                        self.lose_lane();
                    } else {
                        self.plan_loops(choice, marks);
                        self.stage = Stage::Prompting;
                    }
                }
                Err(StoreError::HeadConflict { .. } | StoreError::CommitMismatch(_)) => {
                    self.stage = Stage::Releasing;
                }
                Err(_) => self.lose_lane(),
            },
            (Request::Release(_), _) => self.stage = Stage::Idle,
            _ => {}
        }
    }

    fn begin_prompt(
        &mut self,
        outcome: &ClaimOutcome,
        shown: usize,
        choice: Choice,
        marks: &mut u32,
    ) {
        let claimed = &outcome.claimed_lane;
        self.old_lanes.extend(self.lane.take());
        self.lane = Some(claimed.lane.clone());
        self.known = KnownState {
            head: claimed.info.head_version,
            tip: claimed.info.tip_loop_id.clone(),
            last_number: claimed.last_number,
        };
        match self.loops.first_mut() {
            Some(first) if outcome.is_journalled => first.shown = shown,
            _ => self.plan_loops(choice, marks),
        }
        self.stage = Stage::Prompting;
    }

    /// Takes the answer to a renewal.
    pub(crate) fn take_renewal(&mut self, request: &Request, response: Option<&Response>) {
        let is_lost = matches!(response, Some(Response::Done(Err(StoreError::LaneLost(_)))));
        let Request::Renew(lane) = request else {
            return;
        };
        if is_lost && self.lane.as_ref() == Some(lane) && !self.is_waiting {
            self.lose_lane();
        }
    }

    /// Returns the next request about effects.
    pub(crate) fn deliver(&mut self, choice: Choice) -> Option<Request> {
        match std::mem::replace(&mut self.effect, EffectStage::Waiting) {
            EffectStage::Idle => Some(Request::TakeEffect {
                session: self.session.clone(),
                owner: self.owner.clone(),
            }),
            EffectStage::Waiting => None,
            EffectStage::Delivering(taken) => Some(match choice.is_one_in(Decision::Kind, 4) {
                true => {
                    let seconds = 5 + choice.below(Decision::Amount, 100) as u64;
                    Request::PostponeEffect(taken, Duration::from_secs(seconds))
                }
                false => Request::FinishEffect(taken),
            }),
        }
    }

    /// Takes the answer to a request about effects.
    pub(crate) fn take_effect_answer(&mut self, response: Option<&Response>) {
        self.effect = match response {
            Some(Response::Effect(Ok(NextEffect::Taken(taken)))) => {
                EffectStage::Delivering(taken.clone())
            }
            _ => EffectStage::Idle,
        };
    }

    /// Returns a request under a lane that is over, or a repeated commit.
    pub(crate) fn use_old_lane(
        &mut self,
        choice: Choice,
        current: Option<&Lane>,
        head: u64,
        marks: &mut u32,
    ) -> Option<Request> {
        let kind = choice.below(Decision::Kind, 6);
        if kind == 5 {
            let count = self.old_commits.len();
            let place = choice.below(Decision::Target, count.max(1));
            return self.old_commits.get(place).cloned().map(Request::Commit);
        }
        let count = self.old_lanes.len();
        let place = choice.below(Decision::Target, count.max(1));
        let lane = self.old_lanes.get(place)?.clone();
        if Some(&lane) == current {
            // Its release is under way.
            return None;
        }
        *marks += 1;
        let planned = PromptLoop {
            session: self.session.clone(),
            number: u32::try_from(self.known.last_number + 1).expect("a small number"),
            mark: *marks,
            parent: self.known.tip.clone(),
        };
        Some(match kind {
            0 => Request::Renew(lane),
            1 => Request::Release(lane),
            2 => Request::Append {
                lane,
                loop_id: planned.id(),
                events: planned.events()[..4].to_vec(),
                is_awaited: true,
            },
            _ => Request::Commit(Commit {
                lane,
                expected_head: head,
                records: vec![planned.record(true)],
                tip: 0,
                title: None,
                release: true,
                effects: Vec::new(),
            }),
        })
    }
}
