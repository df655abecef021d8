//! Exports an open session and adds transcript notes.

use super::handle::Session;
use turnery_store::{SessionDocument, StoreError, TranscriptNote, export};

impl Session {
    /// Stores transcript notes: a command and its output. They are replayed when the session is loaded, and
    /// never sent to a model.
    pub async fn add_notes(&self, notes: Vec<TranscriptNote>) -> Result<(), StoreError> {
        self.store().add_notes(self.id(), notes).await
    }

    /// Exports everything stored of the session as one document.
    pub async fn export(&self) -> Result<SessionDocument, StoreError> {
        export::export_session(&**self.store(), self.id()).await
    }
}
