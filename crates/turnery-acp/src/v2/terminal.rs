//! Terminal: what a call prints, as a terminal of ours that the client only shows (V2-13).

use crate::update::UpdateWriter;
use agent_client_protocol_schema::v2::{
    SessionUpdate, Terminal, TerminalExitStatus, TerminalOutputChunk, TerminalUpdate,
    ToolCallContent,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;
use turnery_engine::{CallId, ToolEnvelope};
use turnery_tools::visible;

/// The terminal of one call, open from the first that it prints to the call's end.
#[derive(Debug)]
pub(super) struct Shown(String);

impl Shown {
    /// Open it, before anything refers to it.
    pub(super) fn open(call: &CallId, command: Option<&str>, to: &mut UpdateWriter) -> Self {
        let id = format!("{call}.terminal");
        let mut opened = TerminalUpdate::new(id.as_str());
        if let Some(command) = command {
            opened = opened.command(visible(command).into_owned());
        }
        to.update(&SessionUpdate::TerminalUpdate(opened));
        Self(id)
    }

    /// The place where it is shown.
    pub(super) fn content(&self) -> ToolCallContent {
        Terminal::new(self.0.as_str()).into()
    }

    /// It printed something: each chunk is encoded alone.
    pub(super) fn printed(&self, text: &str, to: &mut UpdateWriter) {
        let chunk = TerminalOutputChunk::new(self.0.as_str(), STANDARD.encode(text));
        to.update(&SessionUpdate::TerminalOutputChunk(chunk));
    }

    /// It has ended, with whatever is known of that.
    pub(super) fn exited(&self, envelope: &ToolEnvelope, to: &mut UpdateWriter) {
        let known = |key| envelope.value.as_ref().and_then(|value| value.get(key));
        let status = TerminalExitStatus::new()
            .exit_code(known("exit_code").and_then(Value::as_i64))
            .signal(known("signal").and_then(signal));
        let ended = TerminalUpdate::new(self.0.as_str()).exit_status(status);
        to.update(&SessionUpdate::TerminalUpdate(ended));
    }
}

/// A signal by its name. A number that is not the same everywhere says nothing.
fn signal(value: &Value) -> Option<String> {
    let name = match value.as_str()? {
        "1" => "SIGHUP",
        "2" => "SIGINT",
        "3" => "SIGQUIT",
        "6" => "SIGABRT",
        "9" => "SIGKILL",
        "11" => "SIGSEGV",
        "13" => "SIGPIPE",
        "15" => "SIGTERM",
        other if other.starts_with("SIG") => other,
        _ => return None,
    };
    Some(name.to_owned())
}
