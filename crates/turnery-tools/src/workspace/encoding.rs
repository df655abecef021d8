//! Encoding: how the bytes of a text file become a string, and back in the same way.

use encoding_rs::{UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use std::borrow::Cow;

/// A NUL byte this early means that a file is not text.
const LOOKED_AT: usize = 8 * 1024;

/// How a text file is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// With or without the three bytes before it.
    Utf8 {
        /// Whether they are there.
        mark: bool,
    },
    /// With a byte order mark; without one it cannot be told from binary data.
    Utf16Little,
    /// The same, the other way round.
    Utf16Big,
    /// One byte per character. Every byte has a meaning in it, so even where the guess is wrong,
    /// what is not edited goes back as it was.
    Windows1252,
}

/// The text and how it was stored; `None` when the bytes are not text.
pub(super) fn decode(bytes: &[u8]) -> Option<(String, Encoding)> {
    // Little-endian UTF-32 begins like UTF-16.
    if bytes.starts_with(&[0xFF, 0xFE, 0, 0]) {
        return None;
    }
    if let Some(rest) = bytes.strip_prefix(&[0xFF, 0xFE]) {
        let text = UTF_16LE.decode_without_bom_handling_and_without_replacement(rest)?;
        return Some((text.into_owned(), Encoding::Utf16Little));
    }
    if let Some(rest) = bytes.strip_prefix(&[0xFE, 0xFF]) {
        let text = UTF_16BE.decode_without_bom_handling_and_without_replacement(rest)?;
        return Some((text.into_owned(), Encoding::Utf16Big));
    }
    if bytes[..bytes.len().min(LOOKED_AT)].contains(&0) {
        return None;
    }
    let (rest, mark) = match bytes.strip_prefix(&[0xEF, 0xBB, 0xBF]) {
        Some(rest) => (rest, true),
        None => (bytes, false),
    };
    if let Some(text) = UTF_8.decode_without_bom_handling_and_without_replacement(rest) {
        return Some((text.into_owned(), Encoding::Utf8 { mark }));
    }
    if mark {
        return None;
    }
    let text = WINDOWS_1252.decode_without_bom_handling_and_without_replacement(bytes)?;
    Some((text.into_owned(), Encoding::Windows1252))
}

/// The bytes of `text`; the first character that the encoding has not, if there is one.
pub(super) fn encode(text: &str, encoding: Encoding) -> Result<Cow<'_, [u8]>, char> {
    match encoding {
        Encoding::Utf8 { mark: false } => Ok(Cow::Borrowed(text.as_bytes())),
        Encoding::Utf8 { mark: true } => Ok([&[0xEF, 0xBB, 0xBF], text.as_bytes()].concat().into()),
        Encoding::Utf16Little => Ok(utf16(text, u16::to_le_bytes).into()),
        Encoding::Utf16Big => Ok(utf16(text, u16::to_be_bytes).into()),
        Encoding::Windows1252 => windows_1252(text).map(Cow::Owned),
    }
}

fn windows_1252(text: &str) -> Result<Vec<u8>, char> {
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

fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    std::iter::once(0xFEFF)
        .chain(text.encode_utf16())
        .flat_map(bytes)
        .collect()
}
