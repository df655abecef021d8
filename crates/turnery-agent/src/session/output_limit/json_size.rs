//! Computes the size of a value as JSON without building it.

use serde::Serialize;
use serde_json::{Serializer, ser::Formatter};
use std::io::{self, Write};

/// Maximum nesting depth. Records and messages that contain the value nest deeper, and our JSON readers
/// reject more than 128 levels.
pub(super) const MAX_DEPTH: usize = 64;

/// Returns the JSON size of a value; `None` if it nests too deep or cannot be serialized. Unit: bytes.
pub(super) fn json_size(thing: &(impl Serialize + ?Sized)) -> Option<usize> {
    let mut bytes = ByteCounter(0);
    let mut json = Serializer::with_formatter(&mut bytes, DepthLimiter(0));
    thing.serialize(&mut json).ok()?;
    Some(bytes.0)
}

/// Returns the JSON size of a value that may nest at any depth. Unit: bytes.
pub(crate) fn json_bytes(value: &impl Serialize) -> usize {
    let mut bytes = ByteCounter(0);
    // Counting never fails.
    let _ = serde_json::to_writer(&mut bytes, value);
    bytes.0
}

struct ByteCounter(usize);

impl Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Current nesting depth.
struct DepthLimiter(usize);

impl DepthLimiter {
    fn enter(&mut self) -> io::Result<()> {
        self.0 += 1;
        match self.0 <= MAX_DEPTH {
            true => Ok(()),
            false => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

impl Formatter for DepthLimiter {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.enter()?;
        writer.write_all(b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0 -= 1;
        writer.write_all(b"]")
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.enter()?;
        writer.write_all(b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0 -= 1;
        writer.write_all(b"}")
    }
}
