//! Runs a program below a supervisor.
//!
//! The protocol, over a socket pair: the streams of the program go to the supervisor with one byte, then the
//! program's environment (its length in 8 bytes, little-endian, and see [`encode_environment`]), then its
//! confinement (likewise, as JSON; of length 0 if there is none), then commands of one byte each. The
//! supervisor responds with lines of text.

use super::{
    program::{ChildStdio, ProgramSpec, encode_environment},
    registry::{KillTarget, TreeRegistration, check_open},
    stop_report::{FinishedTree, RunningProcess, StopReport},
    supervision::SUPERVISOR_ARGUMENT,
    tagged_processes,
};
use rustix::{
    io::Errno,
    net::{
        RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, recv, send,
        sendmsg, shutdown,
    },
    process::{Pid, Signal, kill_process},
};
use std::{
    io::{self, IoSlice},
    mem::MaybeUninit,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::{net::UnixStream as StdUnixStream, process::ExitStatusExt as _},
    },
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};
use tokio::{
    io::Interest,
    net::UnixStream,
    process::{Child, Command},
    time::timeout,
};

/// Interval at which a supervisor that must kill everything is woken, in case it is stopped repeatedly.
const WAKE_INTERVAL: Duration = Duration::from_millis(20);
/// Number of intervals after which an unresponsive supervisor is no longer waited for.
const MAX_INTERVALS: usize = 75;
/// Time limit for a supervisor to exit after its report.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum size of a supervisor's report. Unit: bytes.
const MAX_REPORT_BYTES: usize = 64 << 10;

/// A command of one byte from this process to the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum SupervisorCommand {
    /// Start the program; its three streams are attached and its environment follows.
    Start = b'S',
    /// Send SIGTERM to the program's process group.
    RequestStop = b'T',
    /// Kill everything.
    Kill = b'K',
}

/// A line from the supervisor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SupervisorReport {
    /// The program was started.
    Started,
    /// The program could not be started. Unit: errno.
    Failed(i32),
    /// The program was not started, for this reason of one line.
    Refused(String),
    /// A process that was killed but has not ended, or that may not be killed.
    Remaining(RunningProcess),
    /// The last line: nothing is left except the processes reported before. Contains the program's raw wait
    /// status; `None` if the program is one of those.
    Ended(Option<i32>),
}

impl SupervisorReport {
    pub(super) fn encode(&self) -> String {
        match self {
            Self::Started => "started\n".to_owned(),
            Self::Failed(errno) => format!("failed {errno}\n"),
            Self::Refused(reason) => {
                let reason = reason.replace(char::is_control, "?");
                format!("refused {reason}\n")
            }
            Self::Remaining(process) => format!("remaining {} {}\n", process.pid, process.command),
            Self::Ended(Some(status)) => format!("ended {status}\n"),
            Self::Ended(None) => "ended\n".to_owned(),
        }
    }

    fn decode(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        Some(match word {
            "started" => Self::Started,
            "failed" => Self::Failed(rest.parse().ok()?),
            "refused" => Self::Refused(rest.to_owned()),
            "remaining" => {
                let (pid, command) = rest.split_once(' ')?;
                Self::Remaining(RunningProcess {
                    pid: pid.parse().ok()?,
                    command: command.to_owned(),
                })
            }
            "ended" if rest.is_empty() => Self::Ended(None),
            "ended" => Self::Ended(Some(rest.parse().ok()?)),
            _ => return None,
        })
    }
}

/// A program below its supervisor. Dropping this closes the socket, so that the supervisor kills everything;
/// if the supervisor is gone, all processes with the tag are killed.
#[derive(Debug)]
pub(super) struct SupervisedTree {
    control: UnixStream,
    supervisor: Child,
    /// Bytes of an incomplete line.
    unread: Vec<u8>,
    remaining_processes: Vec<RunningProcess>,
    /// Content of the last line: the program's raw wait status, if it has one.
    exit_status: Option<Option<i32>>,
    /// The supervisor has closed its end.
    is_closed: bool,
    /// Inherited by the program; `None` once processes with the tag were searched for, because the supervisor
    /// was lost.
    tag: Option<String>,
    /// Outcome of killing the processes with the tag after the supervisor was lost.
    stopped: StopReport,
    /// Holds the supervisor's process id; `None` once the supervisor was reaped.
    registration: Option<TreeRegistration>,
}

