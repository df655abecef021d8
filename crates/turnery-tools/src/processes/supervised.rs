//! A program below a supervisor, seen from this process.
//!
//! The protocol, over a socket pair: the streams of the program go to the supervisor with one byte, then
//! the program's environment (its length in 8 bytes, little-endian, and see [`encode_environment`]), then
//! its confinement (likewise, as JSON; of length 0 if there is none), then [`Order`]s, one byte each. The supervisor answers with lines, see [`Line`].

use super::{
    SUPERVISOR_ARGUMENT, leftovers,
    process_tree::{FinishedTree, RunningProcess, StopReport},
    program::{ChildStdio, ProgramSpec, encode_environment},
    registry::{Registration, Target, check_open},
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

/// How often a supervisor that was told to kill everything is woken, in case it is stopped again and again.
const WAKE_INTERVAL: Duration = Duration::from_millis(20);
/// A supervisor that has not reported after so many intervals is not waited for any longer.
const MOST_INTERVALS: usize = 75;
/// How long a supervisor may take to end after its report.
const LONGEST_END: Duration = Duration::from_secs(1);
/// More is never said by a supervisor. Unit: bytes.
const LONGEST_REPORT: usize = 64 << 10;

/// One byte from this process to the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Order {
    /// Start the program: its three streams come with this, and its environment follows.
    Start = b'S',
    /// Ask the program's process group to end.
    RequestStop = b'T',
    /// Kill everything.
    Kill = b'K',
}

/// A line from the supervisor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// The program runs.
    Started,
    /// It could not be started. Unit: errno.
    Failed(i32),
    /// It was not started, for this reason, in one line.
    Refused(String),
    /// A process that was killed and has not ended yet, or may not be killed.
    Remaining(RunningProcess),
    /// Nothing is left but the processes that were named before. The last line. Holds the raw wait status
    /// of the program, `None` if it is one of them.
    Ended(Option<i32>),
}

impl Line {
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

/// A program below its supervisor. Dropping this closes the socket, so that the supervisor kills all; if
/// the supervisor is gone, all that has the tag is killed.
#[derive(Debug)]
pub(super) struct Supervised {
    control: UnixStream,
    supervisor: Child,
    /// Read from the socket and not yet a whole line.
    unread: Vec<u8>,
    remaining: Vec<RunningProcess>,
    /// What the last line said: the raw wait status of the program, if it has one.
    ended: Option<Option<i32>>,
    /// The supervisor has closed its end.
    is_closed: bool,
    /// Inherited by the program; `None` once it was searched for, which is done if the supervisor is lost.
    tag: Option<String>,
    /// Result of that search.
    stopped: StopReport,
    /// Holds the supervisor's number: `None` before that is waited for.
    registration: Option<Registration>,
}

impl Supervised {
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
            .arg(&program.folder)
            .arg(&program.program)
            .args(&program.args)
            // It is confined by nothing: no library may be found in the program's folder or by a variable.
            .current_dir("/")
            .env_clear()
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // What a terminal sends to the group of this process is not for it. Above a confined program it begins a session
        // of its own, which the leader of a group cannot.
        if program.confinement.is_none() {
            start.process_group(0);
        }
        let supervisor = start.spawn()?;
        let pid = pid_of(&supervisor).ok_or_else(lost)?;
        // It holds the other end of the socket, which must close when the supervisor ends.
        drop(start);
        let mut tree = Self {
            control,
            supervisor,
            unread: Vec::new(),
            remaining: Vec::new(),
            ended: None,
            is_closed: false,
            tag: Some(tag),
            stopped: StopReport::GroupAndTagged,
            registration: Some(Registration::new(Target::Supervisor { socket, pid })?),
        };
        for part in [environment, confinement] {
            let length = part.len() as u64;
            tree.send_all(&length.to_le_bytes()).await?;
            tree.send_all(&part).await?;
        }
        match tree.next_line().await? {
            Some(Line::Started) => Ok(tree),
            Some(Line::Failed(errno)) => {
                tree.tag = None;
                Err(io::Error::from_raw_os_error(errno))
            }
            Some(Line::Refused(reason)) => {
                tree.tag = None;
                Err(io::Error::other(reason))
            }
            Some(Line::Remaining(_) | Line::Ended(_)) | None => Err(lost()),
        }
    }

    /// Waits until the program has ended and everything else was killed.
    pub(super) async fn wait_exit(&mut self) -> io::Result<()> {
        self.read_report().await?;
        if self.ended.is_none()
            && let Some(tag) = &self.tag
        {
            // Somebody killed the supervisor: its children are nobody's now.
            self.stopped = leftovers::sweep(tag.clone()).await;
            self.tag = None;
        }
        Ok(())
    }

    /// Reads until the supervisor's last line or the end of the socket. Cancel safe.
    async fn read_report(&mut self) -> io::Result<()> {
        while self.ended.is_none() && !self.is_closed {
            match self.next_line().await? {
                Some(Line::Remaining(process)) => self.remaining.push(process),
                Some(Line::Ended(status)) => self.ended = Some(status),
                Some(Line::Started | Line::Failed(_) | Line::Refused(_)) | None => {}
            }
        }
        Ok(())
    }

    pub(super) fn request_stop(&self) {
        self.order(Order::RequestStop);
    }

