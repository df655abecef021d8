//! Runs one block on the side of the host: enforces the limits, forwards calls and printed text.

use crate::{
    host::{CallReply, CodeHost},
    limits::{CodeLimitExceeded, CodeLimits},
    output::OutputBuffer,
    protocol::{BlockEnd, HostMessage, MAX_DEPTH, WorkerMessage, invalid_data, is_deeper_than},
    worker_process::{WorkerFrame, WorkerProcess},
};
use serde_json::Value;
use std::{io, time::Duration};
use tokio::time::{Instant, timeout};

/// Printed text after which a block is stopped. Unit: bytes.
const MAX_PRINTED_BYTES: usize = 64 << 20;

/// Error of a block whose end the worker did not report.
#[derive(Debug)]
pub(super) enum RunError {
    /// A limit was exceeded; the worker is to be killed.
    Limit(CodeLimitExceeded),
    /// The connection to the worker failed.
    Connection(io::Error),
}

impl From<io::Error> for RunError {
    fn from(error: io::Error) -> Self {
        Self::Connection(error)
    }
}

/// Run of one block, on the side of the host.
pub(super) struct BlockRun<'a> {
    host: &'a mut dyn CodeHost,
    text: &'a mut OutputBuffer,
    computing_time_left: Duration,
    calls_left: usize,
    printed_bytes: usize,
}

impl<'a> BlockRun<'a> {
    /// Creates the run of a block, whose printed text goes to `host` and `text`.
    pub(super) fn new(
        limits: &CodeLimits,
        host: &'a mut dyn CodeHost,
        text: &'a mut OutputBuffer,
    ) -> Self {
        Self {
            host,
            text,
            computing_time_left: limits.computing_time,
            calls_left: limits.calls,
            printed_bytes: 0,
        }
    }

    /// Runs code. Returns how it ended and the snapshot after it.
    ///
    /// # Errors
    ///
    /// Returns an error if a limit was exceeded or the worker is lost. The worker must not be used again.
    pub(super) async fn run(
        &mut self,
        worker: &mut WorkerProcess,
        code: &str,
        functions: &[String],
    ) -> Result<(BlockEnd, Option<Vec<u8>>), RunError> {
        let mut message = HostMessage::Run {
            code: code.to_owned(),
            functions: functions.to_vec(),
        };
        loop {
            match self.compute(worker, message).await? {
                WorkerMessage::Calls(calls) => {
                    let are_known = calls.iter().all(|call| functions.contains(&call.function));
                    if calls.is_empty() || !are_known {
                        return Err(invalid_data("the worker called an unknown function").into());
                    }
                    self.calls_left = match self.calls_left.checked_sub(calls.len()) {
                        Some(left) => left,
                        None => return Err(RunError::Limit(CodeLimitExceeded::Calls)),
                    };
                    let count = calls.len();
                    message = match self.host.call(calls).await {
                        CallReply::Results(results) => {
                            HostMessage::Results(checked_results(results, count))
                        }
                        CallReply::End => HostMessage::End,
                    };
                }
                WorkerMessage::Finished(end) => {
                    return Ok((end, self.receive_snapshot(worker).await?));
                }
                WorkerMessage::Ready
                | WorkerMessage::InvalidSnapshot(_)
                | WorkerMessage::NoSnapshot
                | WorkerMessage::Print(_) => {
                    return Err(invalid_data("the worker sent another message").into());
                }
            }
        }
    }

    /// Lets the worker compute until it needs the host or has finished. Passes on what it prints.
    async fn compute(
        &mut self,
        worker: &mut WorkerProcess,
        message: HostMessage,
    ) -> Result<WorkerMessage, RunError> {
        match self.receive(worker, Some(&message)).await? {
            WorkerFrame::Message(message) => Ok(message),
            WorkerFrame::Snapshot(_) => Err(invalid_data("the worker sent a snapshot").into()),
        }
    }

    /// Receives the snapshot after a block; `None` if there is none.
    async fn receive_snapshot(
        &mut self,
        worker: &mut WorkerProcess,
    ) -> Result<Option<Vec<u8>>, RunError> {
        match self.receive(worker, None).await? {
            WorkerFrame::Snapshot(snapshot) => Ok(Some(snapshot)),
            WorkerFrame::Message(WorkerMessage::NoSnapshot) => Ok(None),
            WorkerFrame::Message(_) => Err(invalid_data("the worker sent no snapshot").into()),
        }
    }

    /// Sends a message if there is one, and receives the next frame that is no printed text, all in the computing
    /// time that is left.
    async fn receive(
        &mut self,
        worker: &mut WorkerProcess,
        message: Option<&HostMessage>,
    ) -> Result<WorkerFrame, RunError> {
        let begin = Instant::now();
        let time_left = self.computing_time_left;
        let received = async {
            if let Some(message) = message {
                worker.send(message).await?;
            }
            loop {
                match worker.receive().await? {
                    WorkerFrame::Message(WorkerMessage::Print(text)) => self.print(&text)?,
                    frame => return Ok::<_, RunError>(frame),
                }
            }
        };
        let frame = match timeout(time_left, received).await {
            Ok(frame) => frame?,
            Err(_) => return Err(RunError::Limit(CodeLimitExceeded::ComputingTime)),
        };
        self.computing_time_left = time_left.saturating_sub(begin.elapsed());
        Ok(frame)
    }

    fn print(&mut self, text: &str) -> Result<(), RunError> {
        self.printed_bytes = self.printed_bytes.saturating_add(text.len());
        if self.printed_bytes > MAX_PRINTED_BYTES {
            return Err(RunError::Limit(CodeLimitExceeded::Output));
        }
        self.text.push(text);
        self.host.print(text);
        Ok(())
    }
}

/// Returns exactly `count` results that the worker can read.
fn checked_results(
    results: Vec<Result<Value, String>>,
    count: usize,
) -> Vec<Result<Value, String>> {
    let check = |result: Result<Value, String>| match result {
        Ok(value) if is_deeper_than(&value, MAX_DEPTH) => Err(format!(
            "the result of the function is nested more than {MAX_DEPTH} deep"
        )),
        other => other,
    };
    let missing = || Err("the function has no result".to_owned());
    let mut results: Vec<_> = results.into_iter().map(check).collect();
    results.resize_with(count, missing);
    results
}
