//! Checks that the answers of a store make a possible history: that of one holder after the other, each commit once.
//!
//! It sees every request in the order in which they take effect, and every answer, even those that are lost on their way
//! to the caller. For each session it knows what must be stored, and what may be.

mod answers;
mod known_session;

use super::{
    backend::{Backend, BackendKind},
    loops::{KnownState, mark_of},
    promise::{Check, Violation, require},
    request::{Request, Response},
};
use crate::{
    ClaimOutcome, Commit, Lane, LoopBeginning, NextEffect, Owner, PendingEffect, StoreError,
};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};
use turnery_engine::{Event, LoopId, LoopRecord, LoopStatus, SessionId};

/// Process that sends a request, with the true time of its execution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    /// Unit: milliseconds.
    pub(crate) now: u64,
    pub(crate) pid: u32,
    pub(crate) machine: usize,
}

/// Period of a lease. Unit: milliseconds.
const LEASE: u64 = 30_000;

/// Period by which a process keeps longer what it holds, if the other process is on its machine. Unit: milliseconds.
const LOCAL_EXTENSION: u64 = 60_000;

/// Difference of clocks that the stores tolerate. It is also the greatest one that occurs, unless clocks are wild. Unit:
/// milliseconds.
pub(crate) const SKEW: u64 = 60_000;

/// A heartbeat that is younger is not written again. Unit: milliseconds.
const HEARTBEAT_INTERVAL: u64 = 5_000;

/// Process that holds a lane or an effect.
#[derive(Clone, Copy, Debug)]
struct Hold {
    pid: u32,
    machine: usize,
    /// Earliest time from which the lease may count.
    from: u64,
    /// Latest time from which the lease may count.
    until: u64,
}

#[derive(Clone, Debug)]
struct Holder {
    owner_id: String,
    fence: u64,
    hold: Hold,
}

/// Events of a loop that has no commit.
#[derive(Clone, Debug, Default)]
struct JournalledLoop {
    /// Events that may be stored.
    sent: Vec<Event>,
    /// Number of events that must be stored.
    acknowledged: usize,
    /// True if events may be missing that nobody has awaited: those that a refused commit would have settled.
    may_have_gap: bool,
}

impl JournalledLoop {
    /// Takes notice of an answer that all events are written.
    fn acknowledge(&mut self) {
        if !self.may_have_gap {
            self.acknowledged = self.sent.len();
        }
    }
}

#[derive(Clone, Debug)]
struct KnownEffect {
    pending: PendingEffect,
    attempts: u32,
    taker: Option<Hold>,
    /// Time until which the effect is postponed.
    postponed_until: Option<u64>,
}

#[derive(Clone, Debug)]
struct KnownSession {
    id: SessionId,
    is_deleted: bool,
    generation: u64,
    holder: Option<Holder>,
    /// True if a recovery may have revoked the lane.
    may_be_revoked: bool,
    head: u64,
    tip: Option<LoopId>,
    /// Loops with their versions.
    loops: Vec<(u64, Arc<LoopRecord>)>,
    journal: BTreeMap<LoopId, JournalledLoop>,
    /// Loop whose first events were journalled by the claim. A commit of any loop may drop them.
    begun: Option<LoopId>,
    /// Greatest number of a loop that was stored, or refused because of the head.
    last_number: u64,
    effects: Vec<KnownEffect>,
}

/// Everything that is known about a store.
#[derive(Clone, Debug)]
pub(crate) struct History {
    kind: BackendKind,
    /// True if the wall clocks of the machines differ by more than is tolerated.
    has_wild_clocks: bool,
    sessions: Vec<KnownSession>,
    running: BTreeSet<u32>,
    /// Earliest and latest time of the last heartbeat of each process.
    heartbeats: HashMap<u32, (u64, u64)>,
}

