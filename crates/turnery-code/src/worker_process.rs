//! Starts a worker, exchanges frames with it, and kills it.
//!
//! A worker that is dropped is killed and reaped at once, in every case: no path leaves it running or leaves a
//! zombie.

use crate::protocol::{
    FrameKind, HEADER_BYTES, HostMessage, MAX_MESSAGE_BYTES, OUT_OF_MEMORY_EXIT, PANIC_EXIT,
    WorkerMessage, decode_header, decode_message, encode_frame, encode_message, invalid_data,
};
use std::{
    io::{self, Read as _},
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, ExitStatus, Stdio},
    sync::OnceLock,
    thread,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::{ChildStdin, ChildStdout},
    task::spawn_blocking,
};

/// Argument of a process that is started as a worker.
pub(crate) const WORKER_ARGUMENT: &str = "--turnery-code-worker";

/// Executable that can be started as a worker.
pub(crate) static WORKER_EXECUTABLE: OnceLock<PathBuf> = OnceLock::new();

/// Part of a dead worker's error output that is read. Unit: bytes.
const MAX_ERROR_BYTES: u64 = 4096;
/// Error output of an allocation that failed.
const ALLOCATION_ERROR: &str = "memory allocation of";
/// Error output of an allocation larger than the address space.
const CAPACITY_ERROR: &str = "capacity overflow";
/// Error output of a stack that was too small.
const STACK_ERROR: &str = "has overflowed its stack";

/// Frame of a worker.
#[derive(Debug)]
pub(crate) enum WorkerFrame {
    Message(WorkerMessage),
    Snapshot(Vec<u8>),
}

/// Reason for the loss of a worker.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WorkerLoss {
    /// It could not allocate memory.
    OutOfMemory,
    /// Another reason, as text.
    Failed(String),
}

/// A running worker.
#[derive(Debug)]
pub(crate) struct WorkerProcess {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    process: OwnedProcess,
    max_snapshot_bytes: usize,
}

impl WorkerProcess {
    /// Starts a worker, which sends snapshots of up to `max_snapshot_bytes`. Must be called in a Tokio runtime with IO.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no executable or it cannot be started.
    pub(crate) fn spawn(max_snapshot_bytes: usize) -> io::Result<Self> {
        let Some(executable) = WORKER_EXECUTABLE.get() else {
            let message = "no executable is set: call turnery_code::init or use_worker first";
            return Err(io::Error::other(message));
        };
        Self::spawn_executable(executable, max_snapshot_bytes)
    }

    fn spawn_executable(executable: &Path, max_snapshot_bytes: usize) -> io::Result<Self> {
        let mut command = Command::new(executable);
        command
            .arg0("turnery-code-worker")
            .arg(WORKER_ARGUMENT)
            .current_dir("/")
            .env_clear()
            // Keeps the terminal's signals away.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Read after the worker has ended, to find out why.
            .stderr(Stdio::piped());
        let mut process = OwnedProcess(Some(command.spawn()?));
        let (Some(input), Some(output)) = process.take_streams() else {
            return Err(io::Error::other("the streams of the worker are missing"));
        };
        Ok(Self {
            input: ChildStdin::from_std(input)?,
            output: BufReader::new(ChildStdout::from_std(output)?),
            process,
            max_snapshot_bytes,
        })
    }

    /// Returns false if the worker has ended.
    pub(crate) fn is_running(&mut self) -> bool {
        self.process.is_running()
    }

    /// Sends a message.
    ///
    /// # Errors
    ///
    /// Returns an error if the worker is gone or the message is larger than 4 GiB.
    pub(crate) async fn send(&mut self, message: &HostMessage) -> io::Result<()> {
        self.input.write_all(&encode_message(message)?).await
    }

    /// Sends a snapshot.
    ///
    /// # Errors
    ///
    /// Returns an error if the worker is gone.
    pub(crate) async fn send_snapshot(&mut self, snapshot: &[u8]) -> io::Result<()> {
        let frame = encode_frame(FrameKind::Snapshot, snapshot)?;
        self.input.write_all(&frame).await
    }

    /// Waits for the next frame. Not cancel safe: part of a frame may be lost.
    ///
    /// # Errors
    ///
    /// Returns an error if the worker is gone, or if the frame is invalid or too large.
    pub(crate) async fn receive(&mut self) -> io::Result<WorkerFrame> {
        read_frame(&mut self.output, self.max_snapshot_bytes).await
    }

