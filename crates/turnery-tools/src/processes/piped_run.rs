//! Runs a program to its end, with limits on time and output.
//!
//! Invariant: no process that the program started is left when [`run_piped`] returns or its future is dropped.

use super::{ChildPipes, FinishedTree, ProcessTree, ProgramSpec};
use std::{io, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    time::timeout,
};

/// Output of a program that exited by itself.
#[derive(Debug)]
pub struct PipedOutput {
    /// Whole standard output.
    pub stdout: Vec<u8>,
    /// Whole standard error.
    pub stderr: Vec<u8>,
    /// Exit status, and the outcome of stopping the descendants that were left.
    pub finished: FinishedTree,
}

/// Runs a program with `stdin` as its input, for at most `limit`, and stops it if it writes more than `max_output`
/// bytes to its standard output or error.
///
/// # Errors
///
/// Fails if the program cannot be started, or exceeds a limit. The text says so of `it`: `it did not end within 5 s`.
pub async fn run_piped(
    program: ProgramSpec,
    stdin: &[u8],
    limit: Duration,
    max_output: u64,
) -> Result<PipedOutput, String> {
    let name = program.program.clone();
    let started = ProcessTree::spawn_piped(program).await;
    let (mut tree, pipes) = started.map_err(|error| format!("cannot start {name:?}: {error}"))?;
    let exchange = exchange(&mut tree, pipes, stdin, max_output);
    let exchanged = timeout(limit, exchange).await.unwrap_or_else(|_| {
        let seconds = limit.as_secs();
        Err(format!("it did not end within {seconds} s"))
    });
    let finished = tree.finish().await;
    let (stdout, stderr) = exchanged?;
    Ok(PipedOutput {
        stdout,
        stderr,
        finished: finished.map_err(io_message)?,
    })
}

/// Exchanges input and output with the program until it exits or exceeds the output limit.
async fn exchange(
    tree: &mut ProcessTree,
    pipes: ChildPipes,
    stdin: &[u8],
    max_output: u64,
) -> Result<(Vec<u8>, Vec<u8>), String> {
    let ChildPipes {
        stdin: mut input,
        stdout,
        stderr,
    } = pipes;
    let write = async {
        // A program need not read its stdin.
        let _ = input.write_all(stdin).await;
        drop(input);
        Ok(())
    };
    let wait = async {
        tree.wait_exit().await.map_err(io_message)?;
        // Processes left behind may hold the pipes open; do not wait for them.
        tree.kill();
        Ok(())
    };
    let ((), stdout, stderr, ()) = tokio::try_join!(
        write,
        read_bounded(stdout, "stdout", max_output),
        read_bounded(stderr, "stderr", max_output),
        wait
    )?;
    Ok((stdout, stderr))
}

fn io_message(error: io::Error) -> String {
    format!("communication with it failed: {error}")
}

async fn read_bounded(
    pipe: impl AsyncRead + Unpin,
    name: &str,
    max_bytes: u64,
) -> Result<Vec<u8>, String> {
    let mut read = Vec::new();
    let mut pipe = pipe.take(max_bytes + 1);
    let done = pipe.read_to_end(&mut read).await;
    done.map_err(|error| format!("its {name} cannot be read: {error}"))?;
    match read.len() as u64 > max_bytes {
        true => Err(format!(
            "it printed more than {} MiB to {name}",
            max_bytes >> 20
        )),
        false => Ok(read),
    }
}
