//! Shows the output of a call as a terminal owned by the agent (V2-13).

use crate::transport::update_writer::UpdateWriter;
use agent_client_protocol_schema::v2::{
    SessionUpdate, Terminal, TerminalExitStatus, TerminalOutputChunk, TerminalUpdate,
    ToolCallContent,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;
use turnery_engine::{CallId, ToolEnvelope};
use turnery_tools::escape_invisible;

/// Terminal of one call, open from the first output to the end of the call.
#[derive(Debug)]
pub(super) struct CallTerminal(String);

impl CallTerminal {
    /// Announces the terminal, which must happen before anything refers to it.
    pub(super) fn open(call: &CallId, command: Option<&str>, to: &mut UpdateWriter) -> Self {
        let id = format!("{call}.terminal");
        let mut opened = TerminalUpdate::new(id.as_str());
        if let Some(command) = command {
            opened = opened.command(escape_invisible(command).into_owned());
        }
        to.write_update(&SessionUpdate::TerminalUpdate(opened));
        Self(id)
    }

    /// Returns the content item that shows the terminal.
    pub(super) fn content(&self) -> ToolCallContent {
        Terminal::new(self.0.as_str()).into()
    }

    /// Writes output; each chunk is base64-encoded on its own.
    pub(super) fn write_output(&self, text: &str, to: &mut UpdateWriter) {
        let chunk = TerminalOutputChunk::new(self.0.as_str(), STANDARD.encode(text));
        to.write_update(&SessionUpdate::TerminalOutputChunk(chunk));
    }

    /// Writes the exit status as far as it is known.
    pub(super) fn write_exit(&self, envelope: &ToolEnvelope, to: &mut UpdateWriter) {
        let known = |key| envelope.value.as_ref().and_then(|value| value.get(key));
        let status = TerminalExitStatus::new()
            .exit_code(known("exit_code").and_then(Value::as_i64))
            .signal(known("signal").and_then(signal_name));
        let ended = TerminalUpdate::new(self.0.as_str()).exit_status(status);
        to.write_update(&SessionUpdate::TerminalUpdate(ended));
    }
}

/// Returns the name of a signal. Numbers that differ between platforms are omitted.
fn signal_name(value: &Value) -> Option<String> {
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
