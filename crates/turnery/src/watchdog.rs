//! Ends the process when its runtime does not hear that it is to leave.
//!
//! Whatever the agent is stuck in (a write to a disk that hangs, an input that some parser never finishes),
//! the end of input and signals must still end the process and all that it started. A thread of its own
//! hears both, without waking for ordinary input. From then on it asks the runtime for a sign of life every
//! few milliseconds, until the process is gone.

mod life_signs;

use crate::{logs, run::exit, runtime::AGENT};
use life_signs::{LifeSigns, Sign, Urgency};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Signal, getpid, kill_process},
};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    low_level::pipe,
};
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

/// How often the runtime is asked for a sign of life, once it is to leave.
const STEP: Duration = Duration::from_millis(50);

/// How long the end of a process that is stuck may take, before it is killed.
const EXIT: Duration = Duration::from_millis(200);

/// Watches the runtime. Dropping it changes nothing: the thread watches until the process ends.
#[derive(Clone, Debug)]
pub(crate) struct Watchdog(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Wakes the task that gives signs of life.
    asked: Notify,
    signs: AtomicU64,
    /// When the process was first told to leave.
    leaving: Mutex<Option<Instant>>,
    /// Only the result is left to be written, which may take as long as whoever reads it does.
    is_over: AtomicBool,
}

impl Watchdog {
    /// Starts to watch. `input` is where the client's lines come from, if its end is to end the process: at
    /// once, or with `drain` when the prompts that were accepted have ended.
    /// `on_signal` is called for each SIGTERM, SIGINT and SIGHUP, on the watching thread; not for a SIGHUP
    /// that `nohup` has set to be ignored.
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
            true => Urgency::Drain,
            false => Urgency::EndOfInput,
        };
        let shared = Arc::new(Shared::default());
        let watchdog = Self(Arc::clone(&shared));
        thread::Builder::new()
            .name("watchdog".to_owned())
            .spawn(move || watch(signals, input, at_end_of_input, &shared, &on_signal))?;
        Ok(watchdog)
    }

    /// Gives signs of life for as long as it is polled: a task of the runtime.
    pub(crate) async fn answer(self) {
        loop {
            self.beat();
            self.0.asked.notified().await;
        }
    }

    /// Gives one sign of life: between the steps by which a process ends, each of which has its own bound.
    pub(crate) fn beat(&self) {
        self.0.signs.fetch_add(1, Ordering::Relaxed);
    }

    /// Drops `value` on a thread of its own, and gives signs of life until that is done. False if it takes
    /// longer than `patience`: the thread goes on alone then.
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
            match is_done.recv_timeout(left.min(STEP)) {
                Err(mpsc::RecvTimeoutError::Timeout) if left.is_zero() => return false,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => return true,
            }
        }
    }

    /// Ends the watch: from here on only another signal ends the process, and that at once.
    pub(crate) fn stand_down(&self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }

    /// When the end of input or a signal first said that the process is to leave.
    pub(crate) fn leaving_since(&self) -> Option<Instant> {
        *self
            .0
            .leaving
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// What has happened to the watched descriptors.
#[derive(Default)]
struct Happened {
    signal: bool,
    end_of_input: bool,
    /// The input is no open descriptor.
    no_input: bool,
}

fn watch(
    mut signals: UnixStream,
    mut input: Option<OwnedFd>,
    at_end_of_input: Urgency,
    shared: &Shared,
    on_signal: &dyn Fn(),
) {
    let mut life_signs: Option<LifeSigns> = None;
    let mut has_failed = false;
    loop {
        let patience = life_signs.as_ref().map(|_| STEP);
        let happened = wait(&mut signals, input.as_ref(), patience).unwrap_or_else(|error| {
            // Without this thread nothing ends a process that is stuck, so it tries again.
            if !std::mem::replace(&mut has_failed, true) {
                tracing::error!(%error, "failed to wait for signals");
            }
            thread::sleep(STEP);
            Happened::default()
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
                .leaving
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            leaving.get_or_insert_with(Instant::now);
        }
        let sign = Sign {
            count: shared.signs.load(Ordering::Relaxed),
            waited_for_processor: waited_for_processor(),
        };
        match &mut life_signs {
            None if happened.signal => life_signs = Some(LifeSigns::since(sign, Urgency::Signal)),
            None if happened.end_of_input => {
                life_signs = Some(LifeSigns::since(sign, at_end_of_input));
            }
            None => {}
            Some(life_signs) => {
                if happened.signal {
                    life_signs.hurry();
                }
                if life_signs.step(STEP, sign) {
                    end_process();
                }
            }
        }
        if life_signs.is_some() {
            shared.asked.notify_one();
        }
    }
}

/// Waits for a signal, the end of the input, or `patience`.
fn wait(
    signals: &mut UnixStream,
    input: Option<&OwnedFd>,
    patience: Option<Duration>,
) -> io::Result<Happened> {
    // A hang-up is always told; that there is something to read is not asked for.
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
    let happened = Happened {
        signal: !signal.is_empty(),
        end_of_input: is_hang_up(input),
        no_input: input.contains(PollFlags::NVAL),
    };
    if happened.signal {
        // One byte for each signal. Two that came together count as one.
        let _ = signals.read(&mut [0; 64])?;
    }
    Ok(happened)
}

/// Whether the other end is gone. A descriptor that is not open has no other end.
fn is_hang_up(told: PollFlags) -> bool {
    !told.is_empty() && !told.contains(PollFlags::NVAL)
}

/// Returns whether the parent has set SIGHUP to be ignored, as `nohup` does. Listening would undo that.
pub(crate) fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // Bit 0 is signal 1.
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & 1 != 0)
}

/// How long the threads of the agent were ready to run and had no processor, in all; zero where nobody can tell.
fn waited_for_processor() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let waited = threads.filter_map(|thread| {
        let thread = thread.ok()?.path();
        let read = |name| std::fs::read_to_string(thread.join(name)).ok();
        let is_main = thread.file_name()?.to_str()? == std::process::id().to_string();
        if !is_main && read("comm")?.trim() != AGENT {
            return None;
        }
        let waited: u64 = read("schedstat")?.split_whitespace().nth(1)?.parse().ok()?;
        Some(waited)
    });
    Duration::from_nanos(waited.sum())
}

/// The agent is stuck: end all that it started, say so, and leave.
fn end_process() -> ! {
    // Whatever of this gets stuck as well, the process is gone soon.
    let _ = thread::Builder::new().spawn(|| {
        thread::sleep(EXIT);
        let _ = kill_process(getpid(), Signal::KILL);
    });
    turnery_tools::processes::end_all();
    logs::say(
        "it was told to leave and its main thread did not answer, so it was ended; what was not stored \
         by then is lost (a disk that hangs?)",
    );
    drop(logs::LastWords);
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
