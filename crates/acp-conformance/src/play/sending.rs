//! Sending: what goes to the agent, as lines, bytes, pieces.

use super::{Miss, models::holds, stage::Stage};
use crate::{
    outcome::Kind,
    pattern::{fill_line, fill_text},
};
use serde_json::Value;
use tokio::time::timeout;

impl Stage<'_> {
    /// Send a line of the case.
    pub(super) async fn send_line(
        &mut self,
        text: &str,
        broken: bool,
        more: bool,
    ) -> Result<(), Miss> {
        let line = fill_line(text, &self.vars);
        if !broken {
            let message: Value = serde_json::from_str(&line)
                .map_err(|error| Miss::Fault(format!("not JSON ({error}): {line}")))?;
            self.check_own(&message)?;
        }
        self.send(&line, more).await
    }

    /// Send a message that the runner has made.
    pub(super) async fn send_message(
        &mut self,
        message: &Value,
        broken: bool,
        more: bool,
    ) -> Result<(), Miss> {
        if !broken {
            self.check_own(message)?;
        }
        self.send(&message.to_string(), more).await
    }

    async fn send(&mut self, line: &str, more: bool) -> Result<(), Miss> {
        self.log.add(Kind::Sent, line);
        self.note_own(line);
        self.held.extend_from_slice(line.as_bytes());
        self.held.push(b'\n');
        if more { Ok(()) } else { self.flush().await }
    }

    pub(super) async fn send_raw(&mut self, bytes: &[u8], more: bool) -> Result<(), Miss> {
        let bytes = match std::str::from_utf8(bytes) {
            Ok(text) => fill_text(text, &self.vars).into_bytes(),
            Err(_) => bytes.to_vec(),
        };
        self.log.add(Kind::Sent, &String::from_utf8_lossy(&bytes));
        for line in bytes.split(|byte| *byte == b'\n') {
            self.note_own(&String::from_utf8_lossy(line));
        }
        self.held.extend_from_slice(&bytes);
        if more { Ok(()) } else { self.flush().await }
    }

    /// Remember what the agent now knows about the client.
    fn note_own(&mut self, line: &str) {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            return;
        };
        if let Some(fake) = &self.fake
            && message["method"] == "session/prompt"
        {
            fake.prompted(|text| holds(&message["params"]["prompt"], text));
        }
        self.client.said(&message);
    }

    /// What the runner sends must be right itself.
    fn check_own(&self, message: &Value) -> Result<(), Miss> {
        if message["jsonrpc"] == "2.0" && message.is_object() {
            return Ok(());
        }
        let fault = "this is no JSON-RPC 2.0; if that is meant, say `>!`";
        Err(Miss::Fault(format!("{fault}: {message}")))
    }

    async fn flush(&mut self) -> Result<(), Miss> {
        let held = std::mem::take(&mut self.held);
        let size = self.split.take().unwrap_or(held.len()).max(1);
        for piece in held.chunks(size) {
            self.write(piece.to_vec()).await?;
            // The writer gets its turn, so that pieces are written one by one.
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    pub(super) async fn write(&mut self, bytes: Vec<u8>) -> Result<(), Miss> {
        let writes = self.running()?.writes();
        let Some(writes) = writes else {
            return Err(Miss::Fault("stdin is closed".to_owned()));
        };
        match timeout(self.patience, writes.send(bytes)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Miss::Nothing("the agent has closed its stdin".to_owned())),
            Err(_) => Err(Miss::Nothing("the agent does not read".to_owned())),
        }
    }
}