impl History {
    pub(crate) fn new(kind: BackendKind, has_wild_clocks: bool, sessions: &[SessionId]) -> Self {
        let sessions = sessions.iter().map(|id| KnownSession {
            id: id.clone(),
            is_deleted: false,
            generation: 0,
            holder: None,
            may_be_revoked: false,
            head: 0,
            tip: None,
            loops: Vec::new(),
            journal: BTreeMap::new(),
            begun: None,
            last_number: 0,
            effects: Vec::new(),
        });
        Self {
            kind,
            has_wild_clocks,
            sessions: sessions.collect(),
            running: BTreeSet::new(),
            heartbeats: HashMap::new(),
        }
    }

    pub(crate) fn start_process(&mut self, pid: u32) {
        self.running.insert(pid);
    }

    pub(crate) fn end_process(&mut self, pid: u32) {
        self.running.remove(&pid);
    }

    pub(crate) fn is_deleted(&self, session: usize) -> bool {
        self.sessions[session].is_deleted
    }

    /// Returns the current head of a session.
    pub(crate) fn head(&self, session: &SessionId) -> u64 {
        self.sessions[self.place(session)].head
    }

    /// Returns what an agent that opens a session gets to know.
    pub(crate) fn state(&self, session: usize) -> KnownState {
        let session = &self.sessions[session];
        KnownState {
            head: session.head,
            tip: session.tip.clone(),
            last_number: session.last_number,
        }
    }

    /// Returns the loops in the journal of a session, with the holder.
    pub(crate) fn journal(&self, session: &SessionId) -> Option<(Owner, Vec<LoopId>)> {
        let session = &self.sessions[self.place(session)];
        let holder = session.holder.as_ref()?;
        let owner = Owner {
            id: holder.owner_id.clone(),
            process: String::new(),
        };
        Some((owner, session.journal.keys().cloned().collect()))
    }

    /// Returns the lane that is held.
    pub(crate) fn lane(&self, session: &SessionId) -> Option<Lane> {
        let session = &self.sessions[self.place(session)];
        session.holder.as_ref().map(|holder| Lane {
            session_id: session.id.clone(),
            owner_id: holder.owner_id.clone(),
            fence: holder.fence,
        })
    }

    /// Returns true if the process that holds the lane runs.
    pub(crate) fn is_holder_running(&self, session: &SessionId) -> bool {
        let holder = self.sessions[self.place(session)].holder.as_ref();
        holder.is_some_and(|holder| self.running.contains(&holder.hold.pid))
    }

    /// Returns true if all loops of a commit are stored.
    pub(crate) fn is_stored(&self, commit: &Commit) -> bool {
        let session = &self.sessions[self.place(&commit.lane.session_id)];
        let mut records = commit.records.iter();
        records.all(|record| {
            session
                .find(&record.loop_id)
                .is_some_and(|(_, it)| it == record)
        })
    }

    fn place(&self, id: &SessionId) -> usize {
        let place = self.sessions.iter().position(|session| session.id == *id);
        place.expect("a session of the simulation")
    }

    /// Returns true if nobody may take what the process holds.
    fn must_keep(&self, hold: Hold, caller: Caller) -> bool {
        let is_same_machine = hold.machine == caller.machine;
        let are_clocks_comparable = self.kind.has_server || !self.has_wild_clocks;
        self.running.contains(&hold.pid)
            && match is_same_machine {
                true => caller.now < hold.from + LEASE + LOCAL_EXTENSION,
                false => are_clocks_comparable && caller.now < hold.from + LEASE,
            }
    }

    /// Returns true if the process may keep others out.
    fn may_keep(&self, hold: Hold, caller: Caller) -> bool {
        if hold.machine == caller.machine {
            return self.running.contains(&hold.pid)
                && caller.now < hold.until + LEASE + LOCAL_EXTENSION;
        }
        let tolerance = match self.kind.has_server {
            true => 0,
            false => 2 * SKEW,
        };
        let are_clocks_wild = !self.kind.has_server && self.has_wild_clocks;
        are_clocks_wild || caller.now < hold.until + LEASE + tolerance
    }

