//! Decodes the bytes of a text file and encodes them the same way.

use encoding_rs::{UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use std::borrow::Cow;

/// A NUL byte in these first bytes means that a file is not text.
const SNIFFED_BYTES: usize = 8 * 1024;

/// Encoding of a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// UTF-8 with or without a byte order mark.
    Utf8 {
        /// The file has a byte order mark.
        has_bom: bool,
    },
    /// UTF-16, little-endian, with a byte order mark; without one it is indistinguishable from binary data.
    Utf16Le,
    /// UTF-16, big-endian, with a byte order mark.
    Utf16Be,
    /// One byte per character. Every byte maps to a character, so text that is not edited is written back
    /// unchanged even where the guess is wrong.
    Windows1252,
}

/// Returns the text and its encoding; `None` if the bytes are not text.
pub(super) fn decode(bytes: &[u8]) -> Option<(String, Encoding)> {
    // Little-endian UTF-32 begins like UTF-16.
    if bytes.starts_with(&[0xFF, 0xFE, 0, 0]) {
        return None;
    }
    if let Some(rest) = bytes.strip_prefix(&[0xFF, 0xFE]) {
        let text = UTF_16LE.decode_without_bom_handling_and_without_replacement(rest)?;
        return Some((text.into_owned(), Encoding::Utf16Le));
    }
    if let Some(rest) = bytes.strip_prefix(&[0xFE, 0xFF]) {
        let text = UTF_16BE.decode_without_bom_handling_and_without_replacement(rest)?;
        return Some((text.into_owned(), Encoding::Utf16Be));
    }
    if bytes[..bytes.len().min(SNIFFED_BYTES)].contains(&0) {
        return None;
    }
    let (rest, has_bom) = match bytes.strip_prefix(&[0xEF, 0xBB, 0xBF]) {
        Some(rest) => (rest, true),
        None => (bytes, false),
    };
    if let Some(text) = UTF_8.decode_without_bom_handling_and_without_replacement(rest) {
        return Some((text.into_owned(), Encoding::Utf8 { has_bom }));
    }
    if has_bom {
        return None;
    }
    let text = WINDOWS_1252.decode_without_bom_handling_and_without_replacement(bytes)?;
    Some((text.into_owned(), Encoding::Windows1252))
}

/// Encodes `text`. Returns the first character that the encoding lacks as an error.
pub(super) fn encode(text: &str, encoding: Encoding) -> Result<Cow<'_, [u8]>, char> {
    match encoding {
        Encoding::Utf8 { has_bom: false } => Ok(Cow::Borrowed(text.as_bytes())),
        Encoding::Utf8 { has_bom: true } => {
            Ok([&[0xEF, 0xBB, 0xBF], text.as_bytes()].concat().into())
        }
        Encoding::Utf16Le => Ok(encode_utf16(text, u16::to_le_bytes).into()),
        Encoding::Utf16Be => Ok(encode_utf16(text, u16::to_be_bytes).into()),
        Encoding::Windows1252 => encode_windows_1252(text).map(Cow::Owned),
    }
}

fn encode_windows_1252(text: &str) -> Result<Vec<u8>, char> {
    text.chars().try_fold(Vec::new(), |mut bytes, character| {
        let mut utf8 = [0; 4];
        let (encoded, _, lacking) = WINDOWS_1252.encode(character.encode_utf8(&mut utf8));
        if lacking {
            return Err(character);
        }
        bytes.extend_from_slice(&encoded);
        Ok(bytes)
    })
}

fn encode_utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    std::iter::once(0xFEFF)
        .chain(text.encode_utf16())
        .flat_map(bytes)
        .collect()
}
