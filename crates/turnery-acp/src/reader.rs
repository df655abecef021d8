//! Reader: reads stdin in large blocks and hands on whole lines.
//!
//! A pipe is read by the runtime itself, without a thread to wake; a file, a socket or a terminal by a
//! thread of its own. Either way the reader waits for nothing else, so it is never the reason that a
//! cancel is not heard.

use crate::{
    bounds::{LINE_LIMIT, READ_BLOCK, READ_QUEUE},
    stdio::Input,
};
use memchr::{memchr, memchr_iter, memrchr};
use std::{
    collections::VecDeque,
    io::{self, Read},
    iter, thread,
};
use tokio::{io::AsyncReadExt, net::unix::pipe, sync::mpsc};
use tokio_util::task::AbortOnDropHandle;

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Block {
    /// Whole lines. Only the last one of the input may lack its newline.
    Lines(Vec<u8>),
    /// A line was longer than the limit; it was skipped.
    TooLong,
}

/// The lines to come. Dropped, it reads no more.
pub(crate) struct Reader {
    /// What was read; closes when there is no more.
    pub(crate) blocks: mpsc::Receiver<Block>,
    _task: Option<AbortOnDropHandle<()>>,
}

/// Read `input` to its end.
pub(crate) fn spawn(input: Input) -> io::Result<Reader> {
    let (sender, blocks) = mpsc::channel(READ_QUEUE);
    let task = match input {
        Input::Pipe(pipe) => Some(AbortOnDropHandle::new(tokio::spawn(read_pipe(
            pipe, sender,
        )))),
        Input::Other(input) => {
            thread::Builder::new()
                .name("acp-stdin".to_owned())
                .spawn(move || {
                    read_all(input, LINE_LIMIT, |block| {
                        sender.blocking_send(block).is_ok()
                    });
                })?;
            None
        }
    };
    Ok(Reader {
        blocks,
        _task: task,
    })
}

async fn read_pipe(mut pipe: pipe::Receiver, sender: mpsc::Sender<Block>) {
    let mut cutter = Cutter::new(LINE_LIMIT);
    loop {
        let read = pipe.read_buf(cutter.space()).await;
        let more = cutter.read(read);
        while let Some(block) = cutter.next() {
            if sender.send(block).await.is_err() {
                return;
            }
        }
        if !more {
            return;
        }
    }
}

/// Cut `input` into blocks of whole lines for `send`, until either has enough.
pub(crate) fn read_all(mut input: impl Read, limit: usize, mut send: impl FnMut(Block) -> bool) {
    let mut cutter = Cutter::new(limit);
    loop {
        let read = input.read(cutter.room());
        let more = cutter.read(read);
        while let Some(block) = cutter.next() {
            if !send(block) {
                return;
            }
        }
        if !more {
            return;
        }
    }
}

/// Cuts what was read into blocks of whole lines.
struct Cutter {
    limit: usize,
    held: Vec<u8>,
    /// How much of `held` was there before the last read.
    start: usize,
    skipping: bool,
    ready: VecDeque<Block>,
}

impl Cutter {
    fn new(limit: usize) -> Self {
        Self {
            limit,
            held: Vec::new(),
            start: 0,
            skipping: false,
            ready: VecDeque::new(),
        }
    }

    /// Makes space to which the next bytes are appended. Then say how many came, with `read`.
    fn space(&mut self) -> &mut Vec<u8> {
        self.start = self.held.len();
        if self.held.capacity() - self.start < READ_BLOCK / 2 {
            self.held.reserve(READ_BLOCK);
        }
        &mut self.held
    }

    /// Makes space as bytes to overwrite, for a reader that needs them.
    fn room(&mut self) -> &mut [u8] {
        self.start = self.held.len();
        self.held.resize(self.start + READ_BLOCK, 0);
        &mut self.held[self.start..]
    }

    fn took(&mut self, count: usize) {
        self.held.truncate(self.start + count);
    }

    fn next(&mut self) -> Option<Block> {
        self.ready.pop_front()
    }

    /// Take in what a read gave. False at the end of the input.
    fn read(&mut self, read: io::Result<usize>) -> bool {
        let count = match read {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                self.took(0);
                return true;
            }
            Err(error) => {
                tracing::warn!(%error, "stdin cannot be read");
                0
            }
        };
        self.took(count);
        if count == 0 {
            if !self.skipping && !self.held.is_empty() {
                self.ready
                    .push_back(Block::Lines(std::mem::take(&mut self.held)));
            }
            return false;
        }
        self.cut();
        true
    }

    /// Takes the first `count` bytes. The space stays here unless they are an eighth of a block.
    fn take(&mut self, count: usize) -> Vec<u8> {
        if count < READ_BLOCK / 8 {
            return self.held.drain(..count).collect();
        }
        let rest = self.held.split_off(count);
        std::mem::replace(&mut self.held, rest)
    }

    fn cut(&mut self) {
        if self.skipping {
            match memchr(b'\n', &self.held) {
                Some(end) => {
                    self.held.drain(..=end);
                    self.skipping = false;
                }
                None => return self.held.clear(),
            }
        }
        let mut fresh = self.start.min(self.held.len());
        if let Some(end) = memchr(b'\n', &self.held[fresh..]).map(|end| fresh + end)
            && end > self.limit
        {
            self.held.drain(..=end);
            self.held.shrink_to(READ_BLOCK);
            fresh = 0;
            self.ready.push_back(Block::TooLong);
        }
        if let Some(end) = memrchr(b'\n', &self.held[fresh..]) {
            let lines = self.take(fresh + end + 1);
            self.ready.push_back(Block::Lines(lines));
        } else if self.held.len() > self.limit {
            self.held = Vec::new();
            self.skipping = true;
            self.ready.push_back(Block::TooLong);
        }
    }
}

/// The lines of a block that are not blank (TR-10).
pub(crate) fn lines(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut start = 0;
    let ends = memchr_iter(b'\n', block).chain(iter::once(block.len()));
    let lines = ends.map(move |end| {
        let line = &block[start..end];
        start = end + 1;
        line.trim_ascii()
    });
    lines.filter(|line| !line.is_empty())
}
