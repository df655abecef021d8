//! Tracks calls and terminals of a version 2 session (V2-12, V2-13, V2-14, V2-20; their state also serves
//! V2-9 and V2-19).

use super::super::{messages::SessionUpdate, recorder::RuleRecorder, tool_calls::is_absolute};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(super) struct SessionItems {
    calls: BTreeMap<String, ItemState>,
    terminals: BTreeMap<String, ItemState>,
    /// Sessions that were reported as children of this session.
    pub(super) subagents: BTreeSet<String>,
}

/// State of a call or terminal.
#[derive(Debug, Default)]
pub(super) struct ItemState {
    /// True if the item has a final status or has exited.
    pub(super) is_over: bool,
    can_cancel: bool,
}

impl ItemState {
    fn apply_update(&mut self, body: &Value) {
        if let Some(capabilities) = body.get("capabilities") {
            self.can_cancel = capabilities["cancel"].is_object();
        }
    }
}

impl SessionItems {
    pub(super) fn call(&self, id: &str) -> Option<&ItemState> {
        self.calls.get(id)
    }

    pub(super) fn terminal(&self, id: &str) -> Option<&ItemState> {
        self.terminals.get(id)
    }

    /// Returns true if the item that a cancel names exists, is running and can be cancelled.
    pub(super) fn is_cancellable(&self, params: &Value) -> bool {
        let named = match (params["toolCallId"].as_str(), params["terminalId"].as_str()) {
            (Some(call), _) => self.call(call),
            (None, Some(terminal)) => self.terminal(terminal),
            (None, None) => None,
        };
        named.is_some_and(|thing| thing.can_cancel && !thing.is_over)
    }

    /// Handles a permission request, which may introduce a call and updates it like an update.
    pub(super) fn on_permission_request(&mut self, subject: &Value, recorder: &mut RuleRecorder) {
        if subject["type"] == "tool_call" {
            self.on_call_update(&subject["toolCall"], false, recorder);
        }
    }

    pub(super) fn on_update(
        &mut self,
        update: &SessionUpdate<'_>,
        is_replay: bool,
        recorder: &mut RuleRecorder,
    ) {
        let body = update.body;
        match update.kind {
            "tool_call_update" => self.on_call_update(body, is_replay, recorder),
            "tool_call_content_chunk" => {
                let id = str_member(body, "toolCallId");
                recorder.record_check("V2-12", self.calls.contains_key(id), || {
                    format!("there is no call {id:?}")
                });
                check_changes(&body["content"], recorder);
            }
            "terminal_update" => self.on_terminal_update(body, recorder),
            "terminal_output_chunk" => {
                let id = str_member(body, "terminalId");
                recorder.record_check("V2-13", self.terminals.contains_key(id), || {
                    format!("there is no terminal {id:?}")
                });
                check_base64(&body["data"], recorder);
            }
            "subagent_update" => {
                self.subagents
                    .insert(str_member(body, "sessionId").to_owned());
            }
            _ => {}
        }
    }

    fn on_call_update(&mut self, body: &Value, is_replay: bool, recorder: &mut RuleRecorder) {
        let call = self
            .calls
            .entry(str_member(body, "toolCallId").to_owned())
            .or_default();
        // A missing status keeps the previous one; null means pending.
        if let Some(status) = body.get("status") {
            let status = status.as_str().unwrap_or("pending");
            match status {
                "completed" | "failed" | "cancelled" => call.is_over = true,
                "pending" | "in_progress" | "paused" => {
                    recorder.record_check("V2-12", !call.is_over || is_replay, || {
                        format!("the call was over, and is {status}")
                    });
                    call.is_over = false;
                }
                _ => recorder.record_check("V2-20", status.starts_with('_'), || {
                    format!("no status is called {status:?}")
                }),
            }
        }
        call.apply_update(body);
        for place in array_items(&body["locations"]) {
            check_path("V2-12", &place["path"], recorder);
        }
        for item in array_items(&body["content"]) {
            check_changes(item, recorder);
        }
    }

    fn on_terminal_update(&mut self, body: &Value, recorder: &mut RuleRecorder) {
        let terminal = self
            .terminals
            .entry(str_member(body, "terminalId").to_owned())
            .or_default();
        if let Some(status) = body.get("exitStatus") {
            terminal.is_over = status.is_object();
        }
        terminal.apply_update(body);
        check_path("V2-13", &body["cwd"], recorder);
        check_base64(&body["output"]["data"], recorder);
    }
}

fn str_member<'a>(body: &'a Value, key: &str) -> &'a str {
    body[key].as_str().unwrap_or_default()
}

fn array_items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Checks that the paths of a diff are absolute.
fn check_changes(content: &Value, recorder: &mut RuleRecorder) {
    if content["type"] == "diff" {
        for change in array_items(&content["changes"]) {
            check_path("V2-14", &change["path"], recorder);
            check_path("V2-14", &change["oldPath"], recorder);
        }
    }
}

fn check_path(rule: &'static str, path: &Value, recorder: &mut RuleRecorder) {
    if let Some(path) = path.as_str() {
        recorder.record_check(rule, is_absolute(path), || {
            format!("{path:?} is not absolute")
        });
    }
}

fn check_base64(data: &Value, recorder: &mut RuleRecorder) {
    if let Some(data) = data.as_str() {
        recorder.record_check("V2-13", is_base64(data), || {
            format!("{} is no base64", crate::pattern::short_json(&data.into()))
        });
    }
}

/// Returns true if the text is padded base64.
fn is_base64(text: &str) -> bool {
    let digits = text
        .strip_suffix("==")
        .or_else(|| text.strip_suffix('='))
        .unwrap_or(text);
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    text.len().is_multiple_of(4) && digits.bytes().all(is_digit)
}
