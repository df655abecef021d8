//! Runtimes: of one thread, and of one thread with another on standby.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::runtime::{Builder, Handle, Runtime};
use turnery_store::Inline;

/// Name of the threads that run the agent.
pub(crate) const AGENT: &str = "agent";

/// What a thread of its own has; worker threads get less unless told.
const STACK: usize = 8 << 20;

/// The thread on standby sleeps again once nothing has been stuck for so long.
const CALM: Duration = Duration::from_secs(1);

/// A runtime on this thread alone.
pub(crate) fn runtime() -> anyhow::Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// A runtime of one thread that works, and one on standby that sleeps until the first is stuck.
///
/// One thread is fastest as long as nothing hangs, since no task changes threads. When it is stuck in a disk
/// that hangs, the other runs all other tasks.
pub(crate) struct FailoverRuntime {
    pub(crate) runtime: Runtime,
    standby: Standby,
}

impl FailoverRuntime {
    pub(crate) fn new() -> anyhow::Result<Self> {
        Self::with_calm(CALM)
    }

    fn with_calm(calm: Duration) -> anyhow::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name(AGENT)
            .thread_stack_size(STACK)
            .enable_all()
            .build()?;
        let standby = Standby::default();
        runtime.spawn(standby.clone().run(calm));
        Ok(Self { runtime, standby })
    }

    /// For a store whose short jobs this runtime is to do.
    pub(crate) fn inline(&self) -> Inline {
        let runtime = self.runtime.handle().clone();
        let standby = self.standby.clone();
        Inline {
            runtime: runtime.clone(),
            on_stall: Arc::new(move || {
                standby.wake();
                // If it is awake still, it may wait for tasks alone, and the stuck thread waited for timers and files.
                wait_for_events(&runtime);
            }),
        }
    }

    /// Ends the runtime. Threads that are stuck are left behind after `patience`.
    pub(crate) fn end(self, patience: Duration) {
        self.standby.end();
        self.runtime.shutdown_timeout(patience);
    }
}

/// Keeps one of the runtime's threads asleep, out of reach of tasks, until the other is stuck.
#[derive(Clone, Default)]
struct Standby(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    woken: Condvar,
}

#[derive(Default)]
struct State {
    is_woken: bool,
    has_ended: bool,
    /// How often the thread has gone to sleep.
    #[cfg(test)]
    sleeps: u32,
}

impl Standby {
    /// A task that takes up one thread. Whatever lies in that thread's queue is taken by the other.
    async fn run(self, calm: Duration) {
        while !self.sleep() {
            // Awake: this thread does what the other cannot.
            while std::mem::take(&mut self.state().is_woken) {
                tokio::time::sleep(calm).await;
            }
        }
    }

    /// Blocks the thread until it is woken. True if it is to stay awake for good.
    fn sleep(&self) -> bool {
        // If it was this thread that waited for timers and files, the other has to take that over. Of two tasks the
        // second stays with this thread; for the first the other is woken.
        for _ in 0..2 {
            wait_for_events(&Handle::current());
        }
        #[cfg(test)]
        {
            self.state().sleeps += 1;
        }
        let sleeping = |state: &mut State| !state.is_woken && !state.has_ended;
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

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Has an idle thread of the runtime wait for timers and files, if none does.
///
/// Only one idle thread does, the others wait for a task. If that one is stuck, another takes its place once it has
/// been given a task.
fn wait_for_events(runtime: &Handle) {
    runtime.spawn(async {});
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{sync::mpsc, thread, time::Instant};

    /// Only a hang takes so long.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// A task that is stuck until another task of the runtime sends something.
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

    /// Waits until the standby has gone to sleep so often.
    fn wait_for_sleep(runtime: &FailoverRuntime, sleeps: u32) {
        let until = Instant::now() + PATIENCE;
        while runtime.standby.state().sleeps < sleeps {
            assert!(Instant::now() < until, "it stays awake");
            thread::yield_now();
        }
    }

    /// Waits for a timer without a task, for which a worker would be woken.
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
    fn standby_takes_over_when_it_is_woken_and_sleeps_again() {
        let runtime = FailoverRuntime::new().unwrap();
        for sleeps in 1..=2 {
            wait_for_sleep(&runtime, sleeps);
            let ended = stuck_task(&runtime);
            (runtime.inline().on_stall)();
            assert_eq!(ended.recv(), Ok(true));
        }
        runtime.end(PATIENCE);
    }

    /// After an idle time the thread that goes to sleep is the one that waited for timers.
    #[test]
    fn timers_fire_while_the_standby_sleeps() {
        let runtime = FailoverRuntime::with_calm(Duration::from_millis(1)).unwrap();
        for sleeps in 1..=50 {
            wait_for_sleep(&runtime, sleeps);
            let fired = timer(&runtime).recv_timeout(PATIENCE);
            if fired.is_err() {
                // Else the runtime could not be dropped.
                runtime.standby.end();
            }
            assert_eq!(fired, Ok(()), "round {sleeps}");
            (runtime.inline().on_stall)();
        }
        runtime.end(PATIENCE);
    }

    /// The thread that waited for timers is the one that gets stuck when one of them fires.
    #[test]
    fn timers_fire_when_a_thread_is_stuck_while_the_standby_is_awake() {
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
        runtime.end(PATIENCE);
    }
}
