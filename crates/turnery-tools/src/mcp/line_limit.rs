//! Replaces a response that is too long with an error for its call.
//!
//! The MCP library silently drops such a line, and its call waits until it times out. This reader comes
//! first: it does not buffer a line that is too long, but finds its id and puts an error in its place. The
//! connection stays open.

use memchr::memchr2;
use serde_json::{Value, json};
use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, ReadBuf};

/// Size of one read. Unit: bytes.
const CHUNK_BYTES: usize = 16 << 10;
/// A line that exceeds the limit this many times ends the connection, since it may never end.
const MAX_OVERRUN_FACTOR: usize = 8;
/// A longer id is ignored. Unit: bytes.
const MAX_ID_BYTES: usize = 128;
/// JSON-RPC code of an internal error.
const INTERNAL_ERROR: i32 = -32603;

/// Reads lines of JSON-RPC of bounded length.
pub(super) struct LineLimitReader<R> {
    inner: R,
    /// Maximum line length, including the line break. Unit: bytes.
    limit: usize,
    chunk: Box<[u8]>,
    /// Bytes that were not read by the caller yet.
    pending: Vec<u8>,
    /// Number of bytes of `pending` already read.
    consumed: usize,
    /// Length of the current line so far. Unit: bytes.
    line_length: usize,
    /// The error for this line was emitted.
    is_error_emitted: bool,
    scan: IdScanner,
}

impl<R> LineLimitReader<R> {
    pub(super) fn new(inner: R, limit: usize) -> Self {
        Self {
            inner,
            limit,
            chunk: vec![0; CHUNK_BYTES].into(),
            pending: Vec::new(),
            consumed: 0,
            line_length: 0,
            is_error_emitted: false,
            scan: IdScanner::default(),
        }
    }

    /// Passes on lines within the limit and emits errors for longer ones.
    fn push_chunk(&mut self, count: usize) -> io::Result<()> {
        let chunk = std::mem::take(&mut self.chunk);
        for part in chunk[..count].split_inclusive(|byte| *byte == b'\n') {
            self.push_part(part);
        }
        self.chunk = chunk;
        if self.line_length > self.limit {
            self.emit_error();
        }
        if self.line_length / MAX_OVERRUN_FACTOR > self.limit {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a line that does not end",
            ));
        }
        Ok(())
    }

    /// Processes a part of a line or its end.
    fn push_part(&mut self, part: &[u8]) {
        let room = self.limit.saturating_sub(self.line_length);
        self.pending
            .extend_from_slice(&part[..part.len().min(room)]);
        let fitted = self.line_length <= self.limit;
        self.line_length += part.len();
        let fits = self.line_length <= self.limit;
        if fitted && !fits {
            // The library recognises the line as too long and drops its beginning.
            self.pending.push(b'\n');
        }
        let text = part.strip_suffix(b"\n");
        self.scan.push_bytes(text.unwrap_or(part));
        if text.is_some() {
            if !fits {
                self.emit_error();
                if !self.is_error_emitted {
                    tracing::warn!("an MCP server sent a message that is too large to read");
                }
            }
            self.line_length = 0;
            self.is_error_emitted = false;
            self.scan = IdScanner::default();
        }
    }

    /// Emits the error once the call's id is known.
    fn emit_error(&mut self) {
        if self.is_error_emitted {
            return;
        }
        if let Some(id) = self.scan.answered_id() {
            let limit = crate::text::format_size(self.limit as u64);
            let message = format!(
                "its answer is larger than {limit}, the most that is read: ask for less at once"
            );
            let error = json!({"code": INTERNAL_ERROR, "message": message});
            let line = json!({"jsonrpc": "2.0", "id": id, "error": error});
            self.pending.extend_from_slice(line.to_string().as_bytes());
            self.pending.push(b'\n');
            self.is_error_emitted = true;
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for LineLimitReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.consumed == this.pending.len() {
            this.pending.clear();
            this.consumed = 0;
            let mut chunk = ReadBuf::new(&mut this.chunk);
            ready!(Pin::new(&mut this.inner).poll_read(cx, &mut chunk))?;
            let count = chunk.filled().len();
            if count == 0 {
                return Poll::Ready(Ok(()));
            }
            this.push_chunk(count)?;
        }
        let rest = &this.pending[this.consumed..];
        let count = rest.len().min(buf.remaining());
        buf.put_slice(&rest[..count]);
        this.consumed += count;
        Poll::Ready(Ok(()))
    }
}

/// Finds the id in a line, one byte at a time.
#[derive(Default)]
struct IdScanner {
    depth: u32,
    in_string: bool,
    is_escaped: bool,
    /// Inside a value of the outermost object.
    in_value: bool,
    /// Current key of the outermost object.
    key: Vec<u8>,
    id: Vec<u8>,
    is_response: bool,
    is_request: bool,
}

