//! Ends the process when its runtime is stuck during shutdown.
//!
//! Whatever the agent is stuck in (a write to a hanging disk, an input that a parser never finishes), the end
//! of input and signals must still end the process and everything that it started. A dedicated thread listens
//! for both, without waking for ordinary input. Once one has arrived, the thread requests a heartbeat from the
//! runtime every few milliseconds until the process has ended.

mod stall_detector;

use crate::{logs, run::exit, runtime::AGENT_THREAD_NAME};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Signal, getpid, kill_process},
};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    low_level::pipe,
};
use stall_detector::{HeartbeatReading, ShutdownReason, StallDetector};
use std::{
    io::{self, Read as _},
    os::fd::OwnedFd,
    os::unix::net::UnixStream,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};
use tokio::sync::Notify;

/// Interval of heartbeat requests during shutdown.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Time that a stuck process gets for cleaning up before it kills itself.
const EXIT_TIMEOUT: Duration = Duration::from_millis(200);

/// Watches the runtime. Dropping the handle changes nothing: the thread watches until the process ends.
#[derive(Clone, Debug)]
pub(crate) struct Watchdog(Arc<WatchdogShared>);

#[derive(Debug, Default)]
struct WatchdogShared {
    /// Wakes the heartbeat task.
    sign_requested: Notify,
    sign_count: AtomicU64,
    /// Time of the first request to shut down.
    leaving_since: Mutex<Option<Instant>>,
    /// True once only the result remains to be written, which may take as long as its reader does.
    is_over: AtomicBool,
}

impl Watchdog {
    /// Starts the watchdog thread. `input` is the client's pipe, if its end ends the process: at once, or with
    /// `drain` when the accepted prompts have ended. `on_signal` is called on the watchdog thread for each
    /// SIGTERM, SIGINT and SIGHUP, except for a SIGHUP that `nohup` ignores.
    pub(crate) fn start(
        input: Option<OwnedFd>,
        drain: bool,
        on_signal: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let (signals, arriving) = UnixStream::pair()?;
        let hangup = (!ignores_hangup()).then_some(SIGHUP);
        for signal in [SIGTERM, SIGINT].into_iter().chain(hangup) {
            pipe::register(signal, arriving.try_clone()?)?;
        }
        let at_end_of_input = match drain {
            true => ShutdownReason::Drain,
            false => ShutdownReason::EndOfInput,
        };
        let shared = Arc::new(WatchdogShared::default());
        let watchdog = Self(Arc::clone(&shared));
        thread::Builder::new()
            .name("watchdog".to_owned())
            .spawn(move || watch(signals, input, at_end_of_input, &shared, &on_signal))?;
        Ok(watchdog)
    }

    /// Sends heartbeats while polled; runs as a task of the runtime.
    pub(crate) async fn run_heartbeat(self) {
        loop {
            self.beat();
            self.0.sign_requested.notified().await;
        }
    }

    /// Sends one heartbeat; for use between the steps of the shutdown, each of which has its own timeout.
    pub(crate) fn beat(&self) {
        self.0.sign_count.fetch_add(1, Ordering::Relaxed);
    }

    /// Drops `value` on a separate thread, and sends heartbeats until that is done. Returns false if the drop takes
    /// longer than `patience`; the thread then continues in the background.
    pub(crate) fn drop_within(&self, value: impl Send + 'static, patience: Duration) -> bool {
        let (done, is_done) = mpsc::sync_channel(1);
        let dropping = thread::Builder::new().spawn(move || {
            drop(value);
            let _ = done.send(());
        });
        if dropping.is_err() {
            return true;
        }
        let until = Instant::now() + patience;
        loop {
            self.beat();
            let left = until.saturating_duration_since(Instant::now());
            match is_done.recv_timeout(left.min(CHECK_INTERVAL)) {
                Err(mpsc::RecvTimeoutError::Timeout) if left.is_zero() => return false,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => return true,
            }
        }
    }

    /// Stops the watch: from now on only another signal ends the process, immediately.
    pub(crate) fn stand_down(&self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }

