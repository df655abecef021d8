//! The contract that every store keeps (engine.md, section 6.4, S1 to S8).

use crate::{Damage, History, Page, Repair, Rest};
use futures_util::future::{BoxFuture, ready};
use serde::{Deserialize, Serialize};
use std::{path::PathBuf, sync::Arc};
use turnery_engine::{CallId, Event, LlmMessage, LoopId, LoopRecord, SessionId, Timestamp};

/// A store of sessions. Cheap to clone behind an `Arc`; all methods may be called at once.
pub trait Store: Send + Sync + 'static {
    /// Make a session. It is on disk when this returns, so that another process finds it.
    fn create(&self, new: NewSession) -> BoxFuture<'_, Result<SessionInfo, StoreError>>;

    /// One session, without its history.
    fn info(&self, id: &SessionId) -> BoxFuture<'_, Result<SessionInfo, StoreError>>;

    /// Sessions, the one last active first, in pages with stable cursors.
    fn list(&self, query: ListQuery) -> BoxFuture<'_, Result<ListPage, StoreError>>;

    /// Remove a session and all that belongs to it, its child sessions too. True if there was one.
    /// [`StoreError::Busy`] while somebody holds the lane of one of them.
    fn delete(&self, id: &SessionId) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Remove a session like [`Store::delete`], also while it is in use. Returns the holders of the
    /// lanes that were taken away, each described for a person; `None` if there was no such session.
    fn delete_in_use(
        &self,
        id: &SessionId,
    ) -> BoxFuture<'_, Result<Option<Vec<String>>, StoreError>>;

    /// The history of a session: its loops, oldest first, with the messages and events of each.
    /// `after` leaves out those that were committed at or before that head version. Loops that cannot be
    /// read are left out, and the parent of each is the nearest one that can; [`Store::check`] names
    /// what is missing.
    fn loops(
        &self,
        id: &SessionId,
        after: u64,
    ) -> BoxFuture<'_, Result<Vec<Arc<LoopRecord>>, StoreError>>;

    /// What the next prompt follows: the loops on the chain that leads to the tip, oldest first, with
    /// their messages, and without their events, which are the greater part; and what of them is damaged.
    fn history(&self, id: &SessionId) -> BoxFuture<'_, Result<History, StoreError>>;

    /// What a conversation is shown again from, page by page: the loops on the chain that leads to the
    /// tip, oldest first, without those that were run again. `rest` is that of the page before; none
    /// begins anew. Ask for a page before the last one is shown: it is read meanwhile.
    fn shown(&self, id: &SessionId, rest: Option<Rest>) -> BoxFuture<'_, Result<Page, StoreError>>;

    /// Claim the lane: the right to commit. Under the new lane, journals that a dead holder left
    /// become loops with status Aborted (S5): on the chain and the new tip, marked as interrupted, if
    /// anything was said in them; off the chain if not. Of the candidates of a group one is on the chain.
    /// Reclaims at once from a holder whose process is gone, else only after its time has run out.
    fn claim(&self, id: &SessionId, owner: &Owner) -> BoxFuture<'_, Result<Opened, StoreError>>;

    /// Claims like [`claim`](Self::claim), and journals the first events of a loop with it if the session
    /// stands where `beginning` expects it. A store that journals nothing here is right too.
    fn claim_and_journal(
        &self,
        id: &SessionId,
        owner: &Owner,
        beginning: Arc<LoopBeginning>,
    ) -> BoxFuture<'_, Result<ClaimOutcome, StoreError>> {
        drop(beginning);
        let claimed = self.claim(id, owner);
        Box::pin(async move {
            Ok(ClaimOutcome {
                opened: claimed.await?,
                is_journalled: false,
            })
        })
    }

    /// Drops what [`claim_and_journal`](Self::claim_and_journal) has journalled for a loop that does not
    /// begin, while `owner` has the lane; also after a claim that failed, which may have been made all the
    /// same. Returns when queued; calls that come later find it done.
    fn forget_journal(&self, id: &SessionId, owner: &Owner, loop_id: &LoopId) {
        let _ = (id, owner, loop_id);
    }

    /// Turns journals that a dead holder left into loops, as a claim does, and holds nothing
    /// afterwards: for callers that only read. Does nothing while the holder may be at work. Idempotent.
    /// Returns what could not be read of the journals; it is not found again later.
    fn recover(&self, id: &SessionId) -> BoxFuture<'_, Result<Vec<Damage>, StoreError>>;

    /// Hold the lane for another period.
    fn renew(&self, lane: &Lane) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Give the lane back. Idempotent; never clears a newer holder.
    fn release(&self, lane: &Lane) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Journal events of a running loop: evidence against a crash, not history. Returns when
    /// queued; a fault shows at the commit.
    fn append(&self, lane: &Lane, loop_id: &LoopId, events: Vec<Event>);

    /// Journal events like [`append`](Self::append), and tell when they are written: from then on they
    /// survive the end of this process. Work starts with the call, also if the future is dropped.
    fn append_now(
        &self,
        lane: &Lane,
        loop_id: &LoopId,
        events: Vec<Event>,
    ) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Store loops and all that belongs to them, in one transaction, and drop their journals.
    /// Fence and head are checked in the same transaction (S1). Returns the new head version.
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<u64, StoreError>>;

    /// Change what a session is called or how it is set. Needs no lane.
    fn patch(
        &self,
        id: &SessionId,
        patch: SessionPatch,
    ) -> BoxFuture<'_, Result<SessionInfo, StoreError>>;

    /// Keep what was said beside the conversation. Needs no lane, and changes no version.
    fn remark(&self, id: &SessionId, said: Vec<Remark>) -> BoxFuture<'_, Result<(), StoreError>>;

    /// All that was said beside the conversation, in the order in which it was kept.
    fn remarks(&self, id: &SessionId) -> BoxFuture<'_, Result<Vec<Remark>, StoreError>>;

    /// Looks for damage in one session, or with `None` in all sessions and in the store as a whole, which
    /// reads all of it. Changes nothing. Empty if all is well.
    fn check(&self, id: Option<&SessionId>) -> BoxFuture<'_, Result<Vec<Damage>, StoreError>>;

    /// Mends what is damaged in a session, after a copy of the whole store has been made: loops that
    /// cannot be read are set aside, what followed them follows the nearest loop before them, and nothing
    /// is deleted. Changes nothing if the session is undamaged. [`StoreError::Busy`] while somebody holds
    /// its lane.
    fn repair(&self, id: &SessionId) -> BoxFuture<'_, Result<Repair, StoreError>>;

    /// Copies that repairs have made and that are still there, oldest first. They hold what all sessions
    /// held then, also those that have been deleted since. Nothing but their owner removes them.
    fn copies(&self) -> BoxFuture<'_, Result<Vec<PathBuf>, StoreError>> {
        Box::pin(ready(Ok(Vec::new())))
    }
}