    /// Returns the hold of a lane, whose lease may be that of all lanes of the process.
    fn lane_hold(&self, holder: &Holder) -> Hold {
        let beat = self.heartbeats.get(&holder.hold.pid);
        match (self.kind.has_server, beat) {
            (true, Some((from, until))) => Hold {
                from: *from,
                until: *until,
                ..holder.hold
            },
            _ => holder.hold,
        }
    }

    fn is_here_and_running(&self, hold: Hold, caller: Caller) -> bool {
        hold.machine == caller.machine && self.running.contains(&hold.pid)
    }

    /// Returns whether a holder must be taken for active by a deletion or a recovery, and whether it may be.
    fn activity(&self, session: usize, caller: Caller) -> (bool, bool) {
        let Some(holder) = &self.sessions[session].holder else {
            return (false, false);
        };
        let hold = self.lane_hold(holder);
        let is_here = self.is_here_and_running(hold, caller);
        let must = is_here || self.must_keep(hold, caller);
        let may = is_here || self.may_keep(hold, caller) || self.sessions[session].may_be_revoked;
        (must && !self.sessions[session].may_be_revoked, may)
    }

    fn note_heartbeat(&mut self, caller: Caller) {
        let from = caller.now.saturating_sub(HEARTBEAT_INTERVAL);
        self.heartbeats.insert(caller.pid, (from, caller.now));
    }

    /// Notes that a request may have written a heartbeat, even if it has no answer yet.
    pub(crate) fn note_possible_heartbeat(&mut self, caller: Caller) {
        let beat = self.heartbeats.entry(caller.pid);
        beat.or_insert((caller.now, caller.now)).1 = caller.now;
    }

