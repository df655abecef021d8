//! Local: runs a command line on this machine, shows what it prints, and stops it when it is time.

use super::{
    ending::{Ending, Stopped},
    environment,
    kept::Kept,
    stream::Stream,
};
use crate::{
    Confinement, Progress, ToolCx, Workspace, grace,
    policy::{GitSettings, git::environment::set},
    processes::{ChildStdio, ProcessTree, ProgramSpec},
};
use rustix::io::Errno;
use std::{
    collections::BTreeMap, ffi::OsString, fs::File, io, os::fd::OwnedFd, path::Path, time::Duration,
};
use tokio::{
    io::AsyncReadExt,
    net::unix::pipe,
    time::{Instant, sleep_until},
};

/// Read at once.
const CHUNK: usize = 32 * 1024;
/// A pipe holds no more than this, unless somebody raised the system's limit.
const PIPE: usize = 1024 * 1024;

/// What a command finds around it.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    /// Variables that it does not get to see.
    pub(super) hidden: &'a [String],
    /// Variables that it sees all the same.
    pub(super) passed: &'a [String],
    /// What it may touch; `None` for everything.
    pub(super) confinement: Option<&'a Confinement>,
    /// Whether its programs load no code out of folders that the environment names in the session's folders.
    pub(super) runs_readers: bool,
    /// Settings of git.
    pub(super) git: GitSettings,
}

/// Run it to its end, whichever that is. Dropping the future kills it and all that it started.
///
/// Two tiers: a cancel or the timeout asks the group to end (SIGTERM), [`grace::COMMAND`] later it is killed.
/// When the shell is gone nothing that it started stays, so a process that it left in the background
/// neither lives on nor keeps the call waiting.
pub(super) async fn run(
    line: &str,
    cwd: &Path,
    limit: Duration,
    surroundings: Surroundings<'_>,
    cx: &ToolCx,
) -> io::Result<(Ending, Stopped, String)> {
    let mut environment = environment(surroundings, cwd, &cx.workspace);
    let mut confinement = surroundings.confinement.cloned();
    let _scratch = match &mut confinement {
        Some(confinement) if confinement.needs_scratch() => {
            Some(add_scratch(confinement, &mut environment)?)
        }
        _ => None,
    };
    let (mut tree, mut output) = start(line, cwd, environment, confinement.as_ref()).await?;
    let mut kept = Kept::default();
    let mut stream = Stream::default();
    let mut chunk = vec![0; CHUNK];
    let mut is_open = true;
    let mut stopped = None;
    let alarm = sleep_until(Instant::now() + limit);
    tokio::pin!(alarm);
    loop {
        tokio::select! {
            biased;
            () = cx.cancel.cancelled(), if stopped.is_none() => {
                stopped = Some(Ending::Cancelled);
                tree.request_stop();
                alarm.as_mut().reset(Instant::now() + grace::COMMAND);
            }
            () = &mut alarm => {
                if stopped.is_some() {
                    // What is left is killed below, in a bounded time.
                    break;
                }
                stopped = Some(Ending::TimedOut(limit));
                tree.request_stop();
                alarm.as_mut().reset(Instant::now() + grace::COMMAND);
            }
            over = tree.wait_exit() => {
                over?;
                break;
            }
            permit = cx.progress.reserve(), if stream.has_text() => match permit {
                Ok(permit) => permit.send(Progress::Printed(stream.take())),
                Err(_) => stream.close(),
            },
            // A command that winds up is not held back by a client that has stopped reading.
            read = output.read(&mut chunk), if is_open && (stream.has_room() || stopped.is_some()) => {
                match read {
                    Ok(0) | Err(_) => is_open = false,
                    Ok(count) => {
                        kept.add(&chunk[..count]);
                        if stream.has_room() {
                            stream.add(&chunk[..count]);
                        }
                    }
                }
            }
        }
    }
    let finished = tree.finish().await?;
    drain(&output, &mut chunk, |bytes| {
        kept.add(bytes);
        stream.add(bytes);
    });
    stream.end();
    if stream.has_text() {
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => {}
            // Nobody watches: then nobody misses it.
            _ = cx.progress.send(Progress::Printed(stream.take())) => {}
        }
    }
    let ending = stopped.unwrap_or_else(|| finished.status.map_or(Ending::Unknown, Ending::from));
    Ok((ending, Stopped::Here(finished.stopped), kept.into_text()))
}

