//! Checks that the answers of a store make a possible history: that of one holder after the other, each commit once.
//!
//! It sees every request in the order in which they take effect, and every answer, even those that are lost on their way
//! to the caller. For each session it knows what must be stored, and what may be.

use super::{
    agent::KnownState,
    backend::{Backend, BackendKind},
    loops::mark_of,
    request::{Request, Response},
};
use crate::{
    ClaimOutcome, Commit, Lane, LoopBeginning, NextEffect, Owner, PendingEffect, StoreError,
};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::Arc,
};
use turnery_engine::{Event, LoopId, LoopRecord, LoopStatus, SessionId};

/// A promise of the stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Check {
    /// A living holder keeps its lane until its lease is over.
    LivingHolderIsKept,
    /// A dead holder, or one whose lease is over, keeps nobody out.
    DeadHolderIsReplaced,
    /// Each claim has a greater generation than all before it.
    GenerationsGrow,
    /// Nothing is stored for anybody but the holder, who is never refused.
    OnlyHolderWrites,
    /// A commit follows the head that it expects.
    HeadIsCompared,
    /// A commit is stored whole, or not at all.
    CommitIsWhole,
    /// A commit is stored once, however often it is repeated, and stays.
    CommitIsStoredOnce,
    /// What was refused leaves nothing behind.
    RefusalChangesNothing,
    /// A journalled event is not lost.
    JournalIsKept,
    /// A number of a loop is never used again.
    NumbersAreNotReused,
    /// An effect is delivered by one process at a time.
    EffectHasOneTaker,
    /// An effect is delivered until that has succeeded.
    EffectIsKept,
    /// Nothing is delivered but what a commit has stored and nobody has finished.
    EffectIsPending,
    /// A session in use is not deleted.
    SessionInUseIsKept,
    /// A call fails with no other errors than those of its contract.
    NothingElseFails,
    /// A model answers like the store that it stands for.
    ModelIsTrue,
}

/// A broken promise.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    pub(crate) check: Check,
    pub(crate) text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.check, self.text)
    }
}

