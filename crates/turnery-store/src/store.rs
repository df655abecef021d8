//! Defines the contract of every store (S1 to S8) and its data types.

use crate::{
    ChangeMark, DailyUsage, Damage, FollowFrom, FollowPage, History, NextEffect, PendingEffect,
    PromptRemoval, QueuedPrompt, RepairReport, ReplayCursor, ReplayPage, SearchPage, SearchQuery,
    SpaceReport, StoreDescription, StoreError, TakenEffect, list_cursor::format_time,
};
use futures_util::future::{BoxFuture, ready};
use serde::{Deserialize, Serialize};
use std::{path::PathBuf, sync::Arc, time::Duration};
use turnery_engine::{
    CallId, Event, LlmMessage, LoopId, LoopRecord, PromptId, SessionId, Timestamp,
};

/// Future of a store operation.
pub type StoreFuture<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// A store of sessions. All methods may be called concurrently; share it behind an `Arc`.
pub trait Store: Send + Sync + 'static {
    /// Opens the store in the background, so that the first call need not wait for it. Creates nothing. An error is left
    /// to that call.
    fn prepare(&self) {}

    /// Creates a session. It is on disk when this returns, so other processes see it.
    fn create(&self, new: NewSession) -> StoreFuture<'_, SessionInfo>;

    /// Returns a session without its history.
    fn info(&self, id: &SessionId) -> StoreFuture<'_, SessionInfo>;

    /// Lists sessions, most recently active first, in pages with stable cursors.
    fn list(&self, query: ListQuery) -> StoreFuture<'_, ListPage>;

    /// Finds sessions by words of their titles, prompts and answers, most recently active first, in pages with stable
    /// cursors. What was stored before the call is found. A store with an index brings it up to date first, which
    /// takes longer the more was stored since the last search.
    fn search(&self, query: SearchQuery) -> StoreFuture<'_, SearchPage>;

    /// Deletes a session with its child sessions and everything else that belongs to it. Returns true if the
    /// session existed. Fails with [`StoreError::Busy`] while the lane of one of these sessions is held.
    fn delete(&self, id: &SessionId) -> StoreFuture<'_, bool>;

    /// Deletes a session like [`Store::delete`], even while it is in use. Returns the holders of the revoked
    /// lanes, each described for the user; `None` if there is no such session.
    fn delete_in_use(&self, id: &SessionId) -> StoreFuture<'_, Option<Vec<String>>>;

    /// Returns all readable loops of a session, on and off the chain, oldest first, with their messages and
    /// events.
    ///
    /// `after` leaves out loops committed at or before that head version. Unreadable loops are left out, and
    /// their children are attached to the nearest readable ancestor; [`Store::check`] reports them.
    fn loops(&self, id: &SessionId, after: u64) -> StoreFuture<'_, Vec<Arc<LoopRecord>>>;

    /// Returns the context of the next prompt: the loops on the chain to the tip, oldest first, with their
    /// messages but without their events, which are the larger part; and the damage found in them.
    fn history(&self, id: &SessionId) -> StoreFuture<'_, History>;

    /// Reads one page of the conversation to replay: the loops on the chain to the tip, oldest first, without
    /// loops that were rerun. `cursor` is the one returned with the previous page; `None` starts from the
    /// beginning. Request the next page before showing the last one, so that it is read meanwhile.
    fn replay_page(
        &self,
        id: &SessionId,
        cursor: Option<ReplayCursor>,
    ) -> StoreFuture<'_, ReplayPage>;

    /// Reads updates of a session from this place on: the events of stored loops, then those that are journalled of
    /// running ones. Reads only what is new, however long the session is. Takes no lane and changes nothing.
    ///
    /// Fails with [`StoreError::BadCursor`] if the place is not one of this session.
    fn follow_page(&self, id: &SessionId, from: FollowFrom) -> StoreFuture<'_, FollowPage>;

    /// Waits until a session may have changed since `since`, for at most [`MAX_CHANGE_WAIT`](crate::MAX_CHANGE_WAIT),
    /// and returns the state to wait for the next change with. `None` returns at once. Call it before a read of the
    /// session, so that no change is overlooked.
    fn wait_for_change(
        &self,
        id: &SessionId,
        since: Option<ChangeMark>,
    ) -> StoreFuture<'_, ChangeMark>;

    /// Claims the lane: the right to commit. Journals left by a dead holder become loops with status Aborted
    /// (S5): a loop with any messages joins the chain as the new tip, marked as interrupted; other loops stay
    /// off the chain. One candidate of a group joins the chain. A holder whose process is gone loses
    /// its lane at once, any other holder when its lease expires.
    fn claim(&self, id: &SessionId, owner: &Owner) -> StoreFuture<'_, ClaimedLane>;

    /// Claims like [`claim`](Self::claim), and journals the first events of a loop in the same step if the
    /// session is at the head that `beginning` expects. A store may skip the journalling, and a commit of another loop
    /// may drop these events.
    fn claim_and_journal(
        &self,
        id: &SessionId,
        owner: &Owner,
        beginning: Arc<LoopBeginning>,
    ) -> StoreFuture<'_, ClaimOutcome> {
        drop(beginning);
        let claimed = self.claim(id, owner);
        Box::pin(async move {
            Ok(ClaimOutcome {
                claimed_lane: claimed.await?,
                is_journalled: false,
            })
        })
    }

    /// Drops the events that [`claim_and_journal`](Self::claim_and_journal) journalled for a loop that will
    /// not run. Call it while `owner` has the lane, and also after a failed claim, which may have taken
    /// effect. Returns when queued; later calls see the journal gone.
    fn forget_journal(&self, id: &SessionId, owner: &Owner, loop_id: &LoopId) {
        let _ = (id, owner, loop_id);
    }

    /// Turns journals of a dead holder into loops, as a claim does, without holding the lane afterwards; for
    /// callers that only read. Does nothing while the holder may be active. Idempotent. Returns the damage
    /// found in the journals, which later calls do not report again.
    fn recover(&self, id: &SessionId) -> StoreFuture<'_, Vec<Damage>>;

    /// Extends the lease of the lane by another period.
    fn renew(&self, lane: &Lane) -> StoreFuture<'_, ()>;

    /// Releases the lane. Idempotent; never evicts a newer holder.
    fn release(&self, lane: &Lane) -> StoreFuture<'_, ()>;

    /// Journals events of a running loop, so that they survive a crash; they do not become history. Returns
    /// when queued; an error is reported by the commit.
    fn append(&self, lane: &Lane, loop_id: &LoopId, events: Vec<Event>);

    /// Journals events like [`append`](Self::append) and resolves once they are written and survive the end of
    /// this process. The write starts with the call, even if the future is dropped. Fails with
    /// [`StoreError::LaneLost`] if the lane is not held.
    fn append_now(&self, lane: &Lane, loop_id: &LoopId, events: Vec<Event>) -> StoreFuture<'_, ()>;

    /// Stores loops and everything that belongs to them, effects included, in one transaction, and drops their journals. Fence
    /// and head are checked in the same transaction (S1). Returns the new head version.
    fn commit(&self, commit: Commit) -> StoreFuture<'_, u64>;

    /// Takes the first effect that is to be delivered by a session and that nobody has, and counts the attempt. While
    /// the process of `owner` lives, nobody else takes the effect before the time of a lane's lease is over. Needs no
    /// lane. A session that does not exist has no effects.
    fn take_effect(&self, id: &SessionId, owner: &Owner) -> StoreFuture<'_, NextEffect>;

    /// Removes an effect. Idempotent.
    fn finish_effect(&self, taken: &TakenEffect) -> StoreFuture<'_, ()>;

    /// Frees an effect after `delay`, at most [`MAX_EFFECT_DELAY`](crate::MAX_EFFECT_DELAY). Does nothing if it was
    /// taken again since.
    fn postpone_effect(&self, taken: &TakenEffect, delay: Duration) -> StoreFuture<'_, ()>;

    /// Stores a prompt that is to be run as soon as the session is free. Needs no lane. Idempotent.
    fn queue_prompt(&self, id: &SessionId, prompt: QueuedPrompt) -> StoreFuture<'_, ()>;

    /// Returns the prompts that wait in a session, in the order in which they were queued; none if the session does not
    /// exist. A started prompt waits until it is removed, so that it is not lost with a process that has only started
    /// it.
    fn queued_prompts(&self, id: &SessionId) -> StoreFuture<'_, Vec<QueuedPrompt>>;

    /// Starts a queued prompt: it can no longer be withdrawn. Returns false if it does not wait. The caller holds the
    /// lane, runs the prompt only if no loop that was stored since it was queued has done so
    /// ([`QueuedPrompt::was_run_by`]), and removes it afterwards.
    fn start_queued_prompt(&self, id: &SessionId, prompt: &PromptId) -> StoreFuture<'_, bool>;

    /// Removes a queued prompt. Returns false if nothing was removed, which may also mean that the answer to an earlier
    /// attempt was lost.
    fn remove_queued_prompt(
        &self,
        id: &SessionId,
        prompt: &PromptId,
        removal: PromptRemoval,
    ) -> StoreFuture<'_, bool>;

    /// Changes the title or the settings of a session. Needs no lane.
    fn patch(&self, id: &SessionId, patch: SessionPatch) -> StoreFuture<'_, SessionInfo>;

    /// Stores notes in the transcript. Needs no lane, and changes no version.
    fn add_notes(&self, id: &SessionId, notes: Vec<TranscriptNote>) -> StoreFuture<'_, ()>;

    /// Returns all notes of the transcript, in the order in which they were stored.
    fn notes(&self, id: &SessionId) -> StoreFuture<'_, Vec<TranscriptNote>>;

    /// Looks for damage in one session; with `None`, reads all sessions and the database as a whole. Changes
    /// nothing. Empty if there is no damage.
    fn check(&self, id: Option<&SessionId>) -> StoreFuture<'_, Vec<Damage>>;

    /// Repairs a damaged session after copying the whole store: unreadable loops are set aside, their children
    /// are attached to the nearest readable ancestor, and nothing is deleted. Changes nothing if the session
    /// is undamaged. Fails with [`StoreError::Busy`] while the lane is held.
    fn repair(&self, id: &SessionId) -> StoreFuture<'_, RepairReport>;

    /// Adds up the tokens of all sessions by session, day and model, in this order. `since` leaves out what was used
    /// before it.
    fn daily_usage(&self, since: Option<Timestamp>) -> StoreFuture<'_, Vec<DailyUsage>>;

    /// Returns about how much space a session and its child sessions take. Unit: bytes.
    fn session_size(&self, id: &SessionId) -> StoreFuture<'_, u64>;

    /// Describes the store.
    fn describe(&self) -> StoreFuture<'_, StoreDescription>;

    /// Gives the space of deleted sessions back. Harmless while others use the store.
    fn vacuum(&self) -> StoreFuture<'_, SpaceReport> {
        Box::pin(ready(Ok(SpaceReport::default())))
    }

    /// Returns the copies made by repairs that still exist, oldest first. A copy holds every session of its
    /// time, including sessions deleted since. Only the user removes copies.
    fn backups(&self) -> StoreFuture<'_, Vec<PathBuf>> {
        Box::pin(ready(Ok(Vec::new())))
    }
}

