//! Splits texts into words, and queries into terms.

use std::{iter, ops::Range};

/// Least length of a word that also finds longer words. Unit: characters.
const MIN_PREFIX: usize = 3;

/// Longest word. Longer ones, such as encoded bytes, are cut. Unit: bytes.
const MAX_WORD: usize = 64;

/// Calls `visit` with each word of a text, in lower case, and its place in the text.
///
/// A word is a run of letters and digits. Characters of scripts that write no spaces between words are words of their
/// own.
pub(crate) fn for_each_word(text: &str, mut visit: impl FnMut(&str, Range<usize>)) {
    let mut word = String::new();
    let mut start = 0;
    for (place, character) in text.char_indices().chain(iter::once((text.len(), ' '))) {
        let is_own_word = is_unspaced(character);
        if !word.is_empty() && (is_own_word || !character.is_alphanumeric()) {
            visit(&word, start..place);
            word.clear();
        }
        if is_own_word {
            word.push(character);
            visit(&word, place..place + character.len_utf8());
            word.clear();
        } else if character.is_alphanumeric() {
            if word.is_empty() {
                start = place;
            }
            if word.len() < MAX_WORD {
                match character.is_ascii() {
                    true => word.push(character.to_ascii_lowercase()),
                    false => word.extend(character.to_lowercase()),
                }
            }
        }
    }
}

/// Returns true for Han, kana, Thai, Lao, Khmer and Burmese letters.
fn is_unspaced(character: char) -> bool {
    matches!(character,
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
        && character.is_alphanumeric()
}

/// Words that must follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SearchTerm {
    /// At least one word, in lower case.
    pub(crate) words: Vec<String>,
    /// True if the last word also finds longer words.
    pub(crate) is_prefix: bool,
}

/// Terms of a query, all of which a session must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SearchTerms(Vec<SearchTerm>);

impl SearchTerms {
    /// Parses a query. A quote without its end extends to the end of the text.
    pub(crate) fn parse(text: &str) -> Self {
        let mut terms = Vec::new();
        for (place, part) in text.split('"').enumerate() {
            match place % 2 {
                0 => terms.extend(part.split_whitespace().filter_map(|word| term(word, true))),
                _ => terms.extend(term(part, false)),
            }
        }
        Self(terms)
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &SearchTerm> {
        self.0.iter()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns the term of a part of a query, if it has words.
fn term(part: &str, may_be_prefix: bool) -> Option<SearchTerm> {
    let mut words = Vec::new();
    for_each_word(part, |word, _| words.push(word.to_owned()));
    let last = words.last()?;
    Some(SearchTerm {
        is_prefix: may_be_prefix && last.chars().count() >= MIN_PREFIX,
        words,
    })
}

impl SearchTerm {
    /// Returns the first place of the term in a text.
    pub(crate) fn find(&self, text: &str) -> Option<Range<usize>> {
        // The starts of the last words, as many as the term has.
        let mut starts = Vec::with_capacity(self.words.len() + 1);
        let mut recent: Vec<String> = Vec::with_capacity(self.words.len() + 1);
        let mut found = None;
        for_each_word(text, |word, range| {
            if found.is_some() {
                return;
            }
            starts.push(range.start);
            recent.push(word.to_owned());
            if recent.len() > self.words.len() {
                starts.remove(0);
                recent.remove(0);
            }
            if recent.len() == self.words.len() && self.is_at(&recent) {
                found = starts.first().map(|start| *start..range.end);
            }
        });
        found
    }

    fn is_at(&self, words: &[String]) -> bool {
        let Some((last, before)) = self.words.split_last() else {
            return false;
        };
        words.starts_with(before)
            && words.last().is_some_and(|word| match self.is_prefix {
                true => word.starts_with(last.as_str()),
                false => word == last,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        for_each_word(text, |word, range| {
            assert!(text.get(range).is_some());
            words.push(word.to_owned());
        });
        words
    }

    fn finds(query: &str, text: &str) -> bool {
        let terms = SearchTerms::parse(query);
        !terms.is_empty() && terms.iter().all(|term| term.find(text).is_some())
    }

    #[test]
    fn text_is_split_at_punctuation_and_case_is_ignored() {
        assert_eq!(
            words("Fn read_file(ÄRGER, 42)!"),
            ["fn", "read", "file", "ärger", "42"]
        );
        assert_eq!(words("a缓存b"), ["a", "缓", "存", "b"]);
        assert_eq!(words(""), [""; 0]);
    }

    #[test]
    fn query_finds_all_words_phrases_and_starts_of_words() {
        let text = "The cache invalidation of read_file() is broken";
        for query in [
            "cache",
            "CACHE broken",
            "broken cache",
            "invalid",
            "read_file",
            "read_fil",
            "\"cache invalidation\"",
            "\"cache invalidation",
            "cache* -- :^ (broken",
        ] {
            assert!(finds(query, text), "{query}");
        }
        for query in [
            "cache missing",
            "cache OR missing",
            "ach",
            "\"invalidation cache\"",
            "\"cache invalid\"",
            "is_read",
            "",
            "\"\" -- *",
        ] {
            assert!(!finds(query, text), "{query}");
        }
        // Two letters find whole words only.
        assert!(finds("is", text) && !finds("br", text));
        assert!(finds("缓存", "的缓存了") && !finds("缓存", "存缓"));
    }

    #[test]
    fn term_is_found_at_its_first_place() {
        let terms = SearchTerms::parse("\"b c\"");
        let place = terms.iter().next().and_then(|it| it.find("a b b c b c"));
        assert_eq!(place, Some(4..7));
    }

    proptest! {
        #[test]
        fn any_query_searches_any_text(query in ".*", text in ".*") {
            finds(&query, &text);
        }
    }
}
