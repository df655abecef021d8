//! A session: one interpreter, whose variables live from block to block.

mod block_run;

use crate::{
    host::CodeHost,
    limits::{CodeLimitExceeded, CodeLimits},
    output::{CodeEnd, CodeOutput, OutputBuffer},
    protocol::{BlockEnd, HostMessage, WorkerMessage, WorkerStart, invalid_data},
    worker_process::{WorkerFrame, WorkerLoss, WorkerProcess},
};
use block_run::{BlockRun, RunError};
use std::{io, time::Duration};
use tokio::time::timeout;

/// Snapshots up to this size are kept for the next worker even if they are too large for
/// [`CodeSession::snapshot`]. Unit: bytes.
const MIN_KEPT_SNAPSHOT_BYTES: usize = 32 << 20;
/// Time limit for the start of a worker, including the restoration of a snapshot.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Python interpreter of one conversation: variables live from block to block.
///
/// A worker process starts with the first block and runs until the session is dropped or the worker must be
/// stopped. Dropping the session, or a running [`run`](Self::run), kills the worker at once.
#[derive(Debug)]
pub struct CodeSession {
    limits: CodeLimits,
    /// The worker between blocks. A running block owns it, so that dropping the future kills it.
    worker: Option<WorkerProcess>,
    /// Variables after the last block that ended; `None` if there are none or they are too large.
    snapshot: Option<Vec<u8>>,
    /// The variables are only in the worker, since they are too large for a snapshot.
    has_unsaved_variables: bool,
    /// Unsaved variables are gone with their worker, which no block has reported.
    has_lost_variables: bool,
    /// `snapshot` comes from another session.
    is_restored: bool,
}

impl CodeSession {
    /// Creates a session without variables. Starts no process yet.
    pub fn new(limits: CodeLimits) -> Self {
        Self {
            limits,
            worker: None,
            snapshot: None,
            has_unsaved_variables: false,
            has_lost_variables: false,
            is_restored: false,
        }
    }

    /// Creates a session with the variables of an earlier one, from its [`snapshot`](Self::snapshot). Starts no
    /// process yet. If the snapshot turns out to be damaged or of another version, the first block fails with
    /// [`CodeEnd::WorkerFailed`], and the next one starts without variables.
    pub fn restore(limits: CodeLimits, snapshot: Vec<u8>) -> Self {
        Self {
            snapshot: Some(snapshot),
            is_restored: true,
            ..Self::new(limits)
        }
    }

    /// Returns the variables after the last block that ended, for [`restore`](Self::restore). `None` before the
    /// first block, and if they are larger than [`CodeLimits::snapshot_bytes`].
    pub fn snapshot(&self) -> Option<&[u8]> {
        let snapshot = self.snapshot.as_deref()?;
        let is_small = snapshot.len() <= self.limits.snapshot_bytes;
        (self.is_restored || is_small).then_some(snapshot)
    }

    /// Ends the worker process if it holds nothing but what the snapshot has. The next block starts another one.
    pub fn suspend(&mut self) {
        if !self.has_unsaved_variables {
            self.worker = None;
        }
    }

    /// Runs a block of code, which can call `functions` of the host by name. Must be called in a Tokio runtime
    /// with IO and time.
    ///
    /// The code can call functions plainly (`text = read(path)`) or await them, alone or together
    /// (`texts = await asyncio.gather(*[read(path) for path in paths])`). The syntax tree of the block decides
    /// whether a call is awaited: its result may reach `await` or `gather` through variables, containers,
    /// comprehensions and functions of the same block, but not through variables of an earlier one.
    ///
    /// Arguments and results are JSON. An argument without a JSON form raises a Python `TypeError`.
    ///
    /// If the returned future is dropped, the worker is killed at once, and the next block starts with the
    /// variables from before this one.
    pub async fn run(
        &mut self,
        code: &str,
        functions: &[String],
        host: &mut dyn CodeHost,
    ) -> CodeOutput {
        let mut text = OutputBuffer::new(self.limits.output_bytes);
        let (end, value) = match self.take_worker().await {
            Err(reason) => (CodeEnd::WorkerFailed(reason), None),
            Ok(mut worker) => {
                let mut block = BlockRun::new(&self.limits, host, &mut text);
                match block.run(&mut worker, code, functions).await {
                    Ok((end, snapshot)) => {
                        self.is_restored = false;
                        self.has_unsaved_variables = snapshot.is_none();
                        self.snapshot = snapshot;
                        self.worker = Some(worker);
                        match end {
                            BlockEnd::Completed(value) => (CodeEnd::Completed, value),
                            BlockEnd::Ended => (CodeEnd::Ended, None),
                            BlockEnd::Failed(error) => {
                                let error = OutputBuffer::cut(&error, self.limits.output_bytes);
                                (CodeEnd::Failed(error), None)
                            }
                        }
                    }
                    Err(error) => {
                        self.note_lost_worker();
                        (end_of_lost_worker(worker, error).await, None)
                    }
                }
            }
        };
        CodeOutput {
            text: text.into_text(),
            value,
            end,
            has_lost_variables: std::mem::take(&mut self.has_lost_variables),
        }
    }

