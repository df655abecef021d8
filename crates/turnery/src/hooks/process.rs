//! Runs a hook's command with limits on time and output.
//!
//! Invariant: no process that the command started is left when [`run`] returns or its future is dropped.

use std::{collections::BTreeMap, ffi::OsString, io, path::Path, time::Duration};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use turnery_tools::processes::{ChildPipes, FinishedTree, ProcessTree, ProgramSpec, StopReport};

/// Environment variables.
type Environment = BTreeMap<OsString, OsString>;

/// Output limit; a command that prints more is stopped. Unit: bytes, for stdout and stderr each.
const MAX_OUTPUT_BYTES: u64 = 1 << 20;

/// Output and exit code of a command that exited by itself.
#[derive(Debug)]
pub(super) struct CommandOutput {
    /// Exit code; `None` if a signal ended the command.
    pub(super) code: Option<i32>,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

/// Runs `words` with a working folder, an environment and `stdin`.
pub(super) async fn run(
    words: &[String],
    place: (&Path, Environment),
    stdin: Vec<u8>,
    limit: Duration,
) -> Result<CommandOutput, String> {
    let (mut tree, pipes) = spawn_tree(words, place).await?;
    let talk = communicate(&mut tree, pipes, stdin);
    let talked = tokio::time::timeout(limit, talk).await;
    let talked = talked.unwrap_or_else(|_| {
        let seconds = limit.as_secs();
        Err(format!("it did not end within {seconds} s"))
    });
    let finished = tree.finish().await;
    let (stdout, stderr) = talked?;
    let finished = finished.map_err(io_message)?;
    warn_of_remaining(words, &finished);
    Ok(CommandOutput {
        code: finished.status.and_then(|status| status.code()),
        stdout,
        stderr,
    })
}

async fn spawn_tree(
    words: &[String],
    (cwd, environment): (&Path, Environment),
) -> Result<(ProcessTree, ChildPipes), String> {
    let (program, args) = words.split_first().ok_or("there is no command")?;
    let started = ProcessTree::spawn_piped(ProgramSpec {
        program: program.into(),
        args: args.iter().map(Into::into).collect(),
        working_directory: cwd.to_owned(),
        environment,
        confinement: None,
    });
    let started = started.await;
    started.map_err(|error| format!("cannot start {program:?}: {error}"))
}

/// Exchanges input and output with the command until it exits or exceeds the output limit.
async fn communicate(
    tree: &mut ProcessTree,
    pipes: ChildPipes,
    stdin: Vec<u8>,
) -> Result<(Vec<u8>, Vec<u8>), String> {
    let ChildPipes {
        stdin: mut input,
        stdout,
        stderr,
    } = pipes;
    let write = async {
        // A command need not read its stdin.
        let _ = input.write_all(&stdin).await;
        let _ = input.write_all(b"\n").await;
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
        read_bounded(stdout, "stdout"),
        read_bounded(stderr, "stderr"),
        wait
    )?;
    Ok((stdout, stderr))
}

fn io_message(error: io::Error) -> String {
    format!("communication with it failed: {error}")
}

/// Logs the processes of the command that could not be stopped.
fn warn_of_remaining(words: &[String], finished: &FinishedTree) {
    if let StopReport::Remaining(processes) = &finished.stopped {
        for process in processes {
            tracing::warn!("process {process}, started by the hook {words:?}, has not ended yet");
        }
    }
}

async fn read_bounded(pipe: impl AsyncRead + Unpin, name: &str) -> Result<Vec<u8>, String> {
    let mut read = Vec::new();
    let mut pipe = pipe.take(MAX_OUTPUT_BYTES + 1);
    let done = pipe.read_to_end(&mut read).await;
    done.map_err(|error| format!("its {name} cannot be read: {error}"))?;
    match read.len() as u64 > MAX_OUTPUT_BYTES {
        true => Err(format!("it printed more than 1 MiB to {name}")),
        false => Ok(read),
    }
}
