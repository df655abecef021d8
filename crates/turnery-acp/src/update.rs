//! Update: writes `session/update` lines. The fragments of a streaming answer are written by hand,
//! straight into the line; everything else goes through the schema's types.

use crate::bounds::LONGEST_TEXT;
use agent_client_protocol_schema::v1::{ContentBlock, ContentChunk, SessionUpdate};
use serde::Serialize;

/// Who speaks in a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    User,
    Agent,
    Thought,
}

/// Writes updates of one session into `lines`, each a whole line.
#[derive(Debug)]
pub(crate) struct UpdateWriter {
    /// All that comes before the update.
    head: Vec<u8>,
    pub(crate) lines: Vec<u8>,
}

impl UpdateWriter {
    pub(crate) fn new(session_id: &str) -> Self {
        let mut head =
            br#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"#.to_vec();
        write_json(&mut head, session_id);
        head.extend_from_slice(br#","update":"#);
        Self {
            head,
            lines: Vec::new(),
        }
    }

    /// Any update, of the version that is spoken.
    pub(crate) fn update<T: Serialize>(&mut self, update: &T) {
        self.lines.extend_from_slice(&self.head);
        write_json(&mut self.lines, update);
        self.lines.extend_from_slice(b"}}\n");
    }

    /// A fragment of text: the hot path, one line per fragment of a model's answer (MSG-1, MSG-2).
    pub(crate) fn text(&mut self, voice: Voice, message_id: &str, text: &str) {
        let mut rest = text;
        while rest.len() > LONGEST_TEXT {
            let (piece, more) = rest.split_at(rest.floor_char_boundary(LONGEST_TEXT));
            self.piece(voice, message_id, piece);
            rest = more;
        }
        self.piece(voice, message_id, rest);
    }

    fn piece(&mut self, voice: Voice, message_id: &str, text: &str) {
        let kind: &[u8] = match voice {
            Voice::User => {
                br#"{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"#
            }
            Voice::Agent => {
                br#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"#
            }
            Voice::Thought => {
                br#"{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"#
            }
        };
        self.lines
            .reserve(self.head.len() + kind.len() + text.len() + message_id.len() + 32);
        self.lines.extend_from_slice(&self.head);
        self.lines.extend_from_slice(kind);
        write_json(&mut self.lines, text);
        self.lines.extend_from_slice(br#"},"messageId":"#);
        write_json(&mut self.lines, message_id);
        self.lines.extend_from_slice(b"}}}\n");
    }

    /// A block of any kind.
    pub(crate) fn chunk(&mut self, voice: Voice, message_id: &str, block: ContentBlock) {
        let chunk = ContentChunk::new(block).message_id(message_id);
        self.update(&match voice {
            Voice::User => SessionUpdate::UserMessageChunk(chunk),
            Voice::Agent => SessionUpdate::AgentMessageChunk(chunk),
            Voice::Thought => SessionUpdate::AgentThoughtChunk(chunk),
        });
    }
}

/// A line with one update, for whoever has no writer at hand.
pub(crate) fn line<T: Serialize>(session_id: &str, update: &T) -> Vec<u8> {
    let mut writer = UpdateWriter::new(session_id);
    writer.update(update);
    writer.lines
}

/// Writing to memory cannot fail, and the keys of all these types are strings.
fn write_json<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let start = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
}
