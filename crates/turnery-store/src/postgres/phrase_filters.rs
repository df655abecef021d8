//! Keeps Bloom filters that tell which chunks cannot have a phrase, so that few texts are read for a rare one.
//!
//! The index of the server knows which words a chunk has, not where they are. A row of `search_filters` has the filters of
//! [`FILTER_CHUNKS`] chunks: the pairs and triples of words that follow each other. The filters are stored bit by bit, one
//! slice for the same bit of all of them, so that a search reads three slices for each pair or triple of its phrase.
//!
//! Only searches for phrases write filters, once there are enough chunks without one. Chunks without a filter, and those of
//! titles, are read by every search for a phrase whose words they have.

use super::{
    connection::Connection,
    engine::{CALL_TIMEOUT, Shared},
    pg_error::PgError,
    rows::Columns,
};
use crate::{StoreError, search::SearchTerm};
use std::time::Duration;

/// Number of chunks whose filters are one row.
const FILTER_CHUNKS: usize = 256;

/// Size of a slice: one bit for each chunk.
const SLICE_BYTES: usize = FILTER_CHUNKS / 8;

/// Bits of a filter for each byte of an average chunk: about nine for each pair and triple.
const BITS_PER_BYTE: usize = 3;

/// Largest number of bits of a filter.
const MAX_BITS: usize = 1 << 17;

/// Chunks whose words are read at once.
const READ_CHUNKS: usize = 64;

/// Timeout of adding a row, which may have 4 MiB.
const ADD_TIMEOUT: Duration = Duration::from_secs(60);

/// Longest sequence of words that is in a filter.
const MAX_GRAM: usize = 3;

/// Chunks of texts without a filter, as many as fill rows. None for a role that sees the chunks of other owners: their
/// filters belong to themselves.
const SELECT_UNFILTERED: &str = "WITH unfiltered AS MATERIALIZED ( \
         SELECT c.chunk, octet_length(c.words)::bigint AS size FROM search_chunks c \
         WHERE c.first_loop > 0 AND NOT EXISTS ( \
             SELECT FROM search_filters f CROSS JOIN LATERAL unnest(f.chunks) AS u (chunk) WHERE u.chunk = c.chunk)) \
     SELECT chunk, size FROM unfiltered WHERE row_security_active('search_filters') \
         OR NOT (SELECT relrowsecurity FROM pg_class WHERE oid = 'search_filters'::regclass) \
     ORDER BY chunk LIMIT (SELECT count(*) / 256 * 256 FROM unfiltered)";

/// Deletes rows most of whose chunks have been replaced, since their sessions have gone on, and those of sessions that an
/// earlier version has deleted.
const DELETE_OUTDATED: &str = "DELETE FROM search_filters f WHERE 2 * ( \
         SELECT count(*) FROM search_chunks c WHERE c.chunk = ANY (f.chunks)) < cardinality(f.chunks) \
     OR EXISTS (SELECT FROM unnest(f.sessions) AS u (id) \
         WHERE NOT EXISTS (SELECT FROM sessions s WHERE s.session_id = u.id))";

const SELECT_WORDS: &str = "SELECT chunk, words FROM search_chunks WHERE chunk = ANY ($1)";

/// Adds a row, unless one of its chunks is gone. Sessions are locked, so that a deletion waits, and then deletes the row too.
const ADD_FILTERS: &str = "INSERT INTO search_filters (sessions, chunks, bits) \
     SELECT array_agg(DISTINCT c.session_id), $1::bigint[], $2::bytea FROM ( \
         SELECT c.session_id FROM search_chunks c JOIN sessions s ON s.session_id = c.session_id \
         WHERE c.chunk = ANY ($1) FOR KEY SHARE OF s) AS c \
     HAVING count(*) = cardinality($1) ON CONFLICT DO NOTHING";

/// Filters of up to [`FILTER_CHUNKS`] chunks, slice by slice.
struct Filters {
    bits: Vec<u8>,
    /// Number of slices.
    size: usize,
}

impl Filters {
    /// Creates empty filters for chunks of these sizes. Unit: bytes.
    fn new(chunk_sizes: &[usize]) -> Self {
        let total: usize = chunk_sizes.iter().sum();
        let average = total / chunk_sizes.len().max(1);
        let size = (average * BITS_PER_BYTE).clamp(1, MAX_BITS);
        Self {
            bits: vec![0; size * SLICE_BYTES],
            size,
        }
    }

