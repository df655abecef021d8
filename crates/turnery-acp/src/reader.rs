//! Reader: a thread that reads stdin in large blocks and hands on whole lines.
//!
//! A thread of its own, because stdin may be a pipe, a file or a terminal, and because a reader
//! that waits for nothing else can never be the reason that a cancel is not heard.

use crate::bounds::{LINE_LIMIT, READ_BLOCK, READ_QUEUE};
use std::{
    io::{self, Read},
    thread,
};
use tokio::sync::mpsc;

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Block {
    /// Whole lines. Only the last one of the input may lack its newline.
    Lines(Vec<u8>),
    /// A line was longer than the limit; it was skipped.
    TooLong,
}

/// Read `input` to its end. The queue closes when there is no more.
pub(crate) fn spawn(input: impl Read + Send + 'static) -> io::Result<mpsc::Receiver<Block>> {
    let (sender, receiver) = mpsc::channel(READ_QUEUE);
    thread::Builder::new()
        .name("acp-stdin".to_owned())
        .spawn(move || {
            read_all(input, LINE_LIMIT, |block| {
                sender.blocking_send(block).is_ok()
            });
        })?;
    Ok(receiver)
}

/// Cut `input` into blocks of whole lines for `send`, until either has enough.
pub(crate) fn read_all(mut input: impl Read, limit: usize, mut send: impl FnMut(Block) -> bool) {
    let mut held: Vec<u8> = Vec::new();
    let mut skipping = false;
    loop {
        let start = held.len();
        held.resize(start + READ_BLOCK, 0);
        let count = match input.read(&mut held[start..]) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                held.truncate(start);
                continue;
            }
            Err(error) => {
                tracing::warn!(%error, "stdin cannot be read");
                0
            }
        };
        held.truncate(start + count);
        if count == 0 {
            if !skipping && !held.is_empty() {
                send(Block::Lines(held));
            }
            return;
        }
        if skipping {
            match held.iter().position(|byte| *byte == b'\n') {
                Some(end) => {
                    held.drain(..=end);
                    skipping = false;
                }
                None => {
                    held.clear();
                    continue;
                }
            }
        }
        let mut fresh = start.min(held.len());
        let first = held[fresh..].iter().position(|byte| *byte == b'\n');
        if let Some(end) = first.map(|end| fresh + end)
            && end > limit
        {
            held.drain(..=end);
            fresh = 0;
            if !send(Block::TooLong) {
                return;
            }
        }
        if let Some(end) = held[fresh..].iter().rposition(|byte| *byte == b'\n') {
            let rest = held.split_off(fresh + end + 1);
            if !send(Block::Lines(std::mem::replace(&mut held, rest))) {
                return;
            }
        } else if held.len() > limit {
            held = Vec::new();
            skipping = true;
            if !send(Block::TooLong) {
                return;
            }
        }
    }
}

/// The lines of a block that are not blank (TR-10).
pub(crate) fn lines(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    block
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .filter(|line| !line.is_empty())
}