impl SupervisedTree {
    pub(super) async fn spawn(
        supervisor: &Path,
        program: &ProgramSpec,
        stdio: ChildStdio,
        tag: String,
    ) -> io::Result<Self> {
        check_open()?;
        let environment = encode_environment(&program.environment)?;
        let confinement = match &program.confinement {
            Some(confinement) => serde_json::to_vec(confinement)?,
            None => Vec::new(),
        };
        let (ours, theirs) = StdUnixStream::pair()?;
        send_streams(&ours, &stdio)?;
        drop(stdio);
        ours.set_nonblocking(true)?;
        let socket = ours.try_clone()?.into();
        let control = UnixStream::from_std(ours)?;
        let mut start = Command::new(supervisor);
        start
            .arg0("turnery-supervisor")
            .arg(SUPERVISOR_ARGUMENT)
            .arg(&program.working_directory)
            .arg(&program.program)
            .args(&program.args)
            // The supervisor is not confined, so it must not load libraries from the program's folder or by a
            // variable.
            .current_dir("/")
            .env_clear()
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // Keeps the terminal's signals to this process's group away from the supervisor. The supervisor of a
        // confined program begins its own session, which the leader of a group cannot.
        if program.confinement.is_none() {
            start.process_group(0);
        }
        let supervisor = start.spawn()?;
        let pid = pid_of(&supervisor).ok_or_else(supervisor_lost)?;
        // `start` holds the other end of the socket, which must close when the supervisor exits.
        drop(start);
        let mut tree = Self {
            control,
            supervisor,
            unread: Vec::new(),
            remaining_processes: Vec::new(),
            exit_status: None,
            is_closed: false,
            tag: Some(tag),
            stopped: StopReport::GroupAndTagged,
            registration: Some(TreeRegistration::new(KillTarget::Supervisor {
                socket,
                pid,
            })?),
        };
        for part in [environment, confinement] {
            let length = part.len() as u64;
            tree.send_all(&length.to_le_bytes()).await?;
            tree.send_all(&part).await?;
        }
        match tree.next_report().await? {
            Some(SupervisorReport::Started) => Ok(tree),
            Some(SupervisorReport::Failed(errno)) => {
                tree.tag = None;
                Err(io::Error::from_raw_os_error(errno))
            }
            Some(SupervisorReport::Refused(reason)) => {
                tree.tag = None;
                Err(io::Error::other(reason))
            }
            Some(SupervisorReport::Remaining(_) | SupervisorReport::Ended(_)) | None => {
                Err(supervisor_lost())
            }
        }
    }

    /// Waits until the program has exited and everything else was killed.
    pub(super) async fn wait_exit(&mut self) -> io::Result<()> {
        self.read_until_ended().await?;
        if self.exit_status.is_none()
            && let Some(tag) = &self.tag
        {
            // The supervisor was killed, so its children are orphans now.
            self.stopped = tagged_processes::sweep(tag.clone()).await;
            self.tag = None;
        }
        Ok(())
    }

    /// Reads until the supervisor's last line or the end of the socket. Cancel safe.
    async fn read_until_ended(&mut self) -> io::Result<()> {
        while self.exit_status.is_none() && !self.is_closed {
            match self.next_report().await? {
                Some(SupervisorReport::Remaining(process)) => {
                    self.remaining_processes.push(process)
                }
                Some(SupervisorReport::Ended(status)) => self.exit_status = Some(status),
                Some(
                    SupervisorReport::Started
                    | SupervisorReport::Failed(_)
                    | SupervisorReport::Refused(_),
                )
                | None => {}
            }
        }
        Ok(())
    }

    pub(super) fn request_stop(&self) {
        self.send_command(SupervisorCommand::RequestStop);
    }

    pub(super) fn kill(&self) {
        self.send_command(SupervisorCommand::Kill);
    }

    /// Kills the remaining processes and waits for the report.
    pub(super) async fn finish(mut self) -> FinishedTree {
        self.kill();
        for _ in 0..MAX_INTERVALS {
            match timeout(WAKE_INTERVAL, self.read_until_ended()).await {
                Ok(_) => break,
                Err(_) => self.wake(),
            }
        }
        let Some(status) = self.exit_status else {
            // A supervisor that is only slow or stopped still kills everything once it can.
            self.is_closed = true;
            let _ = self.wait_exit().await;
            return FinishedTree {
                status: None,
                stopped: std::mem::replace(&mut self.stopped, StopReport::GroupAndTagged),
            };
        };
        let remaining_processes = std::mem::take(&mut self.remaining_processes);
        if remaining_processes.is_empty() {
            self.registration = None;
            let _ = timeout(EXIT_TIMEOUT, self.supervisor.wait()).await;
        }
        FinishedTree {
            status: status.map(ExitStatus::from_raw),
            stopped: match remaining_processes.is_empty() {
                true => StopReport::Everything,
                false => StopReport::Remaining(remaining_processes),
            },
        }
    }

    fn send_command(&self, command: SupervisorCommand) {
        // An error means that the supervisor has exited or that its socket is full of earlier commands.
        let _ = send_now(&self.control, &[command as u8]);
        self.wake();
    }

