//! passing: one line on its way, and all that a fault can do to it.

use super::wire::{Kind, Way, Wire};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What a fault remembers from line to line.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Lines kept back.
    pub(crate) held: Vec<Value>,
    /// Whatever the fault wants to know later, by a name of its own.
    pub(crate) notes: BTreeMap<String, Value>,
}

/// What the process does beside passing lines on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deed {
    /// Nothing.
    #[default]
    None,
    /// It dies at once, and the agent behind it too.
    Die,
    /// It waits for some seconds before these lines.
    Sleep,
}

/// One line on its way.
pub(crate) struct Passing<'a> {
    pub(crate) way: Way,
    pub(crate) raw: &'a [u8],
    pub(crate) kind: Kind,
    pub(crate) wire: &'a mut Wire,
    pub(crate) memory: &'a mut Memory,
    pub(crate) value: Value,
    pub(crate) edited: bool,
    pub(crate) swallowed: bool,
    pub(crate) instead: Option<Vec<u8>>,
    pub(crate) before: Vec<(Way, Value)>,
    pub(crate) after: Vec<(Way, Value)>,
    pub(crate) deed: Deed,
}

/// What lies at a JSON pointer; null where nothing does.
pub(crate) fn at<'v>(value: &'v Value, pointer: &str) -> &'v Value {
    value.pointer(pointer).unwrap_or(&Value::Null)
}

