//! Stores each long text of a session once, however many messages and events hold it, and in pieces, so that
//! neither this process nor SQLite makes a copy of a whole one.
//!
//! A text is named by the SHA-256 of its JSON. In the JSON of a large row a reference stands in its place: a
//! string that begins with an escaped slash, which `serde_json` never writes.

use super::fault::Fault;
use rusqlite::{Connection, params};
use serde::Serialize;
use serde_json::{
    Serializer,
    ser::{CharEscape, CompactFormatter, Formatter},
};
use sha2::{Digest, Sha256};
use std::{
    borrow::Cow,
    io::{self, Write},
    iter::Peekable,
    str, vec,
};
use turnery_engine::SessionId;

/// A row up to this size holds all its texts. Unit: bytes.
const SMALL: usize = 64 << 10;

/// A text of this size is stored apart from a row that is larger. Unit: bytes of JSON.
const LONG: usize = 8 << 10;

/// Largest part of a text in one row. Unit: bytes of JSON.
const PIECE: usize = 256 << 10;

/// What a reference begins with; its text's name and a quote follow. No JSON in a row has it elsewhere: a
/// backslash behind a quote begins an escape, and none of those that are written has a slash.
const MARK: &str = "\"\\/text ";

/// Appends the JSON of a value with all its texts. False if that makes `out` longer than a small row.
pub(super) fn encode_small(
    out: &mut Vec<u8>,
    value: &impl Serialize,
) -> Result<bool, serde_json::Error> {
    let mut limited = Limited {
        out,
        is_full: false,
    };
    match serde_json::to_writer(&mut limited, value) {
        Err(_) if limited.is_full => Ok(false),
        encoded => encoded.map(|()| true),
    }
}

/// Appends the JSON of a value with references in place of long texts, and stores those that the session
/// does not have yet.
pub(super) fn encode_large(
    db: &Connection,
    session: &SessionId,
    out: &mut Vec<u8>,
    value: &impl Serialize,
) -> Result<(), Fault> {
    let mut finder = Finder::default();
    value.serialize(&mut Serializer::with_formatter(io::sink(), &mut finder))?;
    let mut storer = Storer {
        db,
        session,
        found: finder.found.into_iter().peekable(),
        place: 0,
        text: Text::Short,
        error: None,
    };
    let encoded = value.serialize(&mut Serializer::with_formatter(out, &mut storer));
    match storer.error {
        Some(error) => Err(error.into()),
        None => Ok(encoded?),
    }
}

/// The JSON of a value, encoded in the way that its size asks for.
pub(super) fn encode(
    db: &Connection,
    session: &SessionId,
    value: &impl Serialize,
) -> Result<String, Fault> {
    let mut out = Vec::new();
    if !encode_small(&mut out, value)? {
        out.clear();
        encode_large(db, session, &mut out, value)?;
    }
    into_text(out)
}

pub(super) fn into_text(json: Vec<u8>) -> Result<String, Fault> {
    String::from_utf8(json).map_err(|error| Fault::Row(error.to_string()))
}

/// JSON of a row with the texts in place of their references.
pub(super) fn expand<'t>(
    db: &Connection,
    session: &SessionId,
    json: &'t str,
) -> Result<Cow<'t, str>, Fault> {
    if !json.contains(MARK) {
        return Ok(Cow::Borrowed(json));
    }
    let mut parts = json.split(MARK);
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once('"').unwrap_or((part, ""));
        whole.push('"');
        append_text(db, session, name, &mut whole)?;
        whole.push('"');
        whole.push_str(rest);
    }
    Ok(Cow::Owned(whole))
}

fn append_text(
    db: &Connection,
    session: &SessionId,
    name: &str,
    out: &mut String,
) -> Result<(), Fault> {
    let start = out.len();
    let mut select = db.prepare_cached(
        "SELECT body FROM texts WHERE session_id = ?1 AND name = ?2 ORDER BY piece",
    )?;
    let mut rows = select.query((session.as_str(), name))?;
    while let Some(row) = rows.next()? {
        out.push_str(super::loops::text(row, 0)?);
    }
    match format!("{:x}", Sha256::digest(&out.as_bytes()[start..])) == name {
        true => Ok(()),
        false => Err(Fault::Row(format!(
            "text {name} of it is missing or differs from what was written"
        ))),
    }
}

/// Moves the texts that differ from what was written to where repairs keep what they remove, so that later
/// rows do not refer to them. Returns their number.
pub(super) fn repair(db: &Connection, session: &SessionId, at: &str) -> Result<usize, Fault> {
    let mut names = db.prepare_cached("SELECT DISTINCT name FROM texts WHERE session_id = ?1")?;
    let mut rows = names.query((session.as_str(),))?;
    let mut damaged = Vec::new();
    while let Some(row) = rows.next()? {
        let name = super::loops::text(row, 0)?;
        if append_text(db, session, name, &mut String::new()).is_err() {
            damaged.push(name.to_owned());
        }
    }
    for name in &damaged {
        db.execute(
            "INSERT INTO repairs (session_id, at, place, field, before) \
             SELECT session_id, ?3, 'texts', name || ' ' || piece, body FROM texts \
             WHERE session_id = ?1 AND name = ?2",
            params![session.as_str(), name, at],
        )?;
        db.execute(
            "DELETE FROM texts WHERE session_id = ?1 AND name = ?2",
            params![session.as_str(), name],
        )?;
    }
    Ok(damaged.len())
}

/// Fails once there is more than a small row holds.
struct Limited<'a> {
    out: &'a mut Vec<u8>,
    is_full: bool,
}