    /// Adds the words of the chunk at this position.
    fn add(&mut self, position: usize, words: &str) {
        // The starts of the last words of the text.
        let mut starts = Vec::with_capacity(MAX_GRAM);
        let mut start = 0;
        for word in words.split(' ') {
            let end = start + word.len();
            match word {
                "" | "\n" => starts.clear(),
                _ => {
                    for first in &starts {
                        let gram = words.get(*first..end).unwrap_or_default();
                        self.set(position, gram);
                    }
                    if starts.len() == MAX_GRAM - 1 {
                        starts.remove(0);
                    }
                    starts.push(start);
                }
            }
            start = end + 1;
        }
    }

    fn set(&mut self, position: usize, gram: &str) {
        for hash in hashes(gram) {
            let slice = hash as usize % self.size;
            // As in a bit string of the server: the first bit of a byte is its highest.
            if let Some(byte) = self.bits.get_mut(slice * SLICE_BYTES + position / 8) {
                *byte |= 0x80 >> (position % 8);
            }
        }
    }
}

/// Returns the hashes of a pair or triple of words, which stay the same in all versions. A filter with `n` bits has the bits
/// `hash % n`.
fn hashes(gram: &str) -> [u32; 3] {
    let hash = crc32fast::hash(gram.as_bytes());
    // The mixing function of SplitMix64.
    let mixed = u64::from(hash).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let mixed = mixed ^ (mixed >> 31);
    [hash, (mixed >> 32) as u32, mixed as u32]
}

/// Hashes of the pairs and triples of phrases, each with the position of its term, counted from 1.
#[derive(Default)]
pub(super) struct PhraseHashes {
    pub(super) places: Vec<i64>,
    pub(super) hashes: Vec<i64>,
}

impl PhraseHashes {
    pub(super) fn new<'t>(terms: impl IntoIterator<Item = &'t SearchTerm>) -> Self {
        let mut all = Self::default();
        for (place, term) in (1..).zip(terms) {
            // The rest of the last word is unknown.
            let known = match (term.is_prefix, term.words.split_last()) {
                (true, Some((_, before))) => before,
                (true, None) | (false, _) => &term.words,
            };
            let grams = (2..=MAX_GRAM).flat_map(|len| known.windows(len));
            for hash in grams.flat_map(|words| hashes(&words.join(" "))) {
                all.places.push(place);
                all.hashes.push(hash.into());
            }
        }
        all
    }

    pub(super) fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }
}

/// Adds filters of chunks that have none, if there are enough.
pub(super) async fn update(shared: &Shared) -> Result<(), StoreError> {
    let mut chunks = shared.run(CALL_TIMEOUT, select_unfiltered).await?;
    if chunks.is_empty() {
        return Ok(());
    }
    let deleted = shared.run(CALL_TIMEOUT, async |connection| {
        connection.execute(DELETE_OUTDATED, &[]).await
    });
    if deleted.await? > 0 {
        chunks = shared.run(CALL_TIMEOUT, select_unfiltered).await?;
    }
    for chunks in chunks.chunks(FILTER_CHUNKS) {
        let ids: Vec<i64> = chunks.iter().map(|(id, _)| *id).collect();
        let sizes: Vec<usize> = chunks.iter().map(|(_, size)| *size).collect();
        let filters = filters_of(shared, &ids, Filters::new(&sizes)).await?;
        // Nothing is added if a session was deleted, or another search was faster: later searches go on.
        let added = shared.run(ADD_TIMEOUT, async |connection| {
            connection
                .execute(ADD_FILTERS, &[&ids, &filters.bits])
                .await
        });
        added.await?;
    }
    Ok(())
}

/// Adds the words of chunks, in this order, to empty filters.
async fn filters_of(
    shared: &Shared,
    ids: &[i64],
    mut filters: Filters,
) -> Result<Filters, StoreError> {
    for (part, ids) in ids.chunks(READ_CHUNKS).enumerate() {
        let words = shared.run(CALL_TIMEOUT, async |connection| {
            let rows = connection.query(SELECT_WORDS, &[&ids]).await?;
            let words = rows.iter().map(|row| {
                let row = Columns(row);
                let id = row.integer(0)?;
                let position = ids.iter().position(|it| *it == id).unwrap_or_default();
                Ok((part * READ_CHUNKS + position, row.text(1)?.to_owned()))
            });
            words.collect::<Result<Vec<_>, PgError>>()
        });
        let words = words.await?;
        // Takes longer than the reading, and must not delay the commits on this thread.
        let added = tokio::task::spawn_blocking(move || {
            for (position, words) in words {
                filters.add(position, &words);
            }
            filters
        });
        filters = added.await.map_err(|error| {
            PgError::Unusable(error.to_string()).into_store_error(&shared.pool.address)
        })?;
    }
    Ok(filters)
}

