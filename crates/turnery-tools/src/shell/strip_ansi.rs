//! Converts command output to plain text: UTF-8, line feeds, no escape sequences.

use std::str;

/// An unterminated escape sequence is abandoned after this many characters.
const MAX_ESCAPE_LEN: u16 = 4096;

/// Converts a stream of bytes to plain text, independent of chunk boundaries.
#[derive(Debug, Default)]
pub(crate) struct AnsiStripper {
    /// Beginning of a character, at most three bytes.
    incomplete_char: Vec<u8>,
    state: EscapeState,
    sequence_length: u16,
    after_carriage_return: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum EscapeState {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// After ESC and an intermediate character.
    Intermediate,
    /// After `ESC [`, up to a letter.
    Csi,
    /// In a control string such as a title, up to BEL or `ESC \`.
    ControlString,
    /// After ESC in a control string.
    ControlStringEscape,
}

impl AnsiStripper {
    /// Converts complete output.
    pub(crate) fn strip(bytes: &[u8]) -> String {
        let mut plain = Self::default();
        let mut text = String::with_capacity(bytes.len());
        plain.push_bytes(bytes, &mut text);
        plain.finish(&mut text);
        text
    }

    /// Adds the next bytes.
    pub(super) fn push_bytes(&mut self, bytes: &[u8], text: &mut String) {
        let joined;
        let mut rest = if self.incomplete_char.is_empty() {
            bytes
        } else {
            self.incomplete_char.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.incomplete_char);
            &joined[..]
        };
        while !rest.is_empty() {
            let (valid, skip) = match str::from_utf8(rest) {
                Ok(valid) => (valid, None),
                Err(error) => {
                    let (valid, _) = rest.split_at(error.valid_up_to());
                    let valid = str::from_utf8(valid).unwrap_or_default();
                    (valid, Some(error.error_len()))
                }
            };
            for c in valid.chars() {
                self.push_char(c, text);
            }
            rest = &rest[valid.len()..];
            match skip {
                None => {}
                Some(Some(bad)) => {
                    self.push_char(char::REPLACEMENT_CHARACTER, text);
                    rest = &rest[bad..];
                }
                Some(None) => {
                    self.incomplete_char = rest.to_owned();
                    return;
                }
            }
        }
    }

    /// Marks the end of the bytes.
    pub(super) fn finish(&mut self, text: &mut String) {
        if !self.incomplete_char.is_empty() {
            self.incomplete_char.clear();
            self.push_char(char::REPLACEMENT_CHARACTER, text);
        }
        if std::mem::take(&mut self.after_carriage_return) {
            text.push('\n');
        }
    }

    fn push_char(&mut self, c: char, text: &mut String) {
        self.sequence_length = self.sequence_length.saturating_add(1);
        let begun = match (self.state, c) {
            (_, '\u{1b}') if self.state != EscapeState::ControlString => EscapeState::Escape,
            (EscapeState::ControlString, '\u{1b}') => EscapeState::ControlStringEscape,
            // A line feed is always text: a stray escape must not swallow what follows.
            (_, '\n') => EscapeState::Text,
            (_, _) if self.state != EscapeState::Text && self.sequence_length > MAX_ESCAPE_LEN => {
                EscapeState::Text
            }
            (EscapeState::Text, '\u{9b}') => EscapeState::Csi,
            (EscapeState::Text, _) => return self.push_text_char(c, text),
            (EscapeState::Escape, '[') => EscapeState::Csi,
            (EscapeState::Escape, ']' | 'P' | 'X' | '^' | '_') => EscapeState::ControlString,
            (EscapeState::Escape | EscapeState::Intermediate, ' '..='/') => {
                EscapeState::Intermediate
            }
            (EscapeState::Escape | EscapeState::Intermediate, _) => EscapeState::Text,
            (EscapeState::Csi, '@'..='~') => EscapeState::Text,
            (EscapeState::Csi, _) => EscapeState::Csi,
            (EscapeState::ControlString, '\u{7}' | '\u{9c}') => EscapeState::Text,
            (EscapeState::ControlStringEscape, '\\') => EscapeState::Text,
            (EscapeState::ControlString | EscapeState::ControlStringEscape, _) => {
                EscapeState::ControlString
            }
        };
        if self.state == EscapeState::Text {
            self.sequence_length = 0;
        }
        self.state = begun;
        if c == '\n' {
            self.push_text_char(c, text);
        }
    }

    fn push_text_char(&mut self, c: char, text: &mut String) {
        // A carriage return before a line feed is part of the line break; any other starts the line over.
        if std::mem::take(&mut self.after_carriage_return) && c != '\n' && c != '\r' {
            text.push('\n');
        }
        match c {
            '\r' => self.after_carriage_return = true,
            '\n' | '\t' => text.push(c),
            _ if c.is_control() => {}
            _ => text.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escapes_and_controls_are_stripped() {
        for (bytes, expected) in [
            (&b"a\nb\n"[..], "a\nb\n"),
            (b"a\r\nb\r\n", "a\nb\n"),
            (b"10%\r20%\r\n", "10%\n20%\n"),
            (b"a\r\r\nb", "a\nb"),
            (b"\x1b[1;31mred\x1b[0m", "red"),
            (b"\x1b]0;title\x07text", "text"),
            (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            (b"\x1b(Bx\x1b=y", "xy"),
            (b"\x1b]never ends\nnext", "\nnext"),
            (b"a\x08\x00\x07b", "ab"),
            (b"\xff\xfe!", "\u{fffd}\u{fffd}!"),
            ("h\u{e9} \u{1f600}".as_bytes(), "h\u{e9} \u{1f600}"),
            (b"cut \xf0\x9f", "cut \u{fffd}"),
        ] {
            assert_eq!(AnsiStripper::strip(bytes), expected);
        }
    }

    proptest! {
        #[test]
        fn chunk_boundaries_do_not_change_output(bytes in prop::collection::vec(prop_oneof![
            any::<u8>(), Just(0x1b), Just(b'['), Just(b'\r'), Just(b'\n'), Just(0xc3), Just(0xa9),
        ], 0..60)) {
            let mut plain = AnsiStripper::default();
            let mut text = String::new();
            for byte in &bytes {
                plain.push_bytes(&[*byte], &mut text);
            }
            plain.finish(&mut text);
            prop_assert_eq!(text, AnsiStripper::strip(&bytes));
        }
    }
}
