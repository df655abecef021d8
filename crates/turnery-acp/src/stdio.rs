//! Stdio: keeps the protocol's pipe to itself, so that no stray print ever reaches it (TR-3, TR-12).

use rustix::{
    fs::{Mode, OFlags},
    io::{FdFlags, dup, fcntl_setfd},
    stdio::{dup2_stdin, dup2_stdout},
};
use std::{fs::File, io};

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
