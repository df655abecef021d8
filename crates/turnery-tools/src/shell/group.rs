//! Group: a command in a process group of its own, all of which ends when the command does.

use super::environment;
use rustix::process::{Pid, Signal, kill_process_group};
use std::{
    io,
    os::fd::OwnedFd,
    path::Path,
    process::{ExitStatus, Stdio},
};
use tokio::{
    net::unix::pipe,
    process::{Child, Command},
};

/// A running command and all that it started. Dropping this kills them all.
///
/// Tokio's own kill on drop reaches the leader alone, so the guard kills the group.
pub(super) struct Group {
    leader: Child,
    id: Option<Pid>,
}

impl Group {
    /// Start a command line. Standard input is empty, output and errors come out of one pipe in
    /// the order in which they were written; none of our own descriptors is inherited (TR-12).
    pub(super) fn start(
        line: &str,
        cwd: &Path,
        hidden: &[String],
    ) -> io::Result<(Self, pipe::Receiver)> {
        match Self::start_in("bash", line, cwd, hidden) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Self::start_in("sh", line, cwd, hidden)
            }
            started => started,
        }
    }

    fn start_in(
        shell: &str,
        line: &str,
        cwd: &Path,
        hidden: &[String],
    ) -> io::Result<(Self, pipe::Receiver)> {
        let (reader, writer) = io::pipe()?;
        let receiver = pipe::Receiver::from_owned_fd(OwnedFd::from(reader))?;
        let mut command = Command::new(shell);
        command
            .arg("-c")
            .arg(line)
            .current_dir(cwd)
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .process_group(0)
            .kill_on_drop(true);
        let variables: Vec<_> = std::env::vars_os().map(|(name, _)| name).collect();
        for name in environment::removed(variables.iter().map(|name| &**name), hidden) {
            command.env_remove(name);
        }
        command.envs(environment::SET.iter().copied());
        let leader = command.spawn()?;
        let id = leader
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        // `command` holds the write ends of the pipe: it must go, or the pipe never ends.
        drop(command);
        Ok((Self { leader, id }, receiver))
    }

    /// Wait for the leader. May be dropped and called again.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.leader.wait().await
    }

    /// Ask all of them to end.
    pub(super) fn ask(&self) {
        self.signal(Signal::TERM);
    }

    /// Kill all of them.
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// The leader is gone: kill what it left behind. The group keeps its number while it has
    /// members; once it has none the number may be given away, so this is the last signal to it.
    pub(super) fn sweep(mut self) {
        self.kill();
        self.id = None;
    }

    fn signal(&self, signal: Signal) {
        if let Some(id) = self.id {
            // The only failure that can be is that nobody is left.
            let _ = kill_process_group(id, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
