//! Collects the words of consecutive loops in chunks, each a row of an index.

use super::words::for_each_word;

/// Size from which a chunk takes no further loop. Unit: bytes.
pub(crate) const CHUNK_BYTES: usize = 32 << 10;

/// Size at which a chunk is cut within a text, below the largest tsvector. Unit: bytes.
const MAX_CHUNK_BYTES: usize = 512 << 10;

/// End of a cut chunk that the next one repeats, so that no phrase of this length is cut. Unit: bytes.
const OVERLAP_BYTES: usize = 32 << 10;

/// Separates texts within a chunk: no phrase goes on in another text.
const TEXT_END: &str = "\n ";

/// Words of consecutive loops of one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SearchChunk {
    pub(crate) first_loop: i64,
    pub(crate) last_loop: i64,
    /// Words in lower case, each between two spaces, with a line feed in place of a word between two texts.
    pub(crate) words: String,
}

impl SearchChunk {
    pub(crate) fn new(loop_key: i64) -> Self {
        Self {
            first_loop: loop_key,
            last_loop: loop_key,
            words: " ".to_owned(),
        }
    }

    /// Adds a text without cutting it.
    pub(crate) fn add_text(&mut self, text: &str) {
        for_each_word(text, |word, _| push_word(&mut self.words, word));
        self.words.push_str(TEXT_END);
    }
}

/// Chunks of the loops that are added, in their order.
#[derive(Default)]
pub(crate) struct ChunkBuilder {
    chunks: Vec<SearchChunk>,
    /// Number of chunks at the end with the same loops: more than one if a text was cut.
    open: usize,
}

impl ChunkBuilder {
    /// Adds a loop, whose key must be greater than those before.
    pub(crate) fn add_loop<'t>(&mut self, key: i64, texts: impl IntoIterator<Item = &'t str>) {
        let is_full = match self.chunks.last() {
            Some(chunk) => self.open > 1 || chunk.words.len() >= CHUNK_BYTES,
            None => true,
        };
        if is_full {
            self.chunks.push(SearchChunk::new(key));
            self.open = 1;
        }
        for text in texts {
            for_each_word(text, |word, _| self.push(word));
            if let Some(chunk) = self.chunks.last_mut() {
                chunk.words.push_str(TEXT_END);
            }
        }
        for chunk in self.chunks.iter_mut().rev().take(self.open) {
            chunk.last_loop = key;
        }
    }

    fn push(&mut self, word: &str) {
        let Some(chunk) = self.chunks.last_mut() else {
            return;
        };
        if chunk.words.len() >= MAX_CHUNK_BYTES {
            let mut next = SearchChunk::new(chunk.first_loop);
            let mut start = chunk.words.len().saturating_sub(OVERLAP_BYTES);
            while !chunk.words.is_char_boundary(start) {
                start += 1;
            }
            let tail = chunk.words.get(start..).unwrap_or_default();
            if let Some((_, whole)) = tail.split_once(' ') {
                next.words.push_str(whole);
            }
            push_word(&mut next.words, word);
            self.chunks.push(next);
            self.open += 1;
        } else {
            push_word(&mut chunk.words, word);
        }
    }

    pub(crate) fn finish(self) -> Vec<SearchChunk> {
        self.chunks
    }
}

fn push_word(words: &mut String, word: &str) {
    words.push_str(word);
    words.push(' ');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(loops: &[(i64, &[&str])]) -> Vec<SearchChunk> {
        let mut builder = ChunkBuilder::default();
        for (key, texts) in loops {
            builder.add_loop(*key, texts.iter().copied());
        }
        builder.finish()
    }

    #[test]
    fn small_loops_share_a_chunk() {
        let made = chunks(&[(3, &["Read it!", "Done."]), (8, &["缓存"]), (9, &[])]);
        let expected = SearchChunk {
            first_loop: 3,
            last_loop: 9,
            words: " read it \n done \n 缓 存 \n ".to_owned(),
        };
        assert_eq!(made, [expected]);
    }

    #[test]
    fn full_chunk_takes_no_further_loop() {
        let long = "word ".repeat(CHUNK_BYTES / 5 + 1);
        let made = chunks(&[(1, &["a"]), (2, &[&long]), (3, &["b"]), (4, &["c"])]);
        let loops: Vec<_> = made
            .iter()
            .map(|it| (it.first_loop, it.last_loop))
            .collect();
        assert_eq!(loops, [(1, 2), (3, 4)]);
    }

    #[test]
    fn phrase_at_a_cut_is_whole_in_one_chunk() {
        let numbers: Vec<String> = (0..300_000).map(|number| format!("ä{number}")).collect();
        let text = numbers.join(" ");
        let made = chunks(&[(1, &["a"]), (2, &[&text]), (3, &["b"])]);
        let (last, cut) = made.split_last().unwrap();
        assert_eq!((last.first_loop, last.words.as_str()), (3, " b \n "));
        assert!(cut.len() > 3);
        assert!(cut.iter().all(|it| (it.first_loop, it.last_loop) == (1, 2)));
        assert!(cut.iter().all(|it| it.words.len() < MAX_CHUNK_BYTES + 80));
        for chunk in cut {
            let last = chunk.words.split_whitespace().last().unwrap();
            let end: usize = last.trim_start_matches('ä').parse().unwrap();
            for start in (end.saturating_sub(400)..=end).step_by(25) {
                let phrase = numbers.iter().skip(start).take(100).cloned();
                let phrase = format!(" {} ", phrase.collect::<Vec<_>>().join(" "));
                assert!(cut.iter().any(|it| it.words.contains(&phrase)), "{phrase}");
            }
        }
    }
}