impl Passing<'_> {
    // ---- What is it?

    /// The client asks or tells this.
    pub(crate) fn client_says(&self, method: &str) -> bool {
        self.way == Way::ToAgent && self.kind == Kind::Call && self.value["method"] == method
    }

    /// The agent asks or tells this.
    pub(crate) fn agent_says(&self, method: &str) -> bool {
        self.way == Way::ToClient && self.kind == Kind::Call && self.value["method"] == method
    }

    /// The agent answers such a request of the client's.
    pub(crate) fn answers(&self, method: &str) -> bool {
        self.way == Way::ToClient && self.is_answer(method, false)
    }

    /// The client answers such a request of the agent's.
    pub(crate) fn replies(&self, method: &str) -> bool {
        self.way == Way::ToAgent && self.is_answer(method, false)
    }

    /// Somebody answers such a request that this fault made up.
    pub(crate) fn answers_ours(&self, method: &str) -> bool {
        self.is_answer(method, true)
    }

    fn is_answer(&self, method: &str, own: bool) -> bool {
        matches!(&self.kind, Kind::Answer(open) if open.method == method && open.own == own)
    }

    /// The same, and it is a result.
    pub(crate) fn grants(&self, method: &str) -> bool {
        self.answers(method) && self.value.get("result").is_some()
    }

    /// The agent answers with this error code.
    pub(crate) fn fails_with(&self, code: i64) -> bool {
        self.way == Way::ToClient && at(&self.value, "/error/code") == code
    }

    /// The parameters of the request that this answers; null if it answers none.
    pub(crate) fn asked(&self) -> &Value {
        match &self.kind {
            Kind::Answer(open) => &open.params,
            Kind::Call | Kind::Other => &Value::Null,
        }
    }

    /// Which kind of update this is; empty if it is none.
    pub(crate) fn update(&self) -> &str {
        if self.agent_says("session/update") {
            self.text("/params/update/sessionUpdate")
        } else {
            ""
        }
    }

    /// An update about a tool call.
    pub(crate) fn is_tool_update(&self) -> bool {
        matches!(self.update(), "tool_call" | "tool_call_update")
    }

    /// The session that this is about; empty if none.
    pub(crate) fn session(&self) -> String {
        let named = self.text("/params/sessionId");
        let named = if named.is_empty() {
            self.asked()["sessionId"].as_str().unwrap_or_default()
        } else {
            named
        };
        named.to_owned()
    }

    /// What lies at a JSON pointer; null where nothing does.
    pub(crate) fn get(&self, pointer: &str) -> &Value {
        at(&self.value, pointer)
    }

    /// The text at a JSON pointer; empty where none is.
    pub(crate) fn text(&self, pointer: &str) -> &str {
        self.get(pointer).as_str().unwrap_or_default()
    }

    /// Is something other than null there?
    pub(crate) fn has(&self, pointer: &str) -> bool {
        !self.get(pointer).is_null()
    }

    /// Count how often this has been reached, from 1.
    pub(crate) fn count(&mut self, what: &str) -> u64 {
        let counted = self.note(what).as_u64().unwrap_or_default() + 1;
        self.keep(what, counted);
        counted
    }

    /// What was kept under a name; null if nothing was.
    pub(crate) fn note(&self, name: &str) -> Value {
        self.memory.notes.get(name).cloned().unwrap_or_default()
    }

    /// Keep something under a name.
    pub(crate) fn keep(&mut self, name: &str, value: impl Into<Value>) {
        self.memory.notes.insert(name.to_owned(), value.into());
    }

    // ---- Change it.

    /// The message, to be changed.
    pub(crate) fn edit(&mut self) -> &mut Value {
        self.edited = true;
        &mut self.value
    }

    /// Set what lies at a JSON pointer; nothing happens where its parent is no object.
    pub(crate) fn set(&mut self, pointer: &str, to: impl Into<Value>) {
        let (parent, key) = pointer.rsplit_once('/').unwrap_or(("", pointer));
        let key = key.to_owned();
        if let Some(parent) = self
            .value
            .pointer_mut(parent)
            .and_then(Value::as_object_mut)
        {
            parent.insert(key, to.into());
            self.edited = true;
        }
    }

    /// Remove what lies at a JSON pointer.
    pub(crate) fn unset(&mut self, pointer: &str) -> Option<Value> {
        let (parent, key) = pointer.rsplit_once('/').unwrap_or(("", pointer));
        let removed = self
            .value
            .pointer_mut(parent)?
            .as_object_mut()?
            .remove(key)?;
        self.edited = true;
        Some(removed)
    }

    /// Another message goes in its place.
    pub(crate) fn replace(&mut self, message: Value) {
        *self.edit() = message;
    }

    /// These bytes go in its place.
    pub(crate) fn write(&mut self, bytes: impl Into<Vec<u8>>) {
        self.instead = Some(bytes.into());
    }

    /// It goes no further.
    pub(crate) fn swallow(&mut self) {
        self.swallowed = true;
    }

    /// It waits until `release`.
    pub(crate) fn hold(&mut self) {
        self.swallowed = true;
        let message = std::mem::take(&mut self.value);
        self.memory.held.push(message);
    }

    /// What was held goes on its way, after this line.
    pub(crate) fn release(&mut self) {
        let way = self.way;
        let held = std::mem::take(&mut self.memory.held);
        self.after
            .extend(held.into_iter().map(|message| (way, message)));
    }

    /// What was held goes on its way, ahead of this line.
    pub(crate) fn release_before(&mut self) {
        let way = self.way;
        let held = std::mem::take(&mut self.memory.held);
        self.before
            .extend(held.into_iter().map(|message| (way, message)));
    }

    // ---- Say more.

    /// Say this to the client, ahead of this line.
    pub(crate) fn tell_before(&mut self, message: Value) {
        self.before.push((Way::ToClient, message));
    }

    /// Say this to the client, after this line.
    pub(crate) fn tell(&mut self, message: Value) {
        self.after.push((Way::ToClient, message));
    }

    /// Say this to the agent, after this line.
    pub(crate) fn tell_agent(&mut self, message: Value) {
        self.after.push((Way::ToAgent, message));
    }

    /// Say this to the agent, ahead of this line.
    pub(crate) fn tell_agent_before(&mut self, message: Value) {
        self.before.push((Way::ToAgent, message));
    }

    /// Send a made-up update to the client, after this line.
    pub(crate) fn tell_update(&mut self, session: &str, update: Value) {
        let message = made_up_update(session, update);
        self.tell(message);
    }

    /// Ask the client something that the agent knows nothing of; the answer goes no further.
    pub(crate) fn ask_client(&mut self, method: &str, params: Value) {
        let id = self.wire.made_up(Way::ToClient, method, &params);
        self.tell_before(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    /// Ask the agent something that the client knows nothing of; the answer goes no further.
    pub(crate) fn ask_agent(&mut self, method: &str, params: Value) {
        let id = self.wire.made_up(Way::ToAgent, method, &params);
        self.tell_agent_before(
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}),
        );
    }

    /// The other side never hears of this request: here is its result.
    pub(crate) fn respond(&mut self, result: Value) {
        let answer = json!({"jsonrpc": "2.0", "id": self.value["id"], "result": result});
        self.answer_itself(answer);
    }

    /// The other side never hears of this request: here is its error.
    pub(crate) fn refuse(&mut self, code: i64, message: &str) {
        let answer = json!({"jsonrpc": "2.0", "id": self.value["id"],
            "error": {"code": code, "message": message}});
        self.answer_itself(answer);
    }

    fn answer_itself(&mut self, answer: Value) {
        self.swallow();
        self.wire.forget(self.way, &self.value["id"]);
        self.after.push((self.way.back(), answer));
    }

    /// This result becomes an error.
    pub(crate) fn turn_into_error(&mut self, code: i64, message: &str) {
        let id = self.value["id"].clone();
        self.replace(
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}),
        );
    }

    /// This error becomes a result.
    pub(crate) fn turn_into_result(&mut self, result: Value) {
        let id = self.value["id"].clone();
        self.replace(json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }
}

/// An update that no agent sent.
pub(crate) fn made_up_update(session: &str, update: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "session/update",
        "params": {"sessionId": session, "update": update}})
}
