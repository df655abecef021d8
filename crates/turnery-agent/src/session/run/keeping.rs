//! Keeping: what a loop leaves behind: its history, its record, its journal and its commit.

use super::{JOURNAL, Run};
use crate::session::{
    background::{NOT_STORED, OverdueCommit, store_patience},
    committing::commit,
    steps::Step,
};
use std::{mem, sync::Arc};
use tokio::time::{Instant, sleep_until};
use turnery_engine::{
    CommitFault, Event, EventKind, Finish, Input, LoopRecord, Message, Outcome, TurnStop,
};
use turnery_store::{Commit, StoreError};

impl Run<'_> {
    /// The events of the record so far: all but the streaming ones.
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

    /// Journals what is not journalled yet. Nothing is shown or begun until that is written: what was
    /// seen to happen is known after a crash (S5).
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

    /// Starts to journal `events`; the store sees them at the first poll. Requires that nothing is being
    /// journalled, since a store takes events in the order of its calls.
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

    /// Handles the result of [`journal_now`](Self::journal_now) and journals the events that came
    /// meanwhile. The prompt goes on without a journal if the store fails, since a journal is evidence
    /// only; the next write starts from the first event.
    pub(super) fn after_journalling(&mut self, written: Result<(), StoreError>) {
        let unwritten = mem::take(&mut self.unwritten);
        match written {
            Ok(()) => self.begin_journalling(unwritten),
            Err(error) => {
                tracing::warn!(%error, "failed to journal");
                self.journalled = 0;
                if unwritten.is_empty() {
                    self.journal_due = Some(Box::pin(sleep_until(Instant::now() + JOURNAL)));
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
            self.heard(&message.message);
        } else if let EventKind::CompactionEnded {
            block: Some(block), ..
        } = &event.kind
            && !faulty!(ForgetSummary)
        {
            // One that does not fit is not taken after a load either (LOOP-48).
            let _ = self.task.history.view.lay(block);
        }
    }

    /// Whoever said this may know now; a warning may stand behind it.
    fn heard(&mut self, message: &Message) {
        if let Message::User { content, .. } = message
            && let Some(word) = self
                .told
                .iter_mut()
                .find(|word| !word.is_heard && content.starts_with(&word.content))
        {
            word.hear();
        }
    }

    pub(super) fn commit(&mut self, end: &Event) {
        self.recorder.fold(end);
        self.journalled = 0;
        self.journal_due = None;
        let Some(record) = mem::take(&mut self.recorder).into_record() else {
            let fault = Self::unrecorded();
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
            release: !Self::goes_on(&record),
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

    /// Limits the time in which a cancelled prompt waits for its commit. A candidate's commit is its group's,
    /// which is limited by itself; it does not wait for its journal either, which the store writes first.
    pub(super) fn limit_commit(&mut self) {
        if !self.cancel_heard || self.committing.is_none() {
            return;
        }
        if self.task.retries {
            self.patience.get_or_insert_with(store_patience);
        } else {
            self.journalling = None;
        }
    }

    /// Ends the loop while its commit goes on in the background. In the place of its `LoopEnd`, which would
    /// say that it is stored (R4), stands a notice.
    pub(super) fn leave_commit(&mut self) {
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
        self.steps.push(Step::Show(notice));
        let outcome = record.outcome.clone();
        self.steps.push(Step::Finish(Finish::Done {
            outcome: outcome.unwrap_or(Outcome::Stopped(TurnStop::RuntimeError)),
            detail: record.detail.clone(),
            usage: record.usage,
        }));
    }

    /// Whether another loop of the same prompt follows.
    fn goes_on(record: &LoopRecord) -> bool {
        matches!(record.outcome, Some(Outcome::FrameSwitch { .. }))
    }

    pub(super) fn committed(&mut self, committed: Result<u64, StoreError>) {
        let input = match committed {
            Ok(head) => {
                self.stored(head);
                Input::Committed
            }
            Err(StoreError::LaneLost(_)) => Input::CommitFailed(CommitFault::LaneLost),
            Err(StoreError::HeadConflict { .. }) => Input::CommitFailed(CommitFault::HeadConflict),
            Err(error) => {
                self.journal_lost();
                Input::CommitFailed(CommitFault::Store(error.to_string()))
            }
        };
        self.feed(input);
    }

    /// Journals all of a loop that could not be committed: if the store can do that by now, the next
    /// claim brings back what was shown.
    ///
    /// A candidate's loop is in the journal of its group already, with what that adds to it.
    fn journal_lost(&mut self) {
        if self.task.retries
            && let Some(record) = &self.record
        {
            let (lane, events) = (&self.watch.lane, record.events.clone());
            self.task.store.append(lane, &record.loop_id, events);
        }
    }

    fn stored(&mut self, head: u64) {
        self.task.info.head_version = head;
        self.task.info.updated_at = turnery_store::now();
        if let Some(record) = self.record.clone() {
            if !Self::goes_on(&record) {
                self.watch.stop_renewing();
            }
            if record.on_chain {
                self.task.info.tip_loop_id = Some(record.loop_id.clone());
                self.task.frame_id.clone_from(&record.frame_id);
                self.aside = None;
            } else if !faulty!(KeepRefusedMessages) {
                self.forget();
            }
        }
        if self.title_is_new {
            self.steps.push(Step::Info);
        }
    }

    /// The loop is not part of the conversation: back to where it stood before.
    pub(super) fn forget(&mut self) {
        match self.aside.take() {
            Some(mut history) => {
                history.remember(&self.task.history);
                self.task.history = history;
            }
            None => self.task.history.rewind(),
        }
    }

    pub(super) fn unrecorded() -> CommitFault {
        CommitFault::Store("there is no record of it; this is a fault of turnery".to_owned())
    }
}
