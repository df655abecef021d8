//! A thread that starts a confined program and later kills everything in the confinement at once.
//!
//! Processes that fork and exit faster than they are found escape being killed one by one. The thread may
//! signal only its own descendants, as landlock blocks all other signals. So its `kill(-1)` reaches exactly
//! those, and the kernel lets none of them fork meanwhile. They are confined once more, by a second thread
//! that ends before they run, because they could signal anything with the same confinement.

use crate::sandbox::{Confinement, SandboxSupport, confine_signals, confine_thread};
use rustix::{
    io::Errno,
    process::{Pid, Signal, getppid, kill_process_group, test_kill_process},
};
use std::{
    io,
    process::{Child, Command},
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
};

/// First version of landlock that confines signals.
const LANDLOCK_WITH_SIGNALS: u32 = 6;

/// Handle of a thread that can kill a confined program and all its descendants at once. The thread ends when
/// the handle is dropped, or at once if the kernel cannot confine signals.
#[derive(Debug)]
pub(super) struct KillThread {
    /// Each request is answered once everything in the confinement was killed.
    kill_requests: SyncSender<SyncSender<()>>,
}

impl KillThread {
    /// Starts `command` in `confinement`.
    ///
    /// # Errors
    ///
    /// Fails if the command cannot be started or the confinement cannot be applied; then nothing was started.
    pub(super) fn start(confinement: Confinement, command: Command) -> io::Result<(Child, Self)> {
        let (answer, started) = sync_channel(1);
        let (kill_requests, requests) = sync_channel(1);
        let parent = getppid().filter(|parent| test_kill_process(*parent).is_ok());
        thread::Builder::new().spawn(move || {
            let reaches_only_own_descendants = can_confine_signals()
                && confine_signals().is_ok()
                && reaches_only_own_descendants(parent);
            let failed = |_| Err(io::Error::other("the sandbox could not be set up"));
            let starter =
                thread::Builder::new().spawn(move || spawn_confined(&confinement, command));
            let child = starter.and_then(|starter| starter.join().unwrap_or_else(failed));
            let is_child_there = child.is_ok();
            let _ = answer.send(child);
            if is_child_there && reaches_only_own_descendants {
                serve_kill_requests(&requests);
            }
        })?;
        let lost = |_| Err(io::Error::other("the sandbox could not be set up"));
        let child = started.recv().unwrap_or_else(lost)?;
        Ok((child, Self { kill_requests }))
    }

    /// Kills the confined program and all its descendants, and waits until that is done. Does nothing if the
    /// kernel cannot confine signals.
    pub(super) fn kill_all(&self) {
        let (done, answer) = sync_channel(1);
        if self.kill_requests.send(done).is_ok() {
            let _ = answer.recv();
        }
    }
}

fn spawn_confined(confinement: &Confinement, mut command: Command) -> io::Result<Child> {
    confine_thread(confinement)?;
    command.spawn()
}

fn can_confine_signals() -> bool {
    SandboxSupport::detect().landlock >= Some(LANDLOCK_WITH_SIGNALS)
}

/// Returns true if signals of this thread reach only its descendants. `parent` is another process, which
/// could be signalled before.
fn reaches_only_own_descendants(parent: Option<Pid>) -> bool {
    parent.is_some_and(|parent| test_kill_process(parent) == Err(Errno::PERM))
}

fn serve_kill_requests(requests: &Receiver<SyncSender<()>>) {
    for done in requests {
        // `kill(-1)` reaches everything that this thread may signal except its own process. Fails if there is
        // nothing.
        let _ = kill_process_group(Pid::INIT, Signal::KILL);
        let _ = done.send(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::temp_folder_outside_sandbox;
    use std::{io::Read as _, os::unix::process::ExitStatusExt as _};

    fn confinement_of(folder: &tempfile::TempDir) -> Confinement {
        Confinement {
            writes: true,
            roots: vec![folder.path().canonicalize().unwrap()],
            work_trees: Vec::new(),
            ..Confinement::default()
        }
    }

    /// A signal to a thread reaches its process.
    #[test]
    fn program_cannot_signal_supervisor_threads() {
        if !can_confine_signals() {
            return;
        }
        let folder = temp_folder_outside_sandbox();
        let (mut reader, writer) = io::pipe().unwrap();
        let (wait, go) = io::pipe().unwrap();
        let mut command = Command::new("bash");
        let line = "read; for t in /proc/$PPID/task/*; do kill -0 ${t##*/} && echo reached; \
                    cat $t/maps > maps && echo read; done; kill -0 $$ && echo done";
        command
            .args(["-c", line])
            .current_dir(folder.path())
            .stdin(wait)
            .stdout(writer);
        let (mut child, confined) = KillThread::start(confinement_of(&folder), command).unwrap();
        // Both threads have finished starting the program.
        drop(go);
        let mut output = String::new();
        reader.read_to_string(&mut output).unwrap();
        assert_eq!(output, "done\n");
        child.wait().unwrap();
        drop(confined);
    }

    #[test]
    fn kill_all_ends_only_confined_processes() {
        if !can_confine_signals() {
            return;
        }
        let folder = temp_folder_outside_sandbox();
        let mut other = Command::new("sleep").arg("60").spawn().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        let mut command = Command::new("bash");
        let line = "setsid sleep 60 & (setsid sleep 60 &); echo up; exec sleep 60";
        command
            .args(["-c", line])
            .current_dir(folder.path())
            .stdout(writer);
        let (mut child, confined) = KillThread::start(confinement_of(&folder), command).unwrap();
        let mut said = [0; 3];
        reader.read_exact(&mut said).unwrap();
        confined.kill_all();
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(Signal::KILL.as_raw()));
        // A process that is left holds the other end.
        let left = reader.read(&mut said).unwrap();
        assert_eq!(left, 0);
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
