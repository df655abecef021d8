//! A thread that starts a confined program, and stays to end all that is in the confinement at once.
//!
//! Processes that fork and exit faster than they are looked for escape whoever kills them one by one. The thread may
//! signal nothing but what it starts and their descendants, as landlock holds back all others. So its `kill(-1)`
//! reaches exactly those, and the kernel lets none of them fork meanwhile. They are confined once more, by a second
//! thread that ends before they do anything: what is confined like them they could signal.

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

/// Version of landlock from which on it confines signals.
const LANDLOCK_WITH_SIGNALS: u32 = 6;

/// The thread, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct ConfinedThread {
    /// Each is answered when everything in the confinement was killed.
    kills: SyncSender<SyncSender<()>>,
}

impl ConfinedThread {
    /// Starts `command` in `confinement`.
    ///
    /// # Errors
    ///
    /// Those of the start, and any failure to apply the confinement; then nothing was started.
    pub(super) fn start(confinement: Confinement, command: Command) -> io::Result<(Child, Self)> {
        let (answer, started) = sync_channel(1);
        let (kills, orders) = sync_channel(1);
        let parent = getppid().filter(|parent| test_kill_process(*parent).is_ok());
        thread::Builder::new().spawn(move || {
            let is_alone = confines_signals() && confine_signals().is_ok() && is_alone(parent);
            let failed = |_| Err(io::Error::other("the sandbox could not be set up"));
            let starter = thread::Builder::new().spawn(move || start(&confinement, command));
            let child = starter.and_then(|starter| starter.join().unwrap_or_else(failed));
            let is_child_there = child.is_ok();
            let _ = answer.send(child);
            if is_child_there && is_alone {
                kill_when_told(&orders);
            }
        })?;
        let lost = |_| Err(io::Error::other("the sandbox could not be set up"));
        let child = started.recv().unwrap_or_else(lost)?;
        Ok((child, Self { kills }))
    }

    /// Kills all processes of the confinement but this one, where the kernel confines signals.
    pub(super) fn kill_all(&self) {
        let (done, answer) = sync_channel(1);
        if self.kills.send(done).is_ok() {
            let _ = answer.recv();
        }
    }
}

fn start(confinement: &Confinement, mut command: Command) -> io::Result<Child> {
    confine_thread(confinement)?;
    command.spawn()
}

fn confines_signals() -> bool {
    SandboxSupport::detect().landlock >= Some(LANDLOCK_WITH_SIGNALS)
}

/// Whether signals of this thread reach nobody but what it starts. `parent` is another, and could be signalled before.
fn is_alone(parent: Option<Pid>) -> bool {
    parent.is_some_and(|parent| test_kill_process(parent) == Err(Errno::PERM))
}

fn kill_when_told(orders: &Receiver<SyncSender<()>>) {
    for done in orders {
        // `kill(-1)`: all that this thread may signal, without its own process. It fails if there is none.
        let _ = kill_process_group(Pid::INIT, Signal::KILL);
        let _ = done.send(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::folder_beside_tests;
    use std::{io::Read as _, os::unix::process::ExitStatusExt as _};

    fn confined_to(folder: &tempfile::TempDir) -> Confinement {
        Confinement {
            writes: true,
            roots: vec![folder.path().canonicalize().unwrap()],
            work_trees: Vec::new(),
            ..Confinement::default()
        }
    }

    /// A signal to a thread is one to its process.
    #[test]
    fn no_thread_of_the_supervisor_is_in_reach_of_the_program() {
        if !confines_signals() {
            return;
        }
        let folder = folder_beside_tests();
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
        let (mut child, confined) = ConfinedThread::start(confined_to(&folder), command).unwrap();
        // Both threads of the start are past what they do.
        drop(go);
        let mut said = String::new();
        reader.read_to_string(&mut said).unwrap();
        assert_eq!(said, "done\n");
        child.wait().unwrap();
        drop(confined);
    }

    #[test]
    fn all_that_is_confined_ends_at_once_and_nobody_else() {
        if !confines_signals() {
            return;
        }
        let folder = folder_beside_tests();
        let mut other = Command::new("sleep").arg("60").spawn().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        let mut command = Command::new("bash");
        let line = "setsid sleep 60 & (setsid sleep 60 &); echo up; exec sleep 60";
        command
            .args(["-c", line])
            .current_dir(folder.path())
            .stdout(writer);
        let (mut child, confined) = ConfinedThread::start(confined_to(&folder), command).unwrap();
        let mut said = [0; 3];
        reader.read_exact(&mut said).unwrap();
        confined.kill_all();
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(Signal::KILL.as_raw()));
        // Whoever is left holds the other end.
        let left = reader.read(&mut said).unwrap();
        assert_eq!(left, 0);
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
