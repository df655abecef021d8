//! Removes a key from a provider's text: verbatim, in part, percent-encoded, escaped as in JSON or HTML, in
//! base64 or hexadecimal, in other case, and interspersed with blanks or invisible characters.

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use std::collections::HashSet;

/// Replacement for a key.
const MASK: &str = "[key]";

/// Length from which a part of a key is masked. Providers identify keys by their first and last letters
/// (`sk-proj-ABC***wxyz`), which leave the rest beyond guessing; a longer match is no coincidence. Unit:
/// bytes.
const MIN_MASKED_BYTES: usize = 12;

/// Length from which a whole key is masked. A shorter one, for a server that checks none, occurs in any text. Unit: bytes.
const MIN_KEY_BYTES: usize = 6;

/// Number of base64 characters that are determined by [`MIN_MASKED_BYTES`] bytes alone, at any alignment.
const MASKED_BASE64_LEN: usize = 13;

/// Number of nested encodings that are undone.
const MAX_PASSES: usize = 3;

/// Length up to which a key is compared; real keys are shorter. Unit: bytes.
const MAX_KEY_BYTES: usize = 4096;

/// Returns `text` with every trace of `key` masked. Takes time linear in the sum of both lengths.
pub(crate) fn redact_key(text: &str, key: &str) -> String {
    let key = key.as_bytes();
    let key = &key[..key.len().min(MAX_KEY_BYTES)];
    if key.len() < MIN_KEY_BYTES {
        return text.to_owned();
    }
    let traces = key_encodings(key);
    let mut masked = vec![false; text.len()];
    let mut units: Vec<DecodedChar> = text
        .char_indices()
        .map(|(at, c)| DecodedChar {
            c,
            from: at,
            to: at + c.len_utf8(),
        })
        .filter(|unit| !is_invisible(unit.c))
        .collect();
    for _ in 0..=MAX_PASSES {
        for trace in &traces {
            trace.mask(&units, &mut masked);
        }
        let decoded = decode_escapes(&units);
        if decoded.len() == units.len() {
            break;
        }
        units = decoded;
        units.retain(|unit| !is_invisible(unit.c));
    }
    let mut out = String::with_capacity(text.len());
    let mut was_masked = false;
    for (at, c) in text.char_indices() {
        let is_masked = masked.get(at).copied().unwrap_or_default();
        match (is_masked, was_masked) {
            (true, false) => out.push_str(MASK),
            (true, true) => {}
            (false, _) => out.push(c),
        }
        was_masked = is_masked;
    }
    out
}

/// A decoded character of a text, with the bytes it was read from.
#[derive(Clone, Copy)]
struct DecodedChar {
    c: char,
    from: usize,
    to: usize,
}

/// All parts of a key in one encoding that are long enough to be masked.
struct KeyEncoding {
    parts: HashSet<Vec<u8>>,
    length: usize,
    /// Maps equivalent bytes to the same byte.
    fold: fn(u8) -> u8,
}

impl KeyEncoding {
    fn new(key: &[u8], length: usize, fold: fn(u8) -> u8) -> Self {
        let key: Vec<u8> = key.iter().copied().map(fold).collect();
        Self {
            parts: key.windows(length).map(<[u8]>::to_vec).collect(),
            length,
            fold,
        }
    }

    /// Marks the bytes that a part was read from, and the bytes between them.
    fn mask(&self, units: &[DecodedChar], masked: &mut [bool]) {
        // No key contains a zero byte, so zero stands for all other characters.
        let byte = |unit: &DecodedChar| u8::try_from(u32::from(unit.c)).map_or(0, self.fold);
        let bytes: Vec<u8> = units.iter().map(byte).collect();
        let runs = units.windows(self.length).zip(bytes.windows(self.length));
        for (run, _) in runs.filter(|(_, part)| self.parts.contains(*part)) {
            if let (Some(first), Some(last)) = (run.first(), run.last())
                && let Some(range) = masked.get_mut(first.from..last.to)
            {
                range.fill(true);
            }
        }
    }
}

