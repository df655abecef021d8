//! Writer: one bounded queue, one thread, one stdout. Whatever enters the queue first is on the wire first.

use crate::bounds::{WRITE_BLOCK, WRITE_QUEUE};
use std::{
    io::{self, Write},
    thread,
};
use tokio::sync::{mpsc, oneshot};
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
    /// Fires when stdout can no longer be written (TR-11).
    pub(crate) gone: CancellationToken,
    /// Ready when the thread has ended.
    pub(crate) ended: oneshot::Receiver<()>,
}

/// Start writing to `output`.
pub(crate) fn spawn(output: impl Write + Send + 'static) -> io::Result<Writer> {
    let (sender, receiver) = mpsc::channel(WRITE_QUEUE);
    let (on_end, ended) = oneshot::channel();
    let gone = CancellationToken::new();
    let on_gone = gone.clone().drop_guard();
    thread::Builder::new()
        .name("acp-stdout".to_owned())
        .spawn(move || {
            if let Err(error) = write_all(output, receiver) {
                tracing::debug!(%error, "stdout is closed");
            }
            drop(on_gone);
            let _ = on_end.send(());
        })?;
    Ok(Writer {
        sender,
        gone,
        ended,
    })
}

/// Write what comes, and flush whenever nothing more waits (TR-8).
fn write_all(mut output: impl Write, mut queue: mpsc::Receiver<Out>) -> io::Result<()> {
    let mut joined: Vec<u8> = Vec::with_capacity(WRITE_BLOCK);
    while let Some(first) = queue.blocking_recv() {
        let mut next = Some(first);
        let mut stop = false;
        while let Some(out) = next.take() {
            match out {
                Out::Lines(lines) if joined.is_empty() && lines.len() >= WRITE_BLOCK => {
                    output.write_all(&lines)?;
                }
                Out::Lines(lines) => joined.extend_from_slice(&lines),
                Out::Large(lines, _written) => {
                    output.write_all(&joined)?;
                    joined.clear();
                    output.write_all(&lines)?;
                }
                Out::Stop => stop = true,
            }
            if !stop && joined.len() < WRITE_BLOCK {
                next = queue.try_recv().ok();
            }
        }
        output.write_all(&joined)?;
        output.flush()?;
        joined.clear();
        joined.shrink_to(WRITE_BLOCK);
        if stop {
            return Ok(());
        }
    }
    Ok(())
}
