//! Size: how many bytes something is as JSON, counted without making them.

use serde::Serialize;
use serde_json::{Serializer, ser::Formatter};
use std::io::{self, Write};

/// How deep a thing may nest. Records and messages that hold it nest deeper, and what nests deeper
/// than 128 no JSON reader of ours takes back.
pub(super) const DEEPEST: usize = 64;

/// The size of something; none if it nests too deep, or no JSON can be made of it.
pub(super) fn size(thing: &(impl Serialize + ?Sized)) -> Option<usize> {
    let mut bytes = Counter(0);
    let mut json = Serializer::with_formatter(&mut bytes, Levels(0));
    thing.serialize(&mut json).ok()?;
    Some(bytes.0)
}

struct Counter(usize);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How deep it is by now.
struct Levels(usize);

impl Levels {
    fn enter(&mut self) -> io::Result<()> {
        self.0 += 1;
        match self.0 <= DEEPEST {
            true => Ok(()),
            false => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

impl Formatter for Levels {
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