/// A note in the transcript outside the conversation: a command that the user typed, or its output. Replayed
/// with the session, ordered by time; not sent to any model, and part of no loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TranscriptNote {
    /// Time of the note.
    pub at: Timestamp,
    /// Content and author.
    pub message: LlmMessage,
}

/// Remembered approval or rejection of every call that a rule matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RememberedApproval {
    /// Matching calls run without a request for permission.
    Allow(String),
    /// Matching calls are rejected.
    Reject(String),
}

/// Parameters of a new session.
#[derive(Clone, Debug, PartialEq)]
pub struct NewSession {
    /// Id of the session.
    pub id: SessionId,
    /// Working directory, absolute.
    pub cwd: PathBuf,
    /// Folder with symbolic links resolved, if that is a different path. Lists filter by it, and the session
    /// is reopened in it.
    pub folder: Option<PathBuf>,
    /// Additional roots, absolute.
    pub roots: Vec<PathBuf>,
    /// Model, as `provider/model`.
    pub model: String,
    /// Mode: `ask`, `edit`, `plan` or `auto`.
    pub mode: String,
    /// Time of creation.
    pub at: Timestamp,
    /// Tool call that creates the session; `None` if the user does.
    pub spawned_by: Option<SpawnRef>,
}

impl NewSession {
    /// Returns the metadata of the session once it is created.
    pub(crate) fn into_info(self) -> SessionInfo {
        SessionInfo {
            id: self.id,
            folder: self.folder.unwrap_or_else(|| self.cwd.clone()),
            cwd: self.cwd,
            roots: self.roots,
            title: None,
            model: self.model,
            mode: self.mode,
            created_at: self.at,
            updated_at: self.at,
            head_version: 0,
            tip_loop_id: None,
            spawned_by: self.spawned_by,
            thinking: None,
            protocol: None,
            always: Vec::new(),
            archived: false,
        }
    }
}

