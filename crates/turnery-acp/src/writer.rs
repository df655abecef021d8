//! Writer: one bounded queue, one stdout. Whatever enters the queue first is on the wire first.
//!
//! A pipe is written by the runtime itself, without a thread to wake; a file, a socket or a terminal by
//! a thread of its own.

use crate::{
    bounds::{WRITE_BLOCK, WRITE_QUEUE},
    quiet_time::Progress,
    stdio::{Output, is_closed_before},
};
use std::{
    fs::File,
    future::poll_fn,
    io::{self, PipeReader, Write},
    task::Poll,
    thread,
};
use tokio::{
    io::{AsyncWriteExt, Interest},
    net::unix::pipe,
    sync::{mpsc, oneshot},
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// What the writer is given.
#[derive(Debug)]
pub(crate) enum Out {
    /// One or more whole lines, each with its newline.
    Lines(Vec<u8>),
    /// The same, and many bytes of them: the guard goes once they are written, or never will be.
    Large(Vec<u8>, DropGuard),
    /// Nothing more is to be written.
    Stop,
}

/// Where lines for stdout go. Waits for room when the client does not read.
pub(crate) type Sender = mpsc::Sender<Out>;

/// The ends of a running writer.
pub(crate) struct Writer {
    /// The queue.
    pub(crate) sender: Sender,
    /// Fires when stdout can no longer be written, also while nothing is to be written (TR-11).
    pub(crate) gone: CancellationToken,
    /// Counts what the client has taken.
    pub(crate) progress: Progress,
    /// Ready when the thread has ended.
    pub(crate) ended: oneshot::Receiver<()>,
}

/// Start writing to `output`.
pub(crate) fn spawn(output: Output) -> io::Result<Writer> {
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
    let progress = Progress::default();
    let taken = progress.clone();
    match output {
        Output::Pipe(pipe) => {
            tokio::spawn(async move { end(write_pipe(pipe, receiver, &taken).await) });
        }
        Output::File(file) => {
            let (is_written, written) = io::pipe()?;
            watch_end(file.try_clone()?, is_written, gone.clone())?;
            spawn_thread(move || {
                end(write_all(file, receiver, &taken));
                drop(written);
            })?;
        }
        Output::Other(output) => {
            spawn_thread(move || end(write_all(output, receiver, &taken)))?;
        }
    }
    Ok(Writer {
        sender,
        gone,
        progress,
        ended,
    })
}

fn spawn_thread(write: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let named = thread::Builder::new().name("acp-stdout".to_owned());
    named.spawn(write).map(drop)
}

/// Fires `gone` once nobody can read `output` any more. Ends when the other end of `is_written` is closed.
fn watch_end(output: File, is_written: PipeReader, gone: CancellationToken) -> io::Result<()> {
    let named = thread::Builder::new().name("acp-stdout-end".to_owned());
    let watching = named.spawn(move || {
        if is_closed_before(&output, &is_written) {
            gone.cancel();
        }
    });
    watching.map(drop)
}

async fn write_pipe(
    mut pipe: pipe::Sender,
    mut queue: mpsc::Receiver<Out>,
    taken: &Progress,
) -> io::Result<()> {
    let mut joined = Joined::new();
    loop {
        let first = tokio::select! {
            biased;
            first = queue.recv() => first,
            closed = until_closed(&pipe) => return closed,
        };
        let Some(first) = first else { return Ok(()) };
        after_others().await;
        joined.join(first, &mut queue);
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

/// Lets the tasks that are ready run first, so that what many sessions have to say is written at once.
///
/// Not by `yield_now`: a task that yields waits for its own thread, and that may be stuck in a disk that hangs.
async fn after_others() {
    let mut has_waited = false;
    poll_fn(|cx| match std::mem::replace(&mut has_waited, true) {
        true => Poll::Ready(()),
        false => {
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await;
}

/// Ready, with an error, once nobody can read from the pipe any more.
async fn until_closed(pipe: &pipe::Sender) -> io::Result<()> {
    // Asked for errors alone: that the pipe takes more bytes wakes nobody.
    pipe.ready(Interest::ERROR).await?;
    Err(io::ErrorKind::BrokenPipe.into())
}

/// Write what comes, and flush whenever nothing more waits (TR-8).
fn write_all(
    mut output: impl Write,
    mut queue: mpsc::Receiver<Out>,
    taken: &Progress,
) -> io::Result<()> {
    let mut joined = Joined::new();
    while let Some(first) = queue.blocking_recv() {
        joined.join(first, &mut queue);
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

/// What is written at once.
struct Joined {
    bytes: Vec<u8>,
    /// Dropped once it is written.
    written: Vec<DropGuard>,
    /// Nothing is to be written after this.
    stop: bool,
}

impl Joined {
    fn new() -> Self {
        Self {
            bytes: Vec::with_capacity(WRITE_BLOCK),
            written: Vec::new(),
            stop: false,
        }
    }

    /// The first, and what else waits, up to a block.
    fn join(&mut self, first: Out, queue: &mut mpsc::Receiver<Out>) {
        let mut next = Some(first);
        while let Some(out) = next.take() {
            match out {
                Out::Lines(lines) => self.take(lines),
                Out::Large(lines, written) => {
                    self.take(lines);
                    self.written.push(written);
                }
                Out::Stop => self.stop = true,
            }
            if !self.stop && self.bytes.len() < WRITE_BLOCK {
                next = queue.try_recv().ok();
            }
        }
    }

    /// A large one is taken as it is, not copied.
    fn take(&mut self, lines: Vec<u8>) {
        if self.bytes.is_empty() && lines.len() >= WRITE_BLOCK {
            self.bytes = lines;
        } else {
            self.bytes.extend_from_slice(&lines);
        }
    }

    fn clear(&mut self) {
        self.written.clear();
        self.bytes.clear();
        self.bytes.shrink_to(WRITE_BLOCK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::{io::AsyncReadExt, runtime::Builder};

    /// Each line would wake the client by itself, and a worker runs a task that was just woken before all others.
    #[test]
    fn what_is_said_at_once_is_written_at_once() {
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
                    tokio::spawn(async move { sender.send(Out::Lines(b"{}\n".to_vec())).await });
                }
            });
            let mut lines = [0; 30];
            client.read_exact(&mut lines).await.unwrap();
            assert_eq!(&lines, b"{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n");
            writer.sender.send(Out::Stop).await.unwrap();
            writer.ended.await.unwrap();
            assert_eq!(writer.progress.count(), 1, "writes");
        });
    }
}
