//! Provides the operations of a fault on one intercepted line.

use super::connection_state::{ConnectionState, Direction, MessageKind};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Memory of a fault across lines.
#[derive(Debug, Default)]
pub(crate) struct FaultMemory {
    /// Queue of values kept for later lines: usually messages held back, for some faults ids or reasons.
    pub(crate) held: Vec<Value>,
    /// Values by name.
    pub(crate) notes: BTreeMap<String, Value>,
}

/// Further effect of a fault on the proxy process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SideEffect {
    /// No effect.
    #[default]
    None,
    /// Proxy and agent are killed after these lines.
    Die,
    /// Delay of some seconds before these lines.
    Sleep,
}

/// Line between client and agent, with the changes of the fault.
pub(crate) struct InterceptedLine<'a> {
    pub(crate) direction: Direction,
    pub(crate) raw: &'a [u8],
    pub(crate) kind: MessageKind,
    pub(crate) connection: &'a mut ConnectionState,
    pub(crate) memory: &'a mut FaultMemory,
    pub(crate) message: Value,
    pub(crate) edited: bool,
    pub(crate) swallowed: bool,
    pub(crate) replacement: Option<Vec<u8>>,
    pub(crate) lines_before: Vec<(Direction, Value)>,
    pub(crate) lines_after: Vec<(Direction, Value)>,
    pub(crate) side_effect: SideEffect,
}

/// Returns the value at a JSON pointer, or null.
pub(crate) fn value_at<'v>(value: &'v Value, pointer: &str) -> &'v Value {
    value.pointer(pointer).unwrap_or(&Value::Null)
}