/// Tool call that created a child session (S7). Its loop may never be committed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SpawnRef {
    /// Parent session.
    pub session_id: SessionId,
    /// Loop that made the call.
    pub loop_id: LoopId,
    /// Id of the call.
    pub call_id: CallId,
}

/// Metadata of a session, without its history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SessionInfo {
    /// Id of the session.
    pub id: SessionId,
    /// Working directory, absolute.
    pub cwd: PathBuf,
    /// Path that `cwd` resolved to when the session was created. Empty in exported documents, since the path
    /// may resolve differently where one is imported.
    #[serde(skip)]
    pub folder: PathBuf,
    /// Additional roots.
    #[serde(default)]
    pub roots: Vec<PathBuf>,
    /// Title, set by the user or derived from the first prompt.
    #[serde(default)]
    pub title: Option<String>,
    /// Model, as `provider/model`.
    pub model: String,
    /// Mode: `ask`, `edit`, `plan` or `auto`.
    pub mode: String,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last prompt.
    pub updated_at: Timestamp,
    /// Version of the history; rises by one with each commit (S3).
    pub head_version: u64,
    /// Loop that the next prompt follows.
    #[serde(default)]
    pub tip_loop_id: Option<LoopId>,
    /// Tool call that created the session; `None` if the user did. Such a session is deleted with its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spawned_by: Option<SpawnRef>,
    /// Thinking level, if one was chosen in this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<String>,
    /// How the model acts, if that was chosen in this session: `tools` or `code`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Remembered approvals (PERM-6). Never exported or imported: permissions do not travel with a document.
    #[serde(skip)]
    pub always: Vec<RememberedApproval>,
    /// True for archived sessions, which lists leave out by default. Never exported: an imported session is
    /// active.
    #[serde(skip)]
    pub archived: bool,
}

