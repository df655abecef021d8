//! Checks rules of v2 that span several lines of a connection. Every v2 test runs under it.

use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// What a client knows about its sessions.
#[derive(Default)]
pub(crate) struct GrammarV2 {
    sessions: HashMap<String, GrammarSession>,
    /// Pending requests that change what may be sent about a session.
    pending_requests: HashMap<String, (String, String)>,
}

#[derive(Default)]
struct GrammarSession {
    /// `running`, `requires_action` or `idle`, once reported.
    state: Option<String>,
    is_replaying: bool,
    is_closed: bool,
    echoed: HashSet<String>,
    /// Messages named in responses but not echoed yet.
    unechoed: HashSet<String>,
    /// Calls; true if ended.
    calls: HashMap<String, bool>,
    /// Terminals; true if exited.
    terminals: HashMap<String, bool>,
    /// Compactions; true if ended.
    compactions: HashMap<String, bool>,
}

fn text_member<'a>(value: &'a Value, key: &str) -> Result<&'a str, String> {
    value[key].as_str().ok_or_else(|| format!("no {key}"))
}

fn ensure(holds: bool, law: &str) -> Result<(), String> {
    match holds {
        true => Ok(()),
        false => Err(law.to_owned()),
    }
}

impl GrammarV2 {
    /// Observes a request of the client.
    pub(crate) fn client_requested(&mut self, id: &Value, method: &str, params: &Value) {
        let Some(session) = params["sessionId"].as_str() else {
            return;
        };
        if method == "session/resume" && params["replayFrom"].is_object() {
            let known = self.sessions.entry(session.to_owned()).or_default();
            *known = GrammarSession {
                is_replaying: true,
                ..GrammarSession::default()
            };
        }
        let asked = (method.to_owned(), session.to_owned());
        self.pending_requests.insert(id.to_string(), asked);
    }

    /// Checks a message of the agent.
    pub(crate) fn agent_sent(&mut self, message: &Value) -> Result<(), String> {
        match message["method"].as_str() {
            Some("session/update") => {
                let params = &message["params"];
                let session = text_member(params, "sessionId")?.to_owned();
                let known = self.sessions.entry(session).or_default();
                ensure(!known.is_closed, "a closed session is silent")?;
                known.check_update(&params["update"])
            }
            Some("session/request_permission") => {
                check_unique(&message["params"]["options"], "optionId")
            }
            Some(_) => Ok(()),
            None => self.check_response(message),
        }
    }

