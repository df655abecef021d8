//! Runs a command of the user's configuration with limits on time and output.
//!
//! Invariant: no process that the command started is left when [`CommandPlace::run`] returns or its future is dropped.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use turnery_tools::{
    SandboxSettings,
    processes::{ChildPipes, FinishedTree, ProcessTree, ProgramSpec, StopReport},
    strip_writable_paths,
};

/// Output limit; a command that prints more is stopped. Unit: bytes, for stdout and stderr each.
const MAX_OUTPUT_BYTES: u64 = 1 << 20;

/// Longest quote of a command's output in messages. Unit: characters.
pub(crate) const MAX_QUOTED_CHARS: usize = 400;

/// Output and exit code of a command that exited by itself.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    /// Exit code; `None` if a signal ended the command.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// Session for which commands run: in its first root, outside the sandbox, and without search paths (such as `PATH`)
/// that the project or the session's commands can write.
#[derive(Clone, Debug)]
pub(crate) struct CommandPlace {
    roots: Vec<PathBuf>,
    sandbox: SandboxSettings,
}

impl CommandPlace {
    pub(crate) fn new(roots: &[PathBuf], sandbox: &SandboxSettings) -> Self {
        Self {
            roots: roots.to_vec(),
            sandbox: sandbox.clone(),
        }
    }

    /// Returns the working folder of the commands.
    pub(crate) fn cwd(&self) -> &Path {
        self.roots.first().map_or(Path::new("."), PathBuf::as_path)
    }

    /// Runs `words` with `stdin` as input and a line break after it.
    pub(crate) async fn run(
        &self,
        words: &[String],
        stdin: Vec<u8>,
        limit: Duration,
    ) -> Result<CommandOutput, String> {
        let (mut tree, pipes) = self.spawn_tree(words).await?;
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

    async fn spawn_tree(&self, words: &[String]) -> Result<(ProcessTree, ChildPipes), String> {
        let (program, args) = words.split_first().ok_or("there is no command")?;
        let mut environment = std::env::vars_os().collect();
        strip_writable_paths(&mut environment, &self.roots, &self.sandbox);
        let started = ProcessTree::spawn_piped(ProgramSpec {
            program: program.into(),
            args: args.iter().map(Into::into).collect(),
            working_directory: self.cwd().to_owned(),
            environment,
            confinement: None,
        });
        let started = started.await;
        started.map_err(|error| format!("cannot start {program:?}: {error}"))
    }
}

impl CommandOutput {
    /// Returns why a command that exited with another code than 0 failed, with the reason that it printed to stderr.
    pub(crate) fn failure(&self) -> Option<String> {
        let what = match self.code {
            Some(0) => return None,
            Some(code) => format!("exit code {code}"),
            None => "it was killed by a signal".to_owned(),
        };
        Some(match self.reason() {
            Some(reason) => {
                let quoted: String = reason.chars().take(MAX_QUOTED_CHARS).collect();
                format!("{what}: {quoted}")
            }
            None => what,
        })
    }

    /// Returns what the command printed to stderr, if it printed anything.
    pub(crate) fn reason(&self) -> Option<String> {
        let stderr = String::from_utf8_lossy(&self.stderr);
        Some(stderr.trim().to_owned()).filter(|text| !text.is_empty())
    }
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
            tracing::warn!(
                "process {process}, started by the command {words:?}, has not ended yet"
            );
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
