//! Runs a command line on this machine, reports its output, and stops it on cancel or timeout.

use super::{
    environment,
    exit_status::{CommandExit, StopOutcome},
    live_output::LiveOutput,
    output_buffer::OutputBuffer,
};
use crate::{
    Confinement, Progress, ToolCx, Workspace, grace,
    policy::{GitSettings, git::environment::apply_git_settings},
    processes::{ChildStdio, ProcessTree, ProgramSpec},
};
use rustix::io::Errno;
use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs::File,
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::{
    io::AsyncReadExt,
    net::unix::pipe,
    time::{Instant, sleep_until},
};

/// Size of one read. Unit: bytes.
const CHUNK_BYTES: usize = 32 * 1024;
/// Maximum content of a pipe, unless the system's limit was raised. Unit: bytes.
const MAX_PIPE_BYTES: usize = 1024 * 1024;

/// Environment and restrictions of a command.
#[derive(Clone, Copy)]
pub(crate) struct ProcessSettings<'a> {
    /// Variables hidden from the command.
    pub(crate) hidden: &'a [String],
    /// Variables passed even if they match `hidden`.
    pub(crate) passed: &'a [String],
    /// Access granted to the command; `None` for unrestricted.
    pub(crate) confinement: Option<&'a Confinement>,
    /// The programs must not load code from folders of the project that the environment names.
    pub(crate) loads_no_project_code: bool,
    /// Settings of git.
    pub(crate) git: GitSettings,
}

/// Runs a command line until it ends. Dropping the future kills the command and all its descendants.
///
/// A cancel or the timeout terminates the process group (SIGTERM); after [`grace::COMMAND`] the group is
/// killed. When the shell has exited, its background processes are killed too, so that they neither live on
/// nor keep the call waiting.
pub(crate) async fn run(
    line: &str,
    cwd: &Path,
    limit: Duration,
    surroundings: ProcessSettings<'_>,
    cx: &ToolCx,
) -> io::Result<(CommandExit, StopOutcome, String)> {
    let inherited = environment::inherited_env_with(surroundings.hidden, surroundings.passed);
    let mut environment = build_environment(inherited, surroundings, cwd, &cx.workspace);
    let mut confinement = surroundings.confinement.cloned();
    let _scratch = match &mut confinement {
        Some(confinement) if confinement.needs_scratch() => {
            Some(add_scratch(confinement, &mut environment)?)
        }
        _ => None,
    };
    let path = environment.get(OsStr::new("PATH")).cloned();
    let shell = environment::find_shell(&path.unwrap_or_default(), &cx.workspace);
    let shell = shell.ok_or(Errno::NOENT)?;
    let started = start_shell(shell, line, cwd, environment, confinement);
    let (mut tree, mut output) = started.await?;
    let mut kept = OutputBuffer::default();
    let mut stream = LiveOutput::default();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut is_open = true;
    let mut stopped = None;
    let alarm = sleep_until(Instant::now() + limit);
    tokio::pin!(alarm);
    loop {
        tokio::select! {
            biased;
            () = cx.cancel.cancelled(), if stopped.is_none() => {
                stopped = Some(CommandExit::Cancelled);
                tree.request_stop();
                alarm.as_mut().reset(Instant::now() + grace::COMMAND);
            }
            () = &mut alarm => {
                if stopped.is_some() {
                    // Remaining processes are killed below, within a bounded time.
                    break;
                }
                stopped = Some(CommandExit::TimedOut(limit));
                tree.request_stop();
                alarm.as_mut().reset(Instant::now() + grace::COMMAND);
            }
            over = tree.wait_exit() => {
                over?;
                break;
            }
            permit = cx.progress.reserve(), if stream.has_text() => match permit {
                Ok(permit) => permit.send(Progress::Output(stream.take_text())),
                Err(_) => stream.close(),
            },
            // A command that is shutting down is not blocked by a client that stopped reading.
            read = output.read(&mut chunk), if is_open && (stream.has_room() || stopped.is_some()) => {
                match read {
                    Ok(0) | Err(_) => is_open = false,
                    Ok(count) => {
                        kept.push(&chunk[..count]);
                        if stream.has_room() {
                            stream.push(&chunk[..count]);
                        }
                    }
                }
            }
        }
    }
    let finished = tree.finish().await?;
    drain_pipe(&output, &mut chunk, |bytes| {
        kept.push(bytes);
        stream.push(bytes);
    });
    stream.finish();
    if stream.has_text() {
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => {}
            // An error means that progress is not displayed.
            _ = cx.progress.send(Progress::Output(stream.take_text())) => {}
        }
    }
    let ending = stopped.unwrap_or_else(|| {
        finished
            .status
            .map_or(CommandExit::Unknown, CommandExit::from)
    });
    Ok((
        ending,
        StopOutcome::Local(finished.stopped),
        kept.into_text(),
    ))
}

