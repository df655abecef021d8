//! Takes a key out of what a provider says: as it is, in part, percent-encoded, escaped as in JSON or HTML, in
//! base64 or hexadecimal, in other letters' case, and with blanks or characters within that do not show.

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use std::collections::HashSet;

/// What stands for a key.
const MASK: &str = "[key]";

/// A shorter part of a key stays: providers name keys by their first and last letters (`sk-proj-ABC***wxyz`), and
/// what is left of a key then is out of reach of guesses. A longer part is not in a text by chance. Unit: bytes.
const LONGEST_PART: usize = 12;

/// Letters of base64 that are made of [`LONGEST_PART`] bytes alone, wherever these begin.
const IN_BASE64: usize = 13;

/// So often an encoding within another one is undone.
const MOST_PASSES: usize = 3;

/// No key is longer: what is longer is compared up to here. Unit: bytes.
const LONGEST_KEY: usize = 4096;

/// `text` with every trace of `key` masked. The work grows with the sum of both lengths.
pub(crate) fn without_key(text: &str, key: &str) -> String {
    let key = key.as_bytes();
    let key = &key[..key.len().min(LONGEST_KEY)];
    if key.is_empty() {
        return text.to_owned();
    }
    let traces = traces(key);
    let mut masked = vec![false; text.len()];
    let mut units: Vec<Unit> = text
        .char_indices()
        .map(|(at, c)| Unit {
            c,
            from: at,
            to: at + c.len_utf8(),
        })
        .filter(|unit| !does_not_show(unit.c))
        .collect();
    for _ in 0..=MOST_PASSES {
        for trace in &traces {
            trace.mask(&units, &mut masked);
        }
        let decoded = decode(&units);
        if decoded.len() == units.len() {
            break;
        }
        units = decoded;
        units.retain(|unit| !does_not_show(unit.c));
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

/// A character of a text, decoded, and the bytes it was read from.
#[derive(Clone, Copy)]
struct Unit {
    c: char,
    from: usize,
    to: usize,
}

/// All parts of a key in one encoding that are long enough to be masked.
struct Trace {
    parts: HashSet<Vec<u8>>,
    length: usize,
    /// Makes equal what stands for the same.
    fold: fn(u8) -> u8,
}

impl Trace {
    fn new(key: &[u8], length: usize, fold: fn(u8) -> u8) -> Self {
        let key: Vec<u8> = key.iter().copied().map(fold).collect();
        Self {
            parts: key.windows(length).map(<[u8]>::to_vec).collect(),
            length,
            fold,
        }
    }

    /// Marks the bytes that a part was read from, and what lies between them.
    fn mask(&self, units: &[Unit], masked: &mut [bool]) {
        // No key holds a zero byte: it stands for all other characters.
        let byte = |unit: &Unit| u8::try_from(u32::from(unit.c)).map_or(0, self.fold);
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

/// The key in every encoding it is looked for.
fn traces(key: &[u8]) -> Vec<Trace> {
    if key.len() < LONGEST_PART {
        // A word, for a server that checks none. Less strict, it would be found in ordinary text.
        return vec![Trace::new(key, key.len(), |byte| byte)];
    }
    let lower = |byte: u8| byte.to_ascii_lowercase();
    let mut all = vec![
        Trace::new(key, LONGEST_PART, lower),
        Trace::new(hex(key).as_bytes(), 2 * LONGEST_PART, lower),
    ];
    // What stands before the key in the encoded text shifts it by up to two bytes. The letters at its
    // ends hold bits of its neighbours too.
    for (shift, foreign) in [(0, 0), (1, 2), (2, 3)] {
        let mut shifted = vec![0; shift];
        shifted.extend_from_slice(key);
        let text = STANDARD_NO_PAD.encode(&shifted);
        let own = text.as_bytes().get(foreign..text.len() - 1);
        all.push(Trace::new(
            own.unwrap_or_default(),
            IN_BASE64,
            |byte| match byte {
                b'-' => b'+',
                b'_' => b'/',
                byte => byte,
            },
        ));
    }
    all
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Blanks, and all that the standard library does not take to be printable by itself: control and format
/// characters, combining marks, variation selectors.
fn does_not_show(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || (!c.is_ascii() && c.escape_debug().len() > 1)
        || matches!(
            c,
            '\u{115f}' | '\u{1160}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}'
        )
}

/// The text with `%2d`, `\u002d`, `\u{2d}`, `\x2d`, `&#45;`, `&#x2d;` and `\/` undone once.
fn decode(units: &[Unit]) -> Vec<Unit> {
    let mut out = Vec::with_capacity(units.len());
    let mut rest = units;
    while let [first, after @ ..] = rest {
        rest = match escape(rest) {
            Some((c, [.., last], left)) => {
                let (from, to) = (first.from, last.to);
                out.push(Unit { c, from, to });
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

/// The character of the escape that `units` begin with, what it was read from, and what is left.
fn escape(units: &[Unit]) -> Option<(char, &[Unit], &[Unit])> {
    if !matches!(units.first()?.c, '%' | '\\' | '&') {
        return None;
    }
    // The longest is `\u{00002d}`.
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

    fn shown(text: &str) -> String {
        without_key(text, KEY)
    }

    #[test]
    fn key_is_masked_in_whatever_form() {
        // Encoded with other programs: percent-encoding of all bytes, base64 of the key and of
        // "Bearer " and "x:" before it, hexadecimal.
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
            let text = shown(&format!("bad {form} end"));
            assert!(
                text.starts_with("bad [key]") && text.ends_with(" end"),
                "{form}: {text}"
            );
            assert!(
                !text.contains("12345678") && !text.contains("EFGH"),
                "{form}: {text}"
            );
        }
        assert_eq!(shown(&format!("bad {KEY}, {KEY}")), "bad [key], [key]");
    }

    #[test]
    fn key_in_base64_is_masked_wherever_it_begins() {
        // From `printf … | base64`.
        for (text, own) in [
            ("c2stcHJvai1BQkNERUZHSDEyMzQ1Njc4LXd4eXo=", "RUZHSDEyMzQ1"),
            (
                "QmVhcmVyIHNrLXByb2otQUJDREVGR0gxMjM0NTY3OC13eHl6",
                "QUJDREVGR0gx",
            ),
            ("eDpzay1wcm9qLUFCQ0RFRkdIMTIzNDU2Nzgtd3h5eg==", "QUJDREVGR0"),
        ] {
            let told = shown(text);
            assert!(told.contains(MASK), "{told}");
            let longest = told.split(MASK).map(str::len).max().unwrap_or_default();
            assert!(longest <= 12 && !told.contains(own), "{told}");
        }
    }

    #[test]
    fn parts_are_masked_from_twelve_characters_on() {
        let told = shown("bad key sk-proj-ABCDEFGH12345678-**** in roj-ABCDEFGH12345678-wxyz");
        assert_eq!(told, "bad key [key]**** in [key]");
        let named = "Incorrect API key provided: sk-proj-ABC*****wxyz.";
        assert_eq!(shown(named), named);
        assert_eq!(shown("EFGH12345678"), "[key]");
        assert_eq!(shown("EFGH1234567"), "EFGH1234567");
    }

    #[test]
    fn short_keys_are_masked_whole() {
        assert_eq!(without_key("bad sk-test!", "sk-test"), "bad [key]!");
        assert_eq!(without_key("bad sk-tes", "sk-test"), "bad sk-tes");
        assert_eq!(without_key("anything", ""), "anything");
        assert_eq!(without_key("a x b", "x"), "a [key] b");
        assert_eq!(without_key("Ollama: no 78", "ollama"), "Ollama: no 78");
    }

    #[test]
    fn other_text_stays_as_it_is() {
        for text in [
            "50% of \\u00e4 &#x; %zz \\u{",
            "grüße 日本語\u{200b}\n x",
            "100%25",
        ] {
            assert_eq!(shown(text), text);
        }
    }
}
