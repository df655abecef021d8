//! Stdio: keeps the protocol's pipe to itself, so that no stray print ever reaches it (TR-3, TR-12).

use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{Mode, OFlags},
    io::{Errno, FdFlags, dup, fcntl_setfd},
    stdio::{dup2_stdin, dup2_stdout},
};
use std::{
    fmt,
    fs::File,
    io::{self, Read, Write},
    os::fd::{AsFd, AsRawFd},
};
use tokio::net::unix::pipe;

/// The protocol's two ends.
#[derive(Debug)]
pub struct Stdio {
    /// What was stdin.
    pub input: File,
    /// What was stdout.
    pub output: File,
}

impl Stdio {
    /// Take stdin and stdout away from everything else. From now on descriptor 0 reads nothing,
    /// descriptor 1 is stderr, and child processes inherit neither pipe. Call it first in `main`.
    pub fn take() -> io::Result<Self> {
        let input = dup(rustix::stdio::stdin())?;
        let output = dup(rustix::stdio::stdout())?;
        fcntl_setfd(&input, FdFlags::CLOEXEC)?;
        fcntl_setfd(&output, FdFlags::CLOEXEC)?;
        let nothing =
            rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        dup2_stdin(&nothing)?;
        dup2_stdout(rustix::stdio::stderr())?;
        Ok(Self {
            input: input.into(),
            output: output.into(),
        })
    }
}

/// Where the client's lines come from.
pub enum Input {
    /// A pipe of which nobody else has this end: reading it never blocks.
    Pipe(pipe::Receiver),
    /// Anything else.
    Other(Box<dyn Read + Send>),
}

/// Where the client reads.
pub enum Output {
    /// A pipe of which nobody else has this end: writing it never blocks.
    Pipe(pipe::Sender),
    /// A socket, a terminal or a file: that nobody reads it any more is noticed at once, too.
    File(File),
    /// Anything else.
    Other(Box<dyn Write + Send>),
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Input")
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Output")
    }
}

impl<R: Read + Send + 'static> From<R> for Input {
    fn from(input: R) -> Self {
        Self::Other(Box::new(input))
    }
}

impl<W: Write + Send + 'static> From<W> for Output {
    fn from(output: W) -> Self {
        Self::Other(Box::new(output))
    }
}

impl Stdio {
    /// The two ends, as fast as they can be. A pipe is opened anew, because not to block is a setting
    /// of the open file, which other processes may share. Where that cannot be done, nor is it needed.
    /// Needs a tokio runtime with IO.
    #[must_use]
    pub fn ends(self) -> (Input, Output) {
        let anew = |fd: i32| format!("/proc/self/fd/{fd}");
        let input = match pipe::OpenOptions::new().open_receiver(anew(self.input.as_raw_fd())) {
            Ok(pipe) => Input::Pipe(pipe),
            Err(_) => self.input.into(),
        };
        let output = match pipe::OpenOptions::new().open_sender(anew(self.output.as_raw_fd())) {
            Ok(pipe) => Output::Pipe(pipe),
            Err(_) => Output::File(self.output),
        };
        (input, output)
    }
}

/// Waits until nobody can read `output` any more, or `end` is closed at its other end. True if the former
/// came first, false also if one of them is no open descriptor. Wakes for neither reads nor writes.
pub(crate) fn is_closed_before(output: &impl AsFd, end: &impl AsFd) -> bool {
    // Without being asked for, hang-ups and errors are always told.
    let mut ends = [
        PollFd::new(output, PollFlags::empty()),
        PollFd::new(end, PollFlags::empty()),
    ];
    loop {
        match poll(&mut ends, None) {
            Ok(_)
                if ends
                    .iter()
                    .any(|end| end.revents().contains(PollFlags::NVAL)) =>
            {
                return false;
            }
            Ok(_) if !ends[0].revents().is_empty() => return true,
            Ok(_) if !ends[1].revents().is_empty() => return false,
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}
