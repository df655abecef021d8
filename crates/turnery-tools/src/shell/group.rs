//! Group: a command in a process group of its own, all of which ends when the command does.
//!
//! What must hold: no signal is sent to a number that may be somebody else's by now. A leader keeps its
//! number until it is waited for, so the group is killed first.

use super::environment;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::{
    io,
    os::fd::OwnedFd,
    path::Path,
    process::{ExitStatus, Stdio},
};
use tokio::{
    net::unix::pipe,
    process::{Child, Command},
    signal::unix::{Signal as Arrivals, SignalKind, signal},
};

/// A running command and all that it started. Dropping this kills them all.
///
/// Tokio's own kill on drop reaches the leader alone, so the guard kills the group.
pub(crate) struct Group {
    leader: Child,
    /// There only while the leader is not waited for.
    id: Option<Pid>,
    /// Some child of this process has ended.
    endings: Arrivals,
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
            .stderr(writer);
        let variables: Vec<_> = std::env::vars_os().map(|(name, _)| name).collect();
        for name in environment::removed(variables.iter().map(|name| &**name), hidden) {
            command.env_remove(name);
        }
        command.envs(environment::SET.iter().copied());
        let group = Self::spawn(&mut command)?;
        // `command` holds the write ends of the pipe: it must go, or the pipe never ends.
        drop(command);
        Ok((group, receiver))
    }

    /// Start a program as the leader of a group.
    pub(crate) fn spawn(command: &mut Command) -> io::Result<Self> {
        let endings = signal(SignalKind::child())?;
        let leader = command.process_group(0).kill_on_drop(true).spawn()?;
        let id = leader
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        Ok(Self {
            leader,
            id,
            endings,
        })
    }

    /// The leader, for its pipes.
    pub(crate) fn leader(&mut self) -> &mut Child {
        &mut self.leader
    }

    /// Wait until the leader has ended. May be dropped and called again.
    pub(crate) async fn over(&mut self) -> io::Result<()> {
        let Some(id) = self.id else { return Ok(()) };
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        while waitid(WaitId::Pid(id), how)?.is_none() {
            self.endings.recv().await;
        }
        Ok(())
    }

    /// Ask all of them to end.
    pub(crate) fn ask(&self) {
        self.signal(Signal::TERM);
    }

    /// Kill all of them.
    pub(crate) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// The leader has ended: kill what it left behind, and learn how it ended.
    pub(crate) async fn bury(mut self) -> io::Result<ExitStatus> {
        self.kill();
        self.id = None;
        self.leader.wait().await
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

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::test_kill_process;

    #[tokio::test]
    async fn a_leader_that_has_ended_keeps_its_number_until_its_group_is_killed() {
        let (mut group, _output) = Group::start("exit 3", Path::new("/"), &[]).unwrap();
        let id = group.id.unwrap();
        group.over().await.unwrap();
        assert_eq!(test_kill_process(id), Ok(()), "nobody has waited for it");
        assert_eq!(group.bury().await.unwrap().code(), Some(3));
        assert!(
            test_kill_process(id).is_err(),
            "the number is no longer ours"
        );
    }
}
