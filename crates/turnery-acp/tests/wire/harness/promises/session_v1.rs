//! Promises about one session of version 1.

use super::{PromiseResult, text};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// State of a session of version 1 as the agent has reported it.
#[derive(Default)]
pub(super) struct SessionV1 {
    calls: HashMap<String, CallStatus>,
    /// Compactions; true while running.
    compactions: HashMap<String, bool>,
    /// Messages by id; true for messages of the user.
    messages: HashMap<String, bool>,
    title: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CallStatus {
    Pending,
    InProgress,
    Final,
}

fn parse_status(update: &Value) -> Option<CallStatus> {
    match update["status"].as_str()? {
        "pending" => Some(CallStatus::Pending),
        "in_progress" => Some(CallStatus::InProgress),
        _ => Some(CallStatus::Final),
    }
}

/// Categories defined by the protocol (CFG-6).
const CATEGORIES: [&str; 4] = ["mode", "model", "model_config", "thought_level"];

/// Checks that the options of a result or update have distinct ids and known categories.
pub(super) fn check_options(holder: &Value) -> PromiseResult {
    let mut ids = HashSet::new();
    for option in holder["configOptions"].as_array().into_iter().flatten() {
        let id = text(&option["id"]);
        ensure!(
            ids.insert(id.clone()),
            "the option {id} is there twice (CFG-2)"
        );
        let category = option["category"].as_str();
        ensure!(
            category.is_none_or(|name| CATEGORIES.contains(&name) || name.starts_with('_')),
            "{category:?} is no category (CFG-6)"
        );
    }
    Ok(())
}

impl SessionV1 {
    /// Checks that the session has neither open calls nor running compactions.
    pub(super) fn check_settled(&self) -> PromiseResult {
        let open = self
            .calls
            .iter()
            .find(|(_, status)| **status != CallStatus::Final);
        ensure!(open.is_none(), "a call has no end (TOOL-4): {open:?}");
        let running = self.compactions.iter().find(|(_, running)| **running);
        ensure!(
            running.is_none(),
            "a compaction has no end (COMP-2): {running:?}"
        );
        Ok(())
    }

    /// Checks that a permission request is about a reported call (PERM-2), offers no kind of option twice and
    /// includes `reject_once` (PERM-5).
    pub(super) fn check_permission(&self, params: &Value) -> PromiseResult {
        let id = text(&params["toolCall"]["toolCallId"]);
        ensure!(
            self.calls.contains_key(&id),
            "the call {id} was not reported (PERM-2)"
        );
        let mut kinds = HashSet::new();
        for option in params["options"].as_array().into_iter().flatten() {
            let kind = text(&option["kind"]);
            ensure!(
                kinds.insert(kind.clone()),
                "{kind} is offered twice (PERM-5)"
            );
        }
        ensure!(
            kinds.contains("reject_once"),
            "a plain no is missing (PERM-5)"
        );
        Ok(())
    }

    /// Checks an update; a replay may repeat what was reported before.
    pub(super) fn check_update(
        &mut self,
        update: &Value,
        is_prompted: bool,
        is_replay: bool,
    ) -> PromiseResult {
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        match kind {
            "user_message_chunk" => ensure!(is_replay, "a live prompt is not echoed (G-15)"),
            "usage_update"
            | "compaction_update"
            | "compaction_summary_chunk"
            | "tool_call"
            | "tool_call_update"
            | "plan" => {
                ensure!(is_prompted || is_replay, "{kind} outside a prompt (G-4)");
            }
            _ => {}
        }
        match kind {
            "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk" => {
                let is_user = kind == "user_message_chunk";
                if let Some(id) = update["messageId"].as_str() {
                    let before = *self.messages.entry(id.to_owned()).or_insert(is_user);
                    ensure!(before == is_user, "{id} is two messages (MSG-2)");
                }
            }
            "tool_call" => self.check_new_call(update, is_replay)?,
            "tool_call_update" => self.check_call_update(update)?,
            "usage_update" => {
                let (used, size) = (update["used"].as_u64(), update["size"].as_u64());
                ensure!(used <= size, "{used:?} of {size:?} are used (USAGE-1)");
            }
            "session_info_update" => {
                if let Some(title) = update["title"].as_str() {
                    let before = self.title.replace(title.to_owned());
                    let is_new = before.as_deref() != Some(title);
                    ensure!(is_replay || is_new, "the title is the same (INFO-1)");
                }
            }
            "compaction_update" => self.check_compaction(update, is_replay)?,
            "config_option_update" => check_options(update)?,
            _ => {}
        }
        Ok(())
    }

    fn check_new_call(&mut self, update: &Value, is_replay: bool) -> PromiseResult {
        let id = text(&update["toolCallId"]);
        let (title, name) = (text(&update["title"]), text(&update["name"]));
        ensure!(
            !title.is_empty() && !name.is_empty(),
            "the call {id} has no title or name"
        );
        let status = parse_status(update).unwrap_or(CallStatus::Pending);
        let is_pending = status == CallStatus::Pending;
        ensure!(
            is_replay || is_pending,
            "the call {id} begins as {status:?} (TOOL-1)"
        );
        let before = self.calls.insert(id.clone(), status);
        ensure!(
            is_replay || before.is_none(),
            "the call {id} is there twice (TOOL-2)"
        );
        Ok(())
    }

    fn check_call_update(&mut self, update: &Value) -> PromiseResult {
        let id = text(&update["toolCallId"]);
        let Some(status) = self.calls.get_mut(&id) else {
            return Err(format!("the call {id} was not reported (TOOL-2)"));
        };
        ensure!(
            *status != CallStatus::Final,
            "the call {id} changes after its end (TOOL-4)"
        );
        if let Some(now) = parse_status(update) {
            ensure!(
                now > *status,
                "the call {id} goes from {status:?} to {now:?} (TOOL-4)"
            );
            *status = now;
        }
        Ok(())
    }

    fn check_compaction(&mut self, update: &Value, is_replay: bool) -> PromiseResult {
        let id = text(&update["compactionId"]);
        let Some(status) = update["status"].as_str() else {
            return Ok(());
        };
        let is_running = status == "in_progress";
        let before = self.compactions.insert(id.clone(), is_running);
        let follows = matches!((before, is_running), (None, true) | (Some(true), false));
        ensure!(
            is_replay || follows,
            "the compaction {id} has no beginning, or two ends (COMP-2)"
        );
        Ok(())
    }
}
