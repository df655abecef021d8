//! Checks the answers to claims, recoveries, and requests for effects.

use super::{
    Backend, Caller, Check, ClaimOutcome, History, Hold, Holder, LoopBeginning, NextEffect, Owner,
    Violation, require,
};

impl History {
    pub(super) fn observe_claim(
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
    pub(super) fn check_replaced(
        &self,
        caller: Caller,
        place: usize,
        owner: &Owner,
    ) -> Result<(), Violation> {
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

    pub(super) fn check_busy(
        &self,
        caller: Caller,
        place: usize,
        owner_id: &str,
    ) -> Result<(), Violation> {
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

    pub(super) fn observe_recovery(
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

    pub(super) fn observe_take(
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
