//! Reads a line of a case from left to right.

use serde_json::Value;

/// Unread rest of a line.
pub(super) struct LineCursor<'a> {
    rest: &'a str,
}

impl<'a> LineCursor<'a> {
    pub(super) fn new(line: &'a str) -> Self {
        Self { rest: line.trim() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the next word without consuming it; empty at the end.
    pub(super) fn peek(&self) -> &'a str {
        self.rest.split_whitespace().next().unwrap_or("")
    }

    /// Consumes the next word.
    pub(super) fn next_word(&mut self) -> Option<&'a str> {
        let word = self.peek();
        self.rest = self.rest[word.len()..].trim_start();
        (!word.is_empty()).then_some(word)
    }

    /// Consumes the next word; `what` names it in the error if it is missing.
    pub(super) fn expect_word(&mut self, what: &str) -> Result<&'a str, String> {
        self.next_word().ok_or_else(|| format!("{what} is missing"))
    }

    /// Consumes the next word if it equals `word`.
    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let found = self.peek() == word;
        if found {
            self.next_word();
        }
        found
    }

    /// Parses a JSON value.
    pub(super) fn parse_json(&mut self) -> Result<Value, String> {
        let mut values = serde_json::Deserializer::from_str(self.rest).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                let end = values.byte_offset();
                self.rest = self.rest[end..].trim_start();
                Ok(value)
            }
            Some(Err(error)) => Err(format!("not JSON: {error}")),
            None => Err("JSON is missing".to_owned()),
        }
    }

    /// Parses a JSON value, or returns `None` at the end of the line.
    pub(super) fn parse_optional_json(&mut self) -> Result<Option<Value>, String> {
        if self.is_empty() {
            return Ok(None);
        }
        self.parse_json().map(Some)
    }

    /// Parses a JSON string.
    pub(super) fn parse_string(&mut self) -> Result<String, String> {
        match self.parse_json()? {
            Value::String(text) => Ok(text),
            other => Err(format!("{other} is no string")),
        }
    }

    /// Consumes the rest of the line verbatim.
    pub(super) fn take_rest(&mut self) -> &'a str {
        std::mem::take(&mut self.rest)
    }

    /// Consumes the rest of the line: a JSON string, or text with the escapes `\n`, `\t` and `\\`.
    pub(super) fn parse_text(&mut self) -> Result<String, String> {
        if self.rest.starts_with('"') {
            return self.parse_string();
        }
        let mut text = String::new();
        let mut letters = self.take_rest().chars();
        while let Some(letter) = letters.next() {
            text.push(match (letter, letter == '\\') {
                (letter, false) => letter,
                (_, true) => match letters.next() {
                    Some('n') => '\n',
                    Some('t') => '\t',
                    Some('\\') => '\\',
                    other => return Err(format!("\\{} means nothing", other.unwrap_or(' '))),
                },
            });
        }
        Ok(text)
    }

    /// Checks that the line is fully consumed.
    pub(super) fn expect_end(&self) -> Result<(), String> {
        if self.rest.is_empty() {
            Ok(())
        } else if self.rest.starts_with('@') {
            let example = "a check ends with rules such as `@ TR-1`";
            Err(format!("{:?} is too much: {example}", self.rest))
        } else {
            Err(format!("{:?} is too much", self.rest))
        }
    }
}

/// Decodes a quoted text with JSON escapes and `\xHH` to bytes.
pub(super) fn parse_bytes(quoted: &str) -> Result<Vec<u8>, String> {
    let inner = quoted
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .ok_or("bytes stand in quotes")?;
    let mut bytes = Vec::new();
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        let letter = if letter == '\\' {
            match letters.next() {
                Some('x') => {
                    let byte = parse_hex(&mut letters, 2)?;
                    bytes.push(u8::try_from(byte).map_err(|error| error.to_string())?);
                    continue;
                }
                Some('u') => {
                    let code = parse_hex(&mut letters, 4)?;
                    char::from_u32(code).ok_or_else(|| format!("\\u{code:04x} is half a letter"))?
                }
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some(other @ ('"' | '\\' | '/')) => other,
                other => return Err(format!("\\{} means nothing", other.unwrap_or(' '))),
            }
        } else {
            letter
        };
        bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
    }
    Ok(bytes)
}

fn parse_hex(letters: &mut std::str::Chars<'_>, digits: usize) -> Result<u32, String> {
    let text: String = letters.by_ref().take(digits).collect();
    u32::from_str_radix(&text, 16).map_err(|_| format!("{text:?} is no hexadecimal number"))
}
