//! Folds v2 updates into the session state that a client has afterwards, by the rules of the draft: omitted
//! fields keep their values, `null` and empty lists clear, chunks append.

use serde_json::{Map, Value, json};

/// State of a session after all its updates: messages, calls, plans and compactions in order of appearance,
/// and the values of the session itself, such as its state and usage.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct FoldedSession {
    entries: Vec<(String, Value)>,
    session: Map<String, Value>,
    /// Number of entries at the start of the latest prompt.
    prompt_start: usize,
}

impl FoldedSession {
    /// Folds these updates.
    pub(crate) fn from_updates(updates: &[Value]) -> Self {
        let mut known = Self::default();
        known.session.insert("state".to_owned(), json!("idle"));
        for update in updates {
            known.apply(update);
        }
        known.normalize();
        known
    }

    /// Folds live and replayed updates for comparison. In a replay, calls with a terminal show its output
    /// instead, so for those only the rest is compared.
    pub(crate) fn live_and_replayed(live: &[Value], replayed: &[Value]) -> (Self, Self) {
        let (mut live, mut replayed) = (Self::from_updates(live), Self::from_updates(replayed));
        let prints = |entry: &Value| {
            let mut content = entry["content"].as_array().into_iter().flatten();
            content.any(|shown| shown["type"] == "terminal")
        };
        let printed: Vec<String> = live
            .entries
            .iter()
            .filter(|(_, entry)| prints(entry))
            .map(|(key, _)| key.clone())
            .collect();
        assert!(!replayed.entries.iter().any(|(_, entry)| prints(entry)));
        for (key, entry) in live.entries.iter_mut().chain(&mut replayed.entries) {
            if printed.contains(key) {
                let content = entry.as_object_mut().and_then(|it| it.remove("content"));
                assert!(content.is_some(), "{key} shows nothing");
            }
        }
        (live, replayed)
    }

    fn apply(&mut self, update: &Value) {
        let sort = update["sessionUpdate"].as_str().expect("a sort");
        match sort {
            "user_message" | "agent_message" | "agent_thought" => {
                self.patch(sort, "messageId", update);
            }
            "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk" => {
                let sort = sort.trim_end_matches("_chunk");
                self.append(sort, "messageId", "content", update);
            }
            "tool_call_update" => self.patch("call", "toolCallId", update),
            "tool_call_content_chunk" => self.append("call", "toolCallId", "content", update),
            "terminal_update" => self.patch("terminal", "terminalId", update),
            "terminal_output_chunk" => self.append("terminal", "terminalId", "data", update),
            "plan_update" => self.patch("plan", "planId", &update["plan"]),
            "compaction_update" => self.patch("compaction", "compactionId", update),
            "usage_update" | "config_option_update" | "available_commands_update" => {
                self.session.insert(sort.to_owned(), update.clone());
            }
            "session_info_update" => patch_map(&mut self.session, update),
            "state_update" => {
                match (update["state"].as_str(), update["stopReason"].as_str()) {
                    (Some("running"), _) if self.session["state"] == "idle" => {
                        self.prompt_start = self.entries.len();
                    }
                    // A refused prompt is not part of the conversation.
                    (_, Some("refusal")) => self.entries.truncate(self.prompt_start),
                    _ => {}
                }
                let state = update["state"].clone();
                self.session.insert("state".to_owned(), state);
            }
            // Notices are not kept.
            "notice" => {}
            other => panic!("{other} is no update of this agent"),
        }
    }

    fn entry(&mut self, kind: &str, key: &str, update: &Value) -> &mut Map<String, Value> {
        let id = format!("{kind} {}", update[key].as_str().expect("an id"));
        let found = self.entries.iter().position(|(known, _)| *known == id);
        let at = found.unwrap_or_else(|| {
            self.entries.push((id, json!({})));
            self.entries.len() - 1
        });
        self.entries[at].1.as_object_mut().expect("an object")
    }

    fn patch(&mut self, sort: &str, key: &str, update: &Value) {
        patch_map(self.entry(sort, key, update), update);
    }

    fn append(&mut self, sort: &str, key: &str, field: &str, update: &Value) {
        let entry = self.entry(sort, key, update);
        let list = entry.entry(field).or_insert_with(|| json!([]));
        let list = list.as_array_mut().expect("a list");
        list.push(update[field].clone());
    }

    /// Removes entries and fields that a replay does not report: terminals (a replay has their text in the
    /// result), compactions that did not complete, the title and the time of the last update. Joins adjacent
    /// texts.
    fn normalize(&mut self) {
        self.prompt_start = 0;
        self.session.remove("updatedAt");
        // The session list has it.
        self.session.remove("title");
        self.entries
            .retain(|(key, entry)| match key.split_once(' ') {
                Some(("terminal", _)) => false,
                Some(("compaction", _)) => entry["status"] == "completed",
                _ => true,
            });
        for (_, entry) in &mut self.entries {
            if let Some(content) = entry.get_mut("content").and_then(Value::as_array_mut) {
                content.dedup_by(|later, text| join_text(text, later));
            }
        }
    }
}

/// Appends `later` to `text` if both are text blocks; returns true if it did.
fn join_text(text: &mut Value, later: &Value) -> bool {
    let (Some(first), Some(second)) = (text["text"].as_str(), later["text"].as_str()) else {
        return false;
    };
    text["text"] = json!(format!("{first}{second}"));
    true
}

/// Applies a patch: absent fields keep their values, `null` and empty lists remove them, others replace them.
/// Metadata is patched by key.
fn patch_map(entry: &mut Map<String, Value>, update: &Value) {
    for (key, value) in update.as_object().expect("an object") {
        let empty = value.as_array().is_some_and(Vec::is_empty);
        if matches!(key.as_str(), "sessionUpdate" | "messageId") {
            // Ids were used to find the entry.
        } else if value.is_null() || empty {
            entry.remove(key);
        } else if key == "_meta" {
            let meta = entry.entry("_meta").or_insert_with(|| json!({}));
            patch_map(meta.as_object_mut().expect("an object"), value);
        } else {
            entry.insert(key.clone(), value.clone());
        }
    }
}
