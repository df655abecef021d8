//! Queue: what an agent has said and nobody has looked at, bounded in lines and in bytes.

use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// What an agent said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Spoken {
    /// A line with its end, if it has one.
    Line(Vec<u8>),
    /// The beginning of a line that is longer than anybody reads.
    TooLong(Vec<u8>),
}

/// The end that things are put in at.
pub(crate) struct Entry {
    room: Arc<Semaphore>,
    bytes: u32,
    sender: mpsc::Sender<(Spoken, OwnedSemaphorePermit)>,
}

/// The end that they come out at.
pub(crate) struct Exit(mpsc::Receiver<(Spoken, OwnedSemaphorePermit)>);

/// No more than so many wait, and of so many bytes unless it is one alone.
pub(crate) fn queue(many: usize, bytes: u32) -> (Entry, Exit) {
    let (sender, receiver) = mpsc::channel(many);
    let room = Arc::new(Semaphore::new(bytes as usize));
    let entry = Entry {
        room,
        bytes,
        sender,
    };
    (entry, Exit(receiver))
}

impl Entry {
    /// Put one in, as soon as there is room. `false`: nobody takes it any more.
    pub(crate) async fn put(&self, spoken: Spoken) -> bool {
        let (Spoken::Line(bytes) | Spoken::TooLong(bytes)) = &spoken;
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room);
        let Ok(held) = room.acquire_many_owned(length.min(self.bytes)).await else {
            return false;
        };
        self.sender.send((spoken, held)).await.is_ok()
    }
}

impl Exit {
    /// The next one; `None` once there will be no more.
    pub(crate) async fn take(&mut self) -> Option<Spoken> {
        self.0.recv().await.map(|(spoken, _)| spoken)
    }
}

impl Drop for Exit {
    fn drop(&mut self) {
        // Who waits for room need not wait any more.
        self.0.close();
        while self.0.try_recv().is_ok() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn line(length: usize) -> Spoken {
        Spoken::Line(vec![b'x'; length])
    }

    #[tokio::test]
    async fn no_more_bytes_wait_than_there_is_room_for() {
        let (entry, mut exit) = queue(10, 100);
        assert!(entry.put(line(60)).await);
        assert!(entry.put(line(40)).await);
        let mut third = Box::pin(entry.put(line(1)));
        assert_eq!(third.as_mut().now_or_never(), None);
        assert_eq!(exit.take().await, Some(line(60)));
        assert_eq!(third.as_mut().now_or_never(), Some(true));
        assert_eq!(exit.take().await, Some(line(40)));
        assert_eq!(exit.take().await, Some(line(1)));
    }

    #[tokio::test]
    async fn what_is_longer_than_all_the_room_waits_alone() {
        let (entry, mut exit) = queue(10, 100);
        assert!(entry.put(line(500)).await);
        let mut second = Box::pin(entry.put(line(1)));
        assert_eq!(second.as_mut().now_or_never(), None);
        assert_eq!(exit.take().await, Some(line(500)));
        assert!(second.await);
    }

    #[tokio::test]
    async fn nobody_waits_for_room_when_nobody_listens() {
        let (entry, exit) = queue(10, 100);
        assert!(entry.put(line(100)).await);
        let mut second = Box::pin(entry.put(line(1)));
        assert_eq!(second.as_mut().now_or_never(), None);
        drop(exit);
        assert!(!second.await);
    }
}