impl IdScanner {
    fn push_bytes(&mut self, mut bytes: &[u8]) {
        while let Some((byte, rest)) = bytes.split_first() {
            self.read_byte(*byte);
            bytes = rest;
            if self.in_string && !self.is_escaped && self.depth != 1 {
                // Most of a message is text outside the id, so it is skipped fast.
                bytes = &bytes[memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len())..];
            }
        }
    }

    fn read_byte(&mut self, byte: u8) {
        let is_outermost = self.depth == 1;
        if self.in_string {
            let ends = byte == b'"' && !self.is_escaped;
            self.is_escaped = byte == b'\\' && !self.is_escaped;
            self.in_string = !ends;
            if is_outermost && (self.in_value || !ends) {
                self.collect_byte(byte);
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                if is_outermost && !self.in_value {
                    self.key.clear();
                } else if is_outermost {
                    self.collect_byte(byte);
                }
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b':' if is_outermost && !self.in_value => {
                self.in_value = true;
                match &*self.key {
                    b"result" | b"error" => self.is_response = true,
                    b"method" => self.is_request = true,
                    _ => {}
                }
            }
            b',' if is_outermost => {
                self.in_value = false;
                self.key.clear();
            }
            _ if is_outermost && self.in_value => self.collect_byte(byte),
            _ => {}
        }
    }

    fn collect_byte(&mut self, byte: u8) {
        let part = match (self.in_value, &*self.key) {
            (false, _) => &mut self.key,
            (true, b"id") => &mut self.id,
            (true, _) => return,
        };
        if part.len() <= MAX_ID_BYTES {
            part.push(byte);
        }
    }

    /// Returns the id of the call that this line answers, once known.
    fn answered_id(&self) -> Option<Value> {
        let is_whole = !self.in_value || self.key != b"id" || self.depth == 0;
        if !is_whole || !self.is_response || self.is_request {
            return None;
        }
        let id: Value = serde_json::from_slice(&self.id).ok()?;
        (id.is_number() || id.is_string()).then_some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt as _;

    /// Returns the output for these bytes with a limit of 64 bytes per line.
    async fn read_limited(bytes: &[u8]) -> String {
        let mut text = String::new();
        let mut limited = LineLimitReader::new(bytes, 64);
        limited.read_to_string(&mut text).await.unwrap();
        text
    }

    /// Checks that `line` is the error for the call with this id.
    fn assert_error(line: &str, id: &Value) {
        let line: Value = serde_json::from_str(line).unwrap();
        let message = "its answer is larger than 64 B, the most that is read: ask for less at once";
        let error = json!({"code": -32603, "message": message});
        assert_eq!(line, json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }

    #[tokio::test]
    async fn lines_that_fit_pass_unchanged() {
        let text = format!("{}\n\n{{\"id\":1}}\nno end", "x".repeat(63));
        assert_eq!(read_limited(text.as_bytes()).await, text);
    }

    #[tokio::test]
    async fn long_response_becomes_error_wherever_its_id_is() {
        let long = "x\\\"{[:,id".repeat(20);
        for (line, id) in [
            (
                format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{\"id\":9,\"t\":\"{long}\"}}}}"
                ),
                json!(7),
            ),
            (
                format!("{{\"result\":{{\"t\":\"{long}\",\"id\":9}}, \"id\" : \"a b\" }}"),
                json!("a b"),
            ),
            (
                format!("{{\"error\":{{\"message\":\"{long}\"}},\"id\":12}}"),
                json!(12),
            ),
        ] {
            let text = read_limited(format!("{line}\nnext\n").as_bytes()).await;
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(lines.len(), 3, "{text}");
            // Including its line break, one byte more than the library accepts.
            assert_eq!(lines[0], &line[..64]);
            assert_error(lines[1], &id);
            assert_eq!(lines[2], "next");
        }
    }

    #[tokio::test]
    async fn read_boundaries_do_not_change_output() {
        let long = "\\\"x{".repeat(20);
        let text = format!(
            "{{\"id\":1}}\n{{\"result\":[\"{long}\"],\"id\":2}}\n{}\n{}\nend",
            "y".repeat(63),
            "z".repeat(64)
        );
        let second = text.lines().nth(1).unwrap();
        let whole = read_limited(text.as_bytes()).await;
        let lines: Vec<&str> = whole.split('\n').collect();
        assert_eq!(lines[0], "{\"id\":1}");
        assert_eq!(lines[1], &second[..64]);
        assert_error(lines[2], &json!(2));
        assert_eq!(lines[3], "y".repeat(63));
        assert_eq!(lines[4], "z".repeat(64));
        assert_eq!(lines[5..], ["end"]);
        for at in 0..text.len() {
            let (start, end) = text.as_bytes().split_at(at);
            let mut parts = String::new();
            let mut limited = LineLimitReader::new(start.chain(end), 64);
            limited.read_to_string(&mut parts).await.unwrap();
            assert_eq!(parts, whole, "cut at {at}");
        }
    }

    #[tokio::test]
    async fn long_line_that_is_no_response_is_dropped() {
        let long = "x".repeat(100);
        for line in [
            format!("{{\"id\":1,\"params\":\"{long}\",\"method\":\"ping\"}}"),
            format!("{{\"result\":\"{long}\",\"id\":null}}"),
            format!("{{\"result\":\"{long}\",\"id\":[1]}}"),
            long.clone(),
        ] {
            let text = read_limited(format!("{line}\nnext\n").as_bytes()).await;
            assert_eq!(text, format!("{}\nnext\n", &line[..64]));
        }
    }

    #[tokio::test]
    async fn error_is_emitted_before_line_ends() {
        let line = format!("{{\"id\":3,\"result\":\"{}", "x".repeat(100));
        let text = read_limited(line.as_bytes()).await;
        let (dropped, answer) = text.split_once('\n').unwrap();
        assert_eq!(dropped, &line[..64]);
        assert_error(answer, &json!(3));
    }

    #[tokio::test]
    async fn endless_line_ends_connection() {
        let mut pending = Vec::new();
        let mut endless = LineLimitReader::new(tokio::io::repeat(b'x'), 64);
        let error = endless.read_to_end(&mut pending).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert_eq!(pending.len(), 0, "nothing of it was held");
    }
}
