//! Queue of unread agent output, bounded in lines and in bytes.

use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Line of agent output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OutputLine {
    /// Line with its line end, if present.
    Line(Vec<u8>),
    /// Beginning of a line that exceeds the limit.
    TooLong(Vec<u8>),
}

/// Sending half of the queue.
pub(crate) struct LineSender {
    free_bytes: Arc<Semaphore>,
    capacity: u32,
    sender: mpsc::Sender<(OutputLine, OwnedSemaphorePermit)>,
}

/// Receiving half of the queue.
pub(crate) struct LineReceiver(mpsc::Receiver<(OutputLine, OwnedSemaphorePermit)>);

/// Creates a queue with limits on lines and bytes; a single line may exceed the byte limit.
pub(crate) fn line_queue(max_lines: usize, bytes: u32) -> (LineSender, LineReceiver) {
    let (sender, receiver) = mpsc::channel(max_lines);
    let room = Arc::new(Semaphore::new(bytes as usize));
    let entry = LineSender {
        free_bytes: room,
        capacity: bytes,
        sender,
    };
    (entry, LineReceiver(receiver))
}

impl LineSender {
    /// Waits for space and adds a line. Returns false if the receiver is gone.
    pub(crate) async fn send(&self, line: OutputLine) -> bool {
        let (OutputLine::Line(bytes) | OutputLine::TooLong(bytes)) = &line;
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.free_bytes);
        let Ok(held) = room.acquire_many_owned(length.min(self.capacity)).await else {
            return false;
        };
        self.sender.send((line, held)).await.is_ok()
    }
}

impl LineReceiver {
    /// Returns the next line; `None` once the sender is gone and the queue is empty.
    pub(crate) async fn recv(&mut self) -> Option<OutputLine> {
        self.0.recv().await.map(|(line, _)| line)
    }
}

impl Drop for LineReceiver {
    fn drop(&mut self) {
        // Wake senders that wait for space.
        self.0.close();
        while self.0.try_recv().is_ok() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn line_of_length(length: usize) -> OutputLine {
        OutputLine::Line(vec![b'x'; length])
    }

    #[tokio::test]
    async fn queue_is_bounded_in_bytes() {
        let (entry, mut exit) = line_queue(10, 100);
        assert!(entry.send(line_of_length(60)).await);
        assert!(entry.send(line_of_length(40)).await);
        let mut third = Box::pin(entry.send(line_of_length(1)));
        assert_eq!(third.as_mut().now_or_never(), None);
        assert_eq!(exit.recv().await, Some(line_of_length(60)));
        assert_eq!(third.as_mut().now_or_never(), Some(true));
        assert_eq!(exit.recv().await, Some(line_of_length(40)));
        assert_eq!(exit.recv().await, Some(line_of_length(1)));
    }

    #[tokio::test]
    async fn overlong_line_waits_alone() {
        let (entry, mut exit) = line_queue(10, 100);
        assert!(entry.send(line_of_length(500)).await);
        let mut second = Box::pin(entry.send(line_of_length(1)));
        assert_eq!(second.as_mut().now_or_never(), None);
        assert_eq!(exit.recv().await, Some(line_of_length(500)));
        assert!(second.await);
    }

    #[tokio::test]
    async fn send_fails_when_receiver_is_dropped() {
        let (entry, exit) = line_queue(10, 100);
        assert!(entry.send(line_of_length(100)).await);
        let mut second = Box::pin(entry.send(line_of_length(1)));
        assert_eq!(second.as_mut().now_or_never(), None);
        drop(exit);
        assert!(!second.await);
    }
}
