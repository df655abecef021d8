//! Runs an agent in a separate process group, connected by pipes.

use super::queue::{LineReceiver, LineSender, OutputLine, line_queue};
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

/// Capacity of the queues of received lines and of pending writes.
const MAX_QUEUED_LINES: usize = 1024;
/// Size of the queue of received lines; the agent has to wait when the queue is full. Unit: bytes.
const MAX_QUEUED_BYTES: u32 = 64 << 20;
/// Longest line that is read. Clients read 32 MiB; a line slightly above that limit can still be parsed. Unit:
/// bytes.
pub(crate) const MAX_LINE_BYTES: usize = 64 << 20;
/// Part of a longer line that is kept. Unit: bytes.
const LONG_LINE_PREFIX_BYTES: usize = 1 << 11;
/// Part of stderr that is kept. Unit: bytes.
const MAX_STDERR_BYTES: usize = 1 << 20;
/// Environment variable that marks all processes of one case.
pub(crate) const MARK_VARIABLE: &str = "ACP_CONFORMANCE_CASE";

/// Held while a child starts, because until `exec` the child holds copies of the runner's pipes. Never released
/// once the runner is to exit.
static SPAWN_LOCK: Mutex<()> = Mutex::new(());

pub(crate) fn lock_spawning() -> MutexGuard<'static, ()> {
    SPAWN_LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Spawns a child under the spawn lock.
pub(crate) fn spawn_child(command: &mut Command) -> io::Result<Child> {
    let _alone = lock_spawning();
    command.spawn()
}

/// Running or finished agent.
pub(crate) struct AgentProcess {
    child: Child,
    group: Option<Pid>,
    stdin: Option<mpsc::Sender<Vec<u8>>>,
    stdin_writer: Option<JoinHandle<()>>,
    lines: LineReceiver,
    stdout_reader: Option<JoinHandle<()>>,
    is_reading: watch::Sender<bool>,
    stderr_reader: Option<JoinHandle<()>>,
}

/// Collected stderr of an agent.
pub(crate) type StderrLog = Arc<Mutex<Vec<u8>>>;

impl AgentProcess {
    /// Starts an agent. `logs` collects stderr; without it, stderr is not read.
    pub(crate) fn start(mut command: Command, logs: Option<StderrLog>) -> io::Result<Self> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let mut child = spawn_child(&mut command)?;
        let pipes = (child.stdin.take(), child.stdout.take());
        let (Some(stdin), Some(stdout)) = pipes else {
            return Err(io::Error::other("no pipes"));
        };
        // Unread stderr stays open: writes may block, but do not fail.
        let stderr = logs.and_then(|logs| Some((child.stderr.take()?, logs)));
        let logger = stderr.map(|(stderr, logs)| tokio::spawn(read_stderr(stderr, logs)));
        let (sender, writes) = mpsc::channel(MAX_QUEUED_LINES);
        let writer = tokio::spawn(write_stdin(stdin, writes));
        let (line_sender, lines) = line_queue(MAX_QUEUED_LINES, MAX_QUEUED_BYTES);
        let (reading, go_on) = watch::channel(true);
        Ok(Self {
            group: child.id().and_then(|id| Pid::from_raw(id.cast_signed())),
            child,
            stdin: Some(sender),
            stdin_writer: Some(writer),
            lines,
            stdout_reader: Some(tokio::spawn(read_stdout(stdout, line_sender, go_on))),
            is_reading: reading,
            stderr_reader: logger,
        })
    }

    /// Returns the next line; `None` once stdout is closed.
    pub(crate) async fn next_line(&mut self) -> Option<OutputLine> {
        self.lines.recv().await
    }

    /// Returns the queue of writes to stdin; `None` once stdin is closed.
    pub(crate) fn stdin_sender(&self) -> Option<mpsc::Sender<Vec<u8>>> {
        self.stdin.clone()
    }

    /// Closes stdin after all pending writes.
    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    pub(crate) fn is_stdin_open(&self) -> bool {
        self.stdin.is_some()
    }

    /// Resumes or pauses reading stdout.
    pub(crate) fn set_reading(&self, reading: bool) {
        // Fails if stdout is already closed: then there is nothing to read.
        let _ = self.is_reading.send(reading);
    }

    /// Closes the runner's end of stdout; afterwards the agent's writes fail.
    pub(crate) async fn close_stdout(&mut self) {
        if let Some(reader) = self.stdout_reader.take() {
            reader.abort();
            // The result only says that the task was aborted.
            let _ = reader.await;
        }
        // Wait for children that are starting: they hold a copy of the pipe.
        drop(lock_spawning());
    }

    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Takes the task that ends once everything written to stderr has been read.
    pub(crate) fn take_stderr_reader(&mut self) -> Option<JoinHandle<()>> {
        self.stderr_reader.take()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Returns the process id while the process runs.
    pub(crate) fn running_pid(&self) -> Option<Pid> {
        self.group.filter(|_| self.child.id().is_some())
    }

    /// Sends SIGTERM to the process, without its children.
    pub(crate) fn terminate(&self) {
        if let Some(pid) = self.running_pid() {
            // The process may have just ended.
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    /// Sends SIGKILL to the process, without its children.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.start_kill();
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        // This includes children that outlived the process.
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
        }
        for task in [self.stdin_writer.take(), self.stdout_reader.take()]
            .into_iter()
            .flatten()
        {
            task.abort();
        }
    }
}