    /// Returns the worker, or starts one with the last snapshot.
    async fn take_worker(&mut self) -> Result<WorkerProcess, String> {
        if let Some(mut worker) = self.worker.take()
            && worker.is_running()
        {
            return Ok(worker);
        }
        // The block before was dropped, or the worker has ended meanwhile.
        self.note_lost_worker();
        let to_text = |error: io::Error| format!("the interpreter could not be started: {error}");
        let kept_bytes = self.limits.snapshot_bytes.max(MIN_KEPT_SNAPSHOT_BYTES);
        let mut worker = WorkerProcess::spawn(kept_bytes).map_err(to_text)?;
        let started = timeout(START_TIMEOUT, self.start(&mut worker, kept_bytes)).await;
        match started {
            Err(_) => Err("the interpreter could not be started in time".to_owned()),
            Ok(Err(error)) => Err(match worker.into_loss(error).await {
                WorkerLoss::OutOfMemory if self.snapshot.is_some() => {
                    self.forget_snapshot("they need more memory than is permitted")
                }
                WorkerLoss::OutOfMemory => {
                    "the interpreter needs more memory than is permitted".to_owned()
                }
                WorkerLoss::Failed(reason) => reason,
            }),
            Ok(Ok(Some(reason))) => Err(self.forget_snapshot(&reason)),
            Ok(Ok(None)) => Ok(worker),
        }
    }

    /// Starts the interpreter. Returns the reason if the snapshot cannot be restored.
    async fn start(
        &self,
        worker: &mut WorkerProcess,
        kept_bytes: usize,
    ) -> io::Result<Option<String>> {
        let start = WorkerStart {
            memory_bytes: self.limits.memory_bytes,
            recursion_depth: self.limits.recursion_depth,
            snapshot_bytes: kept_bytes,
            has_snapshot: self.snapshot.is_some(),
        };
        worker.send(&HostMessage::Start(start)).await?;
        if let Some(snapshot) = &self.snapshot {
            worker.send_snapshot(snapshot).await?;
        }
        match worker.receive().await? {
            WorkerFrame::Message(WorkerMessage::Ready) => Ok(None),
            WorkerFrame::Message(WorkerMessage::InvalidSnapshot(reason)) => Ok(Some(reason)),
            WorkerFrame::Message(_) | WorkerFrame::Snapshot(_) => {
                Err(invalid_data("the worker did not start"))
            }
        }
    }

    /// Drops a snapshot that cannot be restored. Returns the message for the model.
    fn forget_snapshot(&mut self, reason: &str) -> String {
        self.snapshot = None;
        self.is_restored = false;
        format!(
            "the variables of earlier blocks cannot be restored: {reason}. The next block starts without them"
        )
    }

    /// Notes that variables without a snapshot are gone with their worker.
    fn note_lost_worker(&mut self) {
        self.has_lost_variables |= std::mem::take(&mut self.has_unsaved_variables);
    }
}

/// Kills the worker of a block that did not end by itself, and returns how the block ended.
async fn end_of_lost_worker(worker: WorkerProcess, error: RunError) -> CodeEnd {
    match error {
        RunError::Limit(limit) => {
            drop(worker);
            CodeEnd::Stopped(limit)
        }
        RunError::Connection(error) => match worker.into_loss(error).await {
            WorkerLoss::OutOfMemory => CodeEnd::Stopped(CodeLimitExceeded::Memory),
            WorkerLoss::Failed(reason) => CodeEnd::WorkerFailed(reason),
        },
    }
}
