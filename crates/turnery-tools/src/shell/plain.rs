//! Plain: what a command prints, as text that can be shown anywhere: UTF-8, line feeds, no escapes.

use std::str;

/// An escape sequence that never ends is given up after so many characters.
const LONGEST_ESCAPE: u16 = 4096;

/// Turns bytes into plain text, wherever they are cut.
#[derive(Debug, Default)]
pub(crate) struct Plain {
    /// The beginning of a character, at most three bytes.
    cut: Vec<u8>,
    state: State,
    length: u16,
    after_return: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum State {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// After ESC and a character that announces one more.
    Intermediate,
    /// After `ESC [`, up to a letter.
    Control,
    /// A title or the like, up to BEL or `ESC \`.
    Words,
    /// ESC inside of that.
    WordsEscape,
}

impl Plain {
    /// All of some bytes.
    pub(crate) fn whole(bytes: &[u8]) -> String {
        let mut plain = Self::default();
        let mut text = String::with_capacity(bytes.len());
        plain.add(bytes, &mut text);
        plain.end(&mut text);
        text
    }

    /// The next bytes.
    pub(super) fn add(&mut self, bytes: &[u8], text: &mut String) {
        let joined;
        let mut rest = if self.cut.is_empty() {
            bytes
        } else {
            self.cut.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.cut);
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
                self.push(c, text);
            }
            rest = &rest[valid.len()..];
            match skip {
                None => {}
                Some(Some(bad)) => {
                    self.push(char::REPLACEMENT_CHARACTER, text);
                    rest = &rest[bad..];
                }
                Some(None) => {
                    self.cut = rest.to_owned();
                    return;
                }
            }
        }
    }

    /// There are no more bytes.
    pub(super) fn end(&mut self, text: &mut String) {
        if !self.cut.is_empty() {
            self.cut.clear();
            self.push(char::REPLACEMENT_CHARACTER, text);
        }
        if std::mem::take(&mut self.after_return) {
            text.push('\n');
        }
    }

    fn push(&mut self, c: char, text: &mut String) {
        self.length = self.length.saturating_add(1);
        let begun = match (self.state, c) {
            (_, '\u{1b}') if self.state != State::Words => State::Escape,
            (State::Words, '\u{1b}') => State::WordsEscape,
            // A line feed is text whatever came before: a stray escape must not eat what follows.
            (_, '\n') => State::Text,
            (_, _) if self.state != State::Text && self.length > LONGEST_ESCAPE => State::Text,
            (State::Text, '\u{9b}') => State::Control,
            (State::Text, _) => return self.print(c, text),
            (State::Escape, '[') => State::Control,
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => State::Words,
            (State::Escape | State::Intermediate, ' '..='/') => State::Intermediate,
            (State::Escape | State::Intermediate, _) => State::Text,
            (State::Control, '@'..='~') => State::Text,
            (State::Control, _) => State::Control,
            (State::Words, '\u{7}' | '\u{9c}') => State::Text,
            (State::WordsEscape, '\\') => State::Text,
            (State::Words | State::WordsEscape, _) => State::Words,
        };
        if self.state == State::Text {
            self.length = 0;
        }
        self.state = begun;
        if c == '\n' {
            self.print(c, text);
        }
    }

    fn print(&mut self, c: char, text: &mut String) {
        // A return before a line feed is part of it; any other begins the line anew.
        if std::mem::take(&mut self.after_return) && c != '\n' && c != '\r' {
            text.push('\n');
        }
        match c {
            '\r' => self.after_return = true,
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
    fn text_comes_out_plain() {
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
            assert_eq!(Plain::whole(bytes), expected);
        }
    }

    proptest! {
        #[test]
        fn cuts_do_not_matter(bytes in prop::collection::vec(prop_oneof![
            any::<u8>(), Just(0x1b), Just(b'['), Just(b'\r'), Just(b'\n'), Just(0xc3), Just(0xa9),
        ], 0..60)) {
            let mut plain = Plain::default();
            let mut text = String::new();
            for byte in &bytes {
                plain.add(&[*byte], &mut text);
            }
            plain.end(&mut text);
            prop_assert_eq!(text, Plain::whole(&bytes));
        }
    }
}
