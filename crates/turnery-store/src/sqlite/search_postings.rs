//! Encodes the places of words in compact form: numbers of variable length, each as its difference to the one before.

use std::collections::HashMap;

/// Appends a number, seven bits a byte, the lowest first.
pub(super) fn push_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a number from the front; `None` at the end, or if it is malformed.
fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Places of the words of a segment.
#[derive(Default)]
pub(super) struct Postings {
    words: HashMap<Box<str>, Vec<(i64, u64)>>,
    /// Size of the texts.
    pub(super) text_bytes: usize,
}

impl Postings {
    /// Adds a place. Parts and the places within one must be added in ascending order.
    pub(super) fn add(&mut self, word: &str, part: i64, place: u64) {
        match self.words.get_mut(word) {
            Some(places) => places.push((part, place)),
            None => {
                self.words.insert(word.into(), vec![(part, place)]);
            }
        }
    }

    /// Returns the words in order, each with its encoded places.
    pub(super) fn into_sorted(self) -> impl Iterator<Item = (Box<str>, Vec<u8>)> {
        let mut words: Vec<_> = self.words.into_iter().collect();
        words.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        words
            .into_iter()
            .map(|(word, places)| (word, encode(&places)))
    }

    /// Reads encoded places: the parts, each with its places.
    pub(super) fn read(mut bytes: &[u8]) -> impl Iterator<Item = (i64, Places<'_>)> {
        let mut part = 0_i64;
        std::iter::from_fn(move || {
            part = part.checked_add_unsigned(take_number(&mut bytes)?)?;
            let len = usize::try_from(take_number(&mut bytes)?).ok()?;
            let (places, rest) = bytes.split_at_checked(len)?;
            bytes = rest;
            Some((
                part,
                Places {
                    bytes: places,
                    last: 0,
                },
            ))
        })
    }
}

fn encode(places: &[(i64, u64)]) -> Vec<u8> {
    let (mut out, mut encoded) = (Vec::new(), Vec::new());
    let mut last_part = 0;
    for part in places.chunk_by(|(a, _), (b, _)| a == b) {
        let mut last = 0;
        for (_, place) in part {
            push_number(&mut encoded, place.wrapping_sub(last));
            last = *place;
        }
        let number = part.first().map_or(0, |(number, _)| *number);
        push_number(&mut out, number.abs_diff(last_part));
        push_number(&mut out, encoded.len() as u64);
        out.append(&mut encoded);
        last_part = number;
    }
    out
}

/// Places of a word in a part, ascending.
pub(super) struct Places<'a> {
    bytes: &'a [u8],
    last: u64,
}

impl Iterator for Places<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.last = self.last.checked_add(take_number(&mut self.bytes)?)?;
        Some(self.last)
    }
}

/// Loops of a part, each with its number of places.
#[derive(Default)]
pub(super) struct PartList {
    bytes: Vec<u8>,
    last: i64,
    places: u64,
}

impl PartList {
    /// Returns the number of places of all loops.
    pub(super) fn places(&self) -> u64 {
        self.places
    }

    /// Adds a loop, whose key must be greater than those before.
    pub(super) fn push(&mut self, key: i64, places: u64) {
        push_number(&mut self.bytes, key.abs_diff(self.last));
        push_number(&mut self.bytes, places);
        self.last = key;
        self.places += places;
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(super) fn read(mut bytes: &[u8]) -> impl Iterator<Item = (i64, u64)> {
        let mut key = 0_i64;
        std::iter::from_fn(move || {
            key = key.checked_add_unsigned(take_number(&mut bytes)?)?;
            Some((key, take_number(&mut bytes)?))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_are_read_back(numbers in prop::collection::vec(any::<u64>(), 0..20)) {
            let mut bytes = Vec::new();
            for number in &numbers {
                push_number(&mut bytes, *number);
            }
            let mut rest = bytes.as_slice();
            let read: Vec<u64> = std::iter::from_fn(|| take_number(&mut rest)).collect();
            prop_assert_eq!(read, numbers);
        }

        #[test]
        fn damaged_places_end_early(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            for (_, places) in Postings::read(&bytes) {
                places.count();
            }
            PartList::read(&bytes).count();
        }
    }

    #[test]
    fn places_are_read_back_by_part() {
        let mut postings = Postings::default();
        for (word, part, place) in [("b", 3, 0), ("a", 3, 1), ("b", 3, 500), ("b", 900, 7)] {
            postings.add(word, part, place);
        }
        let encoded: Vec<(Box<str>, Vec<u8>)> = postings.into_sorted().collect();
        let words: Vec<&str> = encoded.iter().map(|(word, _)| &**word).collect();
        assert_eq!(words, ["a", "b"]);
        let read = |index: usize| -> Vec<(i64, Vec<u64>)> {
            let parts = Postings::read(&encoded[index].1);
            parts
                .map(|(part, places)| (part, places.collect()))
                .collect()
        };
        assert_eq!(read(0), [(3, vec![1])]);
        assert_eq!(read(1), [(3, vec![0, 500]), (900, vec![7])]);
    }

    #[test]
    fn loops_of_a_part_are_read_back() {
        let mut list = PartList::default();
        list.push(7, 3);
        list.push(2000, 1);
        assert_eq!(list.places(), 4);
        let bytes = list.into_bytes();
        assert_eq!(
            PartList::read(&bytes).collect::<Vec<_>>(),
            [(7, 3), (2000, 1)]
        );
    }
}
