//! Calls and terminals of a session of version 2 (V2-12, V2-13, V2-14, and for V2-9 and V2-19 what became of them).

use super::super::{Found, messages::Update, tools::is_absolute};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(super) struct Things {
    calls: BTreeMap<String, Thing>,
    terminals: BTreeMap<String, Thing>,
    /// Sessions that were told of as children of this one.
    pub(super) children: BTreeSet<String>,
}

/// A call or a terminal.
#[derive(Debug, Default)]
pub(super) struct Thing {
    /// It has a final status, or has exited.
    pub(super) is_over: bool,
    can_cancel: bool,
}

impl Thing {
    fn patch(&mut self, body: &Value) {
        if let Some(capabilities) = body.get("capabilities") {
            self.can_cancel = capabilities["cancel"].is_object();
        }
    }
}

impl Things {
    pub(super) fn call(&self, id: &str) -> Option<&Thing> {
        self.calls.get(id)
    }

    pub(super) fn terminal(&self, id: &str) -> Option<&Thing> {
        self.terminals.get(id)
    }

    /// What a cancel names is there, goes on, and can be cancelled.
    pub(super) fn is_cancellable(&self, params: &Value) -> bool {
        let named = match (params["toolCallId"].as_str(), params["terminalId"].as_str()) {
            (Some(call), _) => self.call(call),
            (None, Some(terminal)) => self.terminal(terminal),
            (None, None) => None,
        };
        named.is_some_and(|thing| thing.can_cancel && !thing.is_over)
    }

    /// A question may show a call, and changes it like an update.
    pub(super) fn asked(&mut self, subject: &Value, found: &mut Found) {
        if subject["type"] == "tool_call" {
            self.call_updated(&subject["toolCall"], false, found);
        }
    }

    pub(super) fn updated(&mut self, update: &Update<'_>, is_replay: bool, found: &mut Found) {
        let body = update.body;
        match update.kind {
            "tool_call_update" => self.call_updated(body, is_replay, found),
            "tool_call_content_chunk" => {
                let id = text(body, "toolCallId");
                found.holds("V2-12", self.calls.contains_key(id), || {
                    format!("there is no call {id:?}")
                });
                check_changes(&body["content"], found);
            }
            "terminal_update" => self.terminal_updated(body, found),
            "terminal_output_chunk" => {
                let id = text(body, "terminalId");
                found.holds("V2-13", self.terminals.contains_key(id), || {
                    format!("there is no terminal {id:?}")
                });
                check_bytes(&body["data"], found);
            }
            "subagent_update" => {
                self.children.insert(text(body, "sessionId").to_owned());
            }
            _ => {}
        }
    }

    fn call_updated(&mut self, body: &Value, is_replay: bool, found: &mut Found) {
        let call = self
            .calls
            .entry(text(body, "toolCallId").to_owned())
            .or_default();
        // Without a status there is the one that it had; null is pending.
        if let Some(status) = body.get("status") {
            let status = status.as_str().unwrap_or("pending");
            match status {
                "completed" | "failed" | "cancelled" => call.is_over = true,
                "pending" | "in_progress" | "paused" => {
                    found.holds("V2-12", !call.is_over || is_replay, || {
                        format!("the call was over, and is {status}")
                    });
                    call.is_over = false;
                }
                _ => found.holds("V2-20", status.starts_with('_'), || {
                    format!("no status is called {status:?}")
                }),
            }
        }
        call.patch(body);
        for place in items(&body["locations"]) {
            check_path("V2-12", &place["path"], found);
        }
        for item in items(&body["content"]) {
            check_changes(item, found);
        }
    }

    fn terminal_updated(&mut self, body: &Value, found: &mut Found) {
        let terminal = self
            .terminals
            .entry(text(body, "terminalId").to_owned())
            .or_default();
        if let Some(status) = body.get("exitStatus") {
            terminal.is_over = status.is_object();
        }
        terminal.patch(body);
        check_path("V2-13", &body["cwd"], found);
        check_bytes(&body["output"]["data"], found);
    }
}

fn text<'a>(body: &'a Value, key: &str) -> &'a str {
    body[key].as_str().unwrap_or_default()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The paths of a diff are absolute.
fn check_changes(content: &Value, found: &mut Found) {
    if content["type"] == "diff" {
        for change in items(&content["changes"]) {
            check_path("V2-14", &change["path"], found);
            check_path("V2-14", &change["oldPath"], found);
        }
    }
}

fn check_path(rule: &'static str, path: &Value, found: &mut Found) {
    if let Some(path) = path.as_str() {
        found.holds(rule, is_absolute(path), || {
            format!("{path:?} is not absolute")
        });
    }
}

fn check_bytes(data: &Value, found: &mut Found) {
    if let Some(data) = data.as_str() {
        found.holds("V2-13", is_base64(data), || {
            format!("{} is no base64", crate::pattern::short(&data.into()))
        });
    }
}

/// Of whole groups of four, the last one filled up.
fn is_base64(text: &str) -> bool {
    let digits = text
        .strip_suffix("==")
        .or_else(|| text.strip_suffix('='))
        .unwrap_or(text);
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    text.len().is_multiple_of(4) && digits.bytes().all(is_digit)
}
