//! Stores each long text of a session once, in pieces, however many messages and events contain it, so that
//! neither this process nor SQLite copies a whole text.
//!
//! A text is named by the SHA-256 of its JSON. In the JSON of a large row it is replaced by a reference: a
//! string that starts with an escaped slash, which `serde_json` never writes.

use super::{columns::text, job_error::JobError};
use crate::list_cursor::to_hex;
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

/// Rows up to this size contain all their texts. Unit: bytes.
const MAX_SMALL_ROW_BYTES: usize = 64 << 10;

/// Texts of at least this size are stored apart from larger rows. Unit: bytes of JSON.
const MIN_LONG_TEXT_BYTES: usize = 8 << 10;

/// Field with the bytes of a picture or recording. They are stored apart whatever their size, since any number of
/// messages may show them (LASH-42).
const MEDIA_FIELD: &str = "base64";

/// Largest piece of a text in one row. Unit: bytes of JSON.
const MAX_PIECE_BYTES: usize = 256 << 10;

/// Prefix of a reference, followed by the name of the text and a quote. It occurs nowhere else in the JSON of
/// a row: a backslash after a quote starts an escape, and `serde_json` never escapes a slash.
const REFERENCE_PREFIX: &str = "\"\\/text ";

/// Appends the JSON of a value with all its texts. Returns false if `out` would exceed a small row, or if the value
/// has a picture or recording; `out` then ends with incomplete JSON.
pub(super) fn encode_small(
    out: &mut Vec<u8>,
    value: &impl Serialize,
) -> Result<bool, serde_json::Error> {
    let mut limited = LimitedWriter {
        out,
        is_refused: false,
    };
    match serde_json::to_writer(&mut limited, value) {
        Err(_) if limited.is_refused => Ok(false),
        encoded => encoded.map(|()| true),
    }
}

/// Appends the JSON of a value with references in place of long texts, and stores the texts that are new to
/// the session.
pub(super) fn encode_large(
    db: &Connection,
    session: &SessionId,
    out: &mut Vec<u8>,
    value: &impl Serialize,
) -> Result<(), JobError> {
    let mut finder = LongTextFinder::default();
    value.serialize(&mut Serializer::with_formatter(io::sink(), &mut finder))?;
    let mut texts = LongTextWriter {
        db,
        session,
        found: finder.found.into_iter().peekable(),
        index: 0,
        text: CurrentText::Short,
        error: None,
    };
    let encoded = value.serialize(&mut Serializer::with_formatter(out, &mut texts));
    match texts.error {
        Some(error) => Err(error.into()),
        None => Ok(encoded?),
    }
}

/// Returns the JSON of a value, encoded for a small row if that can hold it, else for a large one.
pub(super) fn encode(
    db: &Connection,
    session: &SessionId,
    value: &impl Serialize,
) -> Result<String, JobError> {
    let mut out = Vec::new();
    if !encode_small(&mut out, value)? {
        out.clear();
        encode_large(db, session, &mut out, value)?;
    }
    utf8_text(out)
}

pub(super) fn utf8_text(json: Vec<u8>) -> Result<String, JobError> {
    String::from_utf8(json).map_err(|error| JobError::InvalidRow(error.to_string()))
}

/// Returns the JSON of a row with references replaced by their texts.
pub(super) fn expand_references<'t>(
    db: &Connection,
    session: &SessionId,
    json: &'t str,
) -> Result<Cow<'t, str>, JobError> {
    if !json.contains(REFERENCE_PREFIX) {
        return Ok(Cow::Borrowed(json));
    }
    let mut parts = json.split(REFERENCE_PREFIX);
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
) -> Result<(), JobError> {
    let start = out.len();
    let mut select = db.prepare_cached(
        "SELECT body FROM texts WHERE session_id = ?1 AND name = ?2 ORDER BY piece",
    )?;
    let mut rows = select.query((session.as_str(), name))?;
    while let Some(row) = rows.next()? {
        out.push_str(text(row, 0)?);
    }
    match to_hex(Sha256::digest(&out.as_bytes()[start..])) == name {
        true => Ok(()),
        false => Err(JobError::InvalidRow(format!(
            "text {name} of it is missing or differs from what was written"
        ))),
    }
}

