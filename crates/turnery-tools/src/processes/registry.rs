//! All running process trees of this process, so that any thread can end them at once.

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
pub(super) struct Registry {
    /// Set by [`end_all`]: nothing is started any more.
    is_closed: bool,
    next: u64,
    running: HashMap<u64, Target>,
}

/// How a tree is ended.
#[derive(Debug)]
pub(super) enum Target {
    /// By closing the socket of a supervisor that was not waited for, and waking it if it was stopped.
    Supervisor { socket: OwnedFd, pid: Pid },
    /// By killing a process group whose leader was not waited for.
    Group(Pid),
}

impl Target {
    fn end(&self) {
        // The only failure that can be is that it has ended.
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

static REGISTRY: LazyLock<Mutex<Registry>> = LazyLock::new(Mutex::default);

pub(super) fn lock() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills every program that is running and everything that those started, and refuses to start more.
/// Callable from any thread, without a runtime, also while the runtime's thread hangs. Supervised trees
/// are killed by their supervisors, some milliseconds after this returns and even if this process ends.
pub fn end_all() {
    let mut registry = lock();
    registry.is_closed = true;
    registry.running.values().for_each(Target::end);
}

/// Place of one tree in the registry. Dropping this takes it out.
#[derive(Debug)]
pub(super) struct Registration(u64);

impl Registration {
    /// Adds a tree; ends it and fails if [`end_all`] was called before.
    pub(super) fn new(target: Target) -> io::Result<Self> {
        let mut registry = lock();
        if registry.is_closed {
            target.end();
            return Err(closed());
        }
        let number = registry.next;
        registry.next += 1;
        registry.running.insert(number, target);
        Ok(Self(number))
    }
}

/// Fails if [`end_all`] was called.
pub(super) fn check_open() -> io::Result<()> {
    match lock().is_closed {
        true => Err(closed()),
        false => Ok(()),
    }
}

fn closed() -> io::Error {
    io::Error::other("turnery is ending, so nothing is started any more")
}

impl Drop for Registration {
    fn drop(&mut self) {
        lock().running.remove(&self.0);
    }
}
