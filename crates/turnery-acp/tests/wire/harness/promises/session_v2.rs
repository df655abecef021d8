//! Promises about one session of version 2.

use super::{PromiseResult, text};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// State of a session of version 2 as the agent has reported it.
#[derive(Default)]
pub(super) struct SessionV2 {
    /// `running`, `requires_action` or `idle`, once reported.
    state: Option<String>,
    is_replaying: bool,
    /// Ids of echoed messages.
    echoes: HashSet<String>,
    /// Calls, terminals and compactions; true if ended.
    items: HashMap<String, bool>,
}

/// Checks that lists of options and commands are not empty.
pub(super) fn check_options(holder: &Value) -> PromiseResult {
    for key in ["configOptions", "availableCommands"] {
        let is_empty = holder[key].as_array().is_some_and(Vec::is_empty);
        ensure!(!is_empty, "{key} is empty");
    }
    Ok(())
}

impl SessionV2 {
    /// Returns a session whose history is replayed.
    pub(super) fn replaying() -> Self {
        Self {
            is_replaying: true,
            ..Self::default()
        }
    }

    /// Ends a replay, at the response to `session/resume`.
    pub(super) fn end_replay(&mut self) {
        self.is_replaying = false;
    }

    /// Checks an update.
    pub(super) fn check_update(&mut self, update: &Value) -> PromiseResult {
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        match kind {
            "state_update" => return self.check_state(update),
            "user_message" => {
                let is_new = self.echoes.insert(text(&update["messageId"]));
                ensure!(is_new, "a message is echoed once");
                return Ok(());
            }
            "config_option_update" | "available_commands_update" => return check_options(update),
            "session_info_update" | "usage_update" | "notice" => return Ok(()),
            _ => {}
        }
        let is_busy = self.state.as_deref().is_some_and(|state| state != "idle");
        ensure!(self.is_replaying || is_busy, "nothing is done while idle");
        match kind {
            "tool_call_update" => self.check_call(update),
            "terminal_update" => {
                let is_over = update["exitStatus"].is_object();
                self.check_item("terminalId", update, is_over).map(drop)
            }
            "terminal_output_chunk" => {
                let id = text(&update["terminalId"]);
                ensure!(
                    self.items.get(&id) == Some(&false),
                    "only an open terminal prints"
                );
                Ok(())
            }
            "compaction_update" => {
                let is_over = update["status"] != "in_progress";
                let is_known = self.check_item("compactionId", update, is_over)?;
                let begins = is_known || !is_over || self.is_replaying;
                ensure!(begins, "a compaction begins before it ends");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Records an update of a call, terminal or compaction, which must not have ended before; returns true if
    /// it was already known.
    fn check_item(&mut self, key: &str, update: &Value, is_over: bool) -> Result<bool, String> {
        let before = self.items.insert(text(&update[key]), is_over);
        ensure!(before != Some(true), "an item ends once: {key}");
        Ok(before.is_some())
    }

    fn check_state(&mut self, update: &Value) -> PromiseResult {
        ensure!(
            update.get("background").is_none(),
            "no background is reported"
        );
        let now = text(&update["state"]);
        let before = self.state.replace(now.clone());
        let Some(before) = before.filter(|_| !self.is_replaying) else {
            return Ok(());
        };
        let (is_same, is_idle) = (before == now, now == "idle");
        // A resumed session reports its state again.
        ensure!(!is_same || is_idle, "the state is the same");
        if is_idle && !is_same {
            ensure!(update["stopReason"].is_string(), "work ends for a reason");
            let all_over = self.items.values().all(|over| *over);
            ensure!(all_over, "everything ends before idle");
        }
        Ok(())
    }

    fn check_call(&mut self, update: &Value) -> PromiseResult {
        let status = update["status"].as_str();
        let is_over = matches!(status, Some("completed" | "failed" | "cancelled"));
        ensure!(!self.is_replaying || is_over, "a replayed call is over");
        if !self.check_item("toolCallId", update, is_over)? {
            ensure!(update["title"].is_string(), "a call begins with a title");
            let is_pending = status == Some("pending");
            ensure!(self.is_replaying || is_pending, "a call begins pending");
        }
        for shown in update["content"].as_array().into_iter().flatten() {
            let is_known = self.items.contains_key(&text(&shown["terminalId"]));
            ensure!(
                shown["type"] != "terminal" || is_known,
                "a terminal is reported before it is shown"
            );
        }
        Ok(())
    }
}