impl SessionInfo {
    /// Returns the time of creation as cursors of followers identify it.
    pub(crate) fn creation_text(&self) -> String {
        format_time(self.created_at)
    }
}

/// Filter of a list by archived state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArchivedFilter {
    /// Sessions that are not archived.
    #[default]
    Exclude,
    /// All sessions.
    Include,
    /// Archived sessions.
    Only,
}

impl ArchivedFilter {
    /// Returns true if a session with this archived state passes the filter.
    pub(crate) fn matches(self, archived: bool) -> bool {
        match self {
            Self::Exclude => !archived,
            Self::Include => true,
            Self::Only => archived,
        }
    }
}

/// Query of [`Store::list`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListQuery {
    /// Only sessions of exactly this folder, given with symbolic links resolved.
    pub folder: Option<PathBuf>,
    /// Includes sessions created by tool calls.
    pub spawned: bool,
    /// Filter by archived state.
    pub archived: ArchivedFilter,
    /// Cursor from an earlier page.
    pub cursor: Option<String>,
    /// Maximum number of sessions; 0 means the page size of the store.
    pub limit: usize,
}

/// A page of sessions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListPage {
    /// Sessions of the page.
    pub sessions: Vec<SessionInfo>,
    /// Cursor of the next page; `None` at the end.
    pub next_cursor: Option<String>,
}

