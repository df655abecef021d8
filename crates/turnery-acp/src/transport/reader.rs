//! Reads newline-delimited JSON-RPC from stdin in large blocks, with a limit on line length.
//!
//! A pipe is read asynchronously, without a thread to wake; a file, socket or terminal is read by a dedicated
//! thread. The reader never waits for anything else, so it never delays a cancel.

use crate::{
    limits::{LINE_LIMIT, READ_BLOCK, READ_QUEUE},
    transport::stdio::Input,
};
use memchr::{memchr, memchr_iter, memrchr};
use std::{
    collections::VecDeque,
    io::{self, Read},
    iter, thread,
};
use tokio::{io::AsyncReadExt, net::unix::pipe, sync::mpsc};
use tokio_util::task::AbortOnDropHandle;

/// Block of input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum InputBlock {
    /// Whole lines. Only the last line of the input may lack its newline.
    Lines(Vec<u8>),
    /// A line longer than the limit was skipped.
    LineTooLong,
}

/// Handle of a running reader. Dropping it stops reading.
pub(crate) struct LineReader {
    /// Blocks of input; closed at the end of input.
    pub(crate) blocks: mpsc::Receiver<InputBlock>,
    _task: Option<AbortOnDropHandle<()>>,
}

/// Starts reading `input` to its end.
pub(crate) fn spawn(input: Input) -> io::Result<LineReader> {
    let (sender, blocks) = mpsc::channel(READ_QUEUE);
    let task = match input {
        Input::Pipe(pipe) => Some(AbortOnDropHandle::new(tokio::spawn(read_pipe(
            pipe, sender,
        )))),
        Input::Other(input) => {
            thread::Builder::new()
                .name("acp-stdin".to_owned())
                .spawn(move || {
                    read_blocks(input, LINE_LIMIT, |block| {
                        sender.blocking_send(block).is_ok()
                    });
                })?;
            None
        }
    };
    Ok(LineReader {
        blocks,
        _task: task,
    })
}

async fn read_pipe(mut pipe: pipe::Receiver, sender: mpsc::Sender<InputBlock>) {
    let mut splitter = LineSplitter::new(LINE_LIMIT);
    loop {
        let read = pipe.read_buf(splitter.spare_capacity()).await;
        let more = splitter.accept_read(read);
        while let Some(block) = splitter.next_block() {
            if sender.send(block).await.is_err() {
                return;
            }
        }
        if !more {
            return;
        }
    }
}

/// Splits `input` into blocks of whole lines, until the end of input or until `send` returns false.
pub(crate) fn read_blocks(
    mut input: impl Read,
    limit: usize,
    mut send: impl FnMut(InputBlock) -> bool,
) {
    let mut splitter = LineSplitter::new(limit);
    loop {
        let read = input.read(splitter.spare_slice());
        let more = splitter.accept_read(read);
        while let Some(block) = splitter.next_block() {
            if !send(block) {
                return;
            }
        }
        if !more {
            return;
        }
    }
}

/// Splits input into blocks of whole lines.
struct LineSplitter {
    limit: usize,
    buffer: Vec<u8>,
    /// Length of `buffer` before the last read.
    read_start: usize,
    skipping: bool,
    ready: VecDeque<InputBlock>,
}

impl LineSplitter {
    fn new(limit: usize) -> Self {
        Self {
            limit,
            buffer: Vec::new(),
            read_start: 0,
            skipping: false,
            ready: VecDeque::new(),
        }
    }

    /// Reserves space and returns the buffer to append the next bytes to. Call [`Self::accept_read`]
    /// afterwards.
    fn spare_capacity(&mut self) -> &mut Vec<u8> {
        self.read_start = self.buffer.len();
        if self.buffer.capacity() - self.read_start < READ_BLOCK / 2 {
            self.buffer.reserve(READ_BLOCK);
        }
        &mut self.buffer
    }

    /// Returns space as initialised bytes to overwrite, for `std::io::Read`.
    fn spare_slice(&mut self) -> &mut [u8] {
        self.read_start = self.buffer.len();
        self.buffer.resize(self.read_start + READ_BLOCK, 0);
        &mut self.buffer[self.read_start..]
    }

    fn truncate_to_read(&mut self, count: usize) {
        self.buffer.truncate(self.read_start + count);
    }

    fn next_block(&mut self) -> Option<InputBlock> {
        self.ready.pop_front()
    }

    /// Processes the result of a read. Returns false at the end of input.
    fn accept_read(&mut self, read: io::Result<usize>) -> bool {
        let count = match read {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                self.truncate_to_read(0);
                return true;
            }
            Err(error) => {
                tracing::warn!(%error, "stdin cannot be read");
                0
            }
        };
        self.truncate_to_read(count);
        if count == 0 {
            if !self.skipping && !self.buffer.is_empty() {
                self.ready
                    .push_back(InputBlock::Lines(std::mem::take(&mut self.buffer)));
            }
            return false;
        }
        self.split_lines();
        true
    }

    /// Splits off the first `count` bytes. Small pieces are copied so that the buffer keeps its capacity.
    fn split_off_front(&mut self, count: usize) -> Vec<u8> {
        if count < READ_BLOCK / 8 {
            return self.buffer.drain(..count).collect();
        }
        let rest = self.buffer.split_off(count);
        std::mem::replace(&mut self.buffer, rest)
    }

    fn split_lines(&mut self) {
        if self.skipping {
            match memchr(b'\n', &self.buffer) {
                Some(end) => {
                    self.buffer.drain(..=end);
                    self.skipping = false;
                }
                None => return self.buffer.clear(),
            }
        }
        let mut fresh = self.read_start.min(self.buffer.len());
        if let Some(end) = memchr(b'\n', &self.buffer[fresh..]).map(|end| fresh + end)
            && end > self.limit
        {
            self.buffer.drain(..=end);
            self.buffer.shrink_to(READ_BLOCK);
            fresh = 0;
            self.ready.push_back(InputBlock::LineTooLong);
        }
        if let Some(end) = memrchr(b'\n', &self.buffer[fresh..]) {
            let lines = self.split_off_front(fresh + end + 1);
            self.ready.push_back(InputBlock::Lines(lines));
        } else if self.buffer.len() > self.limit {
            self.buffer = Vec::new();
            self.skipping = true;
            self.ready.push_back(InputBlock::LineTooLong);
        }
    }
}

/// Returns the lines of a block that are not blank, trimmed (TR-10).
pub(crate) fn non_blank_lines(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut start = 0;
    let ends = memchr_iter(b'\n', block).chain(iter::once(block.len()));
    let lines = ends.map(move |end| {
        let line = &block[start..end];
        start = end + 1;
        line.trim_ascii()
    });
    lines.filter(|line| !line.is_empty())
}
