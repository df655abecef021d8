//! Fork: a new session with a copy of what is stored of another one. The two then go their own ways.

use super::{Agent, OpenError, OpenRequest};
use crate::{Ports, Session};
use turnery_engine::SessionId;
use turnery_store::{ImportError, StoreError, export};

impl Agent {
    /// Copy a session into a new one and open that. It holds all that was committed when this was
    /// called; a prompt that runs in the source meanwhile is not part of it. The loops of the copy have
    /// ids of their own, and messages and frames are named after them; calls and prompts keep theirs. What
    /// was copied is in no usage report of the copy: it was spent once, in the source.
    pub async fn fork(
        &self,
        id: &SessionId,
        request: OpenRequest,
        ports: impl FnOnce(&SessionId) -> Ports + Send,
    ) -> Result<Session, OpenError> {
        let copy = self.copy(id).await?;
        match self.open(&copy, request, false, ports).await {
            Ok(session) => Ok(session),
            Err(error) => {
                if let Err(error) = self.store.delete(&copy).await {
                    tracing::warn!(
                        "the copy of a session that could not be opened is left: {error}"
                    );
                }
                Err(match error {
                    OpenError::OtherFolder { expected, .. } => OpenError::OtherFolder {
                        session: id.clone(),
                        expected,
                    },
                    OpenError::FolderLeadsElsewhere {
                        expected,
                        requested,
                        found,
                        ..
                    } => OpenError::FolderLeadsElsewhere {
                        session: id.clone(),
                        expected,
                        requested,
                        found,
                    },
                    other => other,
                })
            }
        }
    }

    /// All loops are copied, those off the chain too: others may follow from them.
    async fn copy(&self, id: &SessionId) -> Result<SessionId, StoreError> {
        let source = export::export(&*self.store, id).await?;
        let copy = SessionId::from(turnery_store::new_uuid().to_string());
        let mut document = source.renamed(&copy).map_err(store_error)?;
        // Not where its path leads by now.
        document.session.folder = self.store.info(id).await?.folder;
        let now = turnery_store::now();
        document.session.created_at = now;
        document.session.updated_at = now;
        // A person makes the copy, whoever made the source.
        document.session.spawned_by = None;
        let made = export::import(&*self.store, document).await;
        made.map_err(store_error).map(|info| info.id)
    }
}

/// What was just exported can be imported, unless the store says no or holds nonsense.
fn store_error(error: ImportError) -> StoreError {
    match error {
        ImportError::Store(error) => error,
        ImportError::Form(_)
        | ImportError::Format { .. }
        | ImportError::Id(_)
        | ImportError::Loop { .. } => StoreError::Broken(error.to_string()),
    }
}
