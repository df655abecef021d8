//! Tests that any split of the input bytes yields the same lines (TR-9, TR-10).

use crate::transport::reader::{InputBlock, non_blank_lines, read_blocks};
use proptest::prelude::*;
use std::io::{self, Read};

/// Reader that returns its bytes in chunks of these sizes, cyclically.
struct ChunkedReader<'a> {
    bytes: &'a [u8],
    sizes: Vec<usize>,
    next_size: usize,
}

impl Read for ChunkedReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.sizes[self.next_size % self.sizes.len()];
        self.next_size += 1;
        let count = size.min(self.bytes.len()).min(buffer.len());
        let (now, later) = self.bytes.split_at(count);
        buffer[..count].copy_from_slice(now);
        self.bytes = later;
        Ok(count)
    }
}

/// Returns the lines; `None` stands for a line that was too long.
fn read_lines(bytes: &[u8], sizes: &[usize], limit: usize) -> Vec<Option<String>> {
    let input = ChunkedReader {
        bytes,
        sizes: sizes.to_vec(),
        next_size: 0,
    };
    let mut out = Vec::new();
    read_blocks(input, limit, |block| {
        match block {
            InputBlock::LineTooLong => out.push(None),
            InputBlock::Lines(block) => out.extend(
                non_blank_lines(&block).map(|line| Some(String::from_utf8(line.to_vec()).unwrap())),
            ),
        }
        true
    });
    out
}

fn lines_of(lines: &[&str]) -> Vec<Option<String>> {
    lines.iter().map(|line| Some((*line).to_owned())).collect()
}

// proves: TR-10
#[test]
fn blank_lines_are_skipped_and_last_newline_optional() {
    assert_eq!(
        read_lines(b"\n\r\na\r\n\n  \nb\nc", &[3], 100),
        lines_of(&["a", "b", "c"])
    );
    assert_eq!(read_lines(b"", &[3], 100), lines_of(&[]));
}

#[test]
fn line_over_limit_is_skipped() {
    let expected = vec![Some("ok".to_owned()), None, Some("after".to_owned())];
    assert_eq!(read_lines(b"ok\n0123456789x\nafter\n", &[4], 10), expected);
    // A line at the limit is accepted.
    assert_eq!(
        read_lines(b"0123456789\n", &[4], 10),
        lines_of(&["0123456789"])
    );
    // The end of input within a long line: reported once.
    assert_eq!(read_lines(b"0123456789012345", &[4], 10), vec![None]);
}

proptest! {
    #[test]
    fn lines_do_not_depend_on_chunk_sizes(
        texts in prop::collection::vec("[a-zé☃]{1,12}", 0..12),
        sizes in prop::collection::vec(1usize..9, 1..5),
    ) {
        let joined = texts.join("\n");
        let expected: Vec<_> = texts.into_iter().map(Some).collect();
        prop_assert_eq!(read_lines(joined.as_bytes(), &sizes, 1000), expected);
    }
}