/// Returns the chunks without a filter, each with the size of its words.
async fn select_unfiltered(connection: &Connection) -> Result<Vec<(i64, usize)>, PgError> {
    let rows = connection.query(SELECT_UNFILTERED, &[]).await?;
    let chunks = rows.iter().map(|row| {
        let row = Columns(row);
        Ok((row.integer(0)?, row.count(1)? as usize))
    });
    chunks.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{SearchTerms, chunks::SearchChunk};
    use proptest::prelude::*;

    fn hashes_of(query: &str) -> Vec<i64> {
        PhraseHashes::new(SearchTerms::parse(query).iter()).hashes
    }

    /// Returns true if the filter of the chunk at this position does not exclude the phrase.
    fn may_have(filters: &Filters, position: usize, phrase: &str) -> bool {
        let hashes = hashes_of(&format!("\"{phrase}\""));
        hashes.iter().all(|hash| {
            let slice = usize::try_from(*hash).unwrap() % filters.size;
            let byte = filters.bits[slice * SLICE_BYTES + position / 8];
            byte & (0x80 >> (position % 8)) != 0
        })
    }

    /// Computed by Python, with `zlib.crc32`. Stored filters depend on them.
    #[test]
    fn hashes_stay_the_same() {
        assert_eq!(
            hashes("read file"),
            [1_927_912_759, 839_258_938, 3_244_281_925]
        );
        assert_eq!(
            hashes("the quick fox"),
            [414_097_402, 484_479_066, 1_852_052_266]
        );
        assert_eq!(
            hashes("缓 存"),
            [1_252_240_782, 2_342_095_544, 1_069_289_745]
        );
    }

    #[test]
    fn phrase_has_the_hashes_of_its_pairs_and_triples() {
        let of = |grams: &[&str]| -> Vec<i64> {
            let all = grams.iter().flat_map(|gram| hashes(gram));
            all.map(i64::from).collect()
        };
        assert_eq!(hashes_of("\"one two\""), of(&["one two"]));
        assert_eq!(
            hashes_of("\"one two three\""),
            of(&["one two", "two three", "one two three"])
        );
        // The last word may be longer in the text.
        assert_eq!(hashes_of("one_two_three"), of(&["one two"]));
        assert_eq!(hashes_of("one two"), [0; 0]);
        let terms = SearchTerms::parse("one \"two three\"");
        assert_eq!(PhraseHashes::new(terms.iter()).places, [2, 2, 2]);
    }

    proptest! {
        #[test]
        fn no_phrase_of_a_text_is_excluded(
            texts in prop::collection::vec("([a-c]{1,2} ){0,12}", 1..5),
            position in 0..FILTER_CHUNKS,
            start in 0..12_usize,
            len in 2..6_usize,
        ) {
            let mut chunk = SearchChunk::new(1);
            for text in &texts {
                chunk.add_text(text);
            }
            let mut filters = Filters::new(&[chunk.words.len()]);
            filters.add(position, &chunk.words);
            for text in &texts {
                let words: Vec<&str> = text.split_whitespace().skip(start).take(len).collect();
                if words.len() > 1 {
                    prop_assert!(may_have(&filters, position, &words.join(" ")));
                }
            }
        }
    }

    #[test]
    fn most_phrases_of_other_texts_are_excluded() {
        let mut chunk = SearchChunk::new(1);
        let numbers: Vec<String> = (1000..6000_u32)
            .map(|number| (number * 7919 % 9973).to_string())
            .collect();
        chunk.add_text(&numbers.join(" "));
        let mut filters = Filters::new(&[chunk.words.len()]);
        filters.add(1, &chunk.words);
        let others = (0..1000).map(|number| format!("{number} x{number}"));
        let passed = others.filter(|pair| may_have(&filters, 1, pair)).count();
        // Of numbers, no pair or triple of which comes twice.
        assert!((1..60).contains(&passed), "{passed}");
        // Beside the only chunk.
        assert!(!may_have(&filters, 0, &numbers[..2].join(" ")));
    }
}
