//! Supervises one program: a process that runs the program and kills all its descendants.
//!
//! Owns the program and, as a child subreaper, every orphan among its descendants. Invariant: only children
//! are signalled, which keep their ids until they are reaped here, so that no signal ever reaches a foreign
//! process.

use super::{
    kill_thread::KillThread,
    program::decode_environment,
    stop_report::RunningProcess,
    supervised_tree::{SupervisorCommand, SupervisorReport, send_now},
    tagged_processes::command_line,
};
use crate::sandbox::Confinement;
use rustix::{
    io::Errno,
    net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg},
    process::{
        Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process, kill_process_group,
        set_child_subreaper, set_parent_process_death_signal, setsid, wait, waitid,
    },
};
use std::{
    ffi::OsString,
    fs,
    io::{self, IoSliceMut, Read as _},
    mem::MaybeUninit,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::{net::UnixStream as StdUnixStream, process::CommandExt as _},
    },
    process::Command,
    time::Duration,
};
use tokio::{
    net::UnixStream,
    runtime::Builder,
    signal::unix::{Signal as SignalStream, SignalKind, signal},
    time::{Instant, sleep},
};

/// Interval for finding orphans that arrive without a signal.
const KILL_INTERVAL: Duration = Duration::from_millis(10);
/// Number of intervals without an exit after which the remaining processes are reported: 150 ms, and more on
/// a busy machine. Shorter than a cancelled call lives after its processes were killed.
const REPORT_INTERVALS: u32 = 15;
/// Time limit for killing; processes that have not ended by then are abandoned. A supervisor outlives turnery
/// by no more than this.
const KILL_TIMEOUT: Duration = Duration::from_millis(900);
/// Maximum number of remaining processes that are reported.
const MAX_NAMED: usize = 20;

/// Exit code of a supervisor that failed before it could start the program, for example because it was
/// started by hand.
const USAGE_ERROR: i32 = 2;

/// Supervises a program until it ends, and returns the exit code of the supervisor itself: 0, or
/// [`USAGE_ERROR`] if it failed early. `command` is a folder, the program that runs in it, and the program's
/// arguments. The control socket is standard input; the program's status is reported through it.
pub(super) fn run(command: &[OsString]) -> i32 {
    match supervise(command) {
        Ok(()) => 0,
        // The error cannot be reported: the other end only sees that the socket closes.
        Err(_) => USAGE_ERROR,
    }
}

fn supervise(command: &[OsString]) -> io::Result<()> {
    let socket = StdUnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let [stdin, stdout, stderr] = receive_streams(&socket)?;
    let environment = receive_part(&socket)?;
    let confinement = match receive_part(&socket)? {
        part if part.is_empty() => None,
        part => Some(serde_json::from_slice::<Confinement>(&part)?),
    };
    let [folder, program, args @ ..] = command else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    if confinement.is_some() {
        // Keeps the program from joining a group of turnery's session, through which the kernel would send
        // signals, and from having a terminal.
        setsid()?;
    }
    set_child_subreaper(Some(getpid()))?;
    // Turnery may exit while this process is stopped; then it continues and finds the socket closed.
    set_parent_process_death_signal(Some(Signal::CONT))?;
    socket.set_nonblocking(true)?;
    let runtime = Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
    runtime.block_on(async {
        // Termination signals meant for all of turnery must not end the process that cleans up.
        let _ignored = [
            signal(SignalKind::hangup())?,
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::quit())?,
        ];
        let child_exits = signal(SignalKind::child())?;
        let control = UnixStream::from_std(socket)?;
        let mut start = Command::new(program);
        start
            .args(args)
            .current_dir(folder)
            .env_clear()
            .envs(decode_environment(&environment))
            .stdin(stdin)
            .stdout(stdout)
            .stderr(stderr)
            .process_group(0);
        // `start` holds the program's streams, which must close when the program closes them.
        let started = match confinement {
            Some(confinement) => KillThread::start(confinement, start)
                .map(|(child, confined)| (child, Some(confined))),
            None => {
                let started = start.spawn().map(|child| (child, None));
                drop(start);
                started
            }
        };
        let (leader, kill_thread) = match started {
            Ok((child, kill_thread)) => {
                let id = i32::try_from(child.id()).ok();
                (id.and_then(Pid::from_raw), kill_thread)
            }
            Err(error) => {
                let line = match error.raw_os_error() {
                    Some(errno) => SupervisorReport::Failed(errno),
                    None => SupervisorReport::Refused(error.to_string()),
                };
                send_report(&control, &line);
                return Ok(());
            }
        };
        send_report(&control, &SupervisorReport::Started);
        let tree = Supervisor {
            control,
            child_exits,
            leader,
            kill_thread,
            status: None,
        };
        tree.watch().await;
        Ok(())
    })
}

/// Receives the program's streams from the socket.
fn receive_streams(socket: &StdUnixStream) -> io::Result<[OwnedFd; 3]> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut byte)],
        &mut rights,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let mut streams = Vec::new();
    for message in rights.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            streams.extend(received);
        }
    }
    streams
        .try_into()
        .map_err(|_| io::ErrorKind::InvalidInput.into())
}

