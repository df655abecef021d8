//! Export: a whole session as one JSON document, and a document as a session.

mod rename;

use crate::{Commit, NewSession, Owner, Remark, SessionInfo, SessionPatch, Store, StoreError};
use serde::{Deserialize, Serialize};
use std::{collections::HashSet, fs, path::PathBuf, sync::Arc};
use turnery_engine::{LoopId, LoopRecord, SessionId};

/// The version of the form. It rises when an older turnery would misread a document; what it would only
/// not know, it leaves out.
pub const FORMAT: u32 = 1;

/// A session of turnery, with all that was said and done in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(title = "Session of turnery"))]
pub struct Document {
    /// The version of this form; 1.
    pub format: u32,
    /// The session. Its `head_version` begins anew where it is imported.
    pub session: SessionInfo,
    /// Its loops, in the order of their commits, so that parents come before their children.
    pub loops: Vec<Arc<LoopRecord>>,
    /// What was said beside the conversation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
}

/// Why a document cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It is no JSON, or not of this form.
    #[error("this is not an exported session")]
    Form(#[from] serde_json::Error),
    /// It is of another version of the form.
    #[error(
        "this session was exported in format {found}, and this turnery knows formats up to {FORMAT}; \
         update turnery"
    )]
    Format {
        /// Its version.
        found: u32,
    },
    /// A session id bounds the first part of a loop id, and so has no dot and some text (D-13).
    #[error("{0:?} cannot be the id of a session: it must have some text and no dots")]
    Id(SessionId),
    /// A loop does not fit the others.
    #[error("loop {loop_id} of this document {what}")]
    Loop {
        /// Which.
        loop_id: LoopId,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The store says no.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The session as a document, with what a process that is gone has left of a prompt.
pub async fn export(store: &dyn Store, id: &SessionId) -> Result<Document, StoreError> {
    match store.recover(id).await {
        Ok(_) | Err(StoreError::NotFound(_)) => {}
        Err(error) => tracing::warn!("the interrupted prompt of {id} is left out: {error}"),
    }
    let mut session = store.info(id).await?;
    loop {
        let loops = store.loops(id, 0).await?;
        let remarks = store.remarks(id).await?;
        let now = store.info(id).await?;
        // Else somebody has been at work in it meanwhile, and the two would not fit.
        if now == session {
            session.tip_loop_id = tip(store, &session).await?;
            session.folder = PathBuf::new();
            return Ok(Document {
                format: FORMAT,
                session,
                loops,
                remarks,
            });
        }
        session = now;
    }
}

/// The tip of a session; of a damaged one, the last loop of the conversation that can be read.
async fn tip(store: &dyn Store, session: &SessionInfo) -> Result<Option<LoopId>, StoreError> {
    let history = store.history(&session.id).await?;
    Ok(match history.damage.is_empty() {
        true => session.tip_loop_id.clone(),
        false => history.loops.last().map(|last| last.loop_id.clone()),
    })
}

impl Document {
    /// A document from its text.
    pub fn parse(text: &str) -> Result<Self, ImportError> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        // A newer form may read differently from here on.
        let Version { format } = serde_json::from_str(text)?;
        if format == 0 || format > FORMAT {
            return Err(ImportError::Format { found: format });
        }
        Ok(serde_json::from_str(text)?)
    }

    /// The document under another id: all that names the session or one of its loops is changed, but not
    /// what anybody has said. Its loops then say what they are copies of: they cost nothing again.
    pub fn renamed(&self, id: &SessionId) -> Result<Self, ImportError> {
        check_id(id)?;
        let mut document = serde_json::to_value(self)?;
        rename::rename(&mut document, self.session.id.as_str(), id.as_str());
        let mut renamed: Self = serde_json::from_value(document)?;
        for (record, source) in renamed.loops.iter_mut().zip(&self.loops) {
            // The first of all copies was spent for; what it was copied from says so.
            let first = source.copied_from.as_ref().unwrap_or(&source.loop_id);
            Arc::make_mut(record).copied_from = Some(first.clone());
        }
        Ok(renamed)
    }

    fn check(&self) -> Result<(), ImportError> {
        check_id(&self.session.id)?;
        let all: HashSet<&LoopId> = self.loops.iter().map(|record| &record.loop_id).collect();
        let mut before = HashSet::new();
        for record in &self.loops {
            let wrong = |what| ImportError::Loop {
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
            Some(tip) if !before.contains(tip) => Err(ImportError::Loop {
                loop_id: tip.clone(),
                what: "is missing, and the next prompt was to follow it",
            }),
            Some(_) | None => Ok(()),
        }
    }
}

fn check_id(id: &SessionId) -> Result<(), ImportError> {
    match id.as_str() {
        "" => Err(ImportError::Id(id.clone())),
        text if text.contains('.') => Err(ImportError::Id(id.clone())),
        _ => Ok(()),
    }
}

/// Make the session of a document, under the id that it says. All its loops are there, or it is not.
pub async fn import(store: &dyn Store, document: Document) -> Result<SessionInfo, ImportError> {
    document.check()?;
    let Document {
        session,
        loops,
        remarks,
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
    match fill(store, session, loops, remarks).await {
        Ok(info) => Ok(info),
        Err(error) => {
            // Its lane may still be held, by this import.
            store.delete_in_use(&id).await?;
            Err(error.into())
        }
    }
}

async fn fill(
    store: &dyn Store,
    session: SessionInfo,
    loops: Vec<Arc<LoopRecord>>,
    remarks: Vec<Remark>,
) -> Result<SessionInfo, StoreError> {
    if !loops.is_empty() {
        let opened = store.claim(&session.id, &Owner::this_process()).await?;
        let tip = session.tip_loop_id.as_ref();
        let tip = loops.iter().position(|record| Some(&record.loop_id) == tip);
        let commit = Commit {
            lane: opened.lane,
            expected_head: opened.info.head_version,
            tip: tip.unwrap_or(loops.len()),
            records: loops,
            title: None,
            release: true,
        };
        store.commit(commit).await?;
    }
    if !remarks.is_empty() {
        store.remark(&session.id, remarks).await?;
    }
    let patch = SessionPatch {
        title: Some(session.title),
        thinking: session.thinking,
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
    fn the_schema_file_is_up_to_date() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/session.json");
        let schema = schemars::schema_for!(Document);
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
