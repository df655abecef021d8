//! Cutting input into lines: any split of the bytes gives the same lines (TR-9, TR-10).

use crate::reader::{Block, lines, read_all};
use proptest::prelude::*;
use std::io::{self, Read};

/// Gives its bytes in pieces of these sizes, over and over.
struct Pieces<'a> {
    bytes: &'a [u8],
    sizes: Vec<usize>,
    turn: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.sizes[self.turn % self.sizes.len()];
        self.turn += 1;
        let count = size.min(self.bytes.len()).min(buffer.len());
        let (now, later) = self.bytes.split_at(count);
        buffer[..count].copy_from_slice(now);
        self.bytes = later;
        Ok(count)
    }
}

/// The lines that come out; `None` stands for one that was too long.
fn read(bytes: &[u8], sizes: &[usize], limit: usize) -> Vec<Option<String>> {
    let input = Pieces {
        bytes,
        sizes: sizes.to_vec(),
        turn: 0,
    };
    let mut out = Vec::new();
    read_all(input, limit, |block| {
        match block {
            Block::TooLong => out.push(None),
            Block::Lines(block) => out
                .extend(lines(&block).map(|line| Some(String::from_utf8(line.to_vec()).unwrap()))),
        }
        true
    });
    out
}

fn some(lines: &[&str]) -> Vec<Option<String>> {
    lines.iter().map(|line| Some((*line).to_owned())).collect()
}

// proves: TR-10
#[test]
fn blank_lines_and_carriage_returns_are_nothing_and_the_last_line_needs_no_newline() {
    assert_eq!(
        read(b"\n\r\na\r\n\n  \nb\nc", &[3], 100),
        some(&["a", "b", "c"])
    );
    assert_eq!(read(b"", &[3], 100), some(&[]));
}

#[test]
fn a_line_over_the_limit_is_skipped_to_its_newline() {
    let expected = vec![Some("ok".to_owned()), None, Some("after".to_owned())];
    assert_eq!(read(b"ok\n0123456789x\nafter\n", &[4], 10), expected);
    // At the limit it still goes through.
    assert_eq!(read(b"0123456789\n", &[4], 10), some(&["0123456789"]));
    // The end of input in the middle of one: it was reported once.
    assert_eq!(read(b"0123456789012345", &[4], 10), vec![None]);
}

proptest! {
    #[test]
    fn the_split_does_not_matter(
        texts in prop::collection::vec("[a-zé☃]{1,12}", 0..12),
        sizes in prop::collection::vec(1usize..9, 1..5),
    ) {
        let joined = texts.join("\n");
        let expected: Vec<_> = texts.into_iter().map(Some).collect();
        prop_assert_eq!(read(joined.as_bytes(), &sizes, 1000), expected);
    }
}