async fn write_stdin(mut stdin: ChildStdin, mut writes: mpsc::Receiver<Vec<u8>>) {
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

async fn read_stdout(stdout: ChildStdout, lines: LineSender, mut reading: watch::Receiver<bool>) {
    let mut is_rest = false;
    let mut stdout = BufReader::with_capacity(1 << 16, stdout);
    loop {
        if reading.wait_for(|reading| *reading).await.is_err() {
            return;
        }
        let mut line = Vec::new();
        let length = (&mut stdout)
            .take(MAX_LINE_BYTES as u64)
            .read_until(b'\n', &mut line)
            .await;
        if !matches!(length, Ok(1..)) {
            return;
        }
        let is_cut = line.len() == MAX_LINE_BYTES && !line.ends_with(b"\n");
        // Discard the rest of a line that is too long.
        if std::mem::replace(&mut is_rest, is_cut) {
            continue;
        }
        let output = if is_cut {
            OutputLine::TooLong(line[..LONG_LINE_PREFIX_BYTES].to_vec())
        } else {
            OutputLine::Line(line)
        };
        if !lines.send(output).await {
            return;
        }
    }
}

async fn read_stderr(mut stderr: impl AsyncRead + Unpin, logs: StderrLog) {
    let mut bytes = [0; 4096];
    while let Ok(length @ 1..) = stderr.read(&mut bytes).await {
        let mut logs = logs.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MAX_STDERR_BYTES.saturating_sub(logs.len());
        logs.extend_from_slice(&bytes[..length.min(room)]);
    }
}

/// Returns the processes with this mark in their environment: all that a case started, in any group or session.
pub(crate) fn marked_processes(mark: &str) -> Vec<Pid> {
    find_processes(|found| found == mark.as_bytes())
}

/// Returns the marked processes of all cases in this folder.
pub(crate) fn marked_processes_below(folder: &Path) -> Vec<Pid> {
    let folder = folder.as_os_str().as_bytes();
    find_processes(|found| {
        let case = found.strip_prefix(folder);
        case.is_some_and(|case| case.starts_with(b"/"))
    })
}

fn find_processes(is_wanted: impl Fn(&[u8]) -> bool) -> Vec<Pid> {
    let mut found = Vec::new();
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    for process in processes.flatten() {
        let name = process.file_name();
        let Some(id) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let Some(environment) = read_environment(&process.path()) else {
            continue;
        };
        // Most processes have no mark; this check is fast even in an unoptimized build.
        if !String::from_utf8_lossy(&environment).contains(MARK_VARIABLE) {
            continue;
        }
        let mut variables = environment.split(|byte| *byte == 0);
        let is_ours = variables.any(|variable| {
            let value = variable.strip_prefix(MARK_VARIABLE.as_bytes());
            let value = value.and_then(|value| value.strip_prefix(b"="));
            value.is_some_and(&is_wanted)
        });
        if let Some(pid) = Pid::from_raw(id).filter(|_| is_ours) {
            found.push(pid);
        }
    }
    found
}

/// Reads the environment of a process; `None` if the process is gone or belongs to another user. A process in
/// the middle of `exec` briefly has no environment, so the function reads again.
fn read_environment(process: &Path) -> Option<Vec<u8>> {
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

/// Returns true if `/proc/PID/stat` shows a process with memory but no environment yet.
fn is_in_exec(stat: &str) -> bool {
    /// Fields after the name, as in proc(5): `state`, `vsize` and `env_end`.
    const FIELDS: [usize; 3] = [0, 20, 48];
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let [state, memory, environment] = FIELDS.map(|index| fields.get(index).copied());
    let is_alive = !matches!(state, None | Some("Z" | "X" | "x"));
    // Kernel threads have no memory.
    is_alive && memory.is_some_and(|size| size != "0") && environment == Some("0")
}

/// Kills all given processes.
pub(crate) fn kill_all(processes: &[Pid]) {
    for pid in processes {
        // The process may have just ended.
        let _ = kill_process(*pid, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::is_in_exec;

    /// Returns a `/proc/PID/stat` line with this state, memory size and end of the environment.
    fn stat_line(state: &str, memory: u64, environment: u64) -> String {
        let zeros = |count: usize| " 0".repeat(count);
        let head = format!("42 (a) b) {state}{}", zeros(19));
        format!("{head} {memory}{} {environment} 0\n", zeros(27))
    }

    #[test]
    fn only_process_in_exec_is_read_again() {
        assert!(is_in_exec(&stat_line("R", 4096, 0)));
        assert!(
            !is_in_exec(&stat_line("R", 4096, 7)),
            "an empty environment"
        );
        assert!(!is_in_exec(&stat_line("S", 0, 0)), "a kernel thread");
        assert!(!is_in_exec(&stat_line("Z", 4096, 0)), "a zombie");
        assert!(!is_in_exec(""));
        let own = std::fs::read_to_string("/proc/self/stat").unwrap();
        assert!(!is_in_exec(&own));
    }
}
