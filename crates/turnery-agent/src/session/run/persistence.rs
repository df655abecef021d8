//! Persists a loop: its history, record, journal and commit.

use super::LoopRun;
use crate::session::{
    background::{NOT_STORED, OverdueCommit, store_timeout},
    commit_retry::commit_with_retry,
    effect_queue::QueuedEffect,
    result::missing_outcome,
};
use std::{mem, sync::Arc};
use turnery_engine::{
    CommitError, Event, EventKind, Input, LoopFinish, LoopRecord, Message, Outcome,
};
use turnery_store::{Commit, StoreError};

impl LoopRun<'_> {
    /// Adds an event to the record; a complete message or a compaction block is also applied to the session's
    /// history.
    pub(super) fn record_event(&mut self, event: &Event) {
        self.recorder.fold(event);
        self.task
            .conversation
            .history
            .variables
            .observe(&event.kind);
        if let EventKind::MessageEnd { message } = &event.kind {
            if matches!(message.message, Message::User { .. })
                && let Some(inserted) = self.task.output.inserted.take()
            {
                let _ = inserted.send(message.message_id.clone());
            }
            self.task.conversation.history.push(Arc::clone(message));
            self.mark_delivered(&message.message);
        } else if let EventKind::CompactionEnded {
            block: Some(block), ..
        } = &event.kind
            && !faulty!(ForgetSummary)
        {
            // A block that does not fit is ignored after a load too (LOOP-48).
            if self.task.conversation.history.view.apply_block(block) {
                self.task.renew_system_prompt();
            }
        }
    }

    /// Marks the interjection of this message as delivered. The message may end with a warning of a hook.
    fn mark_delivered(&mut self, message: &Message) {
        if let Message::User { content, .. } = message
            && let Some(interjection) = self
                .interjections
                .iter_mut()
                .find(|it| !it.is_delivered && content.starts_with(&it.content))
        {
            interjection.mark_delivered();
        }
    }

    pub(super) fn start_commit(&mut self, end: &Event) {
        self.recorder.fold(end);
        self.journal.reset();
        let Some(record) = mem::take(&mut self.recorder).into_record() else {
            let error = Self::missing_record_error();
            self.inputs.push_back(Input::CommitFailed(error));
            return;
        };
        let title = match &self.task.conversation.info.title {
            Some(_) => None,
            None => record.title(),
        };
        self.commit.title_is_new = title.is_some() && record.on_chain;
        if self.commit.title_is_new {
            self.task.conversation.info.title.clone_from(&title);
        }
        let record = Arc::new(record);
        self.commit.record = Some(Arc::clone(&record));
        let outbox = self.task.env.effect_outbox.clone();
        let data = Commit {
            effects: outbox
                .as_ref()
                .map_or_else(Vec::new, |it| it.allowed_effects(&record)),
            lane: self.guard.lane.clone(),
            expected_head: self.task.conversation.info.head_version,
            release: !Self::is_continued(&record),
            title: title.filter(|_| self.commit.title_is_new),
            records: vec![record],
            tip: 0,
        };
        let store = Arc::clone(&self.task.env.store);
        self.commit.committing = Some(match self.task.group.clone() {
            None => {
                let interrupted = self.task.conversation.interrupted.clone();
                Box::pin(commit_with_retry(store, data, outbox, interrupted))
            }
            Some(group) => group.commit(data),
        });
        self.limit_commit();
    }

    /// Limits the time a cancelled prompt waits for its commit. A candidate's commit is limited by its group;
    /// it does not wait for its journal either, which the store writes first.
    pub(super) fn limit_commit(&mut self) {
        if !self.is_cancelled || self.commit.committing.is_none() {
            return;
        }
        if self.task.group.is_none() {
            self.commit.overdue_timer.get_or_insert_with(store_timeout);
        } else {
            drop(self.journal.take_write());
        }
    }

    /// Ends the loop while its commit continues in the background. A notice replaces its `LoopEnd`, which
    /// would state that it is stored (R4).
    pub(super) fn detach_commit(&mut self) {
        let (Some(committing), Some(record)) =
            (self.commit.committing.take(), self.commit.record.clone())
        else {
            return;
        };
        let Some(end) = record.events.last() else {
            return;
        };
        let commit = OverdueCommit {
            store: Arc::clone(&self.task.env.store),
            lane: self.guard.lane.clone(),
            records: vec![Arc::clone(&record)],
            journalling: self.journal.take_write(),
            committing,
        };
        let notice = Event {
            turn_index: None,
            kind: EventKind::Issue {
                text: NOT_STORED.to_owned(),
            },
            ..end.clone()
        };
        self.task.background.start_commit(commit, notice.clone());
        self.guard.stop_renewing();
        self.commit.is_overdue = true;
        self.queue.push(QueuedEffect::ShowEvent(notice));
        let outcome = record.outcome.clone();
        self.queue.push(QueuedEffect::Finish(LoopFinish::Committed {
            outcome: outcome.unwrap_or_else(missing_outcome),
            usage: record.usage,
        }));
    }

    /// Returns true if another loop of the same prompt follows.
    fn is_continued(record: &LoopRecord) -> bool {
        matches!(record.outcome, Some(Outcome::FrameSwitch { .. }))
    }

    pub(super) fn handle_commit_result(&mut self, committed: Result<u64, StoreError>) {
        let input = match committed {
            Ok(head) => {
                self.apply_commit(head);
                Input::Committed
            }
            Err(StoreError::LaneLost(_)) => Input::CommitFailed(CommitError::LaneLost),
            Err(StoreError::HeadConflict { .. }) => Input::CommitFailed(CommitError::HeadConflict),
            Err(error) => {
                self.journal_uncommitted();
                Input::CommitFailed(CommitError::Store(error.to_string()))
            }
        };
        self.feed(input);
    }

    /// Journals a loop that could not be committed: if the store can do that by now, the next claim recovers
    /// what was shown.
    ///
    /// A candidate's loop is already in the journal of its group, with the group's own events.
    fn journal_uncommitted(&mut self) {
        if self.task.group.is_none()
            && let Some(record) = &self.commit.record
        {
            let (lane, events) = (&self.guard.lane, record.events.clone());
            self.task.env.store.append(lane, &record.loop_id, events);
        }
    }

    fn apply_commit(&mut self, head: u64) {
        if let Some(record) = self.commit.record.clone() {
            self.task.conversation.advance(head, &record);
            if !Self::is_continued(&record) {
                self.guard.stop_renewing();
            }
            if record.on_chain {
                self.previous_history = None;
            } else if !faulty!(KeepRejectedMessages) {
                self.rewind_history();
            }
        }
        if self.commit.title_is_new {
            self.queue.push(QueuedEffect::ShowInfo);
        }
    }

    /// Restores the history from before a loop that is not part of the conversation.
    pub(super) fn rewind_history(&mut self) {
        match self.previous_history.take() {
            Some(mut history) => {
                history.remember_calls(&self.task.conversation.history);
                self.task.conversation.history = history;
            }
            None => self.task.conversation.history.rewind(),
        }
    }

    pub(super) fn missing_record_error() -> CommitError {
        CommitError::Store("the loop has no record; this is a bug in turnery".to_owned())
    }
}
