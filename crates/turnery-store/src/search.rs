//! Finds sessions by words of their titles, prompts and answers.

#[cfg(feature = "postgres")]
pub(crate) mod chunks;
pub(crate) mod scan;
mod words;

pub(crate) use words::{SearchTerm, SearchTerms, for_each_word};

use crate::{ListQuery, SessionInfo};
use std::ops::Range;
use turnery_engine::{Content, LlmMessage, Message};

/// Number of sessions in a page of [`Store::search`](crate::Store::search) if the query sets no limit.
pub const SEARCH_PAGE_SIZE: usize = 20;

/// Text before a match in a snippet. Unit: characters.
const SNIPPET_BEFORE: usize = 40;

/// Text of a snippet from the match on. Unit: characters.
const SNIPPET_AFTER: usize = 80;

/// Query of [`Store::search`](crate::Store::search).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchQuery {
    /// Words that a session must all have in its title, a prompt or an answer, in any order and case. A word also finds
    /// longer words that start with it, from three characters on. Words in quotes must follow each other. All other
    /// punctuation separates words, so no text is invalid; a text without words finds nothing.
    pub text: String,
    /// Sessions to search in, and the page of the result.
    pub list: ListQuery,
}

/// Session found by a search.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchHit {
    /// The session.
    pub session: SessionInfo,
    /// Text around the first place of the conversation that has the first word, in one line. `None` if the
    /// conversation has none of the words, so that they are in the title.
    pub snippet: Option<String>,
}

/// A page of found sessions, most recently active first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchPage {
    /// Sessions of the page.
    pub hits: Vec<SearchHit>,
    /// Cursor of the next page, for [`ListQuery::cursor`]; `None` at the end.
    pub next_cursor: Option<String>,
}

/// Returns the number of sessions of a page.
pub(crate) fn page_size(query: &ListQuery) -> usize {
    match query.limit {
        0 => SEARCH_PAGE_SIZE,
        limit => limit,
    }
}

/// Returns the texts of a message that a search reads: those of prompts and answers.
pub(crate) fn searched_texts(message: &LlmMessage) -> impl Iterator<Item = &str> {
    let content: &[Content] = match &message.message {
        Message::User { content } | Message::Assistant { content, .. } => content,
        Message::System { .. } | Message::ToolResult { .. } => &[],
    };
    content.iter().filter_map(|item| match item {
        Content::Text { text } => Some(text.as_str()),
        Content::Image(_)
        | Content::Audio(_)
        | Content::Document(_)
        | Content::Thinking { .. }
        | Content::ToolCall(_)
        | Content::Opaque { .. } => None,
    })
}

/// Returns the text around a match in one line.
pub(crate) fn snippet(text: &str, range: Range<usize>) -> String {
    let (before, rest) = text.split_at_checked(range.start).unwrap_or(("", text));
    let start = match before.char_indices().rev().nth(SNIPPET_BEFORE) {
        // From the next whole word on.
        Some((cut, _)) => {
            let words = before.get(cut..).unwrap_or_default();
            let skipped = words.find(char::is_whitespace).unwrap_or_default();
            words.get(skipped..).unwrap_or_default()
        }
        None => before,
    };
    let end = match rest.char_indices().nth(SNIPPET_AFTER) {
        Some((cut, _)) => rest.get(..cut).unwrap_or_default(),
        None => rest,
    };
    let mut line = String::new();
    if start.len() < before.len() {
        line.push('…');
    }
    for word in [start, end].concat().split_whitespace() {
        if !line.is_empty() && !line.ends_with('…') {
            line.push(' ');
        }
        line.push_str(word);
    }
    if end.len() < rest.len() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snippet_is_one_line_around_the_match() {
        assert_eq!(snippet("one\n\n two  three", 6..9), "one two three");
        let long = format!("{} needle {}", "before ".repeat(20), "after ".repeat(30));
        let place = long.find("needle").unwrap();
        let cut = snippet(&long, place..place + 6);
        assert_eq!(
            cut,
            "…before before before before before needle after after after after after after after \
             after after after after after a…"
        );
    }

    #[test]
    fn snippet_cuts_between_characters() {
        let text = "ä".repeat(300);
        let cut = snippet(&text, 200..202);
        assert!(cut.ends_with('…') && cut.chars().all(|it| it == 'ä' || it == '…'));
    }
}