/// Reads the program's environment or its confinement from the socket.
fn receive_part(mut socket: &StdUnixStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 8];
    socket.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    let mut part = Vec::new();
    let count = socket.take(length).read_to_end(&mut part)?;
    match count as u64 == length {
        true => Ok(part),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Sends a line to the other end. If that is gone, reading the socket reports it.
fn send_report(control: &UnixStream, line: &SupervisorReport) {
    let _ = send_now(control, line.encode().as_bytes());
}

/// State of a running supervisor: its control socket, its program and how that ended.
struct Supervisor {
    control: UnixStream,
    /// Becomes ready when a child exits.
    child_exits: SignalStream,
    /// The program; `None` once it was reaped.
    leader: Option<Pid>,
    /// Thread that can kill everything confined with the program.
    kill_thread: Option<KillThread>,
    /// Raw wait status of the program, once it was reaped.
    status: Option<i32>,
}

impl Supervisor {
    /// Waits until the program exits, a kill is requested or turnery is gone, then kills everything that is
    /// left and reports.
    async fn watch(mut self) {
        loop {
            tokio::select! {
                biased;
                command = next_command(&self.control) => match command {
                    Some(SupervisorCommand::RequestStop) => self.signal_group(Signal::TERM),
                    Some(SupervisorCommand::Start) => {}
                    Some(SupervisorCommand::Kill) | None => break,
                },
                _ = self.child_exits.recv() => {
                    if self.has_leader_ended() {
                        // The id is not reused before the program is reaped.
                        self.signal_group(Signal::KILL);
                    }
                    self.reap();
                    if self.leader.is_none() {
                        break;
                    }
                }
            }
        }
        self.kill_all().await;
    }

    /// Kills children until there are none. Reports once, at the latest when they take too long.
    async fn kill_all(&mut self) {
        self.signal_group(Signal::KILL);
        if let Some(kill_thread) = &self.kill_thread {
            kill_thread.kill_all();
        }
        let end = Instant::now() + KILL_TIMEOUT;
        let mut intervals = 0;
        let mut is_reported = false;
        while self.reap() {
            let children = list_children();
            for child in &children {
                // A process that may not be killed is reported below.
                let _ = kill_process(*child, Signal::KILL);
            }
            let is_over = Instant::now() >= end;
            if !is_reported && (is_over || intervals >= REPORT_INTERVALS) {
                self.report(children);
                is_reported = true;
            }
            if is_over {
                return;
            }
            // Killing a process makes its children ours before its exit is signalled.
            tokio::select! {
                biased;
                _ = self.child_exits.recv() => intervals = 0,
                () = sleep(KILL_INTERVAL) => intervals += 1,
            }
        }
        if !is_reported {
            self.report(Vec::new());
        }
    }

    /// Reports these children and how the program ended.
    fn report(&self, children: Vec<Pid>) {
        let named = children.into_iter().take(MAX_NAMED);
        for process in named.map(describe_process) {
            send_report(&self.control, &SupervisorReport::Remaining(process));
        }
        send_report(&self.control, &SupervisorReport::Ended(self.status));
    }

    fn signal_group(&self, signal: Signal) {
        if let Some(leader) = self.leader {
            // Fails only if no process is left.
            let _ = kill_process_group(leader, signal);
        }
    }

    fn has_leader_ended(&self) -> bool {
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        self.leader
            .is_some_and(|leader| matches!(waitid(WaitId::Pid(leader), how), Ok(Some(_))))
    }

    /// Reaps all children that have exited. Returns true if others are left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if self.leader == Some(pid) {
                        self.leader = None;
                        self.status = Some(status.as_raw());
                    }
                }
                Ok(None) => return true,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }
}

/// Returns the next command; `None` once turnery is gone. Cancel safe.
async fn next_command(control: &UnixStream) -> Option<SupervisorCommand> {
    loop {
        control.readable().await.ok()?;
        let mut byte = [0];
        match control.try_read(&mut byte) {
            Ok(0) => return None,
            Ok(_) => {
                let all = [
                    SupervisorCommand::Start,
                    SupervisorCommand::RequestStop,
                    SupervisorCommand::Kill,
                ];
                if let Some(command) = all.into_iter().find(|command| *command as u8 == byte[0]) {
                    return Some(command);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
}

/// Returns the children of this process, including zombies.
fn list_children() -> Vec<Pid> {
    let pid = |text: &str| text.parse().ok().and_then(Pid::from_raw);
    // Available since Linux 3.5 if the kernel was built with it.
    if let Ok(text) = fs::read_to_string(format!("/proc/self/task/{}/children", getpid())) {
        return text.split_whitespace().filter_map(pid).collect();
    }
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let us = getpid().as_raw_nonzero().to_string();
    let is_ours = |name: &str| {
        let stat = fs::read_to_string(format!("/proc/{name}/stat")).unwrap_or_default();
        // State and parent follow the name, which may contain anything.
        let rest = stat.rsplit_once(") ").map(|(_, rest)| rest);
        rest.and_then(|rest| rest.split(' ').nth(1)) == Some(&us)
    };
    processes
        .filter_map(|process| process.ok()?.file_name().into_string().ok())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()) && is_ours(name))
        .filter_map(|name| pid(&name))
        .collect()
}

fn describe_process(pid: Pid) -> RunningProcess {
    let pid = pid.as_raw_nonzero().get();
    RunningProcess {
        pid,
        // It is our child, so it exists even if nothing can be read of it.
        command: command_line(pid).unwrap_or_else(|| "unknown".to_owned()),
    }
}
