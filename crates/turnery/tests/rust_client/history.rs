//! Reconstructs from the updates what a client would display of a session.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const CALL_FIELDS: [&str; 5] = ["title", "kind", "status", "locations", "content"];

/// Messages and calls in order, and the newest update of each other kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) items: Vec<Value>,
    /// Id of each item; null for this client's own prompts.
    ids: Vec<Value>,
    /// Reported statuses of each call, in order.
    pub(crate) statuses: Vec<Vec<Value>>,
    call_ids: Vec<Value>,
    latest_updates: BTreeMap<String, Value>,
}

impl History {
    /// Records a live prompt, which the agent does not send back.
    pub(crate) fn record_prompt(&mut self, text: &str) {
        self.push(Value::Null, json!({ "user": text }));
    }

    pub(crate) fn apply_update(&mut self, update: &Value) {
        let kind = update["sessionUpdate"].as_str().expect("a kind");
        self.latest_updates.insert(kind.to_owned(), update.clone());
        match kind {
            "user_message_chunk" => self.append_text("user", update),
            "agent_message_chunk" => self.append_text("agent", update),
            "agent_thought_chunk" => self.append_text("thought", update),
            "tool_call" => self.update_call(update, Some("pending")),
            "tool_call_update" => self.update_call(update, None),
            _ => {}
        }
    }

    fn push(&mut self, id: Value, item: Value) {
        self.ids.push(id);
        self.items.push(item);
    }

    fn append_text(&mut self, speaker: &str, update: &Value) {
        let id = &update["messageId"];
        let text = update["content"]["text"].as_str().expect("a text");
        let goes_on = self.ids.last() == Some(id);
        let last = self.items.last_mut().filter(|_| goes_on);
        match last.and_then(|item| item.get_mut(speaker)) {
            Some(Value::String(said)) => said.push_str(text),
            _ => self.push(id.clone(), json!({ speaker: text })),
        }
    }

    /// Records a call; a call announced without a status gets `announced`.
    fn update_call(&mut self, update: &Value, announced: Option<&str>) {
        let id = &update["toolCallId"];
        if !self.call_ids.contains(id) {
            self.push(id.clone(), json!({ "call": {} }));
            self.call_ids.push(id.clone());
            self.statuses.push(Vec::new());
        }
        let at = self.ids.iter().position(|it| it == id).expect("an item");
        for field in CALL_FIELDS {
            if let Some(value) = update.get(field) {
                self.items[at]["call"][field] = value.clone();
            }
        }
        let nth = self.call_ids.iter().position(|it| it == id);
        let announced = announced.map(Value::from);
        let status = update.get("status").cloned().or(announced);
        self.statuses[nth.expect("a call")].extend(status);
    }

    /// Returns the ids of all items except the user's messages.
    pub(crate) fn agent_item_ids(&self) -> Vec<&Value> {
        let all = self.items.iter().zip(&self.ids);
        all.filter(|(item, _)| item.get("user").is_none())
            .map(|(_, id)| id)
            .collect()
    }

    /// Returns the newest update of a kind, or null.
    pub(crate) fn latest_update(&self, kind: &str) -> &Value {
        self.latest_updates.get(kind).unwrap_or(&Value::Null)
    }

    pub(crate) fn plan(&self) -> Value {
        self.latest_update("plan")["entries"].clone()
    }
}

/// Returns the current value of each option, from a response or update that lists them all.
pub(crate) fn current_options(answer: &Value) -> Value {
    let options = answer["configOptions"].as_array();
    let options = options.into_iter().flatten();
    let set = options.map(|option| {
        let id = option["id"].as_str().expect("an id").to_owned();
        (id, option["currentValue"].clone())
    });
    Value::Object(Map::from_iter(set))
}