/// Something said beside the conversation: a command that a person typed, or what answered it. It is shown
/// when the session is, by its time; no model sees it, and it is in no loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Remark {
    /// When.
    pub at: Timestamp,
    /// What, and by whom.
    pub message: LlmMessage,
}

/// What a person has answered for good, for calls that a rule fits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Always {
    /// They may run.
    Allow(String),
    /// They may not.
    Reject(String),
}

/// A session to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct NewSession {
    /// Its id.
    pub id: SessionId,
    /// Absolute.
    pub cwd: PathBuf,
    /// Folder with its links resolved, if that is another path. Lists go by it, and the session is opened again there.
    pub folder: Option<PathBuf>,
    /// Further roots, absolute.
    pub roots: Vec<PathBuf>,
    /// `provider/model`.
    pub model: String,
    /// `ask`, `edit`, `plan` or `auto`.
    pub mode: String,
    /// When.
    pub at: Timestamp,
    /// The call that makes it; none if a person does.
    pub spawned_by: Option<SpawnRef>,
}

/// The call of a tool that made a child session (S7). Its loop may never be committed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SpawnRef {
    /// The parent session.
    pub session_id: SessionId,
    /// The loop that asked for the call.
    pub loop_id: LoopId,
    /// The call.
    pub call_id: CallId,
}

/// A session without its history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SessionInfo {
    /// Its id.
    pub id: SessionId,
    /// Absolute.
    pub cwd: PathBuf,
    /// Where `cwd` led when the session was made. Empty in documents: the path may lead elsewhere where one is imported.
    #[serde(skip)]
    pub folder: PathBuf,
    /// Further roots.
    #[serde(default)]
    pub roots: Vec<PathBuf>,
    /// Chosen, or made from the first prompt.
    #[serde(default)]
    pub title: Option<String>,
    /// `provider/model`.
    pub model: String,
    /// `ask`, `edit`, `plan` or `auto`.
    pub mode: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last prompted.
    pub updated_at: Timestamp,
    /// Rises by one with each commit (S3).
    pub head_version: u64,
    /// The loop that the next prompt follows.
    #[serde(default)]
    pub tip_loop_id: Option<LoopId>,
    /// The call that made it; none if a person did. Such a session goes with its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spawned_by: Option<SpawnRef>,
    /// How much the model is to think, once somebody has said so in this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<String>,
    /// What the person has answered for good (PERM-6). In no document: a permission is not passed on, and
    /// nobody brings one along.
    #[serde(skip)]
    pub always: Vec<Always>,
    /// Put away: it is listed only when that is asked for. In no document: who imports a session wants it.
    #[serde(skip)]
    pub archived: bool,
}

