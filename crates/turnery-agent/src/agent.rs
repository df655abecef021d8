//! Agent: opens sessions, lists them, deletes them.

use crate::{Ports, Projects, Session};
use std::{path::PathBuf, sync::Arc};
use turnery_engine::SessionId;
use turnery_models::Catalogue;
use turnery_store::{ListPage, ListQuery, Store, StoreError};
use turnery_tools::{PathRefused, Toolbox};

/// Opens sessions over one store, one catalogue of models and one toolbox.
pub struct Agent {
    store: Arc<dyn Store>,
    models: Arc<Catalogue>,
    toolbox: Toolbox,
    projects: Arc<dyn Projects>,
}

/// Where a session works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRequest {
    /// Absolute, an existing folder.
    pub cwd: PathBuf,
    /// Further roots, absolute, existing folders.
    pub roots: Vec<PathBuf>,
}

/// Why a session could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// A folder is not absolute, does not exist, or may not be read.
    #[error(transparent)]
    Path(#[from] PathRefused),
    /// The session was made for another folder (G-24).
    #[error("session {session} belongs to {expected}; open it there")]
    OtherFolder {
        /// The session.
        session: SessionId,
        /// Its folder.
        expected: PathBuf,
    },
    /// The configuration cannot be read.
    #[error(transparent)]
    Settings(#[from] crate::SettingsError),
    /// The configured model does not exist.
    #[error(transparent)]
    Model(#[from] turnery_models::UnknownModel),
    /// The store says no.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Agent {
    /// An agent of these parts.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        models: Arc<Catalogue>,
        toolbox: Toolbox,
        projects: Arc<dyn Projects>,
    ) -> Self {
        Self {
            store,
            models,
            toolbox,
            projects,
        }
    }

    /// The models within reach.
    #[must_use]
    pub fn models(&self) -> &Catalogue {
        &self.models
    }

    /// The tools on offer.
    #[must_use]
    pub fn toolbox(&self) -> &Toolbox {
        &self.toolbox
    }

    /// Make a session. It is on disk when this returns. Must be called inside a tokio runtime.
    pub async fn create(
        &self,
        request: OpenRequest,
        ports: impl FnOnce(&SessionId) -> Ports + Send,
    ) -> Result<Session, OpenError> {
        let _ = (request, ports, &self.projects);
        Err(OpenError::Store(StoreError::Broken(String::new())))
    }

    /// Open a session that exists. With `replay`, its whole conversation goes to the outbox as
    /// `Item::Replay` before this returns (LOAD-1, LOAD-2); without, nothing does (RES-1).
    pub async fn open(
        &self,
        id: &SessionId,
        request: OpenRequest,
        replay: bool,
        ports: impl FnOnce(&SessionId) -> Ports + Send,
    ) -> Result<Session, OpenError> {
        let _ = (id, request, ports, replay);
        Err(OpenError::Store(StoreError::Broken(String::new())))
    }

    /// The sessions of the store.
    pub async fn list(&self, query: ListQuery) -> Result<ListPage, StoreError> {
        self.store.list(query).await
    }

    /// Remove a session from the store. True if there was one. Close it first if it is open.
    pub async fn delete(&self, id: &SessionId) -> Result<bool, StoreError> {
        self.store.delete(id).await
    }
}