/// Changes to a session; `None` leaves a field unchanged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionPatch {
    /// Title; `Some(None)` clears it.
    pub title: Option<Option<String>>,
    /// Model, as `provider/model`.
    pub model: Option<String>,
    /// Mode: `ask`, `edit`, `plan` or `auto`.
    pub mode: Option<String>,
    /// Additional roots, absolute, as the client gave them when it opened the session.
    pub roots: Option<Vec<PathBuf>>,
    /// Time of the last prompt.
    pub updated_at: Option<Timestamp>,
    /// Thinking level.
    pub thinking: Option<String>,
    /// How the model acts: `tools` or `code`.
    pub protocol: Option<String>,
    /// Archived state.
    pub archived: Option<bool>,
    /// Approval to remember; a duplicate changes nothing.
    pub always: Option<RememberedApproval>,
}

impl SessionPatch {
    /// Applies the changes to `info`.
    pub(crate) fn apply(self, info: &mut SessionInfo) {
        fn set<T>(field: &mut T, value: Option<T>) {
            if let Some(value) = value {
                *field = value;
            }
        }
        set(&mut info.title, self.title);
        set(&mut info.model, self.model);
        set(&mut info.mode, self.mode);
        set(&mut info.roots, self.roots);
        set(&mut info.updated_at, self.updated_at);
        set(&mut info.thinking, self.thinking.map(Some));
        set(&mut info.protocol, self.protocol.map(Some));
        set(&mut info.archived, self.archived);
        if let Some(always) = self.always
            && !info.always.contains(&always)
        {
            info.always.push(always);
        }
    }
}

/// Claimant of a lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Globally unique id of the claimant; one process may have several.
    pub id: String,
    /// Description of the owner's process, so that a dead holder on the same machine is detected at once.
    pub process: String,
}

/// Right to commit to a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Session of the lane.
    pub session_id: SessionId,
    /// Id of the owner.
    pub owner_id: String,
    /// Fencing token; rises with every acquisition, not with renewal (UP-27).
    pub fence: u64,
}

/// A claimed lane with the state of its session.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimedLane {
    /// The lane.
    pub lane: Lane,
    /// Current state of the session; its `head_version` shows whether the caller's history is stale.
    pub info: SessionInfo,
    /// Greatest loop number that was ever stored or journalled in the session; 0 without loops. Numbers may
    /// have gaps, so this is not a count.
    pub last_number: u64,
}

/// First events of a new loop, to be journalled when its session is claimed.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopBeginning {
    /// Head version that the session must have.
    pub expected_head: u64,
    /// Id of the loop. Its number must be one greater than that of any earlier loop of the session.
    pub loop_id: LoopId,
    /// Events of the loop, starting with the first.
    pub events: Vec<Event>,
}

/// Result of [`Store::claim_and_journal`].
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimOutcome {
    /// The claimed lane.
    pub claimed_lane: ClaimedLane,
    /// True if the loop's first events are journalled.
    pub is_journalled: bool,
}

/// Everything that one loop or one parallel group stores. The parent of a loop need not be the tip.
#[derive(Clone, Debug)]
pub struct Commit {
    /// Lane of the session.
    pub lane: Lane,
    /// Head version that the session must still have.
    pub expected_head: u64,
    /// The loop, or all branches of a parallel group in the order of their configurations (S6).
    pub records: Vec<Arc<LoopRecord>>,
    /// Index of the record that the next prompt follows, if that record is on the chain.
    pub tip: usize,
    /// Title to set if the session has none.
    pub title: Option<String>,
    /// Releases the lane in the same transaction.
    pub release: bool,
    /// Effects of tools to store for delivery, in order.
    pub effects: Vec<PendingEffect>,
}

impl Commit {
    /// Checks that there is at least one loop and that all loops belong to the session of the lane.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        if self.records.is_empty() {
            return Err(StoreError::Broken("a commit without a loop".to_owned()));
        }
        let mut ids: Vec<&LoopId> = self.records.iter().map(|record| &record.loop_id).collect();
        ids.sort_unstable();
        if let Some(twice) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(StoreError::CommitMismatch(twice[0].clone()));
        }
        let session = &self.lane.session_id;
        match self
            .records
            .iter()
            .find(|record| record.session_id != *session)
        {
            None => Ok(()),
            Some(stray) => Err(StoreError::Broken(format!(
                "loop {} belongs to another session than its lane",
                stray.loop_id
            ))),
        }
    }
}
