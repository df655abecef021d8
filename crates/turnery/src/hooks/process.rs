//! Process: one run of a hook's command, bounded in time and in what it may print.
//!
//! What must hold: nothing that it started is left when [`run`] returns or its future is dropped.

use std::{collections::BTreeMap, ffi::OsString, io, path::Path, time::Duration};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use turnery_tools::processes::{ChildPipes, FinishedTree, ProcessTree, ProgramSpec, StopReport};

/// Variables and their values.
type Environment = BTreeMap<OsString, OsString>;

/// A command that prints more is stopped. Unit: bytes, for stdout and stderr each.
const LONGEST: u64 = 1 << 20;

/// What came of a command that ended by itself.
#[derive(Debug)]
pub(super) struct Ended {
    /// `None` if a signal ended it.
    pub(super) code: Option<i32>,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

/// Runs `words` in a folder and an environment, with `stdin`.
pub(super) async fn run(
    words: &[String],
    place: (&Path, Environment),
    stdin: Vec<u8>,
    limit: Duration,
) -> Result<Ended, String> {
    let (mut tree, pipes) = start(words, place).await?;
    let talk = talk(&mut tree, pipes, stdin);
    let talked = tokio::time::timeout(limit, talk).await;
    let talked = talked.unwrap_or_else(|_| {
        let seconds = limit.as_secs();
        Err(format!("it did not end within {seconds} s"))
    });
    let finished = tree.finish().await;
    let (stdout, stderr) = talked?;
    let finished = finished.map_err(broken)?;
    tell_remaining(words, &finished);
    Ok(Ended {
        code: finished.status.and_then(|status| status.code()),
        stdout,
        stderr,
    })
}

async fn start(
    words: &[String],
    (cwd, environment): (&Path, Environment),
) -> Result<(ProcessTree, ChildPipes), String> {
    let (program, args) = words.split_first().ok_or("there is no command")?;
    let started = ProcessTree::spawn_piped(ProgramSpec {
        program: program.into(),
        args: args.iter().map(Into::into).collect(),
        folder: cwd.to_owned(),
        environment,
        confinement: None,
    });
    let started = started.await;
    started.map_err(|error| format!("cannot start {program:?}: {error}"))
}

/// Talks to the command until it has ended, or has printed too much.
async fn talk(
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
        // Not every command wants to know what it is asked.
        let _ = input.write_all(&stdin).await;
        let _ = input.write_all(b"\n").await;
        drop(input);
        Ok(())
    };
    let wait = async {
        tree.wait_exit().await.map_err(broken)?;
        // What it left behind holds the pipes open, and nothing waits for that.
        tree.kill();
        Ok(())
    };
    let ((), stdout, stderr, ()) =
        tokio::try_join!(write, all(stdout, "stdout"), all(stderr, "stderr"), wait)?;
    Ok((stdout, stderr))
}

fn broken(error: io::Error) -> String {
    format!("talking to it broke off: {error}")
}

/// Logs which processes of the command have not ended yet.
fn tell_remaining(words: &[String], finished: &FinishedTree) {
    if let StopReport::Remaining(processes) = &finished.stopped {
        for process in processes {
            tracing::warn!("process {process}, started by the hook {words:?}, has not ended yet");
        }
    }
}

async fn all(pipe: impl AsyncRead + Unpin, name: &str) -> Result<Vec<u8>, String> {
    let mut read = Vec::new();
    let mut pipe = pipe.take(LONGEST + 1);
    let done = pipe.read_to_end(&mut read).await;
    done.map_err(|error| format!("its {name} cannot be read: {error}"))?;
    match read.len() as u64 > LONGEST {
        true => Err(format!("it printed more than 1 MiB to {name}")),
        false => Ok(read),
    }
}
