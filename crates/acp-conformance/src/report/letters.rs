//! Letters: what an agent says stands in every report, and does nothing there. It moves no cursor, turns no text
//! around, ends no line, and is XML.

/// Stands for a letter that may not stand there.
const INSTEAD: char = '\u{fffd}';

/// The letter, or what stands for it. Line ends and tabs stay.
pub(super) fn letter(letter: char) -> char {
    match letter {
        '\n' | '\t' => letter,
        // They change the direction of what follows, or end a line.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            INSTEAD
        }
        // These are no characters of XML 1.0.
        '\u{fffe}' | '\u{ffff}' => INSTEAD,
        letter if letter.is_control() => INSTEAD,
        other => other,
    }
}

/// A text that may have several lines.
#[must_use]
pub fn lines(text: &str) -> String {
    text.chars().map(letter).collect()
}

/// A text on one line.
#[must_use]
pub fn line(text: &str) -> String {
    let letters = text.chars().map(|each| match letter(each) {
        '\n' | '\t' => ' ',
        other => other,
    });
    letters.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_moves_the_cursor_or_turns_the_text_around() {
        let wild = "a\u{1b}[2J\u{7}\u{9b}1m\r\u{7f}\u{202e}b\u{2066}c\u{200f}\u{2028}\u{fffe}\u{ffff}\u{0}";
        let tame = "a\u{fffd}[2J\u{fffd}\u{fffd}1m\u{fffd}\u{fffd}\u{fffd}b\u{fffd}c\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}";
        assert_eq!(lines(wild), tame);
        assert_eq!(line(wild), tame);
    }

    #[test]
    fn what_people_write_stays() {
        let text = "Grüße, שלום, 你好 👍🏽 \u{1fffe}";
        assert_eq!(lines(text), text);
        assert_eq!(lines("a\n\tb"), "a\n\tb");
        assert_eq!(line("a\n\tb"), "a  b");
    }
}
