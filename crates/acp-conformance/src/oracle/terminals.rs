//! Checks client terminals and files in version 1: known ids, absolute paths and release (TERM-2, TERM-3,
//! TOOL-9, FS-2).

use super::{
    messages::{AgentMessage, parse_update, session_id},
    recorder::RuleRecorder,
    session_activity::SessionActivity,
    tool_calls::is_absolute,
};
use crate::official_schema::MessageKind;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct TerminalRules {
    /// Pending `terminal/create` requests: request id and session.
    pending_creates: Vec<(Value, String)>,
    /// State of each terminal, by id.
    terminals: BTreeMap<String, TerminalState>,
    activity: SessionActivity,
}

#[derive(Debug)]
struct TerminalState {
    session: String,
    is_released: bool,
}

impl TerminalRules {
    pub(super) fn on_sent(&mut self, message: &Value) {
        self.activity.on_sent(message);
        if message["method"].is_string() {
            return;
        }
        let mut creates = self.pending_creates.iter();
        let Some(index) = creates.position(|(id, _)| *id == message["id"]) else {
            return;
        };
        let (_, session) = self.pending_creates.swap_remove(index);
        if let Some(id) = message["result"]["terminalId"].as_str() {
            let state = TerminalState {
                session,
                is_released: false,
            };
            self.terminals.insert(id.to_owned(), state);
        }
    }

    pub(super) fn on_received(&mut self, message: AgentMessage<'_>, recorder: &mut RuleRecorder) {
        if let Some(request) = message.request {
            self.activity.on_response(request);
        }
        let json = message.json;
        let params = &json["params"];
        match (message.kind, json["method"].as_str()) {
            (MessageKind::Request, Some("terminal/create")) => {
                let session = session_id(params).to_owned();
                self.pending_creates.push((json["id"].clone(), session));
                if let Some(cwd) = params["cwd"].as_str() {
                    recorder.record_check("TERM-3", is_absolute(cwd), || {
                        format!("{cwd:?} is not absolute")
                    });
                }
            }
            (MessageKind::Request, Some(method)) if method.starts_with("terminal/") => {
                self.on_use(method, params, recorder);
            }
            (MessageKind::Request, Some("fs/read_text_file" | "fs/write_text_file")) => {
                let path = params["path"].as_str().unwrap_or_default();
                recorder.record_check("FS-2", is_absolute(path), || {
                    format!("{path:?} is not absolute")
                });
                let line = params["line"].as_u64();
                recorder.record_check("FS-2", line != Some(0), || "lines count from 1".to_owned());
            }
            (MessageKind::Notification, _) => self.check_shown_terminals(json, recorder),
            (MessageKind::Response | MessageKind::Request, _) => {}
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
        if self.activity.is_loading(update.session_id) {
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
            if !self.activity.is_prompting(&made.session) {
                let why = || format!("the terminal {id:?} was not released");
                recorder.record_check("TERM-2", made.is_released, why);
            }
        }
    }
}