/// Fails with a violation unless the promise holds.
pub(crate) fn require(
    holds: bool,
    check: Check,
    text: impl FnOnce() -> String,
) -> Result<(), Violation> {
    match holds {
        true => Ok(()),
        false => Err(Violation {
            check,
            text: text(),
        }),
    }
}

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
                Response::Done(Ok(())),
            ) => {
                self.sessions[place].note_append(lane, loop_id, events, *is_awaited);
                Ok(())
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

    fn observe_claim(
        &mut self,
        caller: Caller,
        place: usize,
        owner: &Owner,
        beginning: Option<&LoopBeginning>,
        outcome: &ClaimOutcome,
        backend: &mut dyn Backend,
    ) -> Result<(), Violation> {
        let claimed = &outcome.claimed_lane;
        self.check_replaced(caller, place, owner)?;
        let session = &self.sessions[place];
        let (fence, earlier) = (claimed.lane.fence, session.generation);
        require(fence > earlier, Check::GenerationsGrow, || {
            format!("generation {fence} follows generation {earlier}")
        })?;
        let session = &mut self.sessions[place];
        session.observe_recovered(backend)?;
        let head = claimed.info.head_version;
        require(head == session.head, Check::HeadIsCompared, || {
            format!("a claim reports head {head} instead of {}", session.head)
        })?;
        let last = claimed.last_number;
        require(
            last >= session.last_number,
            Check::NumbersAreNotReused,
            || {
                format!(
                    "a claim reports {last} as the last number, after {}",
                    session.last_number
                )
            },
        )?;
        session.generation = fence;
        session.may_be_revoked = false;
        session.holder = Some(Holder {
            owner_id: owner.id.clone(),
            fence,
            hold: Hold {
                pid: caller.pid,
                machine: caller.machine,
                from: caller.now,
                until: caller.now,
            },
        });
        session.begun = None;
        if let Some(beginning) = beginning.filter(|_| outcome.is_journalled) {
            session.begun = Some(beginning.loop_id.clone());
            session.note_append(&claimed.lane, &beginning.loop_id, &beginning.events, true);
        }
        self.note_heartbeat(caller);
        Ok(())
    }

    /// Checks that the owner may take the lane.
    fn check_replaced(&self, caller: Caller, place: usize, owner: &Owner) -> Result<(), Violation> {
        let session = &self.sessions[place];
        if let Some(holder) = &session.holder
            && holder.owner_id != owner.id
            && !session.may_be_revoked
        {
            let is_kept = !self.must_keep(self.lane_hold(holder), caller);
            require(is_kept, Check::LivingHolderIsKept, || {
                format!(
                    "{} takes the lane of {} within its lease",
                    owner.id, holder.owner_id
                )
            })?;
        }
        Ok(())
    }

    /// Takes notice of a claim that has turned the journal into loops, and that has not taken the free lane yet.
    pub(crate) fn observe_recovery_of_claim(
        &mut self,
        caller: Caller,
        place: usize,
        owner: &Owner,
        backend: &mut dyn Backend,
    ) -> Result<(), Violation> {
        self.check_replaced(caller, place, owner)?;
        let session = &mut self.sessions[place];
        session.observe_recovered(backend)?;
        session.holder = None;
        Ok(())
    }

    fn check_busy(&self, caller: Caller, place: usize, owner_id: &str) -> Result<(), Violation> {
        let session = &self.sessions[place];
        let holder = session.holder.as_ref();
        let is_justified = holder.is_some_and(|holder| {
            holder.owner_id != owner_id && self.may_keep(self.lane_hold(holder), caller)
        });
        require(is_justified, Check::DeadHolderIsReplaced, || {
            format!(
                "{owner_id} is refused because of {holder:?}, at {}",
                caller.now
            )
        })
    }

    fn observe_recovery(
        &mut self,
        caller: Caller,
        place: usize,
        backend: &mut dyn Backend,
    ) -> Result<(), Violation> {
        let (must_be_active, may_be_active) = self.activity(place, caller);
        let session = &mut self.sessions[place];
        let new = session.read_new(backend)?;
        if new.is_empty() {
            let has_journal = session.journal.values().any(|it| it.acknowledged > 0);
            session.may_be_revoked |= !must_be_active && session.holder.is_some();
            return require(
                may_be_active || !has_journal,
                Check::DeadHolderIsReplaced,
                || "the journal of a dead holder is not recovered".to_owned(),
            );
        }
        require(!must_be_active, Check::LivingHolderIsKept, || {
            "the journal of a living holder is recovered".to_owned()
        })?;
        session.holder = None;
        session.check_recovered(new)
    }

    fn observe_take(
        &mut self,
        caller: Caller,
        place: usize,
        next: &NextEffect,
    ) -> Result<(), Violation> {
        let effects = &self.sessions[place].effects;
        let taken = match next {
            NextEffect::Taken(taken) => taken,
            NextEffect::Empty => {
                return require(effects.is_empty(), Check::EffectIsKept, || {
                    format!("these effects are lost: {effects:?}")
                });
            }
            NextEffect::Later(_) => {
                let is_allowed = effects.iter().all(|effect| {
                    let may_be_held = effect.taker.is_some_and(|it| self.may_keep(it, caller));
                    may_be_held || effect.postponed_until.is_some()
                });
                require(!effects.is_empty(), Check::EffectIsPending, || {
                    "effects are left, although all are finished".to_owned()
                })?;
                return require(is_allowed, Check::EffectIsKept, || {
                    format!("a free effect is not delivered: {effects:?}")
                });
            }
        };
        let key = &taken.pending.key;
        let found = effects.iter().position(|it| it.pending == taken.pending);
        let found = found.ok_or_else(|| Violation {
            check: Check::EffectIsPending,
            text: format!("effect {key} is delivered, which is not to be"),
        })?;
        let effect = &effects[found];
        require(
            taken.attempt == effect.attempts + 1,
            Check::EffectHasOneTaker,
            || {
                format!(
                    "attempt {} of {key} follows attempt {}",
                    taken.attempt, effect.attempts
                )
            },
        )?;
        let is_held = effect.taker.is_some_and(|it| self.must_keep(it, caller));
        require(!is_held, Check::EffectHasOneTaker, || {
            format!("effect {key} is delivered by two processes")
        })?;
        let is_early = effect.postponed_until.is_some_and(|it| caller.now < it);
        require(
            !(is_early && self.kind.has_server),
            Check::EffectHasOneTaker,
            || format!("effect {key} is delivered although it was postponed"),
        )?;
        let effect = &mut self.sessions[place].effects[found];
        effect.attempts = taken.attempt;
        effect.postponed_until = None;
        effect.taker = Some(Hold {
            pid: caller.pid,
            machine: caller.machine,
            from: caller.now,
            until: caller.now,
        });
        Ok(())
    }

    /// Compares everything that is stored with everything that must be.
    pub(crate) fn check_end(&self, backend: &mut dyn Backend) -> Result<(), Violation> {
        for session in self.sessions.iter().filter(|session| !session.is_deleted) {
            session.check_end(backend)?;
        }
        Ok(())
    }

    /// Returns true if effects of the session remain.
    pub(crate) fn has_effects(&self, session: usize) -> bool {
        !self.sessions[session].effects.is_empty()
    }
}

