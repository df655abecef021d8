//! Writes `session/update` lines. Fragments of a streamed message are written directly into the line;
//! everything else is serialised with the schema's types.

use crate::limits::TEXT_CHUNK_LIMIT;
use serde::Serialize;
use turnery_agent::view::ChunkAuthor;

/// Writes updates of one session into `lines`, one whole line each.
#[derive(Debug)]
pub(crate) struct UpdateWriter {
    /// Start of each line, up to the update.
    prefix: Vec<u8>,
    pub(crate) lines: Vec<u8>,
}

impl UpdateWriter {
    pub(crate) fn new(session_id: &str) -> Self {
        let mut head =
            br#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"#.to_vec();
        write_json(&mut head, session_id);
        head.extend_from_slice(br#","update":"#);
        Self {
            prefix: head,
            lines: Vec::new(),
        }
    }

    /// Writes any update of the negotiated version.
    pub(crate) fn write_update<T: Serialize>(&mut self, update: &T) {
        self.lines.extend_from_slice(&self.prefix);
        write_json(&mut self.lines, update);
        self.lines.extend_from_slice(b"}}\n");
    }

    /// Writes a fragment of text. This is the hot path: one line per fragment of a streamed message (MSG-1,
    /// MSG-2).
    pub(crate) fn write_text(&mut self, author: ChunkAuthor, message_id: &str, text: &str) {
        let mut rest = text;
        while rest.len() > TEXT_CHUNK_LIMIT {
            let (piece, more) = rest.split_at(rest.floor_char_boundary(TEXT_CHUNK_LIMIT));
            self.write_text_chunk(author, message_id, piece);
            rest = more;
        }
        self.write_text_chunk(author, message_id, rest);
    }

    fn write_text_chunk(&mut self, author: ChunkAuthor, message_id: &str, text: &str) {
        let kind: &[u8] = match author {
            ChunkAuthor::User => {
                br#"{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"#
            }
            ChunkAuthor::Agent => {
                br#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"#
            }
            ChunkAuthor::Thought => {
                br#"{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"#
            }
        };
        self.lines
            .reserve(self.prefix.len() + kind.len() + text.len() + message_id.len() + 32);
        self.lines.extend_from_slice(&self.prefix);
        self.lines.extend_from_slice(kind);
        write_json(&mut self.lines, text);
        self.lines.extend_from_slice(br#"},"messageId":"#);
        write_json(&mut self.lines, message_id);
        self.lines.extend_from_slice(b"}}}\n");
    }
}

/// Returns a line with a single update.
pub(crate) fn update_line<T: Serialize>(session_id: &str, update: &T) -> Vec<u8> {
    let mut writer = UpdateWriter::new(session_id);
    writer.write_update(update);
    writer.lines
}

/// Serialises into memory, which cannot fail: all map keys of these types are strings.
fn write_json<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let start = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
}
