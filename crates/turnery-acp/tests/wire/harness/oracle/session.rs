//! Checks the updates of one session, above all of its tool calls.

use super::RuleResult;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

#[derive(Default)]
pub(super) struct OracleSession {
    /// True from the response that opened the session until it is closed.
    pub(super) active: bool,
    calls: HashMap<String, OracleCall>,
    /// Compactions; true while running.
    compactions: HashMap<String, bool>,
    terminals: HashMap<String, OracleTerminal>,
    /// Authors of messages; true for the user.
    message_authors: HashMap<String, bool>,
    title: Option<String>,
}

struct OracleCall {
    status: CallStatus,
    name: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CallStatus {
    Pending,
    InProgress,
    Final,
}

/// Terminal of the client.
struct OracleTerminal {
    is_held: bool,
    was_shown: bool,
}

fn parse_status(update: &Value) -> Result<Option<CallStatus>, String> {
    match update["status"].as_str() {
        None => Ok(None),
        Some("pending") => Ok(Some(CallStatus::Pending)),
        Some("in_progress") => Ok(Some(CallStatus::InProgress)),
        Some("completed" | "failed") => Ok(Some(CallStatus::Final)),
        Some(other) => Err(format!("TOOL-11: {other} is no status")),
    }
}

fn is_absolute(path: &Value) -> bool {
    path.as_str().is_some_and(|path| path.starts_with('/'))
}

impl OracleSession {
    /// Records a terminal the client created.
    pub(super) fn terminal_created(&mut self, id: &str) {
        let terminal = OracleTerminal {
            is_held: true,
            was_shown: false,
        };
        self.terminals.insert(id.to_owned(), terminal);
    }

    pub(super) fn all_terminals_released(&self) -> bool {
        self.terminals.values().all(|terminal| !terminal.is_held)
    }

    /// Checks that no call and no compaction is left open.
    pub(super) fn check_settled(&self) -> RuleResult {
        for (id, call) in &self.calls {
            hold!(
                call.status == CallStatus::Final,
                "TOOL-4, CANCEL-10, LOAD-7: call {id} is still {:?}",
                call.status
            );
        }
        for (id, open) in &self.compactions {
            hold!(!open, "COMP-2: pass {id} did not end");
        }
        Ok(())
    }

    /// Checks a request of the agent about this session.
    pub(super) fn check_request(
        &mut self,
        method: &str,
        params: &Value,
        terminal: Option<&str>,
    ) -> RuleResult {
        for name in ["path", "cwd"] {
            let path = &params[name];
            hold!(
                path.is_null() || is_absolute(path),
                "FS-2, TERM-3: {path} is not absolute"
            );
        }
        let line = &params["line"];
        hold!(
            line.is_null() || line.as_u64() > Some(0),
            "FS-2: lines count from 1"
        );
        if let Some(id) = terminal {
            let terminal = self
                .terminals
                .get_mut(id)
                .filter(|terminal| terminal.is_held);
            let terminal = terminal.ok_or(format!("TERM-3: {id} is no terminal of ours"))?;
            terminal.is_held = method != "terminal/release";
        }
        if method == "session/request_permission" {
            self.check_permission(params)?;
        }
        Ok(())
    }

    fn check_permission(&self, params: &Value) -> RuleResult {
        let call = &params["toolCall"];
        let id = call["toolCallId"].as_str().unwrap_or_default();
        hold!(
            self.calls.contains_key(id),
            "PERM-2: {id} is no call that was told of"
        );
        let (mut ids, mut kinds) = (HashSet::new(), HashSet::new());
        for option in params["options"].as_array().into_iter().flatten() {
            let (id, kind) = (&option["optionId"], &option["kind"]);
            hold!(ids.insert(id.to_string()), "PERM-2: {id} is offered twice");
            hold!(
                kinds.insert(kind.to_string()),
                "PERM-5: {kind} is offered twice"
            );
        }
        hold!(
            kinds.contains("\"reject_once\""),
            "PERM-5: a plain no is missing"
        );
        check_paths(call)
    }

