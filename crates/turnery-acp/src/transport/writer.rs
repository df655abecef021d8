//! Writes output lines from one bounded queue to stdout, in queue order.
//!
//! A pipe is written asynchronously, without a thread to wake; a file, socket or terminal is written by a
//! dedicated thread.

use crate::{
    limits::{WRITE_BLOCK, WRITE_QUEUE},
    transport::{
        stall_timer::ShutdownProgress,
        stdio::{Output, wait_for_hangup},
    },
};
use std::{
    fs::File,
    io::{self, PipeReader, Write},
    thread,
};
use tokio::{
    io::{AsyncWriteExt, Interest},
    net::unix::pipe,
    sync::{mpsc, oneshot},
};
use tokio_util::sync::{CancellationToken, DropGuard};
use turnery_store::yield_to_ready_tasks;

/// Item of the write queue.
#[derive(Debug)]
pub(crate) enum WriteItem {
    /// One or more whole lines, each with its newline.
    Lines(Vec<u8>),
    /// Lines for which tasks wait; the guard is dropped once they are written, or never will be.
    Awaited(Vec<u8>, DropGuard),
    /// Ends the writer.
    Stop,
}

/// Sender of the write queue. Waits for room while the client does not read.
pub(crate) type WriteSender = mpsc::Sender<WriteItem>;

/// Handle of a running writer.
pub(crate) struct WriterHandle {
    /// Write queue.
    pub(crate) sender: WriteSender,
    /// Fires when stdout can no longer be written, even while nothing is being written (TR-11).
    pub(crate) closed: CancellationToken,
    /// Counts what the client reads.
    pub(crate) progress: ShutdownProgress,
    /// Resolves when the writer has ended.
    pub(crate) finished: oneshot::Receiver<()>,
}

/// Starts writing to `output`.
pub(crate) fn spawn(output: Output) -> io::Result<WriterHandle> {
    let (sender, receiver) = mpsc::channel(WRITE_QUEUE);
    let (on_end, ended) = oneshot::channel();
    let gone = CancellationToken::new();
    let on_gone = gone.clone().drop_guard();
    let end = move |written: io::Result<()>| {
        if let Err(error) = written {
            tracing::debug!(%error, "stdout is closed");
        }
        drop(on_gone);
        let _ = on_end.send(());
    };
    let progress = ShutdownProgress::default();
    let taken = progress.clone();
    match output {
        Output::Pipe(pipe) => {
            tokio::spawn(async move { end(write_pipe(pipe, receiver, &taken).await) });
        }
        Output::File(file) => {
            let (writer_done, written) = io::pipe()?;
            watch_hangup(file.try_clone()?, writer_done, gone.clone())?;
            spawn_thread(move || {
                end(write_blocking(file, receiver, &taken));
                drop(written);
            })?;
        }
        Output::Other(output) => {
            spawn_thread(move || end(write_blocking(output, receiver, &taken)))?;
        }
    }
    Ok(WriterHandle {
        sender,
        closed: gone,
        progress,
        finished: ended,
    })
}

fn spawn_thread(write: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let named = thread::Builder::new().name("acp-stdout".to_owned());
    named.spawn(write).map(drop)
}

/// Fires `gone` once `output` hangs up. Ends when the other end of `writer_done` is closed.
fn watch_hangup(output: File, writer_done: PipeReader, gone: CancellationToken) -> io::Result<()> {
    let named = thread::Builder::new().name("acp-stdout-end".to_owned());
    let watching = named.spawn(move || {
        if wait_for_hangup(&output, &writer_done) {
            gone.cancel();
        }
    });
    watching.map(drop)
}

async fn write_pipe(
    mut pipe: pipe::Sender,
    mut queue: mpsc::Receiver<WriteItem>,
    taken: &ShutdownProgress,
) -> io::Result<()> {
    let mut joined = WriteBatch::new();
    loop {
        let first = tokio::select! {
            biased;
            first = queue.recv() => first,
            closed = wait_for_close(&pipe) => return closed,
        };
        let Some(first) = first else { return Ok(()) };
        // So that output of many sessions is written together.
        yield_to_ready_tasks().await;
        joined.fill(first, &mut queue);
        let mut rest = &joined.bytes[..];
        while !rest.is_empty() {
            let count = pipe.write(rest).await?;
            taken.advance();
            rest = &rest[count..];
        }
        if joined.stop {
            return Ok(());
        }
        joined.clear();
    }
}