impl KnownSession {
    fn find(&self, id: &LoopId) -> Option<&(u64, Arc<LoopRecord>)> {
        self.loops.iter().find(|(_, record)| record.loop_id == *id)
    }

    /// Returns true if the lane is held. `was_accepted` decides if that is unknown.
    fn is_held(&mut self, lane: &Lane, was_accepted: bool) -> bool {
        let holder = self.holder.as_ref();
        let is_holder =
            holder.is_some_and(|it| it.fence == lane.fence && it.owner_id == lane.owner_id);
        if is_holder && self.may_be_revoked {
            self.may_be_revoked = false;
            if !was_accepted {
                self.holder = None;
            }
            return was_accepted;
        }
        is_holder
    }

    fn note_append(&mut self, lane: &Lane, loop_id: &LoopId, events: &[Event], is_awaited: bool) {
        let holder = self.holder.as_ref();
        let is_holder =
            holder.is_some_and(|it| it.fence == lane.fence && it.owner_id == lane.owner_id);
        if !is_holder || self.find(loop_id).is_some() {
            return;
        }
        let is_certain = is_awaited && !self.may_be_revoked;
        let journalled = self.journal.entry(loop_id.clone()).or_default();
        let known = journalled.sent.len();
        match events.first().map(|event| event.seq as usize) {
            Some(0) if !journalled.sent.starts_with(events) => journalled.sent = events.to_vec(),
            Some(first) if first == known => journalled.sent.extend_from_slice(events),
            // Written once more, or behind a gap.
            Some(_) | None => {}
        }
        if events.first().is_some_and(|event| event.seq == 0) {
            journalled.may_have_gap = false;
        }
        if is_certain {
            journalled.acknowledge();
        }
    }

    /// Reads the loops that were stored after those that are known.
    fn read_new(&self, backend: &mut dyn Backend) -> Result<Vec<Arc<LoopRecord>>, Violation> {
        let read = backend.loops(&self.id, self.head);
        read.map_err(|error| Violation {
            check: Check::NothingElseFails,
            text: format!("the loops cannot be read: {error}"),
        })
    }

    /// Takes notice of the loops that a claim has made of the journal.
    fn observe_recovered(&mut self, backend: &mut dyn Backend) -> Result<(), Violation> {
        let new = self.read_new(backend)?;
        self.check_recovered(new)
    }

