//! Exports a session as one JSON document, and imports such documents.

mod rename_ids;

use crate::{
    Commit, NewSession, Owner, SessionInfo, SessionPatch, Store, StoreError, TranscriptNote,
};
use serde::{Deserialize, Serialize};
use std::{collections::HashSet, fs, path::PathBuf, sync::Arc};
use turnery_engine::{LoopId, LoopRecord, SessionId};

/// Version of the document format. Rises when an older turnery would misread a document; fields that it does
/// not know are ignored.
pub const FORMAT_VERSION: u32 = 1;

/// A session of turnery with its full history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(title = "Session of turnery"))]
pub struct SessionDocument {
    /// Version of this format; 1.
    pub format: u32,
    /// Metadata of the session. Its `head_version` restarts on import.
    pub session: SessionInfo,
    /// Loops in commit order, so that parents come before their children.
    pub loops: Vec<Arc<LoopRecord>>,
    /// Notes in the transcript.
    #[serde(default, rename = "remarks", skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<TranscriptNote>,
}

/// Error of an import.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The text is not JSON, or not a session document.
    #[error("this is not an exported session")]
    InvalidJson(#[from] serde_json::Error),
    /// The document has an unsupported format version.
    #[error(
        "this session was exported in format {found}, and this turnery knows formats up to {FORMAT_VERSION}; \
         update turnery"
    )]
    UnsupportedFormat {
        /// Version of the document.
        found: u32,
    },
    /// A session id is the first part of every loop id, so it must be non-empty and free of dots (D-13).
    #[error("{0:?} cannot be the id of a session: it must have some text and no dots")]
    InvalidId(SessionId),
    /// A loop is inconsistent with the others.
    #[error("loop {loop_id} of this document {what}")]
    InvalidLoop {
        /// Id of the loop.
        loop_id: LoopId,
        /// Predicate that describes the inconsistency.
        what: &'static str,
    },
    /// The store rejected the session.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Exports a session, including the journalled part of an interrupted prompt.
pub async fn export_session(
    store: &dyn Store,
    id: &SessionId,
) -> Result<SessionDocument, StoreError> {
    match store.recover(id).await {
        Ok(_) | Err(StoreError::NotFound(_)) => {}
        Err(error) => tracing::warn!("the interrupted prompt of {id} is left out: {error}"),
    }
    let mut session = store.info(id).await?;
    loop {
        let loops = store.loops(id, 0).await?;
        let notes = store.notes(id).await?;
        let now = store.info(id).await?;
        // Otherwise the session changed meanwhile, and metadata and loops would not match.
        if now == session {
            session.tip_loop_id = readable_tip(store, &session).await?;
            session.folder = PathBuf::new();
            return Ok(SessionDocument {
                format: FORMAT_VERSION,
                session,
                loops,
                notes,
            });
        }
        session = now;
    }
}

/// Returns the tip of a session; for a damaged session, the last readable loop of the conversation.
async fn readable_tip(
    store: &dyn Store,
    session: &SessionInfo,
) -> Result<Option<LoopId>, StoreError> {
    let history = store.history(&session.id).await?;
    Ok(match history.damage.is_empty() {
        true => session.tip_loop_id.clone(),
        false => history.loops.last().map(|last| last.loop_id.clone()),
    })
}

