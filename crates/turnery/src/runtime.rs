//! Tokio runtimes: single-threaded, and single-threaded with a standby thread for failover.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::runtime::{Builder, Handle, Runtime};
use turnery_store::InlineRuntime;

/// Name of the threads that run the agent.
pub(crate) const AGENT_THREAD_NAME: &str = "agent";

/// Stack of each worker thread, as large as that of a main thread. Unit: bytes.
const STACK_SIZE: usize = 8 << 20;

/// The standby thread goes back to sleep after this time without a stuck worker.
const CALM_PERIOD: Duration = Duration::from_secs(1);

/// Returns a runtime that uses the current thread only.
pub(crate) fn current_thread_runtime() -> anyhow::Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// A runtime with one working thread, and a standby thread that sleeps until the first is stuck.
///
/// One thread is fastest while nothing hangs, since no task changes threads. When that thread is stuck on a
/// hanging disk, the standby thread runs all other tasks.
pub(crate) struct FailoverRuntime {
    pub(crate) runtime: Runtime,
    standby: Standby,
}

impl FailoverRuntime {
    pub(crate) fn new() -> anyhow::Result<Self> {
        Self::with_calm(CALM_PERIOD)
    }

    fn with_calm(calm: Duration) -> anyhow::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name(AGENT_THREAD_NAME)
            .thread_stack_size(STACK_SIZE)
            .enable_all()
            .build()?;
        let standby = Standby::default();
        runtime.spawn(standby.clone().run(calm));
        Ok(Self { runtime, standby })
    }

    /// Returns the handle for a store that runs its short jobs inline on this runtime.
    pub(crate) fn inline(&self) -> InlineRuntime {
        let runtime = self.runtime.handle().clone();
        let standby = self.standby.clone();
        InlineRuntime {
            runtime: runtime.clone(),
            on_stall: Arc::new(move || {
                standby.wake();
                // The standby thread may be awake and waiting for tasks only, while the stuck thread polled
                // timers and IO.
                wake_idle_worker(&runtime);
            }),
        }
    }

    /// Shuts the runtime down. Threads that are still stuck after `patience` are abandoned.
    pub(crate) fn shutdown(self, patience: Duration) {
        self.standby.end();
        self.runtime.shutdown_timeout(patience);
    }
}

/// Keeps one of the runtime's threads asleep, so that it takes no tasks, until the other is stuck.
#[derive(Clone, Default)]
struct Standby(Arc<StandbyShared>);

#[derive(Default)]
struct StandbyShared {
    state: Mutex<StandbyState>,
    woken: Condvar,
}

#[derive(Default)]
struct StandbyState {
    is_woken: bool,
    has_ended: bool,
    /// Number of times that the thread has gone to sleep.
    #[cfg(test)]
    sleeps: u32,
}

impl Standby {
    /// Task that occupies one thread. The other thread takes over whatever is in its queue.
    async fn run(self, calm: Duration) {
        while !self.sleep() {
            // While awake, this thread runs the tasks that the stuck thread cannot.
            while std::mem::take(&mut self.state().is_woken) {
                tokio::time::sleep(calm).await;
            }
        }
    }

    /// Blocks the thread until it is woken. Returns true if the runtime is shutting down.
    fn sleep(&self) -> bool {
        // If this thread polled timers and IO, the other has to take over. The first of the two tasks wakes the
        // other thread; the second stays with this one.
        for _ in 0..2 {
            wake_idle_worker(&Handle::current());
        }
        #[cfg(test)]
        {
            self.state().sleeps += 1;
        }
        let sleeping = |state: &mut StandbyState| !state.is_woken && !state.has_ended;
        let awake = self.0.woken.wait_while(self.state(), sleeping);
        awake.unwrap_or_else(PoisonError::into_inner).has_ended
    }

    fn wake(&self) {
        self.state().is_woken = true;
        self.0.woken.notify_one();
    }

