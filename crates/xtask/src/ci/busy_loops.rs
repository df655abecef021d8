//! Busy loops: processes that only compute, to see how the checks fare on a busy machine.

use anyhow::{Context, Result};
use std::{
    env,
    io::{self, Read as _},
    process::{self, Child, Command, Stdio},
    thread,
};

/// Hidden command of xtask that is one busy loop.
pub(crate) const COMMAND: &str = "busy-loop";

/// Busy loops that end with this value, and with this process however that ends.
pub(super) struct BusyLoops(Vec<Child>);

impl BusyLoops {
    pub(super) fn start(count: usize) -> Result<Self> {
        let mut loops = Self(Vec::new());
        let program = env::current_exe().context("the path of xtask")?;
        for _ in 0..count {
            // The pipe ends with this process: that is how a loop learns of it.
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
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Computes until stdin is closed.
pub(crate) fn spin() -> ! {
    thread::spawn(|| {
        let mut rest = Vec::new();
        // An error ends the loop as well: nobody could end it by the pipe any more.
        let _ = io::stdin().read_to_end(&mut rest);
        process::exit(0);
    });
    let mut count = 0_u64;
    loop {
        count = std::hint::black_box(count.wrapping_add(1));
    }
}
