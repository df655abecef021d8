//! Process: an agent in a process group of its own, with its pipes.

use super::queue::{Entry, Exit, Spoken, queue};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::{
    io,
    os::unix::ffi::OsStrExt,
    path::Path,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::{mpsc, watch},
    task::JoinHandle,
};

/// Lines that wait to be looked at, and writes that wait to go out.
const WAITING: usize = 1024;
/// So much of what nobody has looked at is kept; then the agent has to wait. Unit: bytes.
const WAITING_BYTES: u32 = 64 << 20;
/// No longer line is read. Clients read 32 MiB; of a line that is a little too long it is still known what it says.
/// Unit: bytes.
pub(crate) const LONGEST_LINE: usize = 64 << 20;
/// So much of a line that is longer is kept. Unit: bytes.
const KEPT_OF_LINE: usize = 1 << 11;
/// So much of stderr is kept. Unit: bytes.
const KEPT_STDERR: usize = 1 << 20;
/// Names one case in the environment of all that belongs to it.
pub(crate) const MARK: &str = "ACP_CONFORMANCE_CASE";

/// Held while a child begins: until it is what it shall be, it has a copy of each pipe of ours. Held for ever once
/// this process is to end.
static BEGINNING: Mutex<()> = Mutex::new(());

pub(crate) fn beginning() -> MutexGuard<'static, ()> {
    BEGINNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Start a child.
pub(crate) fn begin(command: &mut Command) -> io::Result<Child> {
    let _alone = beginning();
    command.spawn()
}

/// An agent that runs, or has ended.
pub(crate) struct Process {
    child: Child,
    group: Option<Pid>,
    stdin: Option<mpsc::Sender<Vec<u8>>>,
    writer: Option<JoinHandle<()>>,
    spoken: Exit,
    reader: Option<JoinHandle<()>>,
    reading: watch::Sender<bool>,
    logger: Option<JoinHandle<()>>,
}

/// What an agent wrote to stderr.
pub(crate) type Logs = Arc<Mutex<Vec<u8>>>;

impl Process {
    /// Start it. `logs`: where its stderr goes; without it nobody reads it.
    pub(crate) fn start(mut command: Command, logs: Option<Logs>) -> io::Result<Self> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let mut child = begin(&mut command)?;
        let pipes = (child.stdin.take(), child.stdout.take());
        let (Some(stdin), Some(stdout)) = pipes else {
            return Err(io::Error::other("no pipes"));
        };
        // What nobody reads stays open: to write there may block, but is no error.
        let stderr = logs.and_then(|logs| Some((child.stderr.take()?, logs)));
        let logger = stderr.map(|(stderr, logs)| tokio::spawn(keep(stderr, logs)));
        let (sender, writes) = mpsc::channel(WAITING);
        let writer = tokio::spawn(write(stdin, writes));
        let (found, spoken) = queue(WAITING, WAITING_BYTES);
        let (reading, go_on) = watch::channel(true);
        Ok(Self {
            group: child.id().and_then(|id| Pid::from_raw(id.cast_signed())),
            child,
            stdin: Some(sender),
            writer: Some(writer),
            spoken,
            reader: Some(tokio::spawn(read(stdout, found, go_on))),
            reading,
            logger,
        })
    }

    /// The next line; `None` when its stdout is closed.
    pub(crate) async fn line(&mut self) -> Option<Spoken> {
        self.spoken.take().await
    }

    /// Write this, after all before it. `None` when its stdin is closed.
    pub(crate) fn writes(&self) -> Option<mpsc::Sender<Vec<u8>>> {
        self.stdin.clone()
    }

    /// Close its stdin once all has gone out.
    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    pub(crate) fn is_open(&self) -> bool {
        self.stdin.is_some()
    }

    /// Read its stdout, or do not.
    pub(crate) fn read(&self, reading: bool) {
        // Its stdout may be closed already: then there is nothing to read.
        let _ = self.reading.send(reading);
    }

    /// Close our end of its stdout: once this is over, whatever it writes is refused.
    pub(crate) async fn hang_up(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.abort();
            // It says that it was aborted.
            let _ = reader.await;
        }
        // Children that are just beginning have a copy.
        drop(beginning());
    }

    pub(crate) async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// What is over once all that it, and whoever else has its stderr, wrote there has been read.
    pub(crate) fn logger(&mut self) -> Option<JoinHandle<()>> {
        self.logger.take()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Its own, while it runs.
    pub(crate) fn id(&self) -> Option<Pid> {
        self.group.filter(|_| self.child.id().is_some())
    }

    /// SIGTERM to itself alone.
    pub(crate) fn terminate(&self) {
        if let Some(pid) = self.id() {
            // It may have ended just now.
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    /// SIGKILL to itself alone.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.start_kill();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Its children too, even those that outlived it.
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
        }
        for task in [self.writer.take(), self.reader.take()]
            .into_iter()
            .flatten()
        {
            task.abort();
        }
    }
}

async fn write(mut stdin: ChildStdin, mut writes: mpsc::Receiver<Vec<u8>>) {
    while let Some(bytes) = writes.recv().await {
        let written = async {
            stdin.write_all(&bytes).await?;
            stdin.flush().await
        };
        if written.await.is_err() {
            break;
        }
    }
}

