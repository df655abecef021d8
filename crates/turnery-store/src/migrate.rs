//! Copies sessions from one store to another, with everything that belongs to them.

use crate::{
    Commit, Lane, NewSession, NextEffect, Owner, SessionInfo, SessionPatch, Store, StoreError,
    TranscriptNote, store_walk,
};
use std::{collections::HashSet, sync::Arc, time::Duration};
use turnery_engine::{LoopId, LoopRecord, SessionId};

/// Result of copying a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyOutcome {
    /// The target did not have all of the session, and has it now.
    Copied,
    /// The target already had all of it.
    Present,
}

/// Error of copying a session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CopyError {
    /// The session is damaged, so that not all of it can be read.
    #[error(
        "session {id} is damaged: {problem}; repair it first with `turnery sessions repair {id}`"
    )]
    Damaged {
        /// Id of the session.
        id: SessionId,
        /// First problem.
        problem: String,
    },
    /// The target has loops or notes of the session that the source lacks.
    #[error(
        "session {0} has gone on in the target since it was copied, so the copy is kept; delete it there to copy it \
         again"
    )]
    Diverged(SessionId),
    /// The session's tools have requested effects that are not delivered yet.
    #[error("session {0} has notifications that are not delivered yet; open it once, then copy it")]
    Undelivered(SessionId),
    /// A prompt waits in the session. A copy of it would be run as well.
    #[error(
        "a prompt waits in session {0}; open the session and let it run, or withdraw it, then copy the session"
    )]
    PromptWaits(SessionId),
    /// What the target returns differs from what was written to it.
    #[error("session {id} was copied, but its {what} are not read back as they were written")]
    Differs {
        /// Id of the session.
        id: SessionId,
        /// Plural noun for what differs.
        what: &'static str,
    },
    /// A store failed, or the session is in use.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A whole session.
struct SessionContent {
    info: SessionInfo,
    loops: Vec<Arc<LoopRecord>>,
    notes: Vec<TranscriptNote>,
}

/// Copies a session and compares what the target returns with the original. Holds the session's lane in both stores
/// meanwhile, so that it fails with [`StoreError::Busy`] while the session is in use. A copy that was interrupted is
/// completed, and one that is complete is left alone.
pub async fn copy_session(
    from: &dyn Store,
    to: &dyn Store,
    id: &SessionId,
) -> Result<CopyOutcome, CopyError> {
    let owner = Owner::for_this_process();
    // Turns the journals of a dead holder into loops.
    let lane = from.claim(id, &owner).await?.lane;
    let copied = copy_claimed(from, to, id, &owner).await;
    from.release(&lane).await?;
    copied
}

async fn copy_claimed(
    from: &dyn Store,
    to: &dyn Store,
    id: &SessionId,
    owner: &Owner,
) -> Result<CopyOutcome, CopyError> {
    if let Some(problem) = from.check(Some(id)).await?.first() {
        return Err(CopyError::Damaged {
            id: id.clone(),
            problem: problem.to_string(),
        });
    }
    require_delivered(from, id, owner).await?;
    if !from.queued_prompts(id).await?.is_empty() {
        return Err(CopyError::PromptWaits(id.clone()));
    }
    let source = read(from, id).await?;
    let is_new = match to.info(id).await {
        Ok(_) => false,
        Err(StoreError::NotFound(_)) => {
            create(to, &source.info).await?;
            true
        }
        Err(error) => return Err(error.into()),
    };
    let claimed = to.claim(id, owner).await?;
    let done = complete(to, claimed.lane.clone(), &source).await;
    to.release(&claimed.lane).await?;
    let outcome = done?;
    compare(&source, &read(to, id).await?)?;
    Ok(if is_new { CopyOutcome::Copied } else { outcome })
}

async fn read(store: &dyn Store, id: &SessionId) -> Result<SessionContent, StoreError> {
    Ok(SessionContent {
        info: store.info(id).await?,
        loops: store.loops(id, 0).await?,
        notes: store.notes(id).await?,
    })
}

