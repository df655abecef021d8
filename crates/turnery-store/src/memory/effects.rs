//! Effects of a session in memory that the host has not received yet.

use crate::{
    NextEffect, Owner, PendingEffect, PromptRemoval, QueuedPrompt, TakenEffect,
    clock::ClockReading, effect_hold::EffectHold, queued_prompt::PROMPT_TOOL,
};
use std::time::Duration;
use turnery_engine::PromptId;

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
        let effects = self.0.iter_mut();
        for stored in effects.filter(|it| it.taken.pending.tool_name != PROMPT_TOOL) {
            let Some(left) = stored.hold.time_left(now) else {
                stored.taken.attempt += 1;
                stored.hold = EffectHold::take(owner, now);
                return NextEffect::Taken(stored.taken.clone());
            };
            soonest = Some(soonest.map_or(left, |sooner: Duration| sooner.min(left)));
        }
        soonest.map_or(NextEffect::Empty, NextEffect::Later)
    }

    /// Returns the queued prompts.
    pub(super) fn prompts(&self) -> Vec<QueuedPrompt> {
        let pending = self.0.iter().map(|it| &it.taken.pending);
        pending.filter_map(QueuedPrompt::decode).collect()
    }

    /// Counts an attempt to run a queued prompt. Returns true if there is one.
    pub(super) fn start_prompt(&mut self, id: &PromptId) -> bool {
        let mut effects = self.0.iter_mut();
        let stored = effects.find(|it| is_prompt(it, id));
        stored.map(|it| it.taken.attempt += 1).is_some()
    }

    /// Removes a queued prompt. Returns true if there was one.
    pub(super) fn remove_prompt(&mut self, id: &PromptId, removal: PromptRemoval) -> bool {
        let count = self.0.len();
        self.0.retain(|it| {
            let is_kept = removal == PromptRemoval::Withdrawn && it.taken.attempt > 0;
            is_kept || !is_prompt(it, id)
        });
        self.0.len() < count
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

fn is_prompt(stored: &StoredEffect, id: &PromptId) -> bool {
    let pending = &stored.taken.pending;
    pending.tool_name == PROMPT_TOOL && pending.key == id.as_str()
}
