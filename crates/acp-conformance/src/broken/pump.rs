//! pump: both streams, each in a thread of its own, with the fault between them.
//!
//! Without a fault what was read in one piece is written in one piece. With one, what comes of the
//! whole lines of a piece is. Lines of both directions pass the fault one after the other, and are
//! written in the order in which they passed.

use super::{Broken, record::Recorder};
use crate::{
    faults::{Breaker, Deed, Habit, Way},
    pace::Pace,
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    pipe::pipe,
    process::{Pid, Signal, kill_process},
};
use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    process::{ChildStdin, ChildStdout},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// What is read at once. Unit: bytes.
const PIECE: usize = 1 << 16;
/// How long a slow agent waits.
const SLOW: Duration = Duration::from_secs(8);
/// What a process that died of a fault ends with.
const DIED: i32 = 101;

/// The agent, as the pump needs it.
pub(super) struct Ends {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) pid: Pid,
}

/// Both streams.
pub(super) struct Pump {
    habit: Option<Habit>,
    whole_lines: bool,
    breaker: Mutex<Breaker>,
    recorder: Mutex<Option<Recorder>>,
    from_client: File,
    to_client: Mutex<File>,
    /// The same, to ask whether it takes more.
    stdout: File,
    to_agent: Mutex<Option<ChildStdin>>,
    from_agent: Mutex<Option<ChildStdout>>,
    agent: Pid,
    eof: AtomicBool,
}