    pub(super) fn kill(&self) {
        self.order(Order::Kill);
    }

    /// Kills what is left, and waits for the report.
    pub(super) async fn finish(mut self) -> FinishedTree {
        self.kill();
        for _ in 0..MOST_INTERVALS {
            match timeout(WAKE_INTERVAL, self.read_report()).await {
                Ok(_) => break,
                Err(_) => self.wake(),
            }
        }
        let Some(status) = self.ended else {
            // A supervisor that is only slow or stopped still kills everything, once it can.
            self.is_closed = true;
            let _ = self.wait_exit().await;
            return FinishedTree {
                status: None,
                stopped: std::mem::replace(&mut self.stopped, StopReport::GroupAndTagged),
            };
        };
        let remaining = std::mem::take(&mut self.remaining);
        if remaining.is_empty() {
            self.registration = None;
            let _ = timeout(LONGEST_END, self.supervisor.wait()).await;
        }
        FinishedTree {
            status: status.map(ExitStatus::from_raw),
            stopped: match remaining.is_empty() {
                true => StopReport::Everything,
                false => StopReport::Remaining(remaining),
            },
        }
    }

    fn order(&self, order: Order) {
        // An error means that the supervisor has ended, or that it has orders enough not to miss this one.
        let _ = send_now(&self.control, &[order as u8]);
        self.wake();
    }

    async fn send_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.control.writable().await?;
            let send = || send_now(&self.control, bytes);
            match self.control.try_io(Interest::WRITABLE, send) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Err(lost()),
            }
        }
        Ok(())
    }

    /// Lets the supervisor go on if somebody has stopped it.
    fn wake(&self) {
        // As long as it is not waited for, its number is not another process's.
        if let Some(pid) = pid_of(&self.supervisor) {
            let _ = kill_process(pid, Signal::CONT);
        }
    }

    /// Next line of the supervisor; `None` at the end, or if it talks nonsense. Cancel safe.
    async fn next_line(&mut self) -> io::Result<Option<Line>> {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line[..end]);
                return Ok(Line::decode(&line));
            }
            self.control.readable().await?;
            let mut chunk = [0; 1024];
            match self.control.try_read(&mut chunk) {
                Ok(count) if count > 0 && self.unread.len() < LONGEST_REPORT => {
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

impl Drop for Supervised {
    fn drop(&mut self) {
        self.registration = None;
        if self.ended.is_some() {
            return;
        }
        let mut byte = [0];
        let peek = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let peeked = recv(&self.control, &mut byte, peek);
        let is_lost = matches!(peeked, Ok((0, _)) | Err(Errno::CONNRESET));
        // The supervisor sees this once it goes on.
        let _ = shutdown(&self.control, Shutdown::Both);
        self.wake();
        if is_lost && let Some(tag) = self.tag.take() {
            leftovers::sweep_in_background(tag);
        }
    }
}

/// Number of a child that was not waited for.
fn pid_of(child: &Child) -> Option<Pid> {
    let id = i32::try_from(child.id()?).ok()?;
    Pid::from_raw(id)
}

/// Whether the dynamic loader reads this variable.
fn lost() -> io::Error {
    io::Error::other("its supervisor was killed")
}

/// Sends without waiting, and without asking the runtime whether there is room: there is.
pub(super) fn send_now(socket: &UnixStream, bytes: &[u8]) -> io::Result<usize> {
    #[cfg(target_os = "linux")]
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    // Others have no such flag; a Rust program ignores SIGPIPE from its start.
    #[cfg(not(target_os = "linux"))]
    let flags = SendFlags::DONTWAIT;
    Ok(send(socket, bytes, flags)?)
}

/// Sends the program's streams ahead of its supervisor, which finds them in the socket.
fn send_streams(socket: &StdUnixStream, stdio: &ChildStdio) -> io::Result<()> {
    let streams = [
        stdio.stdin.as_fd(),
        stdio.stdout.as_fd(),
        stdio.stderr.as_fd(),
    ];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    rights.push(SendAncillaryMessage::ScmRights(&streams));
    let order = [Order::Start as u8];
    sendmsg(
        socket,
        &[IoSlice::new(&order)],
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
    fn every_line_is_read_as_it_was_written() {
        let process = RunningProcess {
            pid: 7,
            command: "sudo sleep 5".to_owned(),
        };
        for line in [
            Line::Started,
            Line::Failed(2),
            Line::Refused("/a b is closed".to_owned()),
            Line::Remaining(process),
            Line::Ended(Some(256)),
            Line::Ended(None),
        ] {
            let encoded = line.encode();
            assert_eq!(Line::decode(encoded.trim_end()), Some(line));
        }
        assert_eq!(Line::decode("ended x"), None);
        assert_eq!(Line::decode("what"), None);
    }

    #[tokio::test]
    async fn leader_that_was_not_waited_for_has_no_status() {
        let (control, mut theirs) = UnixStream::pair().unwrap();
        let lines = b"remaining 7 sudo sleep 5\nended\n";
        theirs.write_all(lines).await.unwrap();
        let tree = Supervised {
            control,
            supervisor: Command::new("true").spawn().unwrap(),
            unread: Vec::new(),
            remaining: Vec::new(),
            ended: None,
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
