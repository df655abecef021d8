//! Frames between host and worker.
//!
//! A frame is a byte for its kind, the length of its content (4 bytes, little-endian), and the content: a
//! message as JSON, or the bytes of a snapshot.

use crate::host::CodeCall;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::io::{self, Read};

/// Largest message of a worker. Unit: bytes.
pub(crate) const MAX_MESSAGE_BYTES: usize = 16 << 20;
/// Part of [`MAX_MESSAGE_BYTES`] for the arguments or the value in it. Unit: bytes.
pub(crate) const MAX_VALUE_BYTES: usize = MAX_MESSAGE_BYTES - (1 << 20);
/// Deepest nesting of lists and objects in arguments, results and values. With the messages around them they
/// stay below the limit of the JSON parser, 128.
pub(crate) const MAX_DEPTH: usize = 64;
/// Bytes of kind and length.
pub(crate) const HEADER_BYTES: usize = 5;
/// Exit code of a worker whose interpreter refused an allocation.
pub(crate) const OUT_OF_MEMORY_EXIT: i32 = 65;
/// Exit code of a worker whose interpreter panicked.
pub(crate) const PANIC_EXIT: i32 = 101;

/// Kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FrameKind {
    /// Message as JSON.
    Message = b'M',
    /// Bytes of a snapshot.
    Snapshot = b'S',
}

/// Message of the host.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum HostMessage {
    /// First message.
    Start(WorkerStart),
    /// Run a block of code. `functions` are the names of the host functions.
    Run {
        code: String,
        functions: Vec<String>,
    },
    /// Results of calls, in their order.
    Results(Vec<Result<Value, String>>),
    /// End the block at once.
    End,
}

/// Settings of a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WorkerStart {
    /// Memory beyond that of the started worker. Unit: bytes.
    pub(crate) memory_bytes: u64,
    /// Limit of the interpreter.
    pub(crate) recursion_depth: usize,
    /// Largest snapshot to send. Unit: bytes.
    pub(crate) snapshot_bytes: usize,
    /// A frame with a snapshot to restore follows.
    pub(crate) has_snapshot: bool,
}

/// Message of the worker.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum WorkerMessage {
    /// The worker has started and, if there was a snapshot, restored it.
    Ready,
    /// The snapshot cannot be restored, for this reason.
    InvalidSnapshot(String),
    /// Printed text.
    Print(String),
    /// Functions to call together.
    Calls(Vec<CodeCall>),
    /// The block ended. Its snapshot follows: a frame, or `NoSnapshot`.
    Finished(BlockEnd),
    /// The snapshot is larger than permitted or could not be made.
    NoSnapshot,
}

/// End of a block that the worker survived.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum BlockEnd {
    /// All code ran. Value of the last expression unless it is `None`.
    Completed(Option<Value>),
    /// The host ended the block.
    Ended,
    /// Traceback or syntax error.
    Failed(String),
}

/// Encodes a frame.
///
/// # Errors
///
/// Returns an error if the content is larger than 4 GiB.
pub(crate) fn encode_frame(kind: FrameKind, content: &[u8]) -> io::Result<Vec<u8>> {
    let length = u32::try_from(content.len()).map_err(io::Error::other)?;
    let mut frame = Vec::with_capacity(HEADER_BYTES + content.len());
    frame.push(kind as u8);
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(content);
    Ok(frame)
}

/// Encodes a message as a frame.
///
/// # Errors
///
/// Returns an error if the message is larger than 4 GiB.
pub(crate) fn encode_message(message: &impl Serialize) -> io::Result<Vec<u8>> {
    encode_frame(FrameKind::Message, &serde_json::to_vec(message)?)
}

/// Decodes kind and length of a frame. The length is not checked.
///
/// # Errors
///
/// Returns an error if the kind is unknown.
pub(crate) fn decode_header(header: [u8; HEADER_BYTES]) -> io::Result<(FrameKind, u32)> {
    let [kind, length @ ..] = header;
    let kind = match kind {
        b'M' => FrameKind::Message,
        b'S' => FrameKind::Snapshot,
        _ => return Err(invalid_data("unknown kind of frame")),
    };
    Ok((kind, u32::from_le_bytes(length)))
}

/// Decodes a message.
///
/// # Errors
///
/// Returns an error if the content is no such message.
pub(crate) fn decode_message<T: DeserializeOwned>(content: &[u8]) -> io::Result<T> {
    serde_json::from_slice(content).map_err(|error| invalid_data(&error.to_string()))
}

/// Reads a frame of the host, which is trusted to limit its size.
///
/// # Errors
///
/// Returns an error at the end of the input and if the kind is unknown.
pub(crate) fn read_frame(input: &mut impl Read) -> io::Result<(FrameKind, Vec<u8>)> {
    let mut header = [0; HEADER_BYTES];
    input.read_exact(&mut header)?;
    let (kind, length) = decode_header(header)?;
    let mut content = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    input.read_exact(&mut content)?;
    Ok((kind, content))
}

/// Returns the error for an invalid frame.
pub(crate) fn invalid_data(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// Returns true if lists and objects are nested more than `limit` deep.
pub(crate) fn is_deeper_than(value: &Value, limit: usize) -> bool {
    let is_inner_deeper = |inner: &Value| match limit.checked_sub(1) {
        Some(limit) => is_deeper_than(inner, limit),
        None => true,
    };
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        Value::Array(items) => limit == 0 || items.iter().any(is_inner_deeper),
        Value::Object(fields) => limit == 0 || fields.values().any(is_inner_deeper),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn depth_counts_lists_and_objects() {
        assert!(!is_deeper_than(&json!(1), 0));
        assert!(is_deeper_than(&json!([]), 0));
        assert!(!is_deeper_than(&json!([1, {}]), 2));
        assert!(is_deeper_than(&json!([1, {"a": []}]), 2));
    }

    #[test]
    fn invalid_frames_are_errors() {
        assert!(decode_header(*b"X\0\0\0\0").is_err());
        assert!(decode_message::<WorkerMessage>(b"{").is_err());
        assert!(decode_message::<WorkerMessage>(b"\"Unknown\"").is_err());
        assert!(read_frame(&mut &b"M\x05\0\0\0abc"[..]).is_err());
        let frame = encode_frame(FrameKind::Snapshot, b"ab").unwrap();
        assert_eq!(frame, b"S\x02\0\0\0ab");
        let read = read_frame(&mut &frame[..]).unwrap();
        assert_eq!(read, (FrameKind::Snapshot, b"ab".to_vec()));
    }
}