    fn check_response(&mut self, message: &Value) -> Result<(), String> {
        let result = message.get("result");
        if let Some(options) = result.and_then(|result| result.get("configOptions")) {
            check_options(options)?;
        }
        let Some((method, session)) = self.pending_requests.remove(&message["id"].to_string())
        else {
            return Ok(());
        };
        let known = self.sessions.entry(session).or_default();
        match (method.as_str(), result) {
            ("session/resume", Some(_)) => {
                known.is_replaying = false;
                known.is_closed = false;
                ensure(known.state.is_some(), "a resume tells the state")?;
            }
            ("session/resume", None) => known.is_replaying = false,
            ("session/close" | "session/delete", Some(_)) => {
                let rests = known.state.as_deref().is_none_or(|state| state == "idle");
                ensure(rests, "a session is idle before it is closed")?;
                known.is_closed = true;
            }
            ("session/prompt", Some(result)) => {
                let id = text_member(result, "messageId")?.to_owned();
                if !known.echoed.contains(&id) {
                    known.unechoed.insert(id);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl GrammarSession {
    fn is_active(&self) -> bool {
        self.is_replaying || self.state.as_deref().is_some_and(|state| state != "idle")
    }

    fn check_update(&mut self, update: &Value) -> Result<(), String> {
        let sort = text_member(update, "sessionUpdate")?;
        match sort {
            "state_update" => return self.check_state(update),
            "user_message" => {
                let id = text_member(update, "messageId")?.to_owned();
                self.unechoed.remove(&id);
                return ensure(self.echoed.insert(id), "a message is echoed once");
            }
            "config_option_update" => return check_options(&update["configOptions"]),
            "available_commands_update" => {
                return check_unique(&update["availableCommands"], "name");
            }
            "session_info_update" | "usage_update" | "notice" => return Ok(()),
            _ => {}
        }
        ensure(self.is_active(), "nothing is done while idle")?;
        match sort {
            "tool_call_update" => self.check_call(update),
            "terminal_update" => {
                let id = text_member(update, "terminalId")?.to_owned();
                let exited = update["exitStatus"].is_object();
                match self.terminals.insert(id, exited) {
                    Some(true) => Err("a terminal exits once".to_owned()),
                    Some(false) | None => Ok(()),
                }
            }
            "terminal_output_chunk" => {
                let exited = self.terminals.get(text_member(update, "terminalId")?);
                ensure(exited == Some(&false), "an open terminal prints")
            }
            "compaction_update" => {
                let id = text_member(update, "compactionId")?.to_owned();
                let over = update["status"] != "in_progress";
                let before = self.compactions.insert(id, over);
                ensure(before != Some(true), "a compaction ends once")?;
                let begun = before.is_some() || !over || self.is_replaying;
                ensure(begun, "a compaction begins")
            }
            _ => Ok(()),
        }
    }

    fn check_state(&mut self, update: &Value) -> Result<(), String> {
        ensure(update.get("background").is_none(), "no background is told")?;
        let now = text_member(update, "state")?.to_owned();
        let before = self.state.replace(now);
        let now = self.state.as_deref();
        if self.is_replaying || before.is_none() {
            return Ok(());
        }
        let idle = now == Some("idle");
        // A resumed session reports its state again.
        let same = before.as_deref() == now;
        ensure(!same || idle, "a state is news")?;
        if idle && !same {
            ensure(update["stopReason"].is_string(), "work ends for a reason")?;
            ensure(self.unechoed.is_empty(), "what was answered is echoed")?;
            let open = self.calls.values().chain(self.terminals.values());
            ensure(open.copied().all(|over| over), "all ends before idle")?;
        }
        Ok(())
    }

    fn check_call(&mut self, update: &Value) -> Result<(), String> {
        let id = text_member(update, "toolCallId")?.to_owned();
        let status = update["status"].as_str();
        match self.calls.get(&id) {
            Some(true) => return Err("a call ends once".to_owned()),
            Some(false) => {}
            None => {
                ensure(update["title"].is_string(), "a call begins with a title")?;
                let begins = self.is_replaying || status == Some("pending");
                ensure(begins, "a call begins pending")?;
            }
        }
        let over = matches!(status, Some("completed" | "failed" | "cancelled"));
        ensure(!self.is_replaying || over, "a replayed call is over")?;
        self.calls.insert(id, over);
        for shown in update["content"].as_array().into_iter().flatten() {
            if shown["type"] == "terminal" {
                let known = self
                    .terminals
                    .contains_key(text_member(shown, "terminalId")?);
                ensure(known, "a terminal is told of before it is shown")?;
            }
        }
        Ok(())
    }
}

/// Checks that every option has distinct values that include its current one (V2-21).
fn check_options(options: &Value) -> Result<(), String> {
    check_unique(options, "configId")?;
    for option in options.as_array().into_iter().flatten() {
        check_unique(&option["options"], "value")?;
        let mut values = option["options"].as_array().into_iter().flatten();
        let current = values.any(|value| value["value"] == option["currentValue"]);
        ensure(current, "an option's value is among its values")?;
    }
    Ok(())
}

/// Checks that a list is not empty and its entries differ in `key`.
fn check_unique(list: &Value, key: &str) -> Result<(), String> {
    let list = list.as_array().ok_or("no list")?;
    let all: HashSet<&str> = list.iter().filter_map(|it| it[key].as_str()).collect();
    ensure(!list.is_empty() && all.len() == list.len(), "names differ")
}
