//! Steering: what people want to say while a loop runs, and what becomes of it (UP-5, UP-6).
//!
//! Steering is heard at the next turn, and makes the loop skip the calls that have not begun; follow-ups
//! are heard once the loop would finish. What is not heard is given back (`Unheard`), never dropped.

use super::{Effect, Loop, QueueMode};
use crate::Content;
use std::{collections::VecDeque, mem};

/// What waits to be heard.
#[derive(Clone, Debug, Default)]
pub(super) struct Queues {
    steering: VecDeque<Vec<Content>>,
    follow_ups: VecDeque<Vec<Content>>,
}

impl Queues {
    pub(super) fn is_steered(&self) -> bool {
        !self.steering.is_empty()
    }

    pub(super) fn take_steering(&mut self, mode: QueueMode) -> VecDeque<Vec<Content>> {
        take(&mut self.steering, mode)
    }

    pub(super) fn take_follow_ups(&mut self, mode: QueueMode) -> VecDeque<Vec<Content>> {
        take(&mut self.follow_ups, mode)
    }
}

fn take(queue: &mut VecDeque<Vec<Content>>, mode: QueueMode) -> VecDeque<Vec<Content>> {
    match mode {
        QueueMode::OneAtATime => queue.pop_front().into_iter().collect(),
        QueueMode::All => mem::take(queue),
    }
}

impl Loop {
    pub(super) fn steer(&mut self, words: Vec<Content>) {
        if words.is_empty() {
            return;
        }
        if self.is_sealed() {
            return self.unheard(words);
        }
        self.queues.steering.push_back(words);
    }

    pub(super) fn follow_up(&mut self, words: Vec<Content>) {
        if words.is_empty() {
            return;
        }
        if self.is_sealed() {
            return self.unheard(words);
        }
        self.queues.follow_ups.push_back(words);
    }

    /// The only way out of the loop: whatever comes now is too late. What nobody heard is given back.
    pub(super) fn seal(&mut self) {
        let Queues {
            steering,
            follow_ups,
        } = mem::take(&mut self.queues);
        if faulty!(self, ForgetUnheard) {
            return;
        }
        for words in steering.into_iter().chain(follow_ups) {
            self.unheard(words);
        }
    }

    pub(super) fn unheard(&mut self, words: Vec<Content>) {
        self.give(Effect::Unheard(words));
    }
}