/// Returns the key in every encoding that is searched.
fn key_encodings(key: &[u8]) -> Vec<KeyEncoding> {
    if key.len() < MIN_MASKED_BYTES {
        // A short word, for a server that checks no key. A looser comparison would match ordinary text.
        return vec![KeyEncoding::new(key, key.len(), |byte| byte)];
    }
    let lower = |byte: u8| byte.to_ascii_lowercase();
    let mut all = vec![
        KeyEncoding::new(key, MIN_MASKED_BYTES, lower),
        KeyEncoding::new(encode_hex(key).as_bytes(), 2 * MIN_MASKED_BYTES, lower),
    ];
    // Bytes before the key in the encoded text shift it by up to two bytes, and the characters at its ends
    // contain bits of its neighbours.
    for (shift, foreign) in [(0, 0), (1, 2), (2, 3)] {
        let mut shifted = vec![0; shift];
        shifted.extend_from_slice(key);
        let text = STANDARD_NO_PAD.encode(&shifted);
        let own = text.as_bytes().get(foreign..text.len() - 1);
        all.push(KeyEncoding::new(
            own.unwrap_or_default(),
            MASKED_BASE64_LEN,
            |byte| match byte {
                b'-' => b'+',
                b'_' => b'/',
                byte => byte,
            },
        ));
    }
    all
}

fn encode_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns true for blanks and for all characters that the standard library does not consider printable:
/// control and format characters, combining marks, variation selectors.
fn is_invisible(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || (!c.is_ascii() && c.escape_debug().len() > 1)
        || matches!(
            c,
            '\u{115f}' | '\u{1160}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}'
        )
}

/// Decodes `%2d`, `\u002d`, `\u{2d}`, `\x2d`, `&#45;`, `&#x2d;`, `\/` and `\\` once.
fn decode_escapes(units: &[DecodedChar]) -> Vec<DecodedChar> {
    let mut out = Vec::with_capacity(units.len());
    let mut rest = units;
    while let [first, after @ ..] = rest {
        rest = match parse_escape(rest) {
            Some((c, [.., last], left)) => {
                let (from, to) = (first.from, last.to);
                out.push(DecodedChar { c, from, to });
                left
            }
            Some(_) | None => {
                out.push(*first);
                after
            }
        };
    }
    out
}

