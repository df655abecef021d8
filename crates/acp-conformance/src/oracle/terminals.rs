//! Checks client terminals and files in version 1: known ids, absolute paths and release (TERM-2, TERM-3,
//! TOOL-9, FS-2).

use super::{
    messages::{JsonRpcKind, parse_update, session_id},
    recorder::RuleRecorder,
    responses::ClientRequest,
    tool_calls::is_absolute,
};
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct TerminalRules {
    /// Pending `terminal/create` requests: request id and session.
    pending_creates: Vec<(Value, String)>,
    /// State of each terminal, by id.
    terminals: BTreeMap<String, TerminalState>,
    /// Number of running prompts, by session.
    running_prompts: BTreeMap<String, usize>,
    loading_sessions: Vec<String>,
}

#[derive(Debug)]
struct TerminalState {
    session: String,
    is_released: bool,
}

impl TerminalRules {
    pub(super) fn on_sent(&mut self, message: &Value) {
        let params = &message["params"];
        match message["method"].as_str() {
            Some("session/prompt") if message.get("id").is_some() => {
                *self
                    .running_prompts
                    .entry(session_id(params).to_owned())
                    .or_default() += 1;
            }
            Some("session/load") => self.loading_sessions.push(session_id(params).to_owned()),
            Some(_) => {}
            None => {
                let made = self
                    .pending_creates
                    .iter()
                    .position(|(id, _)| *id == message["id"]);
                let Some((_, session)) = made.map(|index| self.pending_creates.swap_remove(index))
                else {
                    return;
                };
                if let Some(id) = message["result"]["terminalId"].as_str() {
                    let is_released = false;
                    self.terminals.insert(
                        id.to_owned(),
                        TerminalState {
                            session,
                            is_released,
                        },
                    );
                }
            }
        }
    }

    pub(super) fn on_received(
        &mut self,
        kind: JsonRpcKind,
        message: &Value,
        request: Option<&ClientRequest>,
        recorder: &mut RuleRecorder,
    ) {
        let params = &message["params"];
        match (kind, message["method"].as_str()) {
            (JsonRpcKind::Request, Some("terminal/create")) => {
                let session = session_id(params).to_owned();
                self.pending_creates.push((message["id"].clone(), session));
                if let Some(cwd) = params["cwd"].as_str() {
                    recorder.record_check("TERM-3", is_absolute(cwd), || {
                        format!("{cwd:?} is not absolute")
                    });
                }
            }
            (JsonRpcKind::Request, Some(method)) if method.starts_with("terminal/") => {
                self.on_use(method, params, recorder);
            }
            (JsonRpcKind::Request, Some("fs/read_text_file" | "fs/write_text_file")) => {
                let path = params["path"].as_str().unwrap_or_default();
                recorder.record_check("FS-2", is_absolute(path), || {
                    format!("{path:?} is not absolute")
                });
                let line = params["line"].as_u64();
                recorder.record_check("FS-2", line != Some(0), || "lines count from 1".to_owned());
            }
            (JsonRpcKind::Notification, _) => self.check_shown_terminals(message, recorder),
            (JsonRpcKind::Response, _) => {
                let Some(request) = request else { return };
                let session = session_id(&request.params);
                match request.method.as_str() {
                    "session/prompt" => {
                        let running = self.running_prompts.entry(session.to_owned()).or_default();
                        *running = running.saturating_sub(1);
                    }
                    "session/load" => self.loading_sessions.retain(|loading| loading != session),
                    _ => {}
                }
            }
            (JsonRpcKind::Request, _) => {}
        }
    }

    fn on_use(&mut self, method: &str, params: &Value, recorder: &mut RuleRecorder) {
        let id = params["terminalId"].as_str().unwrap_or_default();
        let Some(made) = self.terminals.get_mut(id) else {
            return recorder.record_violation("TERM-3", format!("there is no terminal {id:?}"));
        };
        recorder.record_check("TERM-3", !made.is_released, || {
            format!("the terminal {id:?} was released")
        });
        made.is_released |= method == "terminal/release";
    }

    fn check_shown_terminals(&self, message: &Value, recorder: &mut RuleRecorder) {
        let Some(update) = parse_update(message) else {
            return;
        };
        // A replay may show terminals that no longer exist.
        if self
            .loading_sessions
            .iter()
            .any(|loading| loading == update.session_id)
        {
            return;
        }
        let content = update.body["content"].as_array().into_iter().flatten();
        for item in content.filter(|item| item["type"] == "terminal") {
            let id = item["terminalId"].as_str().unwrap_or_default();
            match self.terminals.get(id) {
                // Released terminals may still be shown.
                Some(_) => recorder.record_observed("TOOL-9"),
                None => recorder.record_violation("TOOL-9", format!("there is no terminal {id:?}")),
            }
        }
    }

    /// Checks at the end of the connection that finished turns released their terminals.
    pub(super) fn on_output_end(&self, recorder: &mut RuleRecorder) {
        for (id, made) in &self.terminals {
            if self
                .running_prompts
                .get(&made.session)
                .is_none_or(|running| *running == 0)
            {
                let why = || format!("the terminal {id:?} was not released");
                recorder.record_check("TERM-2", made.is_released, why);
            }
        }
    }
}
