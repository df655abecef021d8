//! The writer: one order, whole lines, and a quiet end when nobody reads (TR-8, TR-11).

use crate::{
    stdio::{Input, Output},
    writer::{Out, spawn},
};
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

// proves: TR-8
#[tokio::test]
async fn lines_come_out_in_the_order_in_which_they_went_in() {
    let (sender, written) = mpsc::channel();
    let writer = spawn(Pipe(sender, false).into()).unwrap();
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
    let writer = spawn(Pipe(sender, true).into()).unwrap();
    writer
        .sender
        .send(Out::Lines(b"x\n".to_vec()))
        .await
        .unwrap();
    writer.gone.cancelled().await;
    writer.ended.await.unwrap();
    assert!(writer.sender.is_closed());
}

/// The same over a real pipe, which the runtime itself reads and writes: more than it holds at once,
/// in order, and an end on both sides.
// proves: TR-8
#[tokio::test]
async fn a_pipe_carries_every_line_in_order() {
    let (output, input) = tokio::net::unix::pipe::pipe().unwrap();
    let writer = spawn(Output::Pipe(output)).unwrap();
    let mut reader = crate::reader::spawn(Input::Pipe(input)).unwrap();
    let mut expected = Vec::new();
    let sent = async {
        for n in 0..1000 {
            let size = if n % 100 == 0 { 200_000 } else { 10 };
            let line = format!("{n} {}\n", "x".repeat(size)).into_bytes();
            expected.extend_from_slice(&line);
            writer.sender.send(Out::Lines(line)).await.unwrap();
        }
        writer.sender.send(Out::Stop).await.unwrap();
        writer.ended.await.unwrap();
    };
    let received = async {
        let mut all = Vec::new();
        while let Some(block) = reader.blocks.recv().await {
            match block {
                crate::reader::Block::Lines(lines) => all.extend_from_slice(&lines),
                crate::reader::Block::TooLong => panic!("no line is too long"),
            }
        }
        all
    };
    let ((), all) = tokio::join!(sent, received);
    assert!(all == expected, "{} of {} bytes", all.len(), expected.len());
}

// proves: TR-11
#[tokio::test]
async fn a_pipe_that_nobody_reads_any_more_is_told_quietly() {
    let (output, input) = tokio::net::unix::pipe::pipe().unwrap();
    let writer = spawn(Output::Pipe(output)).unwrap();
    drop(input);
    let line = Out::Lines(b"x\n".to_vec());
    writer.sender.send(line).await.unwrap();
    writer.gone.cancelled().await;
    writer.ended.await.unwrap();
}

/// Also while nothing is written: an agent whose client has gone must not wait for its next word.
// proves: TR-11
#[tokio::test]
async fn closed_pipe_is_noticed_without_a_write() {
    let (output, input) = tokio::net::unix::pipe::pipe().unwrap();
    let writer = spawn(Output::Pipe(output)).unwrap();
    // The writer waits for something to write by then.
    tokio::task::yield_now().await;
    drop(input);
    writer.gone.cancelled().await;
    writer.ended.await.unwrap();
}

// proves: TR-11
#[tokio::test]
async fn closed_socket_is_noticed_without_a_write() {
    let (output, input) = std::os::unix::net::UnixStream::pair().unwrap();
    let output = std::fs::File::from(std::os::fd::OwnedFd::from(output));
    let writer = spawn(Output::File(output)).unwrap();
    drop(input);
    writer.gone.cancelled().await;
}

/// The thread that watches a socket ends with the writer.
#[test]
fn watching_a_socket_ends_with_the_writer() {
    let (output, _input) = std::os::unix::net::UnixStream::pair().unwrap();
    let (is_written, written) = io::pipe().unwrap();
    let watching = std::thread::spawn(move || crate::stdio::is_closed_before(&output, &is_written));
    drop(written);
    assert!(!watching.join().unwrap());
}