    /// Kills the worker after an error of the connection and returns the reason.
    pub(crate) async fn into_loss(self, error: io::Error) -> WorkerLoss {
        let Self {
            input,
            output,
            process,
            max_snapshot_bytes: _,
        } = self;
        drop((input, output));
        // A worker closes its output only by exiting, and then keeps its status although it is killed.
        let ended = spawn_blocking(move || process.kill_and_wait()).await;
        match ended {
            Ok(Some((status, text))) => explain_exit(status, &text, &error),
            Ok(None) | Err(_) => WorkerLoss::Failed(format!("the interpreter failed: {error}")),
        }
    }
}

/// Reads a frame of a worker, of limited size.
async fn read_frame(
    output: &mut (impl AsyncRead + Unpin),
    max_snapshot_bytes: usize,
) -> io::Result<WorkerFrame> {
    let mut header = [0; HEADER_BYTES];
    output.read_exact(&mut header).await?;
    let (kind, length) = decode_header(header)?;
    let limit = match kind {
        FrameKind::Message => MAX_MESSAGE_BYTES,
        FrameKind::Snapshot => max_snapshot_bytes,
    };
    if usize::try_from(length).map_or(true, |length| length > limit) {
        return Err(invalid_data("a frame is too large"));
    }
    // Grows with what arrives rather than with what is announced.
    let mut content = Vec::new();
    let mut rest = output.take(u64::from(length));
    rest.read_to_end(&mut content).await?;
    if content.len() as u64 != u64::from(length) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(match kind {
        FrameKind::Message => WorkerFrame::Message(decode_message(&content)?),
        FrameKind::Snapshot => WorkerFrame::Snapshot(content),
    })
}

/// Finds the reason for the loss of a worker, from its exit status, its error output and the error of the connection.
fn explain_exit(status: ExitStatus, text: &str, error: &io::Error) -> WorkerLoss {
    let is_connection_lost = matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe
    );
    if !is_connection_lost {
        return WorkerLoss::Failed(format!("the connection to the interpreter failed: {error}"));
    }
    let reason = match (status.code(), status.signal()) {
        (Some(OUT_OF_MEMORY_EXIT), _) => return WorkerLoss::OutOfMemory,
        (Some(PANIC_EXIT), _) if text.contains(CAPACITY_ERROR) => return WorkerLoss::OutOfMemory,
        (None, _) if text.contains(ALLOCATION_ERROR) => return WorkerLoss::OutOfMemory,
        (None, _) if text.contains(STACK_ERROR) => "it ran out of stack".to_owned(),
        (Some(PANIC_EXIT), _) => format!("it has a bug ({})", first_lines(text)),
        (Some(code), _) => format!("it exited with code {code}"),
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
        (None, None) => "it ended".to_owned(),
    };
    WorkerLoss::Failed(format!("the interpreter failed: {reason}"))
}

/// Returns the place and the message of a panic.
fn first_lines(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim().is_empty()).take(2);
    lines.collect::<Vec<_>>().join(" ")
}

/// A process that is killed and reaped when it is dropped. `None` once it was reaped.
#[derive(Debug)]
struct OwnedProcess(Option<Child>);

impl OwnedProcess {
    /// Returns standard input and output.
    fn take_streams(
        &mut self,
    ) -> (
        Option<std::process::ChildStdin>,
        Option<std::process::ChildStdout>,
    ) {
        match &mut self.0 {
            Some(child) => (child.stdin.take(), child.stdout.take()),
            None => (None, None),
        }
    }

    /// Returns false if the process has ended; then it was reaped.
    fn is_running(&mut self) -> bool {
        match &mut self.0 {
            Some(child) => matches!(child.try_wait(), Ok(None)),
            None => false,
        }
    }

    /// Kills the process and waits for its end, which a killed process reaches without further delay. Returns
    /// its status and its error output.
    fn kill_and_wait(mut self) -> Option<(ExitStatus, String)> {
        let mut child = self.0.take()?;
        // Fails only for a process that was reaped.
        let _ = child.kill();
        let status = child.wait().ok()?;
        let text = child.stderr.take().map(read_errors).unwrap_or_default();
        Some((status, text))
    }
}

