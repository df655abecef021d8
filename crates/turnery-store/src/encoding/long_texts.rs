//! Stores each long text of a session once, in pieces, however many messages and events contain it, so that
//! neither this process nor SQLite copies a whole text.
//!
//! A text is named by the SHA-256 of its JSON. In the JSON of a large row it is replaced by a reference: a
//! string that starts with an escaped slash, which `serde_json` never writes.

use super::row_error::RowError;
use crate::list_cursor::to_hex;
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
pub(crate) fn encode_small(
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

/// Long texts of a session, as written.
pub(crate) trait TextSink {
    /// Error of the database.
    type Error;

    /// Returns true if the session has this text.
    fn contains(&mut self, name: &str) -> Result<bool, Self::Error>;

    /// Adds a piece of a new text; pieces are numbered from 0.
    fn insert_piece(&mut self, name: &str, piece: u32, body: &str) -> Result<(), Self::Error>;
}

/// Appends the JSON of a value with references in place of long texts, and stores the texts that are new to
/// the session. The inner error means that the value has no JSON.
pub(crate) fn encode_large<S: TextSink>(
    sink: &mut S,
    out: &mut Vec<u8>,
    value: &impl Serialize,
) -> Result<Result<(), serde_json::Error>, S::Error> {
    let mut finder = LongTextFinder::default();
    if let Err(error) = value.serialize(&mut Serializer::with_formatter(io::sink(), &mut finder)) {
        return Ok(Err(error));
    }
    let mut texts = LongTextWriter {
        sink,
        found: finder.found.into_iter().peekable(),
        index: 0,
        text: CurrentText::Short,
        error: None,
    };
    let encoded = value.serialize(&mut Serializer::with_formatter(out, &mut texts));
    match texts.error {
        Some(error) => Err(error),
        None => Ok(encoded),
    }
}

/// Returns the JSON of a value, encoded for a small row if that can hold it, else for a large one.
pub(crate) fn encode<S: TextSink>(sink: &mut S, value: &impl Serialize) -> Result<String, S::Error>
where
    S::Error: From<RowError>,
{
    let mut out = Vec::new();
    if !encode_small(&mut out, value).map_err(RowError::from)? {
        out.clear();
        encode_large(sink, &mut out, value)?.map_err(RowError::from)?;
    }
    Ok(utf8_text(out)?)
}

pub(crate) fn utf8_text(json: Vec<u8>) -> Result<String, RowError> {
    String::from_utf8(json).map_err(|error| RowError::Invalid(error.to_string()))
}

/// Returns the JSON of a row with references replaced by their texts, which `append` adds.
pub(crate) fn expand_references<E>(
    json: &str,
    mut append: impl FnMut(&str, &mut String) -> Result<(), E>,
) -> Result<Cow<'_, str>, E> {
    if !json.contains(REFERENCE_PREFIX) {
        return Ok(Cow::Borrowed(json));
    }
    let mut parts = json.split(REFERENCE_PREFIX);
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once('"').unwrap_or((part, ""));
        whole.push('"');
        append(name, &mut whole)?;
        whole.push('"');
        whole.push_str(rest);
    }
    Ok(Cow::Owned(whole))
}

/// Returns the names of the long texts that a row refers to.
#[cfg(feature = "postgres")]
pub(crate) fn referenced_names(json: &str) -> impl Iterator<Item = &str> {
    let parts = json.split(REFERENCE_PREFIX).skip(1);
    parts.map(|part| part.split_once('"').map_or(part, |(name, _)| name))
}

/// Checks that a text is the one of this name.
pub(crate) fn check_text(name: &str, text: &str) -> Result<(), RowError> {
    match to_hex(Sha256::digest(text)) == name {
        true => Ok(()),
        false => Err(RowError::Invalid(format!(
            "text {name} of it is missing or differs from what was written"
        ))),
    }
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
struct LongTextWriter<'a, S: TextSink> {
    sink: &'a mut S,
    found: Peekable<vec::IntoIter<(usize, String)>>,
    /// Number of strings before the current one.
    index: usize,
    text: CurrentText,
    /// Error of storing a text.
    error: Option<S::Error>,
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

impl<S: TextSink> LongTextWriter<'_, S> {
    fn begin_text(&mut self) -> Result<CurrentText, S::Error> {
        let place = self.index;
        let Some((_, name)) = self.found.next_if(|(found, _)| *found == place) else {
            return Ok(CurrentText::Short);
        };
        Ok(match self.sink.contains(&name)? {
            true => CurrentText::Stored(name),
            false => CurrentText::New {
                name,
                piece: 0,
                body: String::new(),
            },
        })
    }

    fn add(&mut self, mut part: &str) -> Result<(), S::Error> {
        let CurrentText::New { name, piece, body } = &mut self.text else {
            return Ok(());
        };
        while body.len() + part.len() >= MAX_PIECE_BYTES {
            let (first, rest) =
                part.split_at(part.floor_char_boundary(MAX_PIECE_BYTES - body.len()));
            body.push_str(first);
            part = rest;
            self.sink.insert_piece(name, *piece, body)?;
            *piece += 1;
            body.clear();
        }
        body.push_str(part);
        Ok(())
    }

    /// Returns the name of the text if it was a long one.
    fn end_text(&mut self) -> Result<Option<String>, S::Error> {
        self.index += 1;
        match std::mem::replace(&mut self.text, CurrentText::Short) {
            CurrentText::Short => Ok(None),
            CurrentText::Stored(name) => Ok(Some(name)),
            CurrentText::New { name, piece, body } => {
                if !body.is_empty() {
                    self.sink.insert_piece(&name, piece, &body)?;
                }
                Ok(Some(name))
            }
        }
    }

    /// Records the error of a statement, since a formatter cannot return it.
    fn keep_error<T>(&mut self, done: Result<T, S::Error>) -> io::Result<T> {
        done.map_err(|error| {
            self.error = Some(error);
            io::Error::other("a text could not be stored")
        })
    }
}

impl<S: TextSink> Formatter for &mut LongTextWriter<'_, S> {
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
