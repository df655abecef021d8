//! Tests the writer: queue order, whole lines, and a clean end when the client stops reading (TR-8, TR-11).

use crate::transport::{
    stdio::{Input, Output},
    writer::{WriteItem, spawn},
};
use std::{
    io::{self, Write},
    sync::mpsc,
};

/// Sends every write to a channel; fails if the flag is set.
struct ChannelWriter(mpsc::Sender<Vec<u8>>, bool);

impl Write for ChannelWriter {
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

// proves: TR-8
#[tokio::test]
async fn lines_are_written_in_queue_order() {
    let (sender, written) = mpsc::channel();
    let writer = spawn(ChannelWriter(sender, false).into()).unwrap();
    let mut expected = Vec::new();
    for n in 0..1000 {
        let size = if n % 100 == 0 { 70_000 } else { 10 };
        let line = format!("{n} {}\n", "x".repeat(size)).into_bytes();
        expected.extend_from_slice(&line);
        writer.sender.send(WriteItem::Lines(line)).await.unwrap();
    }
    writer.sender.send(WriteItem::Stop).await.unwrap();
    writer.finished.await.unwrap();
    let all: Vec<u8> = written.try_iter().flatten().collect();
    assert!(all == expected);
}

#[tokio::test]
async fn broken_output_closes_the_writer() {
    let (sender, _written) = mpsc::channel();
    let writer = spawn(ChannelWriter(sender, true).into()).unwrap();
    writer
        .sender
        .send(WriteItem::Lines(b"x\n".to_vec()))
        .await
        .unwrap();
    writer.closed.cancelled().await;
    writer.finished.await.unwrap();
    assert!(writer.sender.is_closed());
}

/// Over a real pipe, with more bytes than it holds at once: in order, and closed on both sides.
// proves: TR-8
#[tokio::test]
async fn pipe_carries_every_line_in_order() {
    let (output, input) = tokio::net::unix::pipe::pipe().unwrap();
    let writer = spawn(Output::Pipe(output)).unwrap();
    let mut reader = crate::transport::reader::spawn(Input::Pipe(input)).unwrap();
    let mut expected = Vec::new();
    let sent = async {
        for n in 0..1000 {
            let size = if n % 100 == 0 { 200_000 } else { 10 };
            let line = format!("{n} {}\n", "x".repeat(size)).into_bytes();
            expected.extend_from_slice(&line);
            writer.sender.send(WriteItem::Lines(line)).await.unwrap();
        }
        writer.sender.send(WriteItem::Stop).await.unwrap();
        writer.finished.await.unwrap();
    };
    let received = async {
        let mut all = Vec::new();
        while let Some(block) = reader.blocks.recv().await {
            match block {
                crate::transport::reader::InputBlock::Lines(lines) => all.extend_from_slice(&lines),
                crate::transport::reader::InputBlock::LineTooLong => panic!("no line is too long"),
            }
        }
        all
    };
    let ((), all) = tokio::join!(sent, received);
    assert!(all == expected, "{} of {} bytes", all.len(), expected.len());
}

// proves: TR-11
#[tokio::test]
async fn write_to_closed_pipe_closes_the_writer() {
    let (output, input) = tokio::net::unix::pipe::pipe().unwrap();
    let writer = spawn(Output::Pipe(output)).unwrap();
    drop(input);
    let line = WriteItem::Lines(b"x\n".to_vec());
    writer.sender.send(line).await.unwrap();
    writer.closed.cancelled().await;
    writer.finished.await.unwrap();
}

/// Even while nothing is written: the agent must not wait for its next output to notice that the client has
/// gone.
// proves: TR-11
#[tokio::test]
async fn closed_pipe_is_noticed_without_a_write() {
    let (output, input) = tokio::net::unix::pipe::pipe().unwrap();
    let writer = spawn(Output::Pipe(output)).unwrap();
    // By now the writer waits for something to write.
    tokio::task::yield_now().await;
    drop(input);
    writer.closed.cancelled().await;
    writer.finished.await.unwrap();
}

// proves: TR-11
#[tokio::test]
async fn closed_socket_is_noticed_without_a_write() {
    let (output, input) = std::os::unix::net::UnixStream::pair().unwrap();
    let output = std::fs::File::from(std::os::fd::OwnedFd::from(output));
    let writer = spawn(Output::File(output)).unwrap();
    drop(input);
    writer.closed.cancelled().await;
}

/// The thread that watches a socket ends with the writer.
#[test]
fn watching_a_socket_ends_with_the_writer() {
    let (output, _input) = std::os::unix::net::UnixStream::pair().unwrap();
    let (is_written, written) = io::pipe().unwrap();
    let watching =
        std::thread::spawn(move || crate::transport::stdio::wait_for_hangup(&output, &is_written));
    drop(written);
    assert!(!watching.join().unwrap());
}
