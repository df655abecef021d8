//! Reads and writes text files through the editor, so that unsaved text is read and edits show up there.

use crate::client::peer::Peer;
use agent_client_protocol_schema::v1::{
    ReadTextFileRequest, ReadTextFileResponse, WriteTextFileRequest,
};
use futures_util::future::BoxFuture;
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use turnery_engine::SessionId;
use turnery_tools::{FileError, Files, LocalFiles};

/// File access of one session. Reads and writes use the editor only if it declared the method (FS-1). A method
/// the editor turns out not to know is not called again.
pub(crate) struct EditorFiles {
    peer: Arc<Peer>,
    session_id: SessionId,
    can_read: AtomicBool,
    can_write: AtomicBool,
}

impl EditorFiles {
    pub(crate) fn new(peer: Arc<Peer>, session_id: SessionId, reads: bool, writes: bool) -> Self {
        Self {
            peer,
            session_id,
            can_read: reads.into(),
            can_write: writes.into(),
        }
    }
}

impl Files for EditorFiles {
    /// Falls back to the disk if the editor cannot return the text (FS-3). Editors follow links, so the text
    /// is rejected if the path leads elsewhere by now.
    fn read<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<String, FileError>> {
        Box::pin(async move {
            if self.can_read.load(Ordering::Relaxed) {
                let request = ReadTextFileRequest::new(self.session_id.to_string(), path);
                let reply: Result<ReadTextFileResponse, _> =
                    self.peer.request("fs/read_text_file", &request).await;
                match reply {
                    Ok(reply) => {
                        LocalFiles.check_links(path)?;
                        return Ok(reply.content);
                    }
                    Err(error) => {
                        tracing::debug!(%error, "read from disk instead");
                        if error.is_unknown_method() {
                            self.can_read.store(false, Ordering::Relaxed);
                        }
                    }
                }
            }
            LocalFiles.read(path).await
        })
    }

    /// Fails if the editor refuses the write: writing behind its back could lose unsaved text. Falls back to
    /// the disk only if the editor does not know the method. Reports an error if the path leads elsewhere
    /// afterwards.
    fn write<'a>(&'a self, path: &'a Path, text: &'a str) -> BoxFuture<'a, Result<(), FileError>> {
        Box::pin(async move {
            if self.can_write.load(Ordering::Relaxed) {
                LocalFiles.check_links(path)?;
                let request = WriteTextFileRequest::new(self.session_id.to_string(), path, text);
                match self.peer.request_unit("fs/write_text_file", &request).await {
                    Ok(()) => {
                        return LocalFiles.check_links(path).map_err(|moved| {
                            FileError::Other(format!(
                                "{moved}. The editor may have written the text there: tell the user"
                            ))
                        });
                    }
                    Err(error) if error.is_unknown_method() => {
                        self.can_write.store(false, Ordering::Relaxed);
                    }
                    Err(error) => {
                        let path = path.display();
                        return Err(FileError::Other(format!("{path} was not written: {error}")));
                    }
                }
            }
            LocalFiles.write(path, text).await
        })
    }
}
