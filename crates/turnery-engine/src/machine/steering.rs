//! Queues user messages that arrive while a loop runs (UP-5, UP-6).
//!
//! Steering messages are delivered in the next turn and skip the calls that have not started; follow-up
//! messages are delivered once the loop would finish. Undelivered messages are returned
//! (`ReturnUndelivered`), never dropped.

use super::{Effect, Loop, QueueMode};
use crate::Content;
use std::{collections::VecDeque, mem};

/// User messages waiting for delivery.
#[derive(Clone, Debug, Default)]
pub(super) struct InputQueues {
    pub(super) steering: VecDeque<Vec<Content>>,
    pub(super) follow_ups: VecDeque<Vec<Content>>,
}

impl QueueMode {
    /// Takes the messages to deliver now.
    pub(super) fn take_from(self, queue: &mut VecDeque<Vec<Content>>) -> VecDeque<Vec<Content>> {
        match self {
            Self::OneAtATime => queue.pop_front().into_iter().collect(),
            Self::All => mem::take(queue),
        }
    }
}

impl Loop {
    pub(super) fn queue_steering(&mut self, content: Vec<Content>) {
        if content.is_empty() {
            return;
        }
        if self.is_sealed() {
            return self.return_undelivered(content);
        }
        self.input_queues.steering.push_back(content);
    }

    pub(super) fn queue_follow_up(&mut self, content: Vec<Content>) {
        if content.is_empty() {
            return;
        }
        if self.is_sealed() {
            return self.return_undelivered(content);
        }
        self.input_queues.follow_ups.push_back(content);
    }

    /// Returns all undelivered messages, as every loop does at its end. The caller then sets a stage that
    /// accepts no input.
    pub(super) fn return_queued_input(&mut self) {
        let InputQueues {
            steering,
            follow_ups,
        } = mem::take(&mut self.input_queues);
        if faulty!(ForgetUndelivered) {
            return;
        }
        for content in steering.into_iter().chain(follow_ups) {
            self.return_undelivered(content);
        }
    }

    pub(super) fn return_undelivered(&mut self, content: Vec<Content>) {
        self.push_effect(Effect::ReturnUndelivered(content));
    }
}
