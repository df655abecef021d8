//! Runs busy loops beside the checks, to test them on a busy machine.

use anyhow::{Context, Result};
use std::{
    env,
    io::{self, Read as _},
    process::{self, Child, Command, Stdio},
    thread,
};

/// Hidden command of xtask that runs one busy loop.
pub(crate) const COMMAND: &str = "busy-loop";

/// Child processes that run busy loops; they end when this value is dropped or this process ends.
pub(super) struct BusyLoops(Vec<Child>);

impl BusyLoops {
    pub(super) fn start(count: usize) -> Result<Self> {
        let mut loops = Self(Vec::new());
        let program = env::current_exe().context("the path of xtask")?;
        for _ in 0..count {
            // The pipe closes when this process ends, which stops the loop.
            let started = Command::new(&program)
                .arg(COMMAND)
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .spawn();
            loops
                .0
                .push(started.context("could not start a busy loop")?);
        }
        Ok(loops)
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // The loop may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs a busy loop until stdin is closed.
pub(crate) fn spin() -> ! {
    thread::spawn(|| {
        let mut rest = Vec::new();
        // End on an error as well: nothing could stop the loop through the pipe any more.
        let _ = io::stdin().read_to_end(&mut rest);
        process::exit(0);
    });
    let mut count = 0_u64;
    loop {
        count = std::hint::black_box(count.wrapping_add(1));
    }
}
