//! Session: what has been shown of one session, its calls above all.

use super::Held;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

#[derive(Default)]
pub(super) struct Session {
    /// It was answered for, and not closed since.
    pub(super) active: bool,
    calls: HashMap<String, Call>,
    /// Passes of compaction, and whether they go on.
    passes: HashMap<String, bool>,
    terminals: HashMap<String, Terminal>,
    /// Whose message an id is.
    speakers: HashMap<String, bool>,
    title: Option<String>,
}

struct Call {
    status: Status,
    name: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Status {
    Pending,
    InProgress,
    Final,
}

/// A terminal of the client.
struct Terminal {
    lent: bool,
    shown: bool,
}

fn status(update: &Value) -> Result<Option<Status>, String> {
    match update["status"].as_str() {
        None => Ok(None),
        Some("pending") => Ok(Some(Status::Pending)),
        Some("in_progress") => Ok(Some(Status::InProgress)),
        Some("completed" | "failed") => Ok(Some(Status::Final)),
        Some(other) => Err(format!("TOOL-11: {other} is no status")),
    }
}

fn is_absolute(path: &Value) -> bool {
    path.as_str().is_some_and(|path| path.starts_with('/'))
}

impl Session {
    /// The client has lent a terminal.
    pub(super) fn lent(&mut self, id: &str) {
        let terminal = Terminal {
            lent: true,
            shown: false,
        };
        self.terminals.insert(id.to_owned(), terminal);
    }

    pub(super) fn nothing_lent(&self) -> bool {
        self.terminals.values().all(|terminal| !terminal.lent)
    }

    /// No call and no pass is left open.
    pub(super) fn settled(&self) -> Held {
        for (id, call) in &self.calls {
            hold!(
                call.status == Status::Final,
                "TOOL-4, CANCEL-10, LOAD-7: call {id} is still {:?}",
                call.status
            );
        }
        for (id, open) in &self.passes {
            hold!(!open, "COMP-2: pass {id} did not end");
        }
        Ok(())
    }

    /// A request of the agent about this session.
    pub(super) fn asked(&mut self, method: &str, params: &Value, terminal: Option<&str>) -> Held {
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
            let terminal = self.terminals.get_mut(id).filter(|terminal| terminal.lent);
            let terminal = terminal.ok_or(format!("TERM-3: {id} is no terminal of ours"))?;
            terminal.lent = method != "terminal/release";
        }
        if method == "session/request_permission" {
            self.permission(params)?;
        }
        Ok(())
    }

    fn permission(&self, params: &Value) -> Held {
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
        paths(call)
    }

    /// An update; while the session is loaded what was said before may be said again.
    pub(super) fn update(&mut self, kind: &str, update: &Value, replays: bool) -> Held {
        match kind {
            "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk" => {
                hold!(update["content"].is_object(), "MSG-1: not one block");
                let person = kind == "user_message_chunk";
                if let Some(id) = update["messageId"].as_str() {
                    let speaker = *self.speakers.entry(id.to_owned()).or_insert(person);
                    hold!(speaker == person, "MSG-2: {id} is two messages");
                }
                Ok(())
            }
            "tool_call" => self.begun(update, replays),
            "tool_call_update" => self.changed(update),
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
            "available_commands_update" => commands(update),
            "compaction_update" => self.pass(update, replays),
            _ => Ok(()),
        }
    }

    fn begun(&mut self, update: &Value, replays: bool) -> Held {
        let id = update["toolCallId"].as_str().unwrap_or_default();
        let title = update["title"].as_str().unwrap_or_default();
        hold!(!title.is_empty(), "TOOL-2: call {id} has no title");
        let call = Call {
            status: status(update)?.unwrap_or(Status::Pending),
            name: update["name"].as_str().map(str::to_owned),
        };
        hold!(call.name.is_some(), "TOOL-10: call {id} has no name");
        hold!(
            replays || call.status == Status::Pending,
            "TOOL-1: call {id} begins as {:?}",
            call.status
        );
        let before = self.calls.insert(id.to_owned(), call);
        hold!(
            replays || before.is_none(),
            "TOOL-2: call {id} is there twice"
        );
        self.shows(update)
    }

    fn changed(&mut self, update: &Value) -> Held {
        let id = update["toolCallId"].as_str().unwrap_or_default();
        let call = self.calls.get_mut(id);
        let call = call.ok_or(format!("TOOL-2: call {id} was not told of"))?;
        hold!(
            call.status != Status::Final,
            "TOOL-4: call {id} changes after its end"
        );
        if let Some(now) = status(update)? {
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
        self.shows(update)
    }

    fn shows(&mut self, update: &Value) -> Held {
        for item in update["content"].as_array().into_iter().flatten() {
            let Some(id) = item["terminalId"].as_str() else {
                continue;
            };
            let terminal = self.terminals.get_mut(id);
            let terminal = terminal.filter(|terminal| terminal.lent || terminal.shown);
            let terminal = terminal.ok_or(format!("TOOL-9: {id} is no terminal to show"))?;
            terminal.shown = true;
        }
        paths(update)
    }

    fn pass(&mut self, update: &Value, replays: bool) -> Held {
        let id = update["compactionId"].as_str().unwrap_or_default();
        let open = match update["status"].as_str() {
            None => return Ok(()),
            Some(word) => word == "in_progress",
        };
        let before = self.passes.insert(id.to_owned(), open);
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

/// Paths are absolute and lines count from 1 (TOOL-7).
fn paths(call: &Value) -> Held {
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

fn commands(update: &Value) -> Held {
    let mut names = HashSet::new();
    for command in update["availableCommands"].as_array().into_iter().flatten() {
        let name = command["name"].as_str().unwrap_or_default();
        let fits = !name.is_empty() && !name.contains(|c: char| c == '/' || c.is_whitespace());
        hold!(fits && names.insert(name), "CMD-3: {name:?} is no name");
    }
    Ok(())
}