    /// Returns the time of the first end of input or signal.
    pub(crate) fn leaving_since(&self) -> Option<Instant> {
        *self
            .0
            .leaving_since
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Events on the watched descriptors.
#[derive(Default)]
struct WatchEvents {
    signal: bool,
    end_of_input: bool,
    /// True if the input is not an open descriptor.
    no_input: bool,
}

fn watch(
    mut signals: UnixStream,
    mut input: Option<OwnedFd>,
    at_end_of_input: ShutdownReason,
    shared: &WatchdogShared,
    on_signal: &dyn Fn(),
) {
    let mut detector: Option<StallDetector> = None;
    let mut has_failed = false;
    loop {
        let patience = detector.as_ref().map(|_| CHECK_INTERVAL);
        let happened =
            wait_for_events(&mut signals, input.as_ref(), patience).unwrap_or_else(|error| {
                // Only this thread can end a stuck process, so it must not give up.
                if !std::mem::replace(&mut has_failed, true) {
                    tracing::error!(%error, "failed to wait for signals");
                }
                thread::sleep(CHECK_INTERVAL);
                WatchEvents::default()
            });
        if happened.end_of_input || happened.no_input {
            input = None;
        }
        if shared.is_over.load(Ordering::Relaxed) {
            if happened.signal {
                end_process();
            }
            continue;
        }
        if happened.signal {
            on_signal();
        }
        if happened.signal || happened.end_of_input {
            let mut leaving = shared
                .leaving_since
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            leaving.get_or_insert_with(Instant::now);
        }
        let sign = HeartbeatReading {
            count: shared.sign_count.load(Ordering::Relaxed),
            waited_for_processor: waited_for_processor(),
        };
        match &mut detector {
            None if happened.signal => {
                detector = Some(StallDetector::new(sign, ShutdownReason::Signal))
            }
            None if happened.end_of_input => {
                detector = Some(StallDetector::new(sign, at_end_of_input));
            }
            None => {}
            Some(detector) => {
                if happened.signal {
                    detector.escalate();
                }
                if detector.record_step(CHECK_INTERVAL, sign) {
                    end_process();
                }
            }
        }
        if detector.is_some() {
            shared.sign_requested.notify_one();
        }
    }
}

/// Waits for a signal, the end of the input, or `patience`.
fn wait_for_events(
    signals: &mut UnixStream,
    input: Option<&OwnedFd>,
    patience: Option<Duration>,
) -> io::Result<WatchEvents> {
    // poll always reports a hang-up; readability is not requested.
    #[cfg(target_os = "linux")]
    let ended = PollFlags::RDHUP;
    #[cfg(not(target_os = "linux"))]
    let ended = PollFlags::empty();
    let mut ends = vec![PollFd::new(signals, PollFlags::IN)];
    ends.extend(input.map(|input| PollFd::new(input, ended)));
    let patience = patience.and_then(|patience| Timespec::try_from(patience).ok());
    loop {
        match poll(&mut ends, patience.as_ref()) {
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => break,
        }
    }
    let told = |place: usize| ends.get(place).map_or(PollFlags::empty(), PollFd::revents);
    let (signal, input) = (told(0), told(1));
    drop(ends);
    let happened = WatchEvents {
        signal: !signal.is_empty(),
        end_of_input: is_hang_up(input),
        no_input: input.contains(PollFlags::NVAL),
    };
    if happened.signal {
        // One byte per signal; several at once count as one.
        let _ = signals.read(&mut [0; 64])?;
    }
    Ok(happened)
}

/// Returns true if the other end is closed. A descriptor that is not open has no other end.
fn is_hang_up(told: PollFlags) -> bool {
    !told.is_empty() && !told.contains(PollFlags::NVAL)
}

/// Returns true if the parent has set SIGHUP to be ignored, as `nohup` does. A handler would undo that.
pub(crate) fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // Bit 0 is signal 1.
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & 1 != 0)
}

/// Returns the total time that the agent's threads were runnable without a processor; zero if unknown.
fn waited_for_processor() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let waited = threads.filter_map(|thread| {
        let thread = thread.ok()?.path();
        let read = |name| std::fs::read_to_string(thread.join(name)).ok();
        let is_main = thread.file_name()?.to_str()? == std::process::id().to_string();
        if !is_main && read("comm")?.trim() != AGENT_THREAD_NAME {
            return None;
        }
        let waited: u64 = read("schedstat")?.split_whitespace().nth(1)?.parse().ok()?;
        Some(waited)
    });
    Duration::from_nanos(waited.sum())
}

/// Kills everything that the stuck agent has started, reports it, and exits.
fn end_process() -> ! {
    // Kills the process even if the cleanup gets stuck as well.
    let _ = thread::Builder::new().spawn(|| {
        thread::sleep(EXIT_TIMEOUT);
        let _ = kill_process(getpid(), Signal::KILL);
    });
    turnery_tools::processes::kill_all();
    logs::print_message(
        "shutdown was requested, but its main thread did not answer, so the process was ended; anything not \
         stored by then is lost (a hanging disk?)",
    );
    drop(logs::FlushGuard);
    std::process::exit(i32::from(exit::STUCK));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_descriptor_is_no_hang_up() {
        assert!(is_hang_up(PollFlags::HUP));
        assert!(is_hang_up(PollFlags::ERR));
        assert!(!is_hang_up(PollFlags::NVAL));
        assert!(!is_hang_up(PollFlags::empty()));
    }
}