/// The thread that brings the agent's words, and how to tell it that there will be no more.
pub(super) struct Flow {
    thread: JoinHandle<()>,
    ended: OwnedFd,
    pump: Arc<Pump>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pump {
    pub(super) fn new(broken: &Broken, habit: Option<Habit>, ends: Ends) -> io::Result<Self> {
        let recorder = broken.record.as_deref().map(Recorder::new).transpose()?;
        Ok(Self {
            habit,
            whole_lines: broken.fault.is_some() || recorder.is_some(),
            breaker: Mutex::new(Breaker::new(broken.fault)),
            recorder: Mutex::new(recorder),
            from_client: io::stdin().as_fd().try_clone_to_owned()?.into(),
            to_client: Mutex::new(io::stdout().as_fd().try_clone_to_owned()?.into()),
            stdout: io::stdout().as_fd().try_clone_to_owned()?.into(),
            to_agent: Mutex::new(Some(ends.stdin)),
            from_agent: Mutex::new(Some(ends.stdout)),
            agent: ends.pid,
            eof: AtomicBool::new(false),
        })
    }

    /// Did the client close its end?
    pub(super) fn ended_by_client(&self) -> bool {
        self.eof.load(Ordering::SeqCst)
    }

    pub(super) fn start(self: &Arc<Self>) -> io::Result<Flow> {
        let (wake, ended) = pipe()?;
        let to_agent = Arc::clone(self);
        thread::spawn(move || to_agent.client_to_agent());
        let to_client = Arc::clone(self);
        let thread = thread::spawn(move || to_client.agent_to_client(&wake));
        let pump = Arc::clone(self);
        Ok(Flow {
            thread,
            ended,
            pump,
        })
    }

    fn client_to_agent(&self) {
        let mut rest = Vec::new();
        let mut piece = vec![0; PIECE];
        loop {
            match (&self.from_client).read(&mut piece) {
                Ok(length @ 1..) => {
                    if self
                        .pass(Way::ToAgent, &piece[..length], &mut rest)
                        .is_err()
                    {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => break,
            }
        }
        self.eof.store(true, Ordering::SeqCst);
        if self.habit == Some(Habit::DiesAtEof) {
            self.kill();
        }
        if !rest.is_empty() && self.pass_lines(Way::ToAgent, &[&rest]).is_err() {
            return;
        }
        lock(&self.to_agent).take();
    }

    /// `wake` is readable as soon as the agent has ended.
    fn agent_to_client(&self, wake: &OwnedFd) {
        let Some(mut stdout) = lock(&self.from_agent).take() else {
            return;
        };
        let mut rest = Vec::new();
        let mut piece = vec![0; PIECE];
        let outlives = self.habit == Some(Habit::OutlivesStdout);
        while readable(stdout.as_fd(), wake.as_fd(), &self.stdout, outlives) {
            match stdout.read(&mut piece) {
                Ok(length @ 1..) => {
                    let passed = self.pass(Way::ToClient, &piece[..length], &mut rest);
                    if passed.is_err() && !outlives {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => break,
            }
        }
        if !rest.is_empty() {
            // The client may be gone: then nobody misses it.
            let _ = self.pass_lines(Way::ToClient, &[&rest]);
        }
    }

    fn pass(&self, way: Way, piece: &[u8], rest: &mut Vec<u8>) -> io::Result<()> {
        if !self.whole_lines {
            return self.write(way, piece);
        }
        // Only what is new can hold an end: a line may be very long.
        let Some(end) = piece.iter().rposition(|byte| *byte == b'\n') else {
            rest.extend_from_slice(piece);
            return Ok(());
        };
        let (ends, begins) = piece.split_at(end + 1);
        rest.extend_from_slice(ends);
        let whole = std::mem::replace(rest, begins.to_vec());
        let lines: Vec<_> = whole.split_inclusive(|byte| *byte == b'\n').collect();
        self.pass_lines(way, &lines)
    }

    fn pass_lines(&self, way: Way, lines: &[&[u8]]) -> io::Result<()> {
        let mut breaker = lock(&self.breaker);
        let mut writes: Vec<(Way, Vec<u8>)> = Vec::new();
        let mut deed = Deed::None;
        for line in lines {
            if let Some(recorder) = lock(&self.recorder).as_mut() {
                recorder.line(way, line)?;
            }
            let outcome = breaker.line(way, line);
            for (way, bytes) in outcome.lines {
                match writes.last_mut() {
                    Some((same, before)) if *same == way => before.extend(bytes),
                    _ => writes.push((way, bytes)),
                }
            }
            if outcome.deed != Deed::None {
                deed = outcome.deed;
                break;
            }
        }
        // Taken before the fault is let go: so what passes next cannot overtake.
        let goes = |way| writes.iter().any(|(to, _)| *to == way);
        let mut agent = goes(Way::ToAgent).then(|| lock(&self.to_agent));
        let mut client = goes(Way::ToClient).then(|| lock(&self.to_client));
        drop(breaker);
        if deed == Deed::Sleep {
            Pace::Fair.sleep(SLOW);
        }
        for (way, bytes) in writes {
            match way {
                Way::ToAgent => write_agent(agent.as_deref_mut(), &bytes)?,
                Way::ToClient => {
                    if let Some(client) = client.as_deref_mut() {
                        client.write_all(&bytes)?;
                    }
                }
            }
        }
        if deed == Deed::Die {
            self.kill();
            std::process::exit(DIED);
        }
        Ok(())
    }

    fn write(&self, way: Way, bytes: &[u8]) -> io::Result<()> {
        match way {
            Way::ToAgent => write_agent(Some(&mut *lock(&self.to_agent)), bytes),
            Way::ToClient => lock(&self.to_client).write_all(bytes),
        }
    }

    fn kill(&self) {
        // It may have ended just now.
        let _ = kill_process(self.agent, Signal::KILL);
    }
}

fn write_agent(agent: Option<&mut Option<ChildStdin>>, bytes: &[u8]) -> io::Result<()> {
    match agent.and_then(Option::as_mut) {
        Some(stdin) => stdin.write_all(bytes),
        None => Ok(()),
    }
}

/// Wait until there is something to read, or nobody will write or hear anything any more.
fn readable(stdout: BorrowedFd<'_>, wake: BorrowedFd<'_>, client: &File, outlives: bool) -> bool {
    let ready = PollFlags::IN | PollFlags::HUP | PollFlags::ERR;
    loop {
        let mut all = [
            PollFd::from_borrowed_fd(stdout, PollFlags::IN),
            PollFd::from_borrowed_fd(wake, PollFlags::IN),
            PollFd::from_borrowed_fd(client.as_fd(), PollFlags::empty()),
        ];
        let asked = if outlives {
            &mut all[..2]
        } else {
            &mut all[..]
        };
        match poll(asked, None) {
            Ok(_) if all[2].revents().intersects(ready) => return false,
            Ok(_) if all[0].revents().intersects(ready) => return true,
            Ok(_) if all[1].revents().intersects(ready) => return false,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

impl Flow {
    /// The agent has ended: bring what it said last, as long as somebody takes it.
    pub(super) fn finish(self) {
        drop(self.ended);
        while !self.thread.is_finished() {
            let stdout = &self.pump.stdout;
            let mut client = [PollFd::from_borrowed_fd(stdout.as_fd(), PollFlags::OUT)];
            let patience = Timespec {
                tv_sec: 0,
                tv_nsec: 100_000_000,
            };
            if matches!(poll(&mut client, Some(&patience)), Ok(0)) {
                return;
            }
            thread::yield_now();
        }
    }
}
