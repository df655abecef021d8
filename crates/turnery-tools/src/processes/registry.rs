//! Registry of all running process trees of this process, so that any thread can end them at once.

use rustix::{
    net::{Shutdown, shutdown},
    process::{Pid, Signal, kill_process, kill_process_group},
};
use std::{
    collections::HashMap,
    io,
    os::fd::OwnedFd,
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
};

#[derive(Debug, Default)]
pub(super) struct ProcessRegistry {
    /// Set once everything was ended; afterwards nothing can be started.
    is_closed: bool,
    next_id: u64,
    running: HashMap<u64, KillTarget>,
}

/// Process or process group through which a tree is killed.
#[derive(Debug)]
pub(super) enum KillTarget {
    /// A supervisor that was not reaped: its socket is closed and it is woken if it was stopped.
    Supervisor { socket: OwnedFd, pid: Pid },
    /// A process group whose leader was not reaped: it is killed.
    Group(Pid),
}

impl KillTarget {
    fn kill(&self) {
        // Fails only if the target has ended.
        match self {
            Self::Supervisor { socket, pid } => {
                let _ = shutdown(socket, Shutdown::Both);
                let _ = kill_process(*pid, Signal::CONT);
            }
            Self::Group(id) => {
                let _ = kill_process_group(*id, Signal::KILL);
            }
        }
    }
}

static REGISTRY: LazyLock<Mutex<ProcessRegistry>> = LazyLock::new(Mutex::default);

pub(super) fn lock_registry() -> MutexGuard<'static, ProcessRegistry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills all running programs and their descendants, and prevents further starts. Callable from any thread,
/// without a runtime, even while the runtime's thread hangs. Supervised trees are killed by their supervisors
/// within milliseconds after this returns, even if this process exits.
pub fn kill_all() {
    let mut registry = lock_registry();
    registry.is_closed = true;
    registry.running.values().for_each(KillTarget::kill);
}

/// Entry of one tree in the registry. Dropping this removes the entry.
#[derive(Debug)]
pub(super) struct TreeRegistration(u64);

impl TreeRegistration {
    /// Registers a tree. If [`kill_all`] was called before, kills the tree and fails.
    pub(super) fn new(target: KillTarget) -> io::Result<Self> {
        let mut registry = lock_registry();
        if registry.is_closed {
            target.kill();
            return Err(closed_error());
        }
        let number = registry.next_id;
        registry.next_id += 1;
        registry.running.insert(number, target);
        Ok(Self(number))
    }
}

/// Fails once [`kill_all`] was called: nothing may be started after that.
pub(super) fn check_open() -> io::Result<()> {
    match lock_registry().is_closed {
        true => Err(closed_error()),
        false => Ok(()),
    }
}

fn closed_error() -> io::Error {
    io::Error::other("turnery is ending, so nothing is started any more")
}

impl Drop for TreeRegistration {
    fn drop(&mut self) {
        lock_registry().running.remove(&self.0);
    }
}