impl Write for Limited<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.out.len() + bytes.len() > SMALL {
            self.is_full = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An escape as it is written, and its length.
fn written(escape: CharEscape) -> io::Result<([u8; 6], usize)> {
    let mut bytes = [0; 6];
    let mut rest = &mut bytes[..];
    CompactFormatter.write_char_escape(&mut rest, escape)?;
    let len = 6 - rest.len();
    Ok((bytes, len))
}

/// Finds the long ones among the strings of a value.
#[derive(Default)]
struct Finder {
    /// Number of strings before this one.
    place: usize,
    /// What the hash does not have yet: hashing each escape by itself would take long.
    tail: Vec<u8>,
    /// `None` until the string is a long one.
    hash: Option<Sha256>,
    /// Places and names.
    found: Vec<(usize, String)>,
}

impl Finder {
    fn add(&mut self, part: &[u8]) {
        if self.tail.len() + part.len() < LONG {
            self.tail.extend_from_slice(part);
        } else {
            let hash = self.hash.get_or_insert_default();
            hash.update(&self.tail);
            hash.update(part);
            self.tail.clear();
        }
    }
}

impl Formatter for &mut Finder {
    fn begin_string<W: ?Sized + Write>(&mut self, _writer: &mut W) -> io::Result<()> {
        self.tail.clear();
        Ok(())
    }

    fn end_string<W: ?Sized + Write>(&mut self, _writer: &mut W) -> io::Result<()> {
        if let Some(hash) = self.hash.take() {
            let name = format!("{:x}", hash.chain_update(&self.tail).finalize());
            self.found.push((self.place, name));
        }
        self.place += 1;
        Ok(())
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        _writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        self.add(fragment.as_bytes());
        Ok(())
    }

    fn write_char_escape<W: ?Sized + Write>(
        &mut self,
        _writer: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        let (bytes, len) = written(escape)?;
        self.add(&bytes[..len]);
        Ok(())
    }
}

/// Writes the short strings of a value, stores the long ones and writes references in their place.
struct Storer<'a> {
    db: &'a Connection,
    session: &'a SessionId,
    found: Peekable<vec::IntoIter<(usize, String)>>,
    /// Number of strings before this one.
    place: usize,
    text: Text,
    /// Why a text could not be stored.
    error: Option<rusqlite::Error>,
}

/// The string that is being written.
enum Text {
    Short,
    /// The session has it.
    Stored(String),
    New {
        name: String,
        piece: u32,
        body: String,
    },
}

impl Storer<'_> {
    fn begin(&mut self) -> rusqlite::Result<Text> {
        let place = self.place;
        let Some((_, name)) = self.found.next_if(|(found, _)| *found == place) else {
            return Ok(Text::Short);
        };
        let mut select = self.db.prepare_cached(
            "SELECT 1 FROM texts WHERE session_id = ?1 AND name = ?2 AND piece = 0",
        )?;
        Ok(
            match select.exists((self.session.as_str(), name.as_str()))? {
                true => Text::Stored(name),
                false => Text::New {
                    name,
                    piece: 0,
                    body: String::new(),
                },
            },
        )
    }

    fn add(&mut self, mut part: &str) -> rusqlite::Result<()> {
        let Text::New { name, piece, body } = &mut self.text else {
            return Ok(());
        };
        while body.len() + part.len() >= PIECE {
            let (first, rest) = part.split_at(part.floor_char_boundary(PIECE - body.len()));
            body.push_str(first);
            part = rest;
            insert(self.db, self.session, name, *piece, body)?;
            *piece += 1;
            body.clear();
        }
        body.push_str(part);
        Ok(())
    }

    /// Name of the text if it is a long one.
    fn end(&mut self) -> rusqlite::Result<Option<String>> {
        self.place += 1;
        match std::mem::replace(&mut self.text, Text::Short) {
            Text::Short => Ok(None),
            Text::Stored(name) => Ok(Some(name)),
            Text::New { name, piece, body } => {
                if !body.is_empty() {
                    insert(self.db, self.session, &name, piece, &body)?;
                }
                Ok(Some(name))
            }
        }
    }

    /// Keeps the error of a statement, since a formatter cannot return it.
    fn check<T>(&mut self, done: rusqlite::Result<T>) -> io::Result<T> {
        done.map_err(|error| {
            self.error = Some(error);
            io::Error::other("a text could not be stored")
        })
    }
}

fn insert(
    db: &Connection,
    session: &SessionId,
    name: &str,
    piece: u32,
    body: &str,
) -> rusqlite::Result<()> {
    let mut insert = db.prepare_cached(
        "INSERT INTO texts (session_id, name, piece, body) VALUES (?1, ?2, ?3, ?4)",
    )?;
    insert.execute(params![session.as_str(), name, piece, body])?;
    Ok(())
}

impl Formatter for &mut Storer<'_> {
    fn begin_string<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        let begun = self.begin();
        self.text = self.check(begun)?;
        match &self.text {
            Text::Short => writer.write_all(b"\""),
            Text::Stored(_) | Text::New { .. } => Ok(()),
        }
    }

    fn end_string<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        let ended = self.end();
        if let Some(name) = self.check(ended)? {
            writer.write_all(MARK.as_bytes())?;
            writer.write_all(name.as_bytes())?;
        }
        writer.write_all(b"\"")
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        if let Text::Short = self.text {
            return writer.write_all(fragment.as_bytes());
        }
        let added = self.add(fragment);
        self.check(added)
    }

    fn write_char_escape<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        let (bytes, len) = written(escape)?;
        let escape = str::from_utf8(&bytes[..len]).map_err(io::Error::other)?;
        self.write_string_fragment(writer, escape)
    }
}
