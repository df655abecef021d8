//! Reserves stdin and stdout for the protocol, so that stray prints cannot corrupt it (TR-3, TR-12).

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

/// The original stdin and stdout.
#[derive(Debug)]
pub struct Stdio {
    /// Original stdin.
    pub input: File,
    /// Original stdout.
    pub output: File,
}

impl Stdio {
    /// Takes stdin and stdout away from everything else: descriptor 0 then reads nothing, descriptor 1 is
    /// stderr, and child processes inherit neither pipe. Call this first in `main`.
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

/// Source of the client's lines.
pub enum Input {
    /// Pipe whose reading end nobody else has; reads never block.
    Pipe(pipe::Receiver),
    /// Any other reader; read by a thread.
    Other(Box<dyn Read + Send>),
}

/// Destination of lines to the client.
pub enum Output {
    /// Pipe whose writing end nobody else has; writes never block.
    Pipe(pipe::Sender),
    /// Socket, terminal or file; a hang-up is noticed at once here too.
    File(File),
    /// Any other writer; written by a thread.
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
    /// Returns the input and output for [`serve`](crate::server::serve::serve), asynchronous where possible.
    ///
    /// Pipes are reopened, because non-blocking mode belongs to the open file description, which other
    /// processes may share. Other files are used as they are. Requires a tokio runtime with IO enabled.
    #[must_use]
    pub fn into_input_output(self) -> (Input, Output) {
        let fd_path = |fd: i32| format!("/proc/self/fd/{fd}");
        let input = match pipe::OpenOptions::new().open_receiver(fd_path(self.input.as_raw_fd())) {
            Ok(pipe) => Input::Pipe(pipe),
            Err(_) => self.input.into(),
        };
        let output = match pipe::OpenOptions::new().open_sender(fd_path(self.output.as_raw_fd())) {
            Ok(pipe) => Output::Pipe(pipe),
            Err(_) => Output::File(self.output),
        };
        (input, output)
    }
}

/// Waits until `output` hangs up or the other end of `end` is closed. Returns true in the first case; false in
/// the second, or if a descriptor is not open. Ignores readable and writable events.
pub(crate) fn wait_for_hangup(output: &impl AsFd, end: &impl AsFd) -> bool {
    // Hang-ups and errors are reported even with an empty event mask.
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
