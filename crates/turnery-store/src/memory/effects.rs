//! Effects of a session in memory that the host has not received yet.

use crate::{
    NextEffect, Owner, PendingEffect, TakenEffect, clock::ClockReading, effect_hold::EffectHold,
};
use std::time::Duration;

/// Effects, in the order in which they were requested.
#[derive(Debug, Default)]
pub(super) struct MemoryEffects(Vec<StoredEffect>);

/// Effect with its latest attempt.
#[derive(Debug)]
struct StoredEffect {
    taken: TakenEffect,
    hold: EffectHold,
}

impl MemoryEffects {
    /// Adds an effect. A key that is stored already is that of the same effect.
    pub(super) fn add(&mut self, pending: PendingEffect) {
        if self.0.iter().all(|it| it.taken.pending.key != pending.key) {
            self.0.push(StoredEffect {
                taken: TakenEffect {
                    pending,
                    attempt: 0,
                },
                hold: EffectHold::default(),
            });
        }
    }

    pub(super) fn take(&mut self, owner: &Owner, now: ClockReading) -> NextEffect {
        let mut soonest = None;
        for stored in &mut self.0 {
            let Some(left) = stored.hold.time_left(now) else {
                stored.taken.attempt += 1;
                stored.hold = EffectHold::take(owner, now);
                return NextEffect::Taken(stored.taken.clone());
            };
            soonest = Some(soonest.map_or(left, |sooner: Duration| sooner.min(left)));
        }
        soonest.map_or(NextEffect::Empty, NextEffect::Later)
    }

    pub(super) fn finish(&mut self, taken: &TakenEffect) {
        self.0
            .retain(|it| it.taken.pending.key != taken.pending.key);
    }

    pub(super) fn postpone(&mut self, taken: &TakenEffect, delay: Duration, now: ClockReading) {
        if let Some(stored) = self.0.iter_mut().find(|it| it.taken == *taken) {
            stored.hold = EffectHold::postpone(delay, now);
        }
    }
}
