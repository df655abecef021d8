//! The writer: one order, whole lines, and a quiet end when nobody reads (TR-8, TR-11).

use crate::writer::{Out, spawn};
use std::{
    io::{self, Write},
    sync::mpsc,
};

/// Hands every write to a channel; fails when told to.
struct Pipe(mpsc::Sender<Vec<u8>>, bool);

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.1 {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let _ = self.0.send(bytes.to_vec());
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn lines_come_out_in_the_order_in_which_they_went_in() {
    let (sender, written) = mpsc::channel();
    let writer = spawn(Pipe(sender, false)).unwrap();
    let mut expected = Vec::new();
    for n in 0..1000 {
        let size = if n % 100 == 0 { 70_000 } else { 10 };
        let line = format!("{n} {}\n", "x".repeat(size)).into_bytes();
        expected.extend_from_slice(&line);
        writer.sender.send(Out::Lines(line)).await.unwrap();
    }
    writer.sender.send(Out::Stop).await.unwrap();
    writer.ended.await.unwrap();
    let all: Vec<u8> = written.try_iter().flatten().collect();
    assert!(all == expected);
}

#[tokio::test]
async fn a_broken_pipe_is_told_once_and_quietly() {
    let (sender, _written) = mpsc::channel();
    let writer = spawn(Pipe(sender, true)).unwrap();
    writer
        .sender
        .send(Out::Lines(b"x\n".to_vec()))
        .await
        .unwrap();
    writer.gone.cancelled().await;
    writer.ended.await.unwrap();
    assert!(writer.sender.is_closed());
}
