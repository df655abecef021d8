//! Grammar of v2: what must hold between the lines of a connection, beyond what each of them says alone.
//! Every v2 test runs under it.

use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// What a client knows of its sessions.
#[derive(Default)]
pub(crate) struct Grammar {
    sessions: HashMap<String, Session>,
    /// Requests that change what may be said of a session, until they are answered.
    asked: HashMap<String, (String, String)>,
}

#[derive(Default)]
struct Session {
    /// `running`, `requires_action` or `idle`, once it was told.
    state: Option<String>,
    replays: bool,
    gone: bool,
    echoed: HashSet<String>,
    /// Messages that were named in answers and not echoed yet.
    owed: HashSet<String>,
    /// Calls, and whether they are over.
    calls: HashMap<String, bool>,
    /// Terminals, and whether they have exited.
    terminals: HashMap<String, bool>,
    /// Compactions, and whether they are over.
    compactions: HashMap<String, bool>,
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str, String> {
    value[key].as_str().ok_or_else(|| format!("no {key}"))
}

fn must(holds: bool, law: &str) -> Result<(), String> {
    match holds {
        true => Ok(()),
        false => Err(law.to_owned()),
    }
}

impl Grammar {
    /// The client asks.
    pub(crate) fn asks(&mut self, id: &Value, method: &str, params: &Value) {
        let Some(session) = params["sessionId"].as_str() else {
            return;
        };
        if method == "session/resume" && params["replayFrom"].is_object() {
            let known = self.sessions.entry(session.to_owned()).or_default();
            *known = Session {
                replays: true,
                ..Session::default()
            };
        }
        let asked = (method.to_owned(), session.to_owned());
        self.asked.insert(id.to_string(), asked);
    }

    /// The agent says something.
    pub(crate) fn said(&mut self, message: &Value) -> Result<(), String> {
        match message["method"].as_str() {
            Some("session/update") => {
                let params = &message["params"];
                let session = text(params, "sessionId")?.to_owned();
                let known = self.sessions.entry(session).or_default();
                must(!known.gone, "a closed session is silent")?;
                known.update(&params["update"])
            }
            Some("session/request_permission") => unique(&message["params"]["options"], "optionId"),
            Some(_) => Ok(()),
            None => self.answered(message),
        }
    }

    fn answered(&mut self, message: &Value) -> Result<(), String> {
        let result = message.get("result");
        if let Some(options) = result.and_then(|result| result.get("configOptions")) {
            choices(options)?;
        }
        let Some((method, session)) = self.asked.remove(&message["id"].to_string()) else {
            return Ok(());
        };
        let known = self.sessions.entry(session).or_default();
        match (method.as_str(), result) {
            ("session/resume", Some(_)) => {
                known.replays = false;
                known.gone = false;
                must(known.state.is_some(), "a resume tells the state")?;
            }
            ("session/resume", None) => known.replays = false,
            ("session/close" | "session/delete", Some(_)) => {
                let rests = known.state.as_deref().is_none_or(|state| state == "idle");
                must(rests, "a session is idle before it is closed")?;
                known.gone = true;
            }
            ("session/prompt", Some(result)) => {
                let id = text(result, "messageId")?.to_owned();
                if !known.echoed.contains(&id) {
                    known.owed.insert(id);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl Session {
    fn works(&self) -> bool {
        self.replays || self.state.as_deref().is_some_and(|state| state != "idle")
    }

    fn update(&mut self, update: &Value) -> Result<(), String> {
        let sort = text(update, "sessionUpdate")?;
        match sort {
            "state_update" => return self.state(update),
            "user_message" => {
                let id = text(update, "messageId")?.to_owned();
                self.owed.remove(&id);
                return must(self.echoed.insert(id), "a message is echoed once");
            }
            "config_option_update" => return choices(&update["configOptions"]),
            "available_commands_update" => return unique(&update["availableCommands"], "name"),
            "session_info_update" | "usage_update" | "notice" => return Ok(()),
            _ => {}
        }
        must(self.works(), "nothing is done while idle")?;
        match sort {
            "tool_call_update" => self.call(update),
            "terminal_update" => {
                let id = text(update, "terminalId")?.to_owned();
                let exited = update["exitStatus"].is_object();
                match self.terminals.insert(id, exited) {
                    Some(true) => Err("a terminal exits once".to_owned()),
                    Some(false) | None => Ok(()),
                }
            }
            "terminal_output_chunk" => {
                let exited = self.terminals.get(text(update, "terminalId")?);
                must(exited == Some(&false), "an open terminal prints")
            }
            "compaction_update" => {
                let id = text(update, "compactionId")?.to_owned();
                let over = update["status"] != "in_progress";
                let before = self.compactions.insert(id, over);
                must(before != Some(true), "a compaction ends once")?;
                let begun = before.is_some() || !over || self.replays;
                must(begun, "a compaction begins")
            }
            _ => Ok(()),
        }
    }

    fn state(&mut self, update: &Value) -> Result<(), String> {
        must(update.get("background").is_none(), "no background is told")?;
        let now = text(update, "state")?.to_owned();
        let before = self.state.replace(now);
        let now = self.state.as_deref();
        if self.replays || before.is_none() {
            return Ok(());
        }
        let idle = now == Some("idle");
        // One that is resumed says where it stands.
        let same = before.as_deref() == now;
        must(!same || idle, "a state is news")?;
        if idle && !same {
            must(update["stopReason"].is_string(), "work ends for a reason")?;
            must(self.owed.is_empty(), "what was answered is echoed")?;
            let open = self.calls.values().chain(self.terminals.values());
            must(open.copied().all(|over| over), "all ends before idle")?;
        }
        Ok(())
    }

    fn call(&mut self, update: &Value) -> Result<(), String> {
        let id = text(update, "toolCallId")?.to_owned();
        let status = update["status"].as_str();
        match self.calls.get(&id) {
            Some(true) => return Err("a call ends once".to_owned()),
            Some(false) => {}
            None => {
                must(update["title"].is_string(), "a call begins with a title")?;
                let begins = self.replays || status == Some("pending");
                must(begins, "a call begins pending")?;
            }
        }
        let over = matches!(status, Some("completed" | "failed" | "cancelled"));
        must(!self.replays || over, "a replayed call is over")?;
        self.calls.insert(id, over);
        for shown in update["content"].as_array().into_iter().flatten() {
            if shown["type"] == "terminal" {
                let known = self.terminals.contains_key(text(shown, "terminalId")?);
                must(known, "a terminal is told of before it is shown")?;
            }
        }
        Ok(())
    }
}

/// Every option has values, all different, and its own is among them (V2-21).
fn choices(options: &Value) -> Result<(), String> {
    unique(options, "configId")?;
    for option in options.as_array().into_iter().flatten() {
        unique(&option["options"], "value")?;
        let mut values = option["options"].as_array().into_iter().flatten();
        let current = values.any(|value| value["value"] == option["currentValue"]);
        must(current, "an option's value is among its values")?;
    }
    Ok(())
}

/// A list that is not empty, in which no two have the same.
fn unique(list: &Value, key: &str) -> Result<(), String> {
    let list = list.as_array().ok_or("no list")?;
    let all: HashSet<&str> = list.iter().filter_map(|it| it[key].as_str()).collect();
    must(!list.is_empty() && all.len() == list.len(), "names differ")
}