/// Parses the escape at the start of `units`. Returns its character, its units, and the remaining units.
fn parse_escape(units: &[DecodedChar]) -> Option<(char, &[DecodedChar], &[DecodedChar])> {
    if !matches!(units.first()?.c, '%' | '\\' | '&') {
        return None;
    }
    // The longest escape is `\u{00002d}`.
    let head: String = units.iter().take(12).map(|unit| unit.c).collect();
    let (length, number) = if let Some(rest) = head.strip_prefix('%') {
        (3, u32::from_str_radix(rest.get(..2)?, 16).ok()?)
    } else if let Some(rest) = head.strip_prefix("\\u{") {
        let digits = rest.split_once('}')?.0;
        (digits.len() + 4, u32::from_str_radix(digits, 16).ok()?)
    } else if let Some(rest) = head.strip_prefix("\\u") {
        (6, u32::from_str_radix(rest.get(..4)?, 16).ok()?)
    } else if let Some(rest) = head.strip_prefix("\\x") {
        (4, u32::from_str_radix(rest.get(..2)?, 16).ok()?)
    } else if let Some(rest) = head.strip_prefix("&#x") {
        let digits = rest.split_once(';')?.0;
        (digits.len() + 4, u32::from_str_radix(digits, 16).ok()?)
    } else if let Some(rest) = head.strip_prefix("&#") {
        let digits = rest.split_once(';')?.0;
        (digits.len() + 3, digits.parse().ok()?)
    } else if head.starts_with("\\/") || head.starts_with("\\\\") {
        (2, u32::from(head.chars().nth(1)?))
    } else {
        return None;
    };
    let (taken, left) = units.split_at_checked(length)?;
    Some((char::from_u32(number)?, taken, left))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-proj-ABCDEFGH12345678-wxyz";

    fn redacted(text: &str) -> String {
        redact_key(text, KEY)
    }

    #[test]
    fn key_is_masked_in_whatever_form() {
        for form in [
            KEY,
            "SK-PROJ-abcdefgh12345678-WXYZ",
            "sk-proj-\u{ad}ABCDEFGH\u{200b}12345678-wxyz",
            "sk-proj-ABCDEF\u{301}GH1\u{feff}2345678-wxyz",
            "sk-proj-ABC\n  DEFGH12345678-wxyz",
            "sk%2Dproj%2DABCDEFGH12345678%2Dwxyz",
            "sk%252Dproj%252DABCDEFGH12345678%252Dwxyz",
            "sk\\u002dproj\\u002dABCDEFGH12345678\\u002dwxyz",
            "sk\\\\u002dproj\\\\u002dABCDEFGH12345678\\\\u002dwxyz",
            "sk\\x2dproj\\u{2d}ABCDEFGH12345678&#45;wxyz",
            "sk&#x2d;proj&#x2D;ABCDEFGH12345678&#45;wxyz",
            "736b2d70726f6a2d414243444546474831323334353637382d7778797a",
        ] {
            let text = redacted(&format!("bad {form} end"));
            assert!(
                text.starts_with("bad [key]") && text.ends_with(" end"),
                "{form}: {text}"
            );
            assert!(
                !text.contains("12345678") && !text.contains("EFGH"),
                "{form}: {text}"
            );
        }
        assert_eq!(redacted(&format!("bad {KEY}, {KEY}")), "bad [key], [key]");
    }

    #[test]
    fn key_in_base64_is_masked_wherever_it_begins() {
        // Made with `printf … | base64`.
        for (text, own) in [
            ("c2stcHJvai1BQkNERUZHSDEyMzQ1Njc4LXd4eXo=", "RUZHSDEyMzQ1"),
            (
                "QmVhcmVyIHNrLXByb2otQUJDREVGR0gxMjM0NTY3OC13eHl6",
                "QUJDREVGR0gx",
            ),
            ("eDpzay1wcm9qLUFCQ0RFRkdIMTIzNDU2Nzgtd3h5eg==", "QUJDREVGR0"),
        ] {
            let masked = redacted(text);
            assert!(masked.contains(MASK), "{masked}");
            let longest = masked.split(MASK).map(str::len).max().unwrap_or_default();
            assert!(longest <= 12 && !masked.contains(own), "{masked}");
        }
    }

    #[test]
    fn parts_are_masked_from_twelve_characters_on() {
        let masked = redacted("bad key sk-proj-ABCDEFGH12345678-**** in roj-ABCDEFGH12345678-wxyz");
        assert_eq!(masked, "bad key [key]**** in [key]");
        let named = "Incorrect API key provided: sk-proj-ABC*****wxyz.";
        assert_eq!(redacted(named), named);
        assert_eq!(redacted("EFGH12345678"), "[key]");
        assert_eq!(redacted("EFGH1234567"), "EFGH1234567");
    }

    #[test]
    fn short_keys_are_masked_whole() {
        assert_eq!(redact_key("bad sk-test!", "sk-test"), "bad [key]!");
        assert_eq!(redact_key("bad sk-tes", "sk-test"), "bad sk-tes");
        assert_eq!(redact_key("anything", ""), "anything");
        assert_eq!(redact_key("a abcdef b", "abcdef"), "a [key] b");
        assert_eq!(redact_key("a x local b", "x"), "a x local b");
        assert_eq!(redact_key("the local server", "local"), "the local server");
        assert_eq!(redact_key("Ollama: no 78", "ollama"), "Ollama: no 78");
    }

    #[test]
    fn other_text_is_unchanged() {
        for text in [
            "50% of \\u00e4 &#x; %zz \\u{",
            "grüße 日本語\u{200b}\n x",
            "100%25",
        ] {
            assert_eq!(redacted(text), text);
        }
    }
}