    /// Takes notice of an executed request, and checks its answer.
    pub(crate) fn observe(
        &mut self,
        caller: Caller,
        request: &Request,
        response: &Response,
        backend: &mut dyn Backend,
    ) -> Result<(), Violation> {
        let place = self.place(request.session());
        if self.sessions[place].is_deleted {
            return Self::check_deleted(response);
        }
        let unexpected = || Violation {
            check: Check::NothingElseFails,
            text: format!("{} is answered with {response:?}", request.describe()),
        };
        match (request, response) {
            (
                Request::Claim {
                    owner, beginning, ..
                },
                Response::Claimed(result),
            ) => match result {
                Ok(outcome) => {
                    let beginning = beginning.as_deref();
                    self.observe_claim(caller, place, owner, beginning, outcome, backend)
                }
                Err(StoreError::Busy { .. }) => self.check_busy(caller, place, &owner.id),
                Err(_) => Err(unexpected()),
            },
            (Request::ForgetJournal { owner, loop_id, .. }, Response::Done(Ok(()))) => {
                let session = &mut self.sessions[place];
                let holder = session.holder.as_ref();
                if holder.is_some_and(|holder| holder.owner_id == owner.id) {
                    session.journal.remove(loop_id);
                }
                Ok(())
            }
            (
                Request::Append {
                    lane,
                    loop_id,
                    events,
                    is_awaited,
                },
                Response::Done(result),
            ) => {
                let session = &mut self.sessions[place];
                match result {
                    Ok(()) => {
                        require(
                            !is_awaited || session.is_held(lane, true),
                            Check::OnlyHolderWrites,
                            || format!("{} journals under a lost lane", lane.owner_id),
                        )?;
                        session.note_append(lane, loop_id, events, *is_awaited);
                        Ok(())
                    }
                    Err(StoreError::LaneLost(_)) if *is_awaited => require(
                        !session.is_held(lane, false),
                        Check::OnlyHolderWrites,
                        || format!("the holder {} cannot journal", lane.owner_id),
                    ),
                    Err(_) => Err(unexpected()),
                }
            }
            (Request::Commit(commit), Response::Committed(result)) => {
                let is_known = matches!(
                    result,
                    Ok(_)
                        | Err(StoreError::LaneLost(_)
                            | StoreError::HeadConflict { .. }
                            | StoreError::CommitMismatch(_))
                );
                require(is_known, Check::NothingElseFails, || unexpected().text)?;
                self.sessions[place].observe_commit(commit, result, backend)
            }
            (Request::Renew(lane), Response::Done(result)) => {
                let is_current = self.sessions[place].is_held(lane, result.is_ok());
                match result {
                    Ok(()) => {
                        require(is_current, Check::OnlyHolderWrites, || {
                            format!("a lost lane of {} is renewed", lane.owner_id)
                        })?;
                        // The request may come from another process than the holder's.
                        let holder = self.sessions[place].holder.as_mut();
                        if let Some(holder) = holder {
                            holder.hold.from = caller.now;
                            holder.hold.until = caller.now;
                            let pid = holder.hold.pid;
                            self.note_heartbeat(Caller { pid, ..caller });
                        }
                        Ok(())
                    }
                    Err(StoreError::LaneLost(_)) => {
                        require(!is_current, Check::OnlyHolderWrites, || {
                            format!("the holder {} cannot renew", lane.owner_id)
                        })
                    }
                    Err(_) => Err(unexpected()),
                }
            }
            (Request::Release(lane), Response::Done(Ok(()))) => {
                let session = &mut self.sessions[place];
                if session.is_held(lane, true) {
                    session.holder = None;
                    // The events that were sent before are written first.
                    for journalled in session.journal.values_mut() {
                        journalled.acknowledge();
                    }
                }
                Ok(())
            }
            (Request::Recover(_), Response::Done(Ok(()))) => {
                self.observe_recovery(caller, place, backend)
            }
            (Request::Delete { is_forced, .. }, Response::Deleted(result)) => {
                let (must_be_active, may_be_active) = self.activity(place, caller);
                match result {
                    Ok(existed) => {
                        require(*existed, Check::NothingElseFails, || {
                            "a deletion does not find its session".to_owned()
                        })?;
                        let is_allowed = *is_forced || !must_be_active;
                        require(is_allowed, Check::SessionInUseIsKept, || {
                            "a session in use is deleted".to_owned()
                        })?;
                        self.sessions[place].is_deleted = true;
                        Ok(())
                    }
                    Err(StoreError::Busy { .. }) => {
                        let is_allowed = !is_forced && may_be_active;
                        require(is_allowed, Check::DeadHolderIsReplaced, || {
                            "a session that nobody uses is not deleted".to_owned()
                        })
                    }
                    Err(_) => Err(unexpected()),
                }
            }
            (Request::TakeEffect { .. }, Response::Effect(Ok(next))) => {
                self.observe_take(caller, place, next)
            }
            (Request::FinishEffect(taken), Response::Done(Ok(()))) => {
                let key = &taken.pending.key;
                let effects = &mut self.sessions[place].effects;
                effects.retain(|effect| effect.pending.key != *key);
                Ok(())
            }
            (Request::PostponeEffect(taken, delay), Response::Done(Ok(()))) => {
                let delay = u64::try_from(delay.as_millis()).expect("a short delay");
                for effect in &mut self.sessions[place].effects {
                    if effect.pending.key == taken.pending.key && effect.attempts == taken.attempt {
                        effect.taker = None;
                        effect.postponed_until = Some(caller.now + delay);
                    }
                }
                Ok(())
            }
            _ => Err(unexpected()),
        }
    }

    fn check_deleted(response: &Response) -> Result<(), Violation> {
        let is_allowed = match response {
            Response::Claimed(result) => matches!(result, Err(StoreError::NotFound(_))),
            Response::Committed(result) => {
                matches!(
                    result,
                    Err(StoreError::NotFound(_) | StoreError::LaneLost(_))
                )
            }
            Response::Deleted(result) => matches!(result, Ok(false)),
            Response::Effect(result) => matches!(result, Ok(NextEffect::Empty)),
            Response::Done(result) => matches!(
                result,
                Ok(()) | Err(StoreError::NotFound(_) | StoreError::LaneLost(_))
            ),
        };
        require(is_allowed, Check::NothingElseFails, || {
            format!("a deleted session answers {response:?}")
        })
    }
}