/// Which sessions to list, by whether they were put away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Archived {
    /// Those that were not.
    #[default]
    Exclude,
    /// All.
    Include,
    /// Those that were.
    Only,
}

impl Archived {
    /// Whether a session is one of them.
    pub(crate) fn has(self, archived: bool) -> bool {
        match self {
            Self::Exclude => !archived,
            Self::Include => true,
            Self::Only => archived,
        }
    }
}

/// Which sessions to list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListQuery {
    /// Only those of exactly this folder, which is named with its links resolved.
    pub cwd: Option<PathBuf>,
    /// Also those that calls of tools made.
    pub spawned: bool,
    /// Whether those that were put away.
    pub archived: Archived,
    /// From an earlier page.
    pub cursor: Option<String>,
    /// At most this many; 0 means the store's page size.
    pub limit: usize,
}

/// A page of sessions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListPage {
    /// The sessions.
    pub sessions: Vec<SessionInfo>,
    /// For the next page; absent at the end.
    pub next_cursor: Option<String>,
}

/// What to change of a session; `None` leaves it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionPatch {
    /// Its title; `Some(None)` clears it.
    pub title: Option<Option<String>>,
    /// `provider/model`.
    pub model: Option<String>,
    /// `ask`, `edit`, `plan` or `auto`.
    pub mode: Option<String>,
    /// Working directory and roots, as the client gave them when it opened the session.
    pub roots: Option<Vec<PathBuf>>,
    /// When it was last prompted.
    pub updated_at: Option<Timestamp>,
    /// How much the model is to think.
    pub thinking: Option<String>,
    /// Whether it is put away.
    pub archived: Option<bool>,
    /// One more answer for good; one that is known already changes nothing.
    pub always: Option<Always>,
}

/// Who claims a lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// This handle: unique in the world.
    pub id: String,
    /// The process that it lives in, so that a dead holder is known at once on the same machine.
    pub process: String,
}

/// The right to commit to a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// The session.
    pub session_id: SessionId,
    /// The holder.
    pub owner_id: String,
    /// Rises with every acquisition, not with renewal (UP-27).
    pub fence: u64,
}

/// A claimed lane, and how the session stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Opened {
    /// The lane.
    pub lane: Lane,
    /// The session as it stands now; its `head_version` tells whether what the caller knows is stale.
    pub info: SessionInfo,
    /// The greatest number of a loop of the session that was ever stored or journalled; 0 without loops.
    /// Numbers may have gaps, so this is no count.
    pub last_number: u64,
}

/// First events of a loop that is about to begin, to be journalled with the claim of its session.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopBeginning {
    /// Head version at which the session must stand.
    pub expected_head: u64,
    /// The loop. Its number must be greater by one than that of any loop of the session before it.
    pub loop_id: LoopId,
    /// Its events from the first on.
    pub events: Vec<Event>,
}

/// Result of [`Store::claim_and_journal`].
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimOutcome {
    /// The claimed lane.
    pub opened: Opened,
    /// True if the loop's first events are journalled.
    pub is_journalled: bool,
}

/// All that one loop leaves behind, or one parallel group. The parent of a loop need not be the tip.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The lane.
    pub lane: Lane,
    /// What the head must still be.
    pub expected_head: u64,
    /// The loop; or all branches of a parallel group, in the order of their configurations (S6).
    pub records: Vec<Arc<LoopRecord>>,
    /// The place of the one that the next prompt follows, if it is on the chain.
    pub tip: usize,
    /// The title to set if the session has none.
    pub title: Option<String>,
    /// Give the lane back in the same transaction.
    pub release: bool,
}

impl Commit {
    /// A commit is of at least one loop, and all are of the session of its lane.
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

/// Why the store could not do it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// No such session.
    #[error("there is no session {0}; list the sessions to see which there are")]
    NotFound(SessionId),
    /// A session of that id exists already.
    #[error("session {0} exists already")]
    Exists(SessionId),
    /// Somebody else is at work in the session.
    #[error("session {session} is busy: {holder} is at work in it")]
    Busy {
        /// The session.
        session: SessionId,
        /// Who.
        holder: String,
    },
    /// The lane went to somebody else.
    #[error("somebody else has taken over session {0}")]
    LaneLost(SessionId),
    /// The head is not what was expected.
    #[error("session has changed: expected version {expected}, found {actual}")]
    HeadConflict {
        /// What the caller knew.
        expected: u64,
        /// What it is.
        actual: u64,
    },
    /// The same loop was committed with other content.
    #[error("loop {0} was stored already, with other content")]
    CommitMismatch(LoopId),
    /// The cursor is not one of ours.
    #[error("{0:?} is not a cursor of this list; start again without one")]
    BadCursor(String),
    /// The database is broken, full, locked, or of a newer version: with its path and what to do.
    #[error("{0}")]
    Broken(String),
}
