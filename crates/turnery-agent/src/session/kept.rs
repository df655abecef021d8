//! Kept: all that is stored of an open session, and whether more is to come.

use super::Session;
use turnery_store::{Document, StoreError, export};

impl Session {
    /// Whether a prompt is running or waiting.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.shared.open.count() > 0
    }

    /// All that is stored of it, as one document.
    pub async fn export(&self) -> Result<Document, StoreError> {
        export::export(self.store(), self.id()).await
    }
}
