//! Kept: all that is stored of an open session, and whether more is to come.

use super::Session;
use turnery_store::{Document, Remark, StoreError, export};

impl Session {
    /// Whether a prompt is running or waiting.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.shared.open.count() > 0
    }

    /// Keep what was said beside the conversation: a command, and what answered it. It is shown whenever the
    /// session is loaded; no model gets to see it.
    pub async fn remark(&self, said: Vec<Remark>) -> Result<(), StoreError> {
        self.store().remark(self.id(), said).await
    }

    /// All that is stored of it, as one document.
    pub async fn export(&self) -> Result<Document, StoreError> {
        export::export(self.store(), self.id()).await
    }
}
