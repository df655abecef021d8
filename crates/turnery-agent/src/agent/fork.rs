//! Forks a session: copies its stored contents into a new, independent session.

use super::{Agent, OpenError, OpenRequest};
use crate::{client::ClientPorts, session::Session};
use turnery_engine::SessionId;
use turnery_store::{ImportError, StoreError, export};

impl Agent {
    /// Copies a session into a new one and opens the copy. It holds everything committed before this call; a
    /// running prompt is not included. Loops of the copy have new ids, and so have their messages and frames;
    /// calls and prompts keep theirs. Usage reports of the copy exclude the copied loops, which are counted
    /// in the source.
    pub async fn fork(
        &self,
        id: &SessionId,
        request: OpenRequest,
        ports: impl FnOnce(&SessionId) -> ClientPorts + Send,
    ) -> Result<Session, OpenError> {
        let copy = self.copy_session(id).await?;
        let opened = self.open(&copy, request, false, ports).await;
        if opened.is_err()
            && let Err(error) = self.store.delete(&copy).await
        {
            tracing::warn!("the copy of a session that could not be opened is left: {error}");
        }
        opened.map_err(|mut error| {
            if let OpenError::OtherFolder { session, .. }
            | OpenError::FolderLeadsElsewhere { session, .. } = &mut error
            {
                session.clone_from(id);
            }
            error
        })
    }

    /// Copies all loops, including those off the active branch: others may follow from them.
    async fn copy_session(&self, id: &SessionId) -> Result<SessionId, StoreError> {
        let source = export::export_session(&*self.store, id).await?;
        let copy = SessionId::from(turnery_store::new_uuid().to_string());
        let mut document = source.with_session_id(&copy).map_err(into_store_error)?;
        // Keep the recorded folder instead of resolving the path again.
        document.session.folder = self.store.info(id).await?.folder;
        let now = turnery_store::now();
        document.session.created_at = now;
        document.session.updated_at = now;
        // The user makes the copy, even if the source is a child session.
        document.session.spawned_by = None;
        let made = export::import_session(&*self.store, document).await;
        made.map_err(into_store_error).map(|info| info.id)
    }
}

/// Importing a fresh export fails only if the store does.
fn into_store_error(error: ImportError) -> StoreError {
    match error {
        ImportError::Store(error) => error,
        ImportError::InvalidJson(_)
        | ImportError::UnsupportedFormat { .. }
        | ImportError::InvalidId(_)
        | ImportError::InvalidLoop { .. } => StoreError::Broken(error.to_string()),
    }
}