    fn end(&self) {
        self.state().has_ended = true;
        self.0.woken.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, StandbyState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes an idle thread of the runtime poll timers and IO, if no thread does.
///
/// Only one idle thread polls them; the others wait for tasks. If the polling thread is stuck, another takes over
/// once it has been given a task.
fn wake_idle_worker(runtime: &Handle) {
    runtime.spawn(async {});
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{sync::mpsc, thread, time::Instant};

    /// Exceeded only if something hangs.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// Spawns a task that blocks until another task of the runtime sends a value.
    fn stuck_task(runtime: &FailoverRuntime) -> mpsc::Receiver<bool> {
        let (send, sent) = mpsc::sync_channel(1);
        let (begin, begun) = mpsc::sync_channel(1);
        let (end, ended) = mpsc::sync_channel(1);
        runtime.runtime.spawn(async move {
            let _ = begin.send(());
            let _ = end.send(sent.recv_timeout(PATIENCE).is_ok());
        });
        begun.recv().unwrap();
        runtime.runtime.spawn(async move { send.send(()) });
        ended
    }

    /// Waits until the standby thread has gone to sleep `sleeps` times.
    fn wait_for_sleep(runtime: &FailoverRuntime, sleeps: u32) {
        let until = Instant::now() + PATIENCE;
        while runtime.standby.state().sleeps < sleeps {
            assert!(Instant::now() < until, "it stays awake");
            thread::yield_now();
        }
    }

    /// Starts a timer outside any task, since a new task would wake a worker.
    fn timer(runtime: &FailoverRuntime) -> mpsc::Receiver<()> {
        let (send, fired) = mpsc::sync_channel(1);
        let handle = runtime.runtime.handle().clone();
        thread::spawn(move || {
            handle.block_on(async { tokio::time::sleep(Duration::from_millis(1)).await });
            send.send(())
        });
        fired
    }

    #[test]
    fn standby_takes_over_when_woken_and_sleeps_again() {
        let runtime = FailoverRuntime::new().unwrap();
        for sleeps in 1..=2 {
            wait_for_sleep(&runtime, sleeps);
            let ended = stuck_task(&runtime);
            (runtime.inline().on_stall)();
            assert_eq!(ended.recv(), Ok(true));
        }
        runtime.shutdown(PATIENCE);
    }

    /// After an idle period, the thread that goes to sleep is the one that polled timers.
    #[test]
    fn timers_fire_while_the_standby_sleeps() {
        let runtime = FailoverRuntime::with_calm(Duration::from_millis(1)).unwrap();
        for sleeps in 1..=50 {
            wait_for_sleep(&runtime, sleeps);
            let fired = timer(&runtime).recv_timeout(PATIENCE);
            if fired.is_err() {
                // Otherwise the runtime could not be dropped.
                runtime.standby.end();
            }
            assert_eq!(fired, Ok(()), "round {sleeps}");
            (runtime.inline().on_stall)();
        }
        runtime.shutdown(PATIENCE);
    }

    /// The thread that polls timers is the one that gets stuck when a timer fires.
    #[test]
    fn timers_fire_with_stuck_thread_and_awake_standby() {
        let runtime = FailoverRuntime::with_calm(2 * PATIENCE).unwrap();
        wait_for_sleep(&runtime, 1);
        (runtime.inline().on_stall)();
        for round in 1..=50 {
            let (begin, begun) = mpsc::sync_channel(1);
            let (release, released) = mpsc::sync_channel::<()>(1);
            runtime.runtime.spawn(async move {
                tokio::time::sleep(Duration::from_millis(1)).await;
                let _ = begin.send(());
                let _ = released.recv_timeout(2 * PATIENCE);
            });
            begun.recv().unwrap();
            (runtime.inline().on_stall)();
            let fired = timer(&runtime).recv_timeout(PATIENCE);
            drop(release);
            assert_eq!(fired, Ok(()), "round {round}");
        }
        runtime.shutdown(PATIENCE);
    }
}