/// Fails if an effect of the session is left to deliver: another store would deliver it once more.
async fn require_delivered(
    from: &dyn Store,
    id: &SessionId,
    owner: &Owner,
) -> Result<(), CopyError> {
    match from.take_effect(id, owner).await? {
        NextEffect::Empty => Ok(()),
        NextEffect::Later(_) => Err(CopyError::Undelivered(id.clone())),
        NextEffect::Taken(taken) => {
            from.postpone_effect(&taken, Duration::ZERO).await?;
            Err(CopyError::Undelivered(id.clone()))
        }
    }
}

async fn create(to: &dyn Store, info: &SessionInfo) -> Result<(), StoreError> {
    let new = NewSession {
        id: info.id.clone(),
        cwd: info.cwd.clone(),
        folder: Some(info.folder.clone()),
        roots: info.roots.clone(),
        model: info.model.clone(),
        mode: info.mode.clone(),
        at: info.created_at,
        spawned_by: info.spawned_by.clone(),
    };
    to.create(new).await.map(drop)
}

/// Adds what the target lacks.
async fn complete(
    to: &dyn Store,
    lane: Lane,
    source: &SessionContent,
) -> Result<CopyOutcome, CopyError> {
    let id = &source.info.id;
    let target = read(to, id).await?;
    let known: HashSet<&LoopId> = target.loops.iter().map(|it| &it.loop_id).collect();
    let all: HashSet<&LoopId> = source.loops.iter().map(|it| &it.loop_id).collect();
    if !known.is_subset(&all) || !source.notes.starts_with(&target.notes) {
        return Err(CopyError::Diverged(id.clone()));
    }
    if compare(source, &target).is_ok() {
        return Ok(CopyOutcome::Present);
    }
    let missing = source
        .loops
        .iter()
        .filter(|it| !known.contains(&it.loop_id));
    let records: Vec<Arc<LoopRecord>> = missing.cloned().collect();
    if !records.is_empty() {
        let tip = source.info.tip_loop_id.as_ref();
        let tip = records.iter().position(|it| Some(&it.loop_id) == tip);
        let commit = Commit {
            lane,
            expected_head: target.info.head_version,
            tip: tip.unwrap_or(records.len()),
            records,
            title: None,
            release: false,
            effects: Vec::new(),
        };
        to.commit(commit).await?;
    }
    let notes: Vec<TranscriptNote> = source
        .notes
        .iter()
        .skip(target.notes.len())
        .cloned()
        .collect();
    if !notes.is_empty() {
        to.add_notes(id, notes).await?;
    }
    let info = source.info.clone();
    for always in info.always {
        let patch = SessionPatch {
            always: Some(always),
            ..SessionPatch::default()
        };
        to.patch(id, patch).await?;
    }
    let patch = SessionPatch {
        title: Some(info.title),
        model: Some(info.model),
        mode: Some(info.mode),
        roots: Some(info.roots),
        updated_at: Some(info.updated_at),
        thinking: info.thinking,
        protocol: info.protocol,
        archived: Some(info.archived),
        always: None,
    };
    to.patch(id, patch).await?;
    Ok(CopyOutcome::Copied)
}

/// Compares a copy with its source. The version of the history counts commits, and starts again in a copy.
fn compare(source: &SessionContent, copy: &SessionContent) -> Result<(), CopyError> {
    let differs = |what| CopyError::Differs {
        id: source.info.id.clone(),
        what,
    };
    let info = SessionInfo {
        head_version: source.info.head_version,
        ..copy.info.clone()
    };
    if info != source.info {
        return Err(differs("settings"));
    }
    if copy.loops != source.loops {
        return Err(differs("loops"));
    }
    match copy.notes == source.notes {
        true => Ok(()),
        false => Err(differs("notes")),
    }
}

/// Returns the ids of all sessions, to be copied one by one.
pub async fn sessions_to_copy(from: &dyn Store) -> Result<Vec<SessionId>, StoreError> {
    store_walk::all_sessions(from).await
}