/// Waits until the pipe's reader is closed, then returns an error.
async fn wait_for_close(pipe: &pipe::Sender) -> io::Result<()> {
    // Waiting only for errors: room in the pipe must not wake the task.
    pipe.ready(Interest::ERROR).await?;
    Err(io::ErrorKind::BrokenPipe.into())
}

/// Writes queued lines, and flushes whenever the queue is empty (TR-8).
fn write_blocking(
    mut output: impl Write,
    mut queue: mpsc::Receiver<WriteItem>,
    taken: &ShutdownProgress,
) -> io::Result<()> {
    let mut joined = WriteBatch::new();
    while let Some(first) = queue.blocking_recv() {
        joined.fill(first, &mut queue);
        for part in joined.bytes.chunks(WRITE_BLOCK) {
            output.write_all(part)?;
            taken.advance();
        }
        output.flush()?;
        if joined.stop {
            return Ok(());
        }
        joined.clear();
    }
    Ok(())
}

/// Lines written together.
struct WriteBatch {
    bytes: Vec<u8>,
    /// Dropped once the batch is written.
    written_guards: Vec<DropGuard>,
    /// True if the writer ends after this batch.
    stop: bool,
}

impl WriteBatch {
    fn new() -> Self {
        Self {
            bytes: Vec::with_capacity(WRITE_BLOCK),
            written_guards: Vec::new(),
            stop: false,
        }
    }

    /// Fills the batch with `first` and whatever else is queued, up to one block.
    fn fill(&mut self, first: WriteItem, queue: &mut mpsc::Receiver<WriteItem>) {
        let mut next = Some(first);
        while let Some(out) = next.take() {
            match out {
                WriteItem::Lines(lines) => self.append(lines),
                WriteItem::Awaited(lines, written) => {
                    self.append(lines);
                    self.written_guards.push(written);
                }
                WriteItem::Stop => self.stop = true,
            }
            if !self.stop && self.bytes.len() < WRITE_BLOCK {
                next = queue.try_recv().ok();
            }
        }
    }

    /// Appends lines. A large batch is moved, not copied.
    fn append(&mut self, lines: Vec<u8>) {
        if self.bytes.is_empty() && lines.len() >= WRITE_BLOCK {
            self.bytes = lines;
        } else {
            self.bytes.extend_from_slice(&lines);
        }
    }

    fn clear(&mut self) {
        self.written_guards.clear();
        self.bytes.clear();
        self.bytes.shrink_to(WRITE_BLOCK);
    }
}

/// Queues one or more whole lines that do not come from a session's outbox, after everything already queued.
pub(crate) async fn send_line(queue: &WriteSender, line: Vec<u8>) {
    let _ = queue.send(WriteItem::Lines(line)).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::{io::AsyncReadExt, runtime::Builder};

    /// Regression: separate writes would wake the client once per line.
    #[test]
    fn lines_sent_together_are_written_together() {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let (output, mut client) = pipe::pipe().unwrap();
            let writer = spawn(Output::Pipe(output)).unwrap();
            let sender = writer.sender.clone();
            tokio::spawn(async move {
                for _ in 0..10 {
                    let sender = sender.clone();
                    tokio::spawn(
                        async move { sender.send(WriteItem::Lines(b"{}\n".to_vec())).await },
                    );
                }
            });
            let mut lines = [0; 30];
            client.read_exact(&mut lines).await.unwrap();
            assert_eq!(&lines, b"{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n");
            writer.sender.send(WriteItem::Stop).await.unwrap();
            writer.finished.await.unwrap();
            assert_eq!(writer.progress.count(), 1, "writes");
        });
    }
}