/// Creates a folder for the temporary files of a command that needs one. Removed on drop.
fn add_scratch(
    confinement: &mut Confinement,
    environment: &mut CommandEnv,
) -> io::Result<tempfile::TempDir> {
    let parent = confinement.scratch_parent(&std::env::temp_dir());
    let parent =
        parent.ok_or_else(|| io::Error::other("there is no folder for temporary files"))?;
    let folder = tempfile::Builder::new()
        .prefix("turnery-")
        .tempdir_in(parent)?;
    environment.insert("TMPDIR".into(), folder.path().into());
    // Its parent contains no links. If a command has meanwhile replaced the folder by a link, it is not
    // followed.
    confinement.scratch = Some(folder.path().to_owned());
    Ok(folder)
}

type CommandEnv = BTreeMap<OsString, OsString>;

/// Returns the environment of a command that starts in `cwd`.
fn build_environment(
    mut environment: CommandEnv,
    settings: ProcessSettings<'_>,
    cwd: &Path,
    workspace: &Workspace,
) -> CommandEnv {
    environment::strip_shell_files(&mut environment, workspace);
    if settings.loads_no_project_code {
        environment::strip_project_code(&mut environment, cwd, workspace);
    }
    let usual = environment::DEFAULT_VARIABLES.iter();
    environment.extend(usual.map(|(name, value)| (name.into(), value.into())));
    environment.insert(environment::PWD.into(), cwd.into());
    apply_git_settings(settings.git, &mut environment);
    environment
}

/// Starts a command line. Stdin is empty; stdout and stderr share one pipe, so that their order is kept; none
/// of this process's other descriptors is inherited (TR-12).
async fn start_shell(
    (name, shell): (&str, PathBuf),
    line: &str,
    cwd: &Path,
    environment: CommandEnv,
    confinement: Option<Confinement>,
) -> io::Result<(ProcessTree, pipe::Receiver)> {
    let (reader, writer) = io::pipe()?;
    let receiver = pipe::Receiver::from_owned_fd(OwnedFd::from(reader))?;
    let program = ProgramSpec {
        program: shell.into(),
        // Messages begin with the name.
        args: vec!["-c".into(), line.into(), name.into()],
        working_directory: cwd.to_owned(),
        environment,
        confinement,
    };
    let stdio = ChildStdio {
        stdin: File::open("/dev/null")?.into(),
        stdout: writer.try_clone()?.into(),
        stderr: writer.into(),
    };
    Ok((ProcessTree::spawn(program, stdio).await?, receiver))
}

/// Reads what the pipe contains, which includes everything the shell wrote. A process that could not be
/// stopped and still holds the other end is not waited for. Reads with system calls, since the runtime may
/// not know of the last bytes yet.
fn drain_pipe(output: &pipe::Receiver, chunk: &mut [u8], mut each: impl FnMut(&[u8])) {
    let mut total = 0;
    while total < MAX_PIPE_BYTES {
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
    async fn drain_reads_bytes_unseen_by_runtime() {
        let (reader, mut writer) = io::pipe().unwrap();
        let receiver = pipe::Receiver::from_owned_fd(OwnedFd::from(reader)).unwrap();
        writer.write_all(b"last words").unwrap();
        let mut found = Vec::new();
        drain_pipe(&receiver, &mut [0; 4], |bytes| {
            found.extend_from_slice(bytes)
        });
        assert_eq!(found, b"last words");
    }
}
