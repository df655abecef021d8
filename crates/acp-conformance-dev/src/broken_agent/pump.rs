//! Forwards both streams, one thread each, through the fault.
//!
//! Without a fault, each read is written in one piece. With a fault, the output for the complete lines of a
//! read is written in one piece. Lines of both directions pass the fault one at a time and are written in
//! that order.

use super::{BrokenAgent, recording::Recorder};
use crate::faults::{Direction, FaultInjector, ProcessFault, SideEffect};
use acp_conformance::suite_clock::SuiteClock;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    pipe::pipe,
    process::{Pid, Signal, kill_process},
};
use std::{
    fs::File,
    io::{self, IsTerminal as _, Read, Write},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    process::{ChildStdin, ChildStdout},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// Size of the read buffer. Unit: bytes.
const READ_SIZE: usize = 1 << 16;
/// Delay of [`SideEffect::Sleep`].
const SLEEP_DURATION: Duration = Duration::from_secs(8);
/// Exit code after [`SideEffect::Die`].
const DIE_EXIT_CODE: i32 = 101;

/// Forwarder of both streams.
pub(super) struct Pump {
    process_fault: Option<ProcessFault>,
    is_line_buffered: bool,
    injector: Mutex<FaultInjector>,
    recorder: Mutex<Option<Recorder>>,
    from_client: File,
    to_client: Mutex<File>,
    to_agent: Mutex<Option<ChildStdin>>,
    agent_pid: Pid,
    client_eof: AtomicBool,
}

/// Thread that forwards the agent's output, with the pipe that signals the agent's exit.
pub(super) struct PumpThread {
    thread: JoinHandle<()>,
    agent_ended: OwnedFd,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pump {
    pub(super) fn new(
        broken: &BrokenAgent,
        process_fault: Option<ProcessFault>,
        agent_stdin: ChildStdin,
        agent_pid: Pid,
    ) -> io::Result<Self> {
        let recorder = broken
            .recording_dir
            .as_deref()
            .map(Recorder::new)
            .transpose()?;
        Ok(Self {
            process_fault,
            is_line_buffered: broken.fault.is_some() || recorder.is_some(),
            injector: Mutex::new(FaultInjector::new(broken.fault)),
            recorder: Mutex::new(recorder),
            from_client: io::stdin().as_fd().try_clone_to_owned()?.into(),
            to_client: Mutex::new(io::stdout().as_fd().try_clone_to_owned()?.into()),
            to_agent: Mutex::new(Some(agent_stdin)),
            agent_pid,
            client_eof: AtomicBool::new(false),
        })
    }

    /// Returns true if the client has closed the agent's stdin.
    pub(super) fn is_closed_by_client(&self) -> bool {
        self.client_eof.load(Ordering::SeqCst)
    }

    pub(super) fn start(self: &Arc<Self>, agent_stdout: ChildStdout) -> io::Result<PumpThread> {
        let (wake, ended) = pipe()?;
        let to_agent = Arc::clone(self);
        thread::spawn(move || to_agent.pump_to_agent());
        let to_client = Arc::clone(self);
        let thread = thread::spawn(move || to_client.pump_to_client(agent_stdout, &wake));
        Ok(PumpThread {
            thread,
            agent_ended: ended,
        })
    }

    fn pump_to_agent(&self) {
        let mut rest = Vec::new();
        let mut piece = vec![0; READ_SIZE];
        loop {
            match (&self.from_client).read(&mut piece) {
                Ok(length @ 1..) => {
                    if self
                        .forward(Direction::ToAgent, &piece[..length], &mut rest)
                        .is_err()
                    {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => break,
            }
        }
        self.client_eof.store(true, Ordering::SeqCst);
        if self.process_fault == Some(ProcessFault::DiesAtEof) {
            self.kill_agent();
        }
        if !rest.is_empty() && self.forward_lines(Direction::ToAgent, &[&rest]).is_err() {
            return;
        }
        lock(&self.to_agent).take();
    }

    /// Forwards the agent's output; `wake` becomes readable once the agent has exited.
    fn pump_to_client(&self, mut stdout: ChildStdout, wake: &OwnedFd) {
        let mut rest = Vec::new();
        let mut piece = vec![0; READ_SIZE];
        let outlives_client = self.process_fault == Some(ProcessFault::OutlivesStdout);
        while wait_readable(stdout.as_fd(), wake.as_fd(), outlives_client) {
            match stdout.read(&mut piece) {
                Ok(length @ 1..) => {
                    let passed = self.forward(Direction::ToClient, &piece[..length], &mut rest);
                    if passed.is_err() && !outlives_client {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => break,
            }
        }
        if !rest.is_empty() {
            // The client may be gone.
            let _ = self.forward_lines(Direction::ToClient, &[&rest]);
        }
    }

    fn forward(&self, direction: Direction, piece: &[u8], rest: &mut Vec<u8>) -> io::Result<()> {
        let needs_terminal = self.process_fault == Some(ProcessFault::NeedsTerminal);
        if needs_terminal && direction == Direction::ToAgent && !self.from_client.is_terminal() {
            return Ok(());
        }
        if !self.is_line_buffered {
            return self.write_to(direction, piece);
        }
        // A line may be very long: search only the new bytes for its end.
        let Some(end) = piece.iter().rposition(|byte| *byte == b'\n') else {
            rest.extend_from_slice(piece);
            return Ok(());
        };
        let (ends, begins) = piece.split_at(end + 1);
        rest.extend_from_slice(ends);
        let whole = std::mem::replace(rest, begins.to_vec());
        let lines: Vec<_> = whole.split_inclusive(|byte| *byte == b'\n').collect();
        self.forward_lines(direction, &lines)
    }

    fn forward_lines(&self, direction: Direction, lines: &[&[u8]]) -> io::Result<()> {
        let mut injector = lock(&self.injector);
        let mut writes: Vec<(Direction, Vec<u8>)> = Vec::new();
        let mut side_effect = SideEffect::None;
        for line in lines {
            if let Some(recorder) = lock(&self.recorder).as_mut() {
                recorder.record_line(direction, line)?;
            }
            let outcome = injector.process_line(direction, line);
            for (direction, bytes) in outcome.lines {
                match writes.last_mut() {
                    Some((same, before)) if *same == direction => before.extend(bytes),
                    _ => writes.push((direction, bytes)),
                }
            }
            if outcome.side_effect != SideEffect::None {
                side_effect = outcome.side_effect;
                break;
            }
        }
        // Lock the outputs before releasing the injector, so that the next line cannot overtake.
        let writes_to = |way| writes.iter().any(|(to, _)| *to == way);
        let mut agent = writes_to(Direction::ToAgent).then(|| lock(&self.to_agent));
        let mut client = writes_to(Direction::ToClient).then(|| lock(&self.to_client));
        drop(injector);
        if side_effect == SideEffect::Sleep {
            SuiteClock::Fair.sleep(SLEEP_DURATION);
        }
        for (direction, bytes) in writes {
            match direction {
                Direction::ToAgent => write_to_agent(agent.as_deref_mut(), &bytes)?,
                Direction::ToClient => {
                    if let Some(client) = client.as_deref_mut() {
                        client.write_all(&bytes)?;
                    }
                }
            }
        }
        if side_effect == SideEffect::Die {
            self.kill_agent();
            std::process::exit(DIE_EXIT_CODE);
        }
        Ok(())
    }

    fn write_to(&self, direction: Direction, bytes: &[u8]) -> io::Result<()> {
        match direction {
            Direction::ToAgent => write_to_agent(Some(&mut *lock(&self.to_agent)), bytes),
            Direction::ToClient => lock(&self.to_client).write_all(bytes),
        }
    }

    fn kill_agent(&self) {
        // The agent may have exited already.
        let _ = kill_process(self.agent_pid, Signal::KILL);
    }
}

fn write_to_agent(agent: Option<&mut Option<ChildStdin>>, bytes: &[u8]) -> io::Result<()> {
    match agent.and_then(Option::as_mut) {
        Some(stdin) => stdin.write_all(bytes),
        None => Ok(()),
    }
}

/// Waits for agent output; returns false once the agent has exited or the client is gone.
fn wait_readable(stdout: BorrowedFd<'_>, wake: BorrowedFd<'_>, outlives_client: bool) -> bool {
    let client = io::stdout();
    let ready = PollFlags::IN | PollFlags::HUP | PollFlags::ERR;
    loop {
        let mut all = [
            PollFd::from_borrowed_fd(stdout, PollFlags::IN),
            PollFd::from_borrowed_fd(wake, PollFlags::IN),
            PollFd::from_borrowed_fd(client.as_fd(), PollFlags::empty()),
        ];
        let polled = if outlives_client {
            &mut all[..2]
        } else {
            &mut all[..]
        };
        match poll(polled, None) {
            Ok(_) if all[2].revents().intersects(ready) => return false,
            Ok(_) if all[0].revents().intersects(ready) => return true,
            Ok(_) if all[1].revents().intersects(ready) => return false,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

impl PumpThread {
    /// Forwards the remaining output of the exited agent, as long as the client reads.
    pub(super) fn finish(self) {
        drop(self.agent_ended);
        while !self.thread.is_finished() {
            let stdout = io::stdout();
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
