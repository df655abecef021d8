//! Makes agent output safe for reports: no cursor movement, no change of text direction, no stray line ends,
//! and valid XML.

/// Replacement for unsafe characters.
const REPLACEMENT: char = '\u{fffd}';

/// Returns the character, or its replacement if it is unsafe. Line ends and tabs stay.
fn sanitize_char(letter: char) -> char {
    match letter {
        '\n' | '\t' => letter,
        // Characters that change the text direction or end a line.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            REPLACEMENT
        }
        // Not allowed in XML 1.0.
        '\u{fffe}' | '\u{ffff}' => REPLACEMENT,
        letter if letter.is_control() => REPLACEMENT,
        other => other,
    }
}

/// Sanitizes a text of several lines.
#[must_use]
pub fn sanitize_lines(text: &str) -> String {
    text.chars().map(sanitize_char).collect()
}

/// Sanitizes a text and puts it on one line.
#[must_use]
pub fn sanitize_line(text: &str) -> String {
    let letters = text.chars().map(|each| match sanitize_char(each) {
        '\n' | '\t' => ' ',
        other => other,
    });
    letters.collect()
}

/// Shortens a text to this number of characters, followed by `…` if it was longer.
#[must_use]
pub fn truncate_chars(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_bidi_characters_are_replaced() {
        let wild = "a\u{1b}[2J\u{7}\u{9b}1m\r\u{7f}\u{202e}b\u{2066}c\u{200f}\u{2028}\u{fffe}\u{ffff}\u{0}";
        let tame = "a\u{fffd}[2J\u{fffd}\u{fffd}1m\u{fffd}\u{fffd}\u{fffd}b\u{fffd}c\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}";
        assert_eq!(sanitize_lines(wild), tame);
        assert_eq!(sanitize_line(wild), tame);
    }

    #[test]
    fn ordinary_unicode_is_kept() {
        let text = "Grüße, שלום, 你好 👍🏽 \u{1fffe}";
        assert_eq!(sanitize_lines(text), text);
        assert_eq!(sanitize_lines("a\n\tb"), "a\n\tb");
        assert_eq!(sanitize_line("a\n\tb"), "a  b");
    }
}