/// Moves damaged texts to `repairs`, so that later rows do not refer to them. Returns their number.
pub(super) fn move_damaged(
    db: &Connection,
    session: &SessionId,
    at: &str,
) -> Result<usize, JobError> {
    let mut names = db.prepare_cached("SELECT DISTINCT name FROM texts WHERE session_id = ?1")?;
    let mut rows = names.query((session.as_str(),))?;
    let mut damaged = Vec::new();
    while let Some(row) = rows.next()? {
        let name = text(row, 0)?;
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

/// Writer that fails beyond the size of a small row, and at the name of a field with media. A text that is equal to
/// the name is taken for it, and costs no more than the encoding for a large row.
struct LimitedWriter<'a> {
    out: &'a mut Vec<u8>,
    is_refused: bool,
}

impl Write for LimitedWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.out.len() + bytes.len() > MAX_SMALL_ROW_BYTES || bytes == MEDIA_FIELD.as_bytes() {
            self.is_refused = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the bytes of an escape, and their number.
fn encode_escape(escape: CharEscape) -> io::Result<([u8; 6], usize)> {
    let mut bytes = [0; 6];
    let mut rest = &mut bytes[..];
    CompactFormatter.write_char_escape(&mut rest, escape)?;
    let len = 6 - rest.len();
    Ok((bytes, len))
}

/// Finds the strings of a value that are stored apart: the long ones, pictures and recordings.
#[derive(Default)]
struct LongTextFinder {
    /// Number of strings before the current one.
    index: usize,
    /// Bytes not yet hashed; hashing each escape separately would be slow.
    tail: Vec<u8>,
    /// True if the next string is the value of a field with media.
    is_media: bool,
    /// `None` until the current string is known to be stored apart.
    hash: Option<Sha256>,
    /// Indexes and names of the strings.
    found: Vec<(usize, String)>,
}

impl LongTextFinder {
    fn add(&mut self, part: &[u8]) {
        if self.tail.len() + part.len() < MIN_LONG_TEXT_BYTES {
            self.tail.extend_from_slice(part);
        } else {
            let hash = self.hash.get_or_insert_default();
            hash.update(&self.tail);
            hash.update(part);
            self.tail.clear();
        }
    }
}

impl Formatter for &mut LongTextFinder {
    fn begin_object_value<W: ?Sized + Write>(&mut self, _writer: &mut W) -> io::Result<()> {
        // The key was the last string.
        self.is_media = self.tail == MEDIA_FIELD.as_bytes();
        Ok(())
    }

    fn begin_string<W: ?Sized + Write>(&mut self, _writer: &mut W) -> io::Result<()> {
        self.tail.clear();
        self.hash = std::mem::take(&mut self.is_media).then(Sha256::default);
        Ok(())
    }

    fn end_string<W: ?Sized + Write>(&mut self, _writer: &mut W) -> io::Result<()> {
        if let Some(hash) = self.hash.take() {
            let name = to_hex(hash.chain_update(&self.tail).finalize());
            self.found.push((self.index, name));
        }
        self.index += 1;
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
        let (bytes, len) = encode_escape(escape)?;
        self.add(&bytes[..len]);
        Ok(())
    }
}

/// Writes the short strings of a value, and stores the long ones and writes references to them.
struct LongTextWriter<'a> {
    db: &'a Connection,
    session: &'a SessionId,
    found: Peekable<vec::IntoIter<(usize, String)>>,
    /// Number of strings before the current one.
    index: usize,
    text: CurrentText,
    /// Error of storing a text.
    error: Option<rusqlite::Error>,
}

/// State of the string that is being written: short, or a long text that is already stored or new.
enum CurrentText {
    Short,
    /// The session already has the text.
    Stored(String),
    New {
        name: String,
        piece: u32,
        body: String,
    },
}

impl LongTextWriter<'_> {
    fn begin_text(&mut self) -> rusqlite::Result<CurrentText> {
        let place = self.index;
        let Some((_, name)) = self.found.next_if(|(found, _)| *found == place) else {
            return Ok(CurrentText::Short);
        };
        let mut select = self.db.prepare_cached(
            "SELECT 1 FROM texts WHERE session_id = ?1 AND name = ?2 AND piece = 0",
        )?;
        Ok(
            match select.exists((self.session.as_str(), name.as_str()))? {
                true => CurrentText::Stored(name),
                false => CurrentText::New {
                    name,
                    piece: 0,
                    body: String::new(),
                },
            },
        )
    }

    fn add(&mut self, mut part: &str) -> rusqlite::Result<()> {
        let CurrentText::New { name, piece, body } = &mut self.text else {
            return Ok(());
        };
        while body.len() + part.len() >= MAX_PIECE_BYTES {
            let (first, rest) =
                part.split_at(part.floor_char_boundary(MAX_PIECE_BYTES - body.len()));
            body.push_str(first);
            part = rest;
            insert_piece(self.db, self.session, name, *piece, body)?;
            *piece += 1;
            body.clear();
        }
        body.push_str(part);
        Ok(())
    }

    /// Returns the name of the text if it was a long one.
    fn end_text(&mut self) -> rusqlite::Result<Option<String>> {
        self.index += 1;
        match std::mem::replace(&mut self.text, CurrentText::Short) {
            CurrentText::Short => Ok(None),
            CurrentText::Stored(name) => Ok(Some(name)),
            CurrentText::New { name, piece, body } => {
                if !body.is_empty() {
                    insert_piece(self.db, self.session, &name, piece, &body)?;
                }
                Ok(Some(name))
            }
        }
    }

    /// Records the error of a statement, since a formatter cannot return it.
    fn keep_error<T>(&mut self, done: rusqlite::Result<T>) -> io::Result<T> {
        done.map_err(|error| {
            self.error = Some(error);
            io::Error::other("a text could not be stored")
        })
    }
}

fn insert_piece(
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

impl Formatter for &mut LongTextWriter<'_> {
    fn begin_string<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        let begun = self.begin_text();
        self.text = self.keep_error(begun)?;
        match &self.text {
            CurrentText::Short => writer.write_all(b"\""),
            CurrentText::Stored(_) | CurrentText::New { .. } => Ok(()),
        }
    }

    fn end_string<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        let ended = self.end_text();
        if let Some(name) = self.keep_error(ended)? {
            writer.write_all(REFERENCE_PREFIX.as_bytes())?;
            writer.write_all(name.as_bytes())?;
        }
        writer.write_all(b"\"")
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        if let CurrentText::Short = self.text {
            return writer.write_all(fragment.as_bytes());
        }
        let added = self.add(fragment);
        self.keep_error(added)
    }

    fn write_char_escape<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        let (bytes, len) = encode_escape(escape)?;
        let escape = str::from_utf8(&bytes[..len]).map_err(io::Error::other)?;
        self.write_string_fragment(writer, escape)
    }
}