    /// Checks an update; during a load, earlier updates may be repeated.
    pub(super) fn check_update(&mut self, kind: &str, update: &Value, replays: bool) -> RuleResult {
        match kind {
            "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk" => {
                hold!(update["content"].is_object(), "MSG-1: not one block");
                let person = kind == "user_message_chunk";
                if let Some(id) = update["messageId"].as_str() {
                    let speaker = *self.message_authors.entry(id.to_owned()).or_insert(person);
                    hold!(speaker == person, "MSG-2: {id} is two messages");
                }
                Ok(())
            }
            "tool_call" => self.check_new_call(update, replays),
            "tool_call_update" => self.check_call_update(update),
            "usage_update" => {
                let (used, size) = (update["used"].as_u64(), update["size"].as_u64());
                hold!(
                    used.is_some() && used <= size,
                    "USAGE-1: {used:?} of {size:?} are used"
                );
                Ok(())
            }
            "session_info_update" => {
                if let Some(title) = update["title"].as_str() {
                    let before = self.title.replace(title.to_owned());
                    hold!(
                        replays || before.as_deref() != Some(title),
                        "INFO-1: the title is the same"
                    );
                }
                Ok(())
            }
            "available_commands_update" => check_commands(update),
            "compaction_update" => self.check_compaction(update, replays),
            _ => Ok(()),
        }
    }

    fn check_new_call(&mut self, update: &Value, replays: bool) -> RuleResult {
        let id = update["toolCallId"].as_str().unwrap_or_default();
        let title = update["title"].as_str().unwrap_or_default();
        hold!(!title.is_empty(), "TOOL-2: call {id} has no title");
        let call = OracleCall {
            status: parse_status(update)?.unwrap_or(CallStatus::Pending),
            name: update["name"].as_str().map(str::to_owned),
        };
        hold!(call.name.is_some(), "TOOL-10: call {id} has no name");
        hold!(
            replays || call.status == CallStatus::Pending,
            "TOOL-1: call {id} begins as {:?}",
            call.status
        );
        let before = self.calls.insert(id.to_owned(), call);
        hold!(
            replays || before.is_none(),
            "TOOL-2: call {id} is there twice"
        );
        self.check_content(update)
    }

    fn check_call_update(&mut self, update: &Value) -> RuleResult {
        let id = update["toolCallId"].as_str().unwrap_or_default();
        let call = self.calls.get_mut(id);
        let call = call.ok_or(format!("TOOL-2: call {id} was not told of"))?;
        hold!(
            call.status != CallStatus::Final,
            "TOOL-4: call {id} changes after its end"
        );
        if let Some(now) = parse_status(update)? {
            hold!(
                now > call.status,
                "TOOL-4: call {id} goes from {:?} to {now:?}",
                call.status
            );
            call.status = now;
        }
        let name = update["name"].as_str();
        hold!(
            name.is_none() || name == call.name.as_deref(),
            "TOOL-10: call {id} gets another name"
        );
        self.check_content(update)
    }

    fn check_content(&mut self, update: &Value) -> RuleResult {
        for item in update["content"].as_array().into_iter().flatten() {
            let Some(id) = item["terminalId"].as_str() else {
                continue;
            };
            let terminal = self.terminals.get_mut(id);
            let terminal = terminal.filter(|terminal| terminal.is_held || terminal.was_shown);
            let terminal = terminal.ok_or(format!("TOOL-9: {id} is no terminal to show"))?;
            terminal.was_shown = true;
        }
        check_paths(update)
    }

    fn check_compaction(&mut self, update: &Value, replays: bool) -> RuleResult {
        let id = update["compactionId"].as_str().unwrap_or_default();
        let open = match update["status"].as_str() {
            None => return Ok(()),
            Some(word) => word == "in_progress",
        };
        let before = self.compactions.insert(id.to_owned(), open);
        let fits = match (before, open) {
            (None, true) | (Some(true), false) => true,
            (None | Some(_), _) => replays,
        };
        hold!(fits, "COMP-2: pass {id} has no beginning, or two ends");
        for (what, status) in [("summary", "completed"), ("error", "failed")] {
            hold!(
                update[what].is_null() || update["status"] == status,
                "COMP-2: {what} where there is none"
            );
        }
        Ok(())
    }
}

/// Checks that paths are absolute and lines count from 1 (TOOL-7).
fn check_paths(call: &Value) -> RuleResult {
    let places = call["locations"].as_array().into_iter().flatten();
    let content = call["content"].as_array().into_iter().flatten();
    for place in places.chain(content.filter(|item| item["type"] == "diff")) {
        let line = &place["line"];
        hold!(
            is_absolute(&place["path"]) && (line.is_null() || line.as_u64() > Some(0)),
            "TOOL-7: {place} is no place"
        );
    }
    Ok(())
}

fn check_commands(update: &Value) -> RuleResult {
    let mut names = HashSet::new();
    for command in update["availableCommands"].as_array().into_iter().flatten() {
        let name = command["name"].as_str().unwrap_or_default();
        let fits = !name.is_empty() && !name.contains(|c: char| c == '/' || c.is_whitespace());
        hold!(fits && names.insert(name), "CMD-3: {name:?} is no name");
    }
    Ok(())
}
