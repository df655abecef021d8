//! Persists a loop: its history, record, journal and commit.

use super::{super::prompt_run::missing_outcome, JOURNAL_DELAY, LoopRun};
use crate::session::{
    background::{NOT_STORED, OverdueCommit, store_timeout},
    commit_retry::commit,
    effect_queue::QueuedEffect,
};
use std::{mem, sync::Arc};
use tokio::time::{Instant, sleep_until};
use turnery_engine::{
    CommitError, Event, EventKind, Input, LoopFinish, LoopRecord, Message, Outcome,
};
use turnery_store::{Commit, StoreError};

impl LoopRun<'_> {
    /// Returns the events of the record so far, without streaming events.
    pub(super) fn events(&self) -> &[Event] {
        self.recorder.record().map_or(&[], |record| &record.events)
    }

    /// Journals the events that have waited long enough.
    pub(super) fn write_journal(&mut self) {
        let events = self.take_unjournalled();
        if self.journalling.is_some() {
            self.unwritten.extend(events);
        } else if !events.is_empty() {
            let loop_id = &self.machine.spec().loop_id;
            self.task.store.append(&self.watch.lane, loop_id, events);
        }
    }

    /// Journals all remaining events. Nothing is shown or begun until they are written, so that everything
    /// shown survives a crash (S5).
    pub(super) fn journal_now(&mut self) {
        if faulty!(JournalLate) {
            return;
        }
        let events = self.take_unjournalled();
        match self.journalling {
            Some(_) if !faulty!(DropJournalWrite) => self.unwritten.extend(events),
            Some(_) | None => self.begin_journalling(events),
        }
    }

    fn take_unjournalled(&mut self) -> Vec<Event> {
        self.journal_due = None;
        let events = self
            .events()
            .get(self.journalled..)
            .unwrap_or_default()
            .to_vec();
        self.journalled += events.len();
        events
    }

    /// Starts to journal `events`; the store receives them at the first poll. Requires that no journal write
    /// is in progress, since a store takes events in call order.
    fn begin_journalling(&mut self, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        let store = Arc::clone(&self.task.store);
        let lane = self.watch.lane.clone();
        let loop_id = self.machine.spec().loop_id.clone();
        self.journalling = Some(Box::pin(async move {
            store.append_now(&lane, &loop_id, events).await
        }));
    }

    /// Handles the result of [`journal_now`](Self::journal_now) and journals the events that arrived
    /// meanwhile. If the store fails, the prompt continues without a journal, which is only evidence; the
    /// next write starts from the first event.
    pub(super) fn after_journalling(&mut self, written: Result<(), StoreError>) {
        let unwritten = mem::take(&mut self.unwritten);
        match written {
            Ok(()) => self.begin_journalling(unwritten),
            Err(error) => {
                tracing::warn!(%error, "failed to journal");
                self.journalled = 0;
                if unwritten.is_empty() {
                    self.journal_due = Some(Box::pin(sleep_until(Instant::now() + JOURNAL_DELAY)));
                } else {
                    self.journal_now();
                }
            }
        }
    }

    pub(super) fn fold(&mut self, event: &Event) {
        self.recorder.fold(event);
        if let EventKind::MessageEnd { message } = &event.kind {
            if matches!(message.message, Message::User { .. })
                && let Some(inserting) = self.task.inserting.take()
            {
                let _ = inserting.send(message.message_id.clone());
            }
            self.task.history.push(Arc::clone(message));
            self.mark_delivered(&message.message);
        } else if let EventKind::CompactionEnded {
            block: Some(block), ..
        } = &event.kind
            && !faulty!(ForgetSummary)
        {
            // A block that does not fit is ignored after a load too (LOOP-48).
            let _ = self.task.history.view.apply_block(block);
        }
    }

    /// Marks the interjection of this message as delivered. The message may end with a warning of a hook.
    fn mark_delivered(&mut self, message: &Message) {
        if let Message::User { content, .. } = message
            && let Some(word) = self
                .told
                .iter_mut()
                .find(|word| !word.is_heard && content.starts_with(&word.content))
        {
            word.mark_delivered();
        }
    }

    pub(super) fn commit(&mut self, end: &Event) {
        self.recorder.fold(end);
        self.journalled = 0;
        self.journal_due = None;
        let Some(record) = mem::take(&mut self.recorder).into_record() else {
            let fault = Self::missing_record_error();
            self.inputs.push_back(Input::CommitFailed(fault));
            return;
        };
        let title = match &self.task.info.title {
            Some(_) => None,
            None => record.title(),
        };
        self.title_is_new = title.is_some() && record.on_chain;
        if self.title_is_new {
            self.task.info.title.clone_from(&title);
        }
        let record = Arc::new(record);
        self.record = Some(Arc::clone(&record));
        let data = Commit {
            lane: self.watch.lane.clone(),
            expected_head: self.task.info.head_version,
            release: !Self::is_continued(&record),
            title: title.filter(|_| self.title_is_new),
            records: vec![record],
            tip: 0,
        };
        let store = Arc::clone(&self.task.store);
        self.committing = Some(match self.task.retries {
            true => Box::pin(commit(store, data)),
            false => Box::pin(async move { store.commit(data).await }),
        });
        self.limit_commit();
    }

    /// Limits the time a cancelled prompt waits for its commit. A candidate's commit is limited by its group;
    /// it does not wait for its journal either, which the store writes first.
    pub(super) fn limit_commit(&mut self) {
        if !self.cancel_heard || self.committing.is_none() {
            return;
        }
        if self.task.retries {
            self.patience.get_or_insert_with(store_timeout);
        } else {
            self.journalling = None;
        }
    }

    /// Ends the loop while its commit continues in the background. A notice replaces its `LoopEnd`, which
    /// would state that it is stored (R4).
    pub(super) fn detach_commit(&mut self) {
        let (Some(committing), Some(record)) = (self.committing.take(), self.record.clone()) else {
            return;
        };
        let Some(end) = record.events.last() else {
            return;
        };
        let commit = OverdueCommit {
            store: Arc::clone(&self.task.store),
            lane: self.watch.lane.clone(),
            records: vec![Arc::clone(&record)],
            journalling: self.journalling.take(),
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
        self.watch.stop_renewing();
        self.is_overdue = true;
        self.steps.push(QueuedEffect::Show(notice));
        let outcome = record.outcome.clone();
        self.steps.push(QueuedEffect::Finish(LoopFinish::Committed {
            outcome: outcome.unwrap_or_else(missing_outcome),
            usage: record.usage,
        }));
    }

    /// Returns true if another loop of the same prompt follows.
    fn is_continued(record: &LoopRecord) -> bool {
        matches!(record.outcome, Some(Outcome::FrameSwitch { .. }))
    }

    pub(super) fn committed(&mut self, committed: Result<u64, StoreError>) {
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
        if self.task.retries
            && let Some(record) = &self.record
        {
            let (lane, events) = (&self.watch.lane, record.events.clone());
            self.task.store.append(lane, &record.loop_id, events);
        }
    }

    fn apply_commit(&mut self, head: u64) {
        self.task.info.head_version = head;
        self.task.info.updated_at = turnery_store::now();
        if let Some(record) = self.record.clone() {
            if !Self::is_continued(&record) {
                self.watch.stop_renewing();
            }
            if record.on_chain {
                self.task.info.tip_loop_id = Some(record.loop_id.clone());
                self.task.frame_id.clone_from(&record.frame_id);
                self.aside = None;
            } else if !faulty!(KeepRefusedMessages) {
                self.rewind_history();
            }
        }
        if self.title_is_new {
            self.steps.push(QueuedEffect::Info);
        }
    }

    /// Restores the history from before a loop that is not part of the conversation.
    pub(super) fn rewind_history(&mut self) {
        match self.aside.take() {
            Some(mut history) => {
                history.remember_calls(&self.task.history);
                self.task.history = history;
            }
            None => self.task.history.rewind(),
        }
    }

    pub(super) fn missing_record_error() -> CommitError {
        CommitError::Store("the loop has no record; this is a bug in turnery".to_owned())
    }
}