impl InterceptedLine<'_> {
    // Queries

    /// Returns the method of a request or notification; empty for other messages.
    pub(crate) fn called_method(&self) -> &str {
        match self.kind {
            MessageKind::Call => self.get_str("/method"),
            MessageKind::Response(_) | MessageKind::Other => "",
        }
    }

    /// Returns the method of the request that this line answers. Considers only requests injected by a fault
    /// if `is_injected` is true, only those of the other side otherwise; empty if there is none.
    pub(crate) fn answered_method(&self, is_injected: bool) -> &str {
        match &self.kind {
            MessageKind::Response(open) if open.injected == is_injected => &open.method,
            MessageKind::Response(_) | MessageKind::Call | MessageKind::Other => "",
        }
    }

    /// Returns true for a request or notification of the client with this method.
    pub(crate) fn is_client_call(&self, method: &str) -> bool {
        self.direction == Direction::ToAgent && self.called_method() == method
    }

    /// Returns true for a request or notification of the agent with this method.
    pub(crate) fn is_agent_call(&self, method: &str) -> bool {
        self.direction == Direction::ToClient && self.called_method() == method
    }

    /// Returns true for a request of the client that creates, loads or resumes a session.
    pub(crate) fn is_session_opening(&self) -> bool {
        ["session/new", "session/load", "session/resume"]
            .iter()
            .any(|method| self.is_client_call(method))
    }

    /// Returns true for the agent's response to a client request with this method.
    pub(crate) fn is_agent_response(&self, method: &str) -> bool {
        self.direction == Direction::ToClient && self.answered_method(false) == method
    }

    /// Returns true for the client's response to an agent request with this method.
    pub(crate) fn is_client_response(&self, method: &str) -> bool {
        self.direction == Direction::ToAgent && self.answered_method(false) == method
    }

    /// Returns true for the agent's result of a client request with this method.
    pub(crate) fn is_agent_result(&self, method: &str) -> bool {
        self.is_agent_response(method) && self.message.get("result").is_some()
    }

    /// Returns true for an error of the agent with this code.
    pub(crate) fn is_agent_error(&self, code: i64) -> bool {
        self.direction == Direction::ToClient && value_at(&self.message, "/error/code") == code
    }

    /// Returns the params of the request that this line responds to, or null.
    pub(crate) fn request_params(&self) -> &Value {
        match &self.kind {
            MessageKind::Response(open) => &open.params,
            MessageKind::Call | MessageKind::Other => &Value::Null,
        }
    }

    /// Returns the kind of the option that this response chooses; empty if it is none of those offered.
    pub(crate) fn chosen_kind(&self) -> &str {
        let id = self.get("/result/outcome/optionId");
        let options = self.request_params()["options"].as_array();
        let mut options = options.into_iter().flatten();
        let chosen = options.find(|option| option["optionId"] == *id);
        chosen
            .and_then(|option| option["kind"].as_str())
            .unwrap_or_default()
    }

    /// Returns the kind of a session update; empty for other messages.
    pub(crate) fn update_kind(&self) -> &str {
        if self.is_agent_call("session/update") {
            self.get_str("/params/update/sessionUpdate")
        } else {
            ""
        }
    }

    /// Returns true for an update about a tool call.
    pub(crate) fn is_tool_update(&self) -> bool {
        matches!(self.update_kind(), "tool_call" | "tool_call_update")
    }

    /// Returns the id of the session that the message is about, or an empty string.
    pub(crate) fn session_id(&self) -> String {
        let named = self.get_str("/params/sessionId");
        let named = if named.is_empty() {
            self.request_params()["sessionId"]
                .as_str()
                .unwrap_or_default()
        } else {
            named
        };
        named.to_owned()
    }

    /// Returns the message's value at a JSON pointer, or null.
    pub(crate) fn get(&self, pointer: &str) -> &Value {
        value_at(&self.message, pointer)
    }

    /// Returns the message's string at a JSON pointer, or an empty string.
    pub(crate) fn get_str(&self, pointer: &str) -> &str {
        self.get(pointer).as_str().unwrap_or_default()
    }

    /// Returns true if the message has a non-null value at a JSON pointer.
    pub(crate) fn has(&self, pointer: &str) -> bool {
        !self.get(pointer).is_null()
    }

    /// Increments a counter and returns its new value.
    pub(crate) fn increment(&mut self, counter: &str) -> u64 {
        let counted = self.recall(counter).as_u64().unwrap_or_default() + 1;
        self.remember(counter, counted);
        counted
    }

    /// Returns the value remembered under a name, or null.
    pub(crate) fn recall(&self, name: &str) -> Value {
        self.memory.notes.get(name).cloned().unwrap_or_default()
    }

    /// Remembers a value under a name.
    pub(crate) fn remember(&mut self, name: &str, value: impl Into<Value>) {
        self.memory.notes.insert(name.to_owned(), value.into());
    }

    // Changes of the line

    /// Returns the message for editing.
    pub(crate) fn message_mut(&mut self) -> &mut Value {
        self.edited = true;
        &mut self.message
    }

    /// Sets the value at a JSON pointer; does nothing if the parent is not an object.
    pub(crate) fn set(&mut self, pointer: &str, to: impl Into<Value>) {
        let (parent, key) = pointer.rsplit_once('/').unwrap_or(("", pointer));
        let key = key.to_owned();
        if let Some(parent) = self
            .message
            .pointer_mut(parent)
            .and_then(Value::as_object_mut)
        {
            parent.insert(key, to.into());
            self.edited = true;
        }
    }

    /// Changes the array at a JSON pointer, if there is one.
    pub(crate) fn edit_array(&mut self, pointer: &str, change: impl FnOnce(&mut Vec<Value>)) {
        let items = self.message.pointer_mut(pointer);
        if let Some(items) = items.and_then(Value::as_array_mut) {
            let before = items.clone();
            change(items);
            self.edited |= *items != before;
        }
    }

    /// Keeps these blocks of a prompt, or a made-up one if there were others only.
    pub(crate) fn retain_prompt_blocks(&mut self, is_kept: impl Fn(&Value) -> bool) {
        self.edit_array("/params/prompt", |blocks| {
            let was_empty = blocks.is_empty();
            blocks.retain(is_kept);
            if blocks.is_empty() && !was_empty {
                blocks.push(json!({"type": "text", "text": "nothing"}));
            }
        });
    }

    /// Changes each diff in the array at a JSON pointer.
    pub(crate) fn edit_diffs(&mut self, pointer: &str, change: impl Fn(&mut Value)) {
        self.edit_array(pointer, |items| {
            let diffs = items.iter_mut().filter(|item| item["type"] == "diff");
            diffs.for_each(change);
        });
    }

    /// Removes the value at a JSON pointer.
    pub(crate) fn remove(&mut self, pointer: &str) -> Option<Value> {
        let (parent, key) = pointer.rsplit_once('/').unwrap_or(("", pointer));
        let removed = self
            .message
            .pointer_mut(parent)?
            .as_object_mut()?
            .remove(key)?;
        self.edited = true;
        Some(removed)
    }

    /// Replaces the message.
    pub(crate) fn replace_message(&mut self, message: Value) {
        *self.message_mut() = message;
    }

    /// Replaces the line by raw bytes.
    pub(crate) fn replace_bytes(&mut self, bytes: impl Into<Vec<u8>>) {
        self.replacement = Some(bytes.into());
    }

    /// Drops the line.
    pub(crate) fn swallow(&mut self) {
        self.swallowed = true;
    }

    /// Holds the line back until [`Self::release`] or [`Self::release_before`].
    pub(crate) fn hold(&mut self) {
        self.swallowed = true;
        let message = std::mem::take(&mut self.message);
        self.memory.held.push(message);
    }

    /// Sends the held lines after this line.
    pub(crate) fn release(&mut self) {
        for message in std::mem::take(&mut self.memory.held) {
            self.send_after(self.direction, message);
        }
    }

    /// Sends the held lines before this line.
    pub(crate) fn release_before(&mut self) {
        for message in std::mem::take(&mut self.memory.held) {
            self.send_before(self.direction, message);
        }
    }

    /// Replaces this response to a permission request by the choice of the first option that allows once.
    pub(crate) fn replace_with_allow(&mut self) {
        let allow = option_id_of_kind(&self.request_params()["options"], "allow_once");
        self.turn_into_result(selected_outcome(&allow));
    }

    // Additional messages

    /// Sends a message before this line.
    pub(crate) fn send_before(&mut self, direction: Direction, message: Value) {
        self.lines_before.push((direction, message));
    }

    /// Sends a message after this line.
    pub(crate) fn send_after(&mut self, direction: Direction, message: Value) {
        self.lines_after.push((direction, message));
    }

    /// Sends an injected request before this line; its apparent sender does not see the response.
    pub(crate) fn inject_request(&mut self, direction: Direction, method: &str, params: Value) {
        let id = self
            .connection
            .add_injected_request(direction, method, &params);
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send_before(direction, request);
    }

    /// Answers this request with a result instead of forwarding it.
    pub(crate) fn respond(&mut self, result: Value) {
        self.respond_directly(self.result_response(result));
    }

    /// Answers this request with an error instead of forwarding it.
    pub(crate) fn respond_error(&mut self, code: i64, message: &str) {
        self.respond_directly(self.error_response(code, message));
    }

    fn respond_directly(&mut self, response: Value) {
        self.swallow();
        self.connection
            .forget_request(self.direction, &self.message["id"]);
        self.send_after(self.direction.opposite(), response);
    }

    /// Replaces this response by an error.
    pub(crate) fn turn_into_error(&mut self, code: i64, message: &str) {
        self.replace_message(self.error_response(code, message));
    }

    /// Replaces this response by a result.
    pub(crate) fn turn_into_result(&mut self, result: Value) {
        self.replace_message(self.result_response(result));
    }

    /// Returns a result with the id of this line.
    pub(crate) fn result_response(&self, result: Value) -> Value {
        json!({"jsonrpc": "2.0", "id": self.message["id"], "result": result})
    }

    /// Returns an error with the id of this line.
    pub(crate) fn error_response(&self, code: i64, message: &str) -> Value {
        json!({"jsonrpc": "2.0", "id": self.message["id"],
            "error": {"code": code, "message": message}})
    }
}

/// Returns the id of the first option of this kind, or null.
pub(crate) fn option_id_of_kind(options: &Value, kind: &str) -> Value {
    let mut options = options.as_array().into_iter().flatten();
    let fits = options.find(|option| option["kind"] == kind);
    fits.map(|option| option["optionId"].clone())
        .unwrap_or_default()
}

pub(crate) fn selected_outcome(id: &Value) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": id}})
}
