//! Steps that send lines, bytes and chunks to the agent.

use super::{
    StepError,
    case_run::{CaseRun, ReceivedLine},
};
use crate::{
    oracle::client_violation,
    pattern::{fill_line, fill_text},
};
use serde_json::Value;

impl CaseRun<'_> {
    /// Sends a line of the case.
    pub(super) async fn send_line(
        &mut self,
        text: &str,
        may_be_invalid: bool,
        joins_next_write: bool,
    ) -> Result<(), StepError> {
        let line = fill_line(text, &self.captures);
        let message = serde_json::from_str(&line);
        if !may_be_invalid {
            let not_json = |error| StepError::SuiteError(format!("not JSON ({error}): {line}"));
            self.validate_own_message(message.as_ref().map_err(not_json)?)?;
        }
        self.send(&line, &message.unwrap_or_default(), joins_next_write)
            .await
    }

    /// Sends a message built by the runner.
    pub(super) async fn send_message(
        &mut self,
        message: &Value,
        may_be_invalid: bool,
        joins_next_write: bool,
    ) -> Result<(), StepError> {
        if !may_be_invalid {
            self.validate_own_message(message)?;
        }
        self.send(&message.to_string(), message, joins_next_write)
            .await
    }

    async fn send(
        &mut self,
        line: &str,
        message: &Value,
        joins_next_write: bool,
    ) -> Result<(), StepError> {
        self.transcript.push_sent(line, message);
        if self.partial_sent_line.is_empty() && !line.contains('\n') {
            self.observe_sent_message(message);
        } else {
            self.observe_sent_bytes(line.as_bytes());
            self.observe_sent_bytes(b"\n");
        }
        self.pending_bytes.extend_from_slice(line.as_bytes());
        self.pending_bytes.push(b'\n');
        if joins_next_write {
            Ok(())
        } else {
            self.flush_pending().await
        }
    }

    pub(super) async fn send_raw(
        &mut self,
        bytes: &[u8],
        joins_next_write: bool,
    ) -> Result<(), StepError> {
        let bytes = match std::str::from_utf8(bytes) {
            Ok(text) => fill_text(text, &self.captures).into_bytes(),
            Err(_) => bytes.to_vec(),
        };
        let text = String::from_utf8_lossy(&bytes);
        let message = serde_json::from_str(&text).unwrap_or_default();
        self.transcript.push_sent(&text, &message);
        self.observe_sent_bytes(&bytes);
        self.pending_bytes.extend_from_slice(&bytes);
        if joins_next_write {
            Ok(())
        } else {
            self.flush_pending().await
        }
    }

    /// Checks that a message to the agent is valid; a case must mark deliberately invalid messages, for
    /// example with `>!`.
    fn validate_own_message(&self, message: &Value) -> Result<(), StepError> {
        let fault = |why: &str| {
            let hint = "if that is meant, say `>!`, `call!`, `prompt!` or `tell!`";
            Err(StepError::SuiteError(format!("{why}; {hint}: {message}")))
        };
        let version = match message["method"].as_str() {
            Some("initialize") => message["params"]["protocolVersion"]
                .as_u64()
                .unwrap_or_default(),
            _ => self.version.into(),
        };
        let its = |line: &&ReceivedLine| {
            line.value["id"] == message["id"] && line.value["method"].is_string()
        };
        let asked = self.received.iter().rev().find(its);
        let method = asked.and_then(|heard| heard.value["method"].as_str());
        client_violation(version, message, method).map_or(Ok(()), |why| fault(&why))
    }

    async fn flush_pending(&mut self) -> Result<(), StepError> {
        let held = std::mem::take(&mut self.pending_bytes);
        let size = self.write_chunk_size.take().unwrap_or(held.len()).max(1);
        for piece in held.chunks(size) {
            self.write_bytes(piece.to_vec()).await?;
            // Let the writer task run, so that chunks are written separately.
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    pub(super) async fn write_bytes(&mut self, bytes: Vec<u8>) -> Result<(), StepError> {
        let writes = self.running_process()?.stdin_sender();
        let Some(writes) = writes else {
            return Err(StepError::SuiteError("stdin is closed".to_owned()));
        };
        match self
            .clock()
            .timeout(self.patience, writes.send(bytes))
            .await
        {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) => {
                self.note_unexpected_end().await;
                let why = "the agent has closed its stdin".to_owned();
                Err(StepError::NoLine(
                    self.unexpected_end.clone().unwrap_or(why),
                ))
            }
            None => Err(StepError::NoLine("the agent does not read".to_owned())),
        }
    }
}
