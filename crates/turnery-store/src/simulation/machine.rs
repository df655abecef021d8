//! Simulates what the kernel of a machine says about its processes.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// A machine, whose processes start and end as a test says.
#[derive(Debug)]
pub(crate) struct SimulatedMachine {
    /// Boot and pid namespace, as in the description of a process.
    pub(crate) place: &'static str,
    running: Mutex<BTreeSet<u32>>,
}

thread_local! {
    static HERE: RefCell<Option<Arc<SimulatedMachine>>> = const { RefCell::new(None) };
}

impl SimulatedMachine {
    pub(crate) fn new(place: &'static str) -> Arc<Self> {
        Arc::new(Self {
            place,
            running: Mutex::default(),
        })
    }

    /// Returns the machine on which this thread runs; `None` outside of simulations.
    pub(crate) fn here() -> Option<Arc<Self>> {
        HERE.with_borrow(Clone::clone)
    }

    /// Moves this thread to the machine.
    pub(crate) fn enter(self: &Arc<Self>) {
        HERE.set(Some(Arc::clone(self)));
    }

    /// Moves this thread back to the real machine.
    pub(crate) fn leave() {
        HERE.set(None);
    }

    pub(crate) fn start_process(&self, pid: u32) {
        self.lock().insert(pid);
    }

    pub(crate) fn end_process(&self, pid: u32) {
        self.lock().remove(&pid);
    }

    pub(crate) fn end_all(&self) {
        self.lock().clear();
    }

    pub(crate) fn is_running(&self, pid: u32) -> bool {
        self.lock().contains(&pid)
    }

    /// Describes a process of this machine, like [`Owner`](crate::Owner) does.
    pub(crate) fn describe_process(&self, pid: u32) -> String {
        format!("pid={pid} start=1 {}", self.place)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
