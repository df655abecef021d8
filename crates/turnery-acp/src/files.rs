//! Files: text files through the editor, so that unsaved text is read and edits show up there.

use crate::peer::Peer;
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

/// The files of one session. Reading and writing go through the editor each on its own, as the
/// editor said that it can (FS-1). One that turns out not to know a method is not asked again.
pub(crate) struct EditorFiles {
    peer: Arc<Peer>,
    session_id: SessionId,
    reads: AtomicBool,
    writes: AtomicBool,
}

impl EditorFiles {
    pub(crate) fn new(peer: Arc<Peer>, session_id: SessionId, reads: bool, writes: bool) -> Self {
        Self {
            peer,
            session_id,
            reads: reads.into(),
            writes: writes.into(),
        }
    }
}

impl Files for EditorFiles {
    /// An editor that cannot give the text is no reason to fail: the disk can (FS-3). Editors follow links, so a text
    /// is not handed on if the path leads elsewhere by now.
    fn read<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<String, FileError>> {
        Box::pin(async move {
            if self.reads.load(Ordering::Relaxed) {
                let request = ReadTextFileRequest::new(self.session_id.to_string(), path);
                let reply: Result<ReadTextFileResponse, _> =
                    self.peer.request("fs/read_text_file", &request).await;
                match reply {
                    Ok(reply) => {
                        LocalFiles.check_links(path).await?;
                        return Ok(reply.content);
                    }
                    Err(error) => {
                        tracing::debug!(%error, "read from disk instead");
                        if error.is_unknown_method() {
                            self.reads.store(false, Ordering::Relaxed);
                        }
                    }
                }
            }
            LocalFiles.read(path).await
        })
    }

    /// An editor that will not write is obeyed: writing behind its back could lose unsaved text.
    /// Only one that does not know the method at all is passed by. An error says if the path leads elsewhere
    /// afterwards.
    fn write<'a>(&'a self, path: &'a Path, text: &'a str) -> BoxFuture<'a, Result<(), FileError>> {
        Box::pin(async move {
            if self.writes.load(Ordering::Relaxed) {
                LocalFiles.check_links(path).await?;
                let request = WriteTextFileRequest::new(self.session_id.to_string(), path, text);
                match self.peer.command("fs/write_text_file", &request).await {
                    Ok(()) => {
                        let checked = LocalFiles.check_links(path).await;
                        return checked.map_err(|moved| {
                            FileError::Other(format!(
                                "{moved}. The editor may have written the text there: tell the user"
                            ))
                        });
                    }
                    Err(error) if error.is_unknown_method() => {
                        self.writes.store(false, Ordering::Relaxed);
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