    fn check_recovered(&mut self, new: Vec<Arc<LoopRecord>>) -> Result<(), Violation> {
        let mut journal = std::mem::take(&mut self.journal);
        for record in new {
            let id = &record.loop_id;
            let journalled = journal.remove(id);
            let is_recovered = record.status == LoopStatus::Aborted && self.find(id).is_none();
            let journalled = journalled
                .filter(|_| is_recovered)
                .ok_or_else(|| Violation {
                    check: Check::RefusalChangesNothing,
                    text: format!(
                        "{id} is stored, which was not committed: {:?}",
                        record.status
                    ),
                })?;
            let JournalledLoop {
                sent, acknowledged, ..
            } = &journalled;
            let both = record.events.iter().zip(sent);
            let same = both.take_while(|(stored, sent)| stored == sent).count();
            require(same >= *acknowledged, Check::JournalIsKept, || {
                format!("{same} events of {id} are recovered, after {acknowledged} were journalled")
            })?;
            let mark = sent.first().map(mark_of);
            let is_own = record
                .events
                .iter()
                .all(|event| Some(mark_of(event)) == mark);
            require(is_own, Check::OnlyHolderWrites, || {
                format!("the journal of {id} has events of somebody else")
            })?;
            self.head += 1;
            self.add(self.head, record);
        }
        let lost = journal.iter().find(|(_, it)| it.acknowledged > 0);
        require(lost.is_none(), Check::JournalIsKept, || {
            format!(
                "the journal of {} is lost",
                lost.map_or("", |(id, _)| id.as_str())
            )
        })
    }

    fn add(&mut self, version: u64, record: Arc<LoopRecord>) {
        let number = record.loop_id.number().unwrap_or_default();
        self.last_number = self.last_number.max(number);
        if record.on_chain {
            self.tip = Some(record.loop_id.clone());
        }
        self.loops.push((version, record));
    }

    fn observe_commit(
        &mut self,
        commit: &Commit,
        result: &Result<u64, StoreError>,
        backend: &mut dyn Backend,
    ) -> Result<(), Violation> {
        let known: Vec<_> = commit
            .records
            .iter()
            .map(|it| self.find(&it.loop_id))
            .collect();
        let known: Vec<Option<(u64, bool)>> = known
            .into_iter()
            .zip(&commit.records)
            .map(|(known, record)| known.map(|(version, known)| (*version, known == record)))
            .collect();
        let first = known.first().copied().flatten().map(|(version, _)| version);
        let is_repeated = first.is_some()
            && known
                .iter()
                .all(|it| it.is_some_and(|(version, is_same)| is_same && Some(version) == first));
        let is_any_known = known.iter().any(Option::is_some);
        let was_accepted = !matches!(result, Err(StoreError::LaneLost(_)));
        let is_current = self.is_held(&commit.lane, was_accepted);
        let name = commit
            .records
            .first()
            .map_or("", |record| record.loop_id.as_str());
        let new = self.read_new(backend)?;
        match result {
            Ok(version) if is_repeated => {
                require(Some(*version) == first, Check::CommitIsStoredOnce, || {
                    format!("{name} has version {first:?}, and repeated {version}")
                })?;
                require(new.is_empty(), Check::CommitIsStoredOnce, || {
                    format!("{name} is stored again")
                })?;
            }
            Ok(version) => {
                require(is_current, Check::OnlyHolderWrites, || {
                    format!(
                        "{name} is committed by {}, who is not the holder",
                        commit.lane.owner_id
                    )
                })?;
                require(!is_any_known, Check::CommitIsStoredOnce, || {
                    format!("{name} is committed again, with other content")
                })?;
                let (head, expected) = (self.head, commit.expected_head);
                require(expected == head, Check::HeadIsCompared, || {
                    format!("{name} expects head {expected}, and is stored on head {head}")
                })?;
                require(*version == head + 1, Check::HeadIsCompared, || {
                    format!("{name} gets version {version} on head {head}")
                })?;
                require(new == commit.records, Check::CommitIsWhole, || {
                    let new: Vec<&str> = new.iter().map(|it| it.loop_id.as_str()).collect();
                    format!("of the commit of {name} is stored: {new:?}")
                })?;
                self.head = *version;
                self.drop_begun();
                for record in new {
                    self.journal.remove(&record.loop_id);
                    self.add(*version, record);
                }
                let effects = commit.effects.iter().map(|pending| KnownEffect {
                    pending: pending.clone(),
                    attempts: 0,
                    taker: None,
                    postponed_until: None,
                });
                self.effects.extend(effects);
            }
            Err(error) => {
                require(!is_repeated, Check::CommitIsStoredOnce, || {
                    format!("{name} is stored, and refused when repeated: {error}")
                })?;
                require(new.is_empty(), Check::RefusalChangesNothing, || {
                    format!("{name} is refused and stored: {error}")
                })?;
                for record in &commit.records {
                    if let Some(journalled) = self.journal.get_mut(&record.loop_id) {
                        journalled.may_have_gap = true;
                    }
                }
                self.check_refusal(commit, error, is_current, is_any_known)?;
            }
        }
        if result.is_ok() && commit.release && is_current {
            self.holder = None;
        }
        Ok(())
    }

