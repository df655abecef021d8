//! Backlog: lines for stderr that a thread of its own writes, so that whoever says one never waits.
//!
//! An editor may start us with a stderr that it never reads. Once that pipe is full, a plain write would
//! stop the thread that also reads and writes the protocol (TR-4). So what waits here is bounded, and what
//! finds no room is left out and counted.

use std::{
    io::Write,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

/// What may wait. The same again may be held by the thread that writes. Unit: bytes.
const ROOM: usize = 256 << 10;

/// Lines that wait for the thread that writes them. It starts with the first one, since most processes write none.
pub(super) struct Backlog {
    state: Mutex<State>,
    /// There is something to write.
    more: Condvar,
    /// All is written.
    done: Condvar,
}

#[derive(Default)]
struct State {
    /// Where the thread writes to, until it has begun.
    out: Option<Box<dyn Write + Send>>,
    has_thread: bool,
    lines: Vec<u8>,
    /// Lines left out since the last one that found room.
    lost: u64,
    is_writing: bool,
}

impl State {
    /// Say how many lines are missing here.
    fn tell_lost(&mut self) {
        if self.lost > 0 {
            let lost = std::mem::take(&mut self.lost);
            let _ = writeln!(
                self.lines,
                "turnery: left out {lost} lines here, since stderr was not read"
            );
        }
    }
}

impl Backlog {
    /// Writes to `out` whatever is added.
    pub(super) fn new(out: impl Write + Send + 'static) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                out: Some(Box::new(out)),
                ..State::default()
            }),
            more: Condvar::new(),
            done: Condvar::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Add one whole line, or count it if there is no room. Waits for nobody.
    pub(super) fn add(self: &Arc<Self>, line: &[u8]) {
        let mut state = self.state();
        if state.lines.len() + line.len() > ROOM {
            state.lost += 1;
            return;
        }
        state.tell_lost();
        state.lines.extend_from_slice(line);
        if !state.has_thread {
            let writing = Arc::clone(self);
            let named = thread::Builder::new().name("stderr".to_owned());
            // If there can be no thread now, the next line tries again.
            state.has_thread = named.spawn(move || writing.write()).is_ok();
        }
        self.more.notify_one();
    }

    /// Wait until all is written, but no longer than this.
    pub(super) fn flush(&self, patience: Duration) {
        let mut state = self.state();
        state.tell_lost();
        self.more.notify_one();
        let waits = |state: &mut State| state.is_writing || !state.lines.is_empty();
        drop(self.done.wait_timeout_while(state, patience, waits));
    }

    /// Write for ever. A stderr that is gone is nothing to fail over.
    fn write(&self) {
        let Some(mut out) = self.state().out.take() else {
            return;
        };
        let mut lines = Vec::new();
        loop {
            let empty = |state: &mut State| state.lines.is_empty();
            let state = self.more.wait_while(self.state(), empty);
            let mut state = state.unwrap_or_else(PoisonError::into_inner);
            std::mem::swap(&mut state.lines, &mut lines);
            state.is_writing = true;
            drop(state);
            let _ = out.write_all(&lines);
            lines.clear();
            self.state().is_writing = false;
            self.done.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{PipeReader, Read as _, pipe};

    /// Lines of 1 KiB, more than a pipe and both buffers hold, to a stderr that is not read.
    fn stuffed() -> (Arc<Backlog>, PipeReader) {
        let (reader, writer) = pipe().unwrap();
        let backlog = Backlog::new(writer);
        for n in 0..4000 {
            backlog.add(format!("{n:>1023}\n").as_bytes());
        }
        (backlog, reader)
    }

    // proves: TR-4
    #[test]
    fn what_finds_no_room_is_counted_where_it_is_missing() {
        let (backlog, mut reader) = stuffed();
        assert!(backlog.state().lines.len() <= ROOM);
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
        backlog.add(b"the last\n");
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
    fn a_flush_waits_only_so_long() {
        let (backlog, _unread) = stuffed();
        backlog.flush(Duration::from_millis(10));
        assert!(!backlog.state().lines.is_empty());
    }
}
