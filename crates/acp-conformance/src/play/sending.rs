//! Sending: what goes to the agent, as lines, bytes, pieces.

use super::{
    Miss,
    stage::{Heard, Stage},
};
use crate::{
    official::{Part, Side, official},
    pattern::{fill_line, fill_text},
};
use serde_json::Value;

impl Stage<'_> {
    /// Send a line of the case.
    pub(super) async fn send_line(
        &mut self,
        text: &str,
        broken: bool,
        more: bool,
    ) -> Result<(), Miss> {
        let line = fill_line(text, &self.vars);
        let message = serde_json::from_str(&line);
        if !broken {
            let not_json = |error| Miss::Fault(format!("not JSON ({error}): {line}"));
            self.check_own(message.as_ref().map_err(not_json)?)?;
        }
        self.send(&line, &message.unwrap_or_default(), more).await
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
        self.send(&message.to_string(), message, more).await
    }

    async fn send(&mut self, line: &str, message: &Value, more: bool) -> Result<(), Miss> {
        self.log.sent(line, message);
        if self.begun_line.is_empty() && !line.contains('\n') {
            self.told_message(message);
        } else {
            self.told(line.as_bytes());
            self.told(b"\n");
        }
        self.held.extend_from_slice(line.as_bytes());
        self.held.push(b'\n');
        if more { Ok(()) } else { self.flush().await }
    }

    pub(super) async fn send_raw(&mut self, bytes: &[u8], more: bool) -> Result<(), Miss> {
        let bytes = match std::str::from_utf8(bytes) {
            Ok(text) => fill_text(text, &self.vars).into_bytes(),
            Err(_) => bytes.to_vec(),
        };
        let text = String::from_utf8_lossy(&bytes);
        let message = serde_json::from_str(&text).unwrap_or_default();
        self.log.sent(&text, &message);
        self.told(&bytes);
        self.held.extend_from_slice(&bytes);
        if more { Ok(()) } else { self.flush().await }
    }

    /// What the runner sends must be right itself.
    fn check_own(&self, message: &Value) -> Result<(), Miss> {
        let fault = |why: &str| {
            let hint = "if that is meant, say `>!`, `call!`, `prompt!` or `tell!`";
            Err(Miss::Fault(format!("{why}; {hint}: {message}")))
        };
        if message["jsonrpc"] != "2.0" {
            return fault("this is no JSON-RPC 2.0");
        }
        let params = message.get("params").unwrap_or(&Value::Null);
        let version = match message["method"].as_str() {
            Some("initialize") => params["protocolVersion"].as_u64().unwrap_or_default(),
            _ => self.version.into(),
        };
        let official = official(version);
        let (name, value) = match (message["method"].as_str(), message.get("id")) {
            (Some(method), Some(_)) => (official.name(Side::Agent, method, Part::Request), params),
            (Some(method), None) => (
                official.name(Side::Agent, method, Part::Notification),
                params,
            ),
            (None, Some(id)) => {
                let Some(result) = message.get("result") else {
                    return Ok(());
                };
                let its =
                    |heard: &&Heard| heard.value["id"] == *id && heard.value["method"].is_string();
                let asked = self.heard.iter().rev().find(its);
                let method = asked.and_then(|heard| heard.value["method"].as_str());
                let name =
                    method.and_then(|method| official.name(Side::Client, method, Part::Response));
                (name, result)
            }
            (None, None) => return fault("this is no message"),
        };
        let Some(name) = name else { return Ok(()) };
        // No params are as good as none.
        let nothing = Value::Object(serde_json::Map::new());
        let value = if value.is_null() { &nothing } else { value };
        match official.faults(name, value).first() {
            None => Ok(()),
            Some(found) => fault(&format!("{name}: {} at {:?}", found.why, found.path)),
        }
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
        match self.pace().timeout(self.patience, writes.send(bytes)).await {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) => {
                self.note_end().await;
                let why = "the agent has closed its stdin".to_owned();
                Err(Miss::Nothing(self.ending.clone().unwrap_or(why)))
            }
            None => Err(Miss::Nothing("the agent does not read".to_owned())),
        }
    }
}