impl SessionDocument {
    /// Parses a document.
    pub fn parse(text: &str) -> Result<Self, ImportError> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        // A newer format may differ from here on, so the version is checked first.
        let Version { format } = serde_json::from_str(text)?;
        if format == 0 || format > FORMAT_VERSION {
            return Err(ImportError::UnsupportedFormat { found: format });
        }
        Ok(serde_json::from_str(text)?)
    }

    /// Returns the document under another session id. All references to the session and its loops change,
    /// content does not. The loops are marked as copies, so their cost is not counted again.
    pub fn with_session_id(&self, id: &SessionId) -> Result<Self, ImportError> {
        check_id(id)?;
        let mut document = serde_json::to_value(self)?;
        rename_ids::rename_ids(&mut document, self.session.id.as_str(), id.as_str());
        let mut renamed: Self = serde_json::from_value(document)?;
        for (record, source) in renamed.loops.iter_mut().zip(&self.loops) {
            // A copy of a copy refers to the original, where the cost was incurred.
            let first = source.copied_from.as_ref().unwrap_or(&source.loop_id);
            Arc::make_mut(record).copied_from = Some(first.clone());
        }
        Ok(renamed)
    }

    fn validate(&self) -> Result<(), ImportError> {
        check_id(&self.session.id)?;
        let all: HashSet<&LoopId> = self.loops.iter().map(|record| &record.loop_id).collect();
        let mut before = HashSet::new();
        for record in &self.loops {
            let wrong = |what| ImportError::InvalidLoop {
                loop_id: record.loop_id.clone(),
                what,
            };
            if record.session_id != self.session.id {
                return Err(wrong("belongs to another session"));
            }
            let parent = record.parent_loop_id.as_ref();
            if parent.is_some_and(|parent| all.contains(parent) && !before.contains(parent)) {
                return Err(wrong("comes before its parent"));
            }
            if !before.insert(&record.loop_id) {
                return Err(wrong("is there twice"));
            }
        }
        match &self.session.tip_loop_id {
            Some(tip) if !before.contains(tip) => Err(ImportError::InvalidLoop {
                loop_id: tip.clone(),
                what: "is missing, and the next prompt was to follow it",
            }),
            Some(_) | None => Ok(()),
        }
    }
}

fn check_id(id: &SessionId) -> Result<(), ImportError> {
    match id.as_str() {
        "" => Err(ImportError::InvalidId(id.clone())),
        text if text.contains('.') => Err(ImportError::InvalidId(id.clone())),
        _ => Ok(()),
    }
}

/// Imports a document under its own session id, completely or not at all.
pub async fn import_session(
    store: &dyn Store,
    document: SessionDocument,
) -> Result<SessionInfo, ImportError> {
    document.validate()?;
    let SessionDocument {
        session,
        loops,
        notes,
        format: _,
    } = document;
    let id = session.id.clone();
    let made = NewSession {
        id: session.id.clone(),
        cwd: session.cwd.clone(),
        folder: Some(session.folder.clone())
            .filter(|it| !it.as_os_str().is_empty())
            .or_else(|| fs::canonicalize(&session.cwd).ok()),
        roots: session.roots.clone(),
        model: session.model.clone(),
        mode: session.mode.clone(),
        at: session.created_at,
        spawned_by: session.spawned_by.clone(),
    };
    store.create(made).await?;
    match store_content(store, session, loops, notes).await {
        Ok(info) => Ok(info),
        Err(error) => {
            // The import itself may still hold the lane.
            store.delete_in_use(&id).await?;
            Err(error.into())
        }
    }
}

async fn store_content(
    store: &dyn Store,
    session: SessionInfo,
    loops: Vec<Arc<LoopRecord>>,
    notes: Vec<TranscriptNote>,
) -> Result<SessionInfo, StoreError> {
    if !loops.is_empty() {
        let opened = store.claim(&session.id, &Owner::for_this_process()).await?;
        let tip = session.tip_loop_id.as_ref();
        let tip = loops.iter().position(|record| Some(&record.loop_id) == tip);
        let commit = Commit {
            lane: opened.lane,
            expected_head: opened.info.head_version,
            tip: tip.unwrap_or(loops.len()),
            records: loops,
            title: None,
            release: true,
            effects: Vec::new(),
        };
        store.commit(commit).await?;
    }
    if !notes.is_empty() {
        store.add_notes(&session.id, notes).await?;
    }
    let patch = SessionPatch {
        title: Some(session.title),
        thinking: session.thinking,
        protocol: session.protocol,
        updated_at: Some(session.updated_at),
        ..SessionPatch::default()
    };
    store.patch(&session.id, patch).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn schema_file_is_up_to_date() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/session.json");
        let schema = schemars::schema_for!(SessionDocument);
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            fs::write(&file, &text).unwrap();
        }
        assert_eq!(
            fs::read_to_string(&file).unwrap_or_default(),
            text,
            "schemas/session.json is out of date: run `cargo xtask schemas`"
        );
    }
}
