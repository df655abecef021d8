//! Files: text files through the editor, so that unsaved text is read and edits show up there.

use crate::peer::Peer;
use agent_client_protocol_schema::v1::{
    ReadTextFileRequest, ReadTextFileResponse, WriteTextFileRequest,
};
use futures_util::future::BoxFuture;
use std::{path::Path, sync::Arc};
use turnery_engine::SessionId;
use turnery_tools::{FileError, Files, LocalFiles};

/// The files of one session. Reading and writing go through the editor each on its own, as the
/// editor said that it can (FS-1).
pub(crate) struct EditorFiles {
    pub(crate) peer: Arc<Peer>,
    pub(crate) session_id: SessionId,
    pub(crate) read: bool,
    pub(crate) write: bool,
}

impl Files for EditorFiles {
    /// An editor that cannot give the text is no reason to fail: the disk can (FS-3).
    fn read<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<String, FileError>> {
        Box::pin(async move {
            if self.read {
                let request = ReadTextFileRequest::new(self.session_id.to_string(), path);
                let reply: Result<ReadTextFileResponse, _> =
                    self.peer.request("fs/read_text_file", &request).await;
                match reply {
                    Ok(reply) => return Ok(reply.content),
                    Err(error) => tracing::debug!(%error, "read from disk instead"),
                }
            }
            LocalFiles.read(path).await
        })
    }

    /// An editor that will not write is obeyed: writing behind its back could lose unsaved text.
    /// Only one that does not know the method at all is passed by.
    fn write<'a>(&'a self, path: &'a Path, text: &'a str) -> BoxFuture<'a, Result<(), FileError>> {
        Box::pin(async move {
            if self.write {
                let request = WriteTextFileRequest::new(self.session_id.to_string(), path, text);
                match self.peer.command("fs/write_text_file", &request).await {
                    Ok(()) => return Ok(()),
                    Err(error) if error.is_unknown_method() => {}
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