    fn drop_begun(&mut self) {
        if let Some(begun) = self.begun.take().and_then(|id| self.journal.get_mut(&id)) {
            begun.acknowledged = 0;
        }
    }

    fn check_refusal(
        &mut self,
        commit: &Commit,
        error: &StoreError,
        is_current: bool,
        is_any_known: bool,
    ) -> Result<(), Violation> {
        let is_head_other = commit.expected_head != self.head;
        let is_justified = match error {
            StoreError::LaneLost(_) => !is_current,
            StoreError::CommitMismatch(_) => is_current && is_any_known,
            StoreError::HeadConflict { expected, actual } => {
                let is_reported = (*expected, *actual) == (commit.expected_head, self.head);
                is_current && !is_any_known && is_head_other && is_reported
            }
            StoreError::NotFound(_)
            | StoreError::Exists(_)
            | StoreError::Busy { .. }
            | StoreError::BadCursor(_)
            | StoreError::Broken(_) => false,
        };
        require(is_justified, Check::OnlyHolderWrites, || {
            format!("a commit of the holder is refused: {error}")
        })?;
        if matches!(error, StoreError::HeadConflict { .. }) {
            self.drop_begun();
            // The journals are settled, whatever the outcome (C-12).
            for record in &commit.records {
                self.journal.remove(&record.loop_id);
                let number = record.loop_id.number().unwrap_or_default();
                self.last_number = self.last_number.max(number);
            }
        }
        Ok(())
    }

    fn check_end(&self, backend: &mut dyn Backend) -> Result<(), Violation> {
        let failed = |error: StoreError| Violation {
            check: Check::NothingElseFails,
            text: format!("{} cannot be read: {error}", self.id),
        };
        let stored = backend.loops(&self.id, 0).map_err(failed)?;
        let is_same = stored
            .iter()
            .eq(self.loops.iter().map(|(_, record)| record));
        require(is_same, Check::CommitIsStoredOnce, || {
            let names = |it: &Arc<LoopRecord>| it.loop_id.to_string();
            let stored: Vec<_> = stored.iter().map(names).collect();
            let known: Vec<_> = self.loops.iter().map(|(_, it)| names(it)).collect();
            format!("the store has {stored:?} instead of {known:?}")
        })?;
        let info = backend.info(&self.id).map_err(failed)?;
        require(
            info.head_version == self.head,
            Check::HeadIsCompared,
            || format!("the head is {} instead of {}", info.head_version, self.head),
        )?;
        require(
            info.tip_loop_id == self.tip,
            Check::CommitIsStoredOnce,
            || {
                format!(
                    "the tip is {:?} instead of {:?}",
                    info.tip_loop_id, self.tip
                )
            },
        )
    }
}
