//! User messages that a running loop has not delivered yet.

use super::QueueMode;
use crate::Content;
use std::{collections::VecDeque, mem};

/// User messages waiting for delivery.
#[derive(Clone, Debug, Default)]
pub(super) struct InputQueues {
    pub(super) steering: VecDeque<Vec<Content>>,
    pub(super) follow_ups: VecDeque<Vec<Content>>,
}

impl InputQueues {
    pub(super) fn has_steering(&self) -> bool {
        !self.steering.is_empty()
    }

    pub(super) fn take_steering(&mut self, mode: QueueMode) -> VecDeque<Vec<Content>> {
        take_queued(&mut self.steering, mode)
    }

    pub(super) fn take_follow_ups(&mut self, mode: QueueMode) -> VecDeque<Vec<Content>> {
        take_queued(&mut self.follow_ups, mode)
    }
}

fn take_queued(queue: &mut VecDeque<Vec<Content>>, mode: QueueMode) -> VecDeque<Vec<Content>> {
    match mode {
        QueueMode::OneAtATime => queue.pop_front().into_iter().collect(),
        QueueMode::All => mem::take(queue),
    }
}