impl Drop for OwnedProcess {
    fn drop(&mut self) {
        let Some(mut child) = self.0.take() else {
            return;
        };
        let _ = child.kill();
        if let Ok(Some(_)) = child.try_wait() {
            return;
        }
        // Freeing much memory takes the kernel some time, which must not block the runtime.
        let id = child.id();
        let reaper = thread::Builder::new().name("code-worker-reaper".to_owned());
        if reaper.spawn(move || drop(child.wait())).is_err() {
            wait_for(id);
        }
    }
}

/// Waits for the end of a child.
fn wait_for(id: u32) {
    use rustix::process::{Pid, WaitOptions, waitpid};
    if let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) {
        let _ = waitpid(Some(pid), WaitOptions::empty());
    }
}

/// Reads the beginning of the error output of a process that has ended.
fn read_errors(stderr: ChildStderr) -> String {
    let mut bytes = Vec::new();
    // Whatever was read before an error is still of use.
    let _ = stderr.take(MAX_ERROR_BYTES).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explain(raw_status: i32, text: &str) -> WorkerLoss {
        let error = io::ErrorKind::UnexpectedEof.into();
        explain_exit(ExitStatus::from_raw(raw_status), text, &error)
    }

    #[test]
    fn exit_status_tells_why_a_worker_is_gone() {
        let abort = 6;
        let text = "memory allocation of 10000000000 bytes failed\n";
        assert_eq!(explain(abort, text), WorkerLoss::OutOfMemory);
        assert_eq!(explain(65 << 8, ""), WorkerLoss::OutOfMemory);
        let text = "thread 'interpreter' panicked at a.rs:1:2:\ncapacity overflow\n";
        assert_eq!(explain(101 << 8, text), WorkerLoss::OutOfMemory);
        let failed = |reason: &str| WorkerLoss::Failed(format!("the interpreter failed: {reason}"));
        let text = "thread 'interpreter' panicked at a.rs:1:2:\nwrong\nnote: more\n";
        let reason = "it has a bug (thread 'interpreter' panicked at a.rs:1:2: wrong)";
        assert_eq!(explain(101 << 8, text), failed(reason));
        let text = "\nthread 'interpreter' has overflowed its stack\nfatal runtime error\n";
        assert_eq!(explain(abort, text), failed("it ran out of stack"));
        assert_eq!(explain(abort, ""), failed("it was ended by signal 6"));
        assert_eq!(explain(9, ""), failed("it was ended by signal 9"));
        assert_eq!(explain(1 << 8, ""), failed("it exited with code 1"));
        let invalid = explain_exit(ExitStatus::from_raw(9), "", &invalid_data("x"));
        let expected = "the connection to the interpreter failed: x".to_owned();
        assert_eq!(invalid, WorkerLoss::Failed(expected));
    }

    async fn read(mut bytes: &[u8]) -> Result<WorkerFrame, String> {
        let frame = read_frame(&mut bytes, 4).await;
        frame.map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn invalid_frames_of_a_worker_are_errors() {
        for (bytes, error) in [
            (&b"X\0\0\0\0"[..], "unknown kind of frame"),
            (b"M\xff\xff\xff\xff", "a frame is too large"),
            (b"S\x05\0\0\0abcde", "a frame is too large"),
            (b"S\x04\0\0\0abc", "unexpected end of file"),
            (b"M\x02\0\0\0{}", "expected value at line 1 column 2"),
        ] {
            assert_eq!(read(bytes).await.unwrap_err(), error);
        }
        let deep = "[".repeat(10_000);
        let mut bytes = vec![b'M'];
        bytes.extend_from_slice(&10_000_u32.to_le_bytes());
        bytes.extend_from_slice(deep.as_bytes());
        read(&bytes).await.unwrap_err();
        let frame = read(b"S\x04\0\0\0abcd").await.unwrap();
        assert!(matches!(frame, WorkerFrame::Snapshot(bytes) if bytes == b"abcd"));
    }

    #[tokio::test]
    async fn other_program_as_worker_is_an_error() {
        for (program, expected) in [
            (
                "/bin/echo",
                "the connection to the interpreter failed: unknown kind of frame",
            ),
            ("/bin/sh", "the interpreter failed: it exited with code 2"),
        ] {
            let mut worker = WorkerProcess::spawn_executable(Path::new(program), 0).unwrap();
            let error = worker.receive().await.unwrap_err();
            let expected = WorkerLoss::Failed(expected.to_owned());
            assert_eq!(worker.into_loss(error).await, expected);
        }
        assert!(WorkerProcess::spawn_executable(Path::new("/missing"), 0).is_err());
    }
}
