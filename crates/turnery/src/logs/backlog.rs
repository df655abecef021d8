//! Writes lines to stderr from a separate thread, so that logging never blocks.
//!
//! A client that does not read stderr must not block the agent: once the pipe is full, a plain write would stop
//! the thread that also reads and writes the protocol (TR-4). The queue is bounded; lines that do not fit are
//! dropped and counted.

use std::{
    io::Write,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

/// Capacity of the queue; the writing thread may hold as much again. Unit: bytes.
const CAPACITY: usize = 256 << 10;

/// Queue of lines for the writing thread. The thread starts with the first line, since most processes write none.
pub(super) struct StderrBacklog {
    state: Mutex<BacklogState>,
    /// Signals that lines are queued.
    has_lines: Condvar,
    /// Signals that all lines are written.
    is_written: Condvar,
}

#[derive(Default)]
struct BacklogState {
    /// Output, until the thread takes it.
    out: Option<Box<dyn Write + Send>>,
    has_thread: bool,
    lines: Vec<u8>,
    /// Number of lines dropped since the last one that was queued.
    lost: u64,
    is_writing: bool,
}

impl BacklogState {
    /// Queues a line with the number of dropped lines.
    fn report_lost(&mut self) {
        if self.lost > 0 {
            let lost = std::mem::take(&mut self.lost);
            let _ = writeln!(
                self.lines,
                "turnery: left out {lost} lines here, since stderr was not read"
            );
        }
    }
}

impl StderrBacklog {
    /// Creates a backlog that writes to `out`.
    pub(super) fn new(out: impl Write + Send + 'static) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(BacklogState {
                out: Some(Box::new(out)),
                ..BacklogState::default()
            }),
            has_lines: Condvar::new(),
            is_written: Condvar::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, BacklogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a whole line, or counts it as dropped if there is no room. Does not block.
    pub(super) fn push_line(self: &Arc<Self>, line: &[u8]) {
        let mut state = self.state();
        if state.lines.len() + line.len() > CAPACITY {
            state.lost += 1;
            return;
        }
        state.report_lost();
        state.lines.extend_from_slice(line);
        if !state.has_thread {
            let writing = Arc::clone(self);
            let named = thread::Builder::new().name("stderr".to_owned());
            // If the thread cannot be started now, the next line tries again.
            state.has_thread = named.spawn(move || writing.write_lines()).is_ok();
        }
        self.has_lines.notify_one();
    }

    /// Waits until all lines are written, at most for `patience`.
    pub(super) fn flush(&self, patience: Duration) {
        let mut state = self.state();
        state.report_lost();
        self.has_lines.notify_one();
        let waits = |state: &mut BacklogState| state.is_writing || !state.lines.is_empty();
        drop(self.is_written.wait_timeout_while(state, patience, waits));
    }

    /// Runs the writing thread. Write errors are ignored.
    fn write_lines(&self) {
        let Some(mut out) = self.state().out.take() else {
            return;
        };
        let mut lines = Vec::new();
        loop {
            let empty = |state: &mut BacklogState| state.lines.is_empty();
            let state = self.has_lines.wait_while(self.state(), empty);
            let mut state = state.unwrap_or_else(PoisonError::into_inner);
            std::mem::swap(&mut state.lines, &mut lines);
            state.is_writing = true;
            drop(state);
            let _ = out.write_all(&lines);
            lines.clear();
            self.state().is_writing = false;
            self.is_written.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{PipeReader, Read as _, pipe};

    /// Returns a backlog with more lines of 1 KiB than a pipe and both buffers hold, and the unread end of its
    /// pipe.
    fn overfull_backlog() -> (Arc<StderrBacklog>, PipeReader) {
        let (reader, writer) = pipe().unwrap();
        let backlog = StderrBacklog::new(writer);
        for n in 0..4000 {
            backlog.push_line(format!("{n:>1023}\n").as_bytes());
        }
        (backlog, reader)
    }

    // proves: TR-4
    #[test]
    fn dropped_lines_are_counted_in_place() {
        let (backlog, mut reader) = overfull_backlog();
        assert!(backlog.state().lines.len() <= CAPACITY);
        let reading = thread::spawn(move || {
            let mut text = String::new();
            while !text.ends_with("the last\n") {
                let mut block = [0; 4096];
                let count = reader.read(&mut block).unwrap();
                text.push_str(std::str::from_utf8(&block[..count]).unwrap());
            }
            text
        });
        backlog.flush(Duration::from_secs(120));
        backlog.push_line(b"the last\n");
        let text = reading.join().unwrap();
        let mut next = 0;
        for line in text.lines() {
            match line.strip_prefix("turnery: left out ") {
                Some(lost) => next += lost.split(' ').next().unwrap().parse::<u32>().unwrap(),
                None if next == 4000 => assert_eq!(line, "the last"),
                None => {
                    assert_eq!(line.trim(), next.to_string());
                    next += 1;
                }
            }
        }
        assert_eq!(next, 4000);
        assert!(text.contains("left out"));
    }

    // proves: TR-4
    #[test]
    fn flush_stops_at_timeout() {
        let (backlog, _unread) = overfull_backlog();
        backlog.flush(Duration::from_millis(10));
        assert!(!backlog.state().lines.is_empty());
    }
}