/// A folder for the command's temporary files, where it looks for one. Removed with the value.
fn add_scratch(
    confinement: &mut Confinement,
    environment: &mut Environment,
) -> io::Result<tempfile::TempDir> {
    let parent = confinement.scratch_parent(&std::env::temp_dir());
    let parent =
        parent.ok_or_else(|| io::Error::other("there is no folder for temporary files"))?;
    let folder = tempfile::Builder::new()
        .prefix("turnery-")
        .tempdir_in(parent)?;
    environment.insert("TMPDIR".into(), folder.path().into());
    // Its parent is without links. One that a command has put in its place by now is not followed.
    confinement.scratch = Some(folder.path().to_owned());
    Ok(folder)
}

type Environment = BTreeMap<OsString, OsString>;

/// What a command finds in its environment that starts in `cwd`.
fn environment(around: Surroundings<'_>, cwd: &Path, workspace: &Workspace) -> Environment {
    let mut environment = environment::inherited_with(around.hidden, around.passed);
    let usual = environment::SET.iter();
    environment.extend(usual.map(|(name, value)| (name.into(), value.into())));
    environment.insert(environment::FOLDER.into(), cwd.into());
    if around.runs_readers {
        environment::keep_to_system(&mut environment, workspace);
    }
    set(around.git, &mut environment);
    environment
}

/// Starts a command line. Standard input is empty, output and errors come out of one pipe in the order in
/// which they were written; none of our own descriptors is inherited (TR-12).
async fn start(
    line: &str,
    cwd: &Path,
    environment: Environment,
    confinement: Option<&Confinement>,
) -> io::Result<(ProcessTree, pipe::Receiver)> {
    match start_in("bash", line, cwd, environment.clone(), confinement).await {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            start_in("sh", line, cwd, environment, confinement).await
        }
        started => started,
    }
}

async fn start_in(
    shell: &str,
    line: &str,
    cwd: &Path,
    environment: Environment,
    confinement: Option<&Confinement>,
) -> io::Result<(ProcessTree, pipe::Receiver)> {
    let (reader, writer) = io::pipe()?;
    let receiver = pipe::Receiver::from_owned_fd(OwnedFd::from(reader))?;
    let program = ProgramSpec {
        program: shell.into(),
        args: vec!["-c".into(), line.into()],
        folder: cwd.to_owned(),
        environment,
        confinement: confinement.cloned(),
    };
    let stdio = ChildStdio {
        stdin: File::open("/dev/null")?.into(),
        stdout: writer.try_clone()?.into(),
        stderr: writer.into(),
    };
    Ok((ProcessTree::spawn(program, stdio).await?, receiver))
}

/// Take what the pipe holds by now: all that the shell wrote is in it. A process that could not be stopped
/// and still holds the other end is not waited for. The kernel is asked, not the runtime, which may not have
/// heard of the last bytes yet.
fn drain(output: &pipe::Receiver, chunk: &mut [u8], mut each: impl FnMut(&[u8])) {
    let mut total = 0;
    while total < PIPE {
        match rustix::io::read(output, &mut *chunk) {
            Err(Errno::INTR) => {}
            Ok(0) | Err(_) => return,
            Ok(count) => {
                total += count;
                each(&chunk[..count]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[tokio::test]
    async fn bytes_that_the_runtime_has_not_heard_of_are_drained() {
        let (reader, mut writer) = io::pipe().unwrap();
        let receiver = pipe::Receiver::from_owned_fd(OwnedFd::from(reader)).unwrap();
        writer.write_all(b"last words").unwrap();
        let mut found = Vec::new();
        drain(&receiver, &mut [0; 4], |bytes| {
            found.extend_from_slice(bytes)
        });
        assert_eq!(found, b"last words");
    }
}