async fn read(stdout: ChildStdout, found: Entry, mut reading: watch::Receiver<bool>) {
    let mut is_rest = false;
    let mut stdout = BufReader::with_capacity(1 << 16, stdout);
    loop {
        if reading.wait_for(|reading| *reading).await.is_err() {
            return;
        }
        let mut line = Vec::new();
        let length = (&mut stdout)
            .take(LONGEST_LINE as u64)
            .read_until(b'\n', &mut line)
            .await;
        if !matches!(length, Ok(1..)) {
            return;
        }
        let is_cut = line.len() == LONGEST_LINE && !line.ends_with(b"\n");
        // What follows the beginning of a line that is too long is not kept.
        if std::mem::replace(&mut is_rest, is_cut) {
            continue;
        }
        let spoken = if is_cut {
            Spoken::TooLong(line[..KEPT_OF_LINE].to_vec())
        } else {
            Spoken::Line(line)
        };
        if !found.put(spoken).await {
            return;
        }
    }
}

async fn keep(mut stderr: impl AsyncRead + Unpin, logs: Logs) {
    let mut bytes = [0; 4096];
    while let Ok(length @ 1..) = stderr.read(&mut bytes).await {
        let mut logs = logs.lock().unwrap_or_else(PoisonError::into_inner);
        let room = KEPT_STDERR.saturating_sub(logs.len());
        logs.extend_from_slice(&bytes[..length.min(room)]);
    }
}

/// The processes that carry this mark in their environment: all that a case has started, wherever it fled to.
pub(crate) fn marked(mark: &str) -> Vec<Pid> {
    processes(|found| found == mark.as_bytes())
}

/// Those of all cases in this folder.
pub(crate) fn marked_below(folder: &Path) -> Vec<Pid> {
    let folder = folder.as_os_str().as_bytes();
    processes(|found| {
        let case = found.strip_prefix(folder);
        case.is_some_and(|case| case.starts_with(b"/"))
    })
}

fn processes(is_wanted: impl Fn(&[u8]) -> bool) -> Vec<Pid> {
    let mut found = Vec::new();
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    for process in processes.flatten() {
        let name = process.file_name();
        let Some(id) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let Some(environment) = environment(&process.path()) else {
            continue;
        };
        // Most have no mark, and are looked through quickly, even by a build that is not optimized.
        if !String::from_utf8_lossy(&environment).contains(MARK) {
            continue;
        }
        let mut variables = environment.split(|byte| *byte == 0);
        let is_ours = variables.any(|variable| {
            let value = variable.strip_prefix(MARK.as_bytes());
            let value = value.and_then(|value| value.strip_prefix(b"="));
            value.is_some_and(&is_wanted)
        });
        if let Some(pid) = Pid::from_raw(id).filter(|_| is_ours) {
            found.push(pid);
        }
    }
    found
}

/// Reads the environment of a process; `None` if it is gone or belongs to somebody else. A process in the middle of
/// `exec` seems to have none for a moment: it is read again.
fn environment(process: &Path) -> Option<Vec<u8>> {
    loop {
        let environment = std::fs::read(process.join("environ")).ok()?;
        if !environment.is_empty() {
            return Some(environment);
        }
        if !is_in_exec(&std::fs::read_to_string(process.join("stat")).ok()?) {
            return Some(environment);
        }
        std::thread::yield_now();
    }
}

/// Tells from the text of `/proc/PID/stat` whether a process has memory but no environment yet.
fn is_in_exec(stat: &str) -> bool {
    /// Fields behind the name, as proc(5) has them: `state`, `vsize` and `env_end`.
    const FIELDS: [usize; 3] = [0, 20, 48];
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let [state, memory, environment] = FIELDS.map(|index| fields.get(index).copied());
    let is_alive = !matches!(state, None | Some("Z" | "X" | "x"));
    // A kernel thread has no memory of its own.
    is_alive && memory.is_some_and(|size| size != "0") && environment == Some("0")
}

/// End all of them.
pub(crate) fn end(processes: &[Pid]) {
    for pid in processes {
        // It may have ended just now.
        let _ = kill_process(*pid, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::is_in_exec;

    /// A line of `/proc/PID/stat` of a process with this state, memory and end of its environment.
    fn stat(state: &str, memory: u64, environment: u64) -> String {
        let zeros = |count: usize| " 0".repeat(count);
        let head = format!("42 (a) b) {state}{}", zeros(19));
        format!("{head} {memory}{} {environment} 0\n", zeros(27))
    }

    #[test]
    fn only_a_process_in_exec_is_read_again() {
        assert!(is_in_exec(&stat("R", 4096, 0)));
        assert!(!is_in_exec(&stat("R", 4096, 7)), "an empty environment");
        assert!(!is_in_exec(&stat("S", 0, 0)), "a kernel thread");
        assert!(!is_in_exec(&stat("Z", 4096, 0)), "a zombie");
        assert!(!is_in_exec(""));
        let own = std::fs::read_to_string("/proc/self/stat").unwrap();
        assert!(!is_in_exec(&own));
    }
}