    async fn send_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.control.writable().await?;
            let send = || send_now(&self.control, bytes);
            match self.control.try_io(Interest::WRITABLE, send) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Err(supervisor_lost()),
            }
        }
        Ok(())
    }

    /// Wakes the supervisor if it was stopped.
    fn wake(&self) {
        // The id is not reused before the supervisor is reaped.
        if let Some(pid) = pid_of(&self.supervisor) {
            let _ = kill_process(pid, Signal::CONT);
        }
    }

    /// Returns the next line of the supervisor; `None` at the end or if a line is invalid. Cancel safe.
    async fn next_report(&mut self) -> io::Result<Option<SupervisorReport>> {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line[..end]);
                return Ok(SupervisorReport::decode(&line));
            }
            self.control.readable().await?;
            let mut chunk = [0; 1024];
            match self.control.try_read(&mut chunk) {
                Ok(count) if count > 0 && self.unread.len() < MAX_REPORT_BYTES => {
                    self.unread.extend_from_slice(&chunk[..count]);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(_) | Err(_) => {
                    self.is_closed = true;
                    return Ok(None);
                }
            }
        }
    }
}

impl Drop for SupervisedTree {
    fn drop(&mut self) {
        self.registration = None;
        if self.exit_status.is_some() {
            return;
        }
        let mut byte = [0];
        let peek = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let peeked = recv(&self.control, &mut byte, peek);
        let is_lost = matches!(peeked, Ok((0, _)) | Err(Errno::CONNRESET));
        // The supervisor sees this once it continues.
        let _ = shutdown(&self.control, Shutdown::Both);
        self.wake();
        if is_lost && let Some(tag) = self.tag.take() {
            tagged_processes::sweep_in_background(tag);
        }
    }
}

/// Returns the id of a child that was not reaped.
fn pid_of(child: &Child) -> Option<Pid> {
    let id = i32::try_from(child.id()?).ok()?;
    Pid::from_raw(id)
}

/// Returns the error for a supervisor that was killed.
fn supervisor_lost() -> io::Error {
    io::Error::other("its supervisor was killed")
}

/// Sends as many of the bytes as the socket has room for, without blocking and without the runtime. Returns
/// their number.
pub(super) fn send_now(socket: &UnixStream, bytes: &[u8]) -> io::Result<usize> {
    #[cfg(target_os = "linux")]
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    // Other systems have no `NOSIGNAL`; a Rust program ignores SIGPIPE from its start.
    #[cfg(not(target_os = "linux"))]
    let flags = SendFlags::DONTWAIT;
    Ok(send(socket, bytes, flags)?)
}

/// Sends the program's streams before its supervisor starts, which finds them in the socket.
fn send_streams(socket: &StdUnixStream, stdio: &ChildStdio) -> io::Result<()> {
    let streams = [
        stdio.stdin.as_fd(),
        stdio.stdout.as_fd(),
        stdio.stderr.as_fd(),
    ];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    rights.push(SendAncillaryMessage::ScmRights(&streams));
    let command = [SupervisorCommand::Start as u8];
    sendmsg(
        socket,
        &[IoSlice::new(&command)],
        &mut rights,
        SendFlags::empty(),
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt as _;

    #[test]
    fn reports_round_trip() {
        let process = RunningProcess {
            pid: 7,
            command: "sudo sleep 5".to_owned(),
        };
        for line in [
            SupervisorReport::Started,
            SupervisorReport::Failed(2),
            SupervisorReport::Refused("/a b is closed".to_owned()),
            SupervisorReport::Remaining(process),
            SupervisorReport::Ended(Some(256)),
            SupervisorReport::Ended(None),
        ] {
            let encoded = line.encode();
            assert_eq!(SupervisorReport::decode(encoded.trim_end()), Some(line));
        }
        assert_eq!(SupervisorReport::decode("ended x"), None);
        assert_eq!(SupervisorReport::decode("what"), None);
    }

    #[tokio::test]
    async fn unreaped_leader_has_no_status() {
        let (control, mut theirs) = UnixStream::pair().unwrap();
        let lines = b"remaining 7 sudo sleep 5\nended\n";
        theirs.write_all(lines).await.unwrap();
        let tree = SupervisedTree {
            control,
            supervisor: Command::new("true").spawn().unwrap(),
            unread: Vec::new(),
            remaining_processes: Vec::new(),
            exit_status: None,
            is_closed: false,
            tag: None,
            stopped: StopReport::GroupAndTagged,
            registration: None,
        };
        let finished = tree.finish().await;
        assert_eq!(finished.status, None);
        let process = RunningProcess {
            pid: 7,
            command: "sudo sleep 5".to_owned(),
        };
        assert_eq!(finished.stopped, StopReport::Remaining(vec![process]));
    }
}
