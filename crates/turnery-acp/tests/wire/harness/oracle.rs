//! Oracle: what must hold of every connection in version 1, whatever a test is about. The harness shows it
//! each message in both directions; what it finds names the rule that was broken. In version 2 it knows the
//! rules of JSON-RPC alone.

/// Give up with the rule that was broken.
macro_rules! hold {
    ($held:expr, $($rule:tt)+) => {
        if !$held {
            return Err(format!($($rule)+));
        }
    };
}

mod abilities;
mod session;

use abilities::Abilities;
use serde_json::Value;
use session::Session;
use std::collections::{HashMap, HashSet, VecDeque};

/// A rule that was broken, in words.
pub(crate) type Held = Result<(), String>;

/// Codes of JSON-RPC and of the protocol in both versions. All others of the reserved ranges are nobody's.
const CODES: [i64; 9] = [
    -32700, -32600, -32601, -32602, -32603, -32800, -32000, -32002, -32022,
];

/// What was said on one connection, as far as rules ask for it.
#[derive(Default)]
pub(crate) struct Oracle {
    /// The client's requests that are not answered, by the text of their ids.
    open: HashMap<String, VecDeque<Asked>>,
    /// All ids that the client ever used.
    used: HashSet<String>,
    /// The agent's requests that are neither answered nor taken back.
    questions: HashMap<String, Question>,
    sessions: HashMap<String, Session>,
    can: Abilities,
    /// A later version than the first is spoken.
    newer: bool,
    /// The client has closed its end.
    left: bool,
}

/// A request of the client.
struct Asked {
    method: String,
    session: Option<String>,
    /// A prompt that is answered beside the one that runs.
    command: bool,
}

/// A request of the agent.
struct Question {
    method: String,
    session: String,
    call: Option<String>,
    terminal: Option<String>,
}

impl Oracle {
    /// What the client sends.
    pub(crate) fn told(&mut self, message: &Value) {
        let id = message.get("id").map(Value::to_string);
        let (Some(id), Some(method)) = (id.clone(), message["method"].as_str()) else {
            if let Some(question) = id.and_then(|id| self.questions.remove(&id)) {
                self.replied(&question, &message["result"]);
            }
            return;
        };
        let params = &message["params"];
        let session = params["sessionId"].as_str().map(str::to_owned);
        match method {
            "initialize" => self.can = Abilities::of(&params["clientCapabilities"]),
            "session/load" | "session/resume" => {
                if let Some(id) = &session {
                    self.sessions.entry(id.clone()).or_default();
                }
            }
            _ => {}
        }
        let texts = params["prompt"].as_array().into_iter().flatten();
        let mut texts = texts.filter_map(|block| block["text"].as_str());
        let asked = Asked {
            method: method.to_owned(),
            session,
            command: texts.any(|text| text.starts_with('/')),
        };
        self.used.insert(id.clone());
        self.open.entry(id).or_default().push_back(asked);
    }

    fn replied(&mut self, question: &Question, result: &Value) {
        if question.method != "terminal/create" {
            return;
        }
        let session = self.sessions.get_mut(&question.session);
        if let (Some(session), Some(id)) = (session, result["terminalId"].as_str()) {
            session.lent(id);
        }
    }

    /// The client closes its end.
    pub(crate) fn left(&mut self) {
        self.left = true;
    }

    /// What the agent says.
    pub(crate) fn heard(&mut self, message: &Value) -> Held {
        hold!(message["jsonrpc"] == "2.0", "RPC-1: no version");
        let params = &message["params"];
        match (message["method"].as_str(), message.get("id")) {
            (Some(method), Some(id)) => self.question(method, id, params),
            (Some("session/update"), None) if !self.newer => self.update(params),
            (Some("$/cancel_request"), None) => {
                let back = self.questions.remove(&params["requestId"].to_string());
                hold!(back.is_some(), "REQC-4: no open request is taken back");
                Ok(())
            }
            (Some(_), None) => Ok(()),
            (None, id) => self.answer(id.unwrap_or(&Value::Null), message),
        }
    }

    fn question(&mut self, method: &str, id: &Value, params: &Value) -> Held {
        let text = |name: &str| params[name].as_str().map(str::to_owned);
        let question = Question {
            method: method.to_owned(),
            session: text("sessionId").unwrap_or_default(),
            call: params["toolCall"]["toolCallId"].as_str().map(str::to_owned),
            terminal: text("terminalId"),
        };
        hold!(
            !self.questions.contains_key(&id.to_string()),
            "RPC-16: id {id} is in use"
        );
        if !self.newer {
            self.can.asked(method, params)?;
            if let Some(session) = self.sessions.get_mut(&question.session) {
                session.asked(method, params, question.terminal.as_deref())?;
            } else {
                hold!(
                    method == "elicitation/create" && params.get("requestId").is_some(),
                    "UPD-1: {method} names no session"
                );
            }
        }
        self.questions.insert(id.to_string(), question);
        Ok(())
    }

    fn answer(&mut self, id: &Value, message: &Value) -> Held {
        let (result, error) = (message.get("result"), message.get("error"));
        hold!(
            result.is_some() != error.is_some(),
            "RPC-4: neither a result nor an error, or both"
        );
        if let Some(error) = error {
            let code = error["code"].as_i64();
            let code = code.ok_or("RPC-13: the code is no integer")?;
            let reserved = (-32768..=-32000).contains(&code) || (-32899..=-32800).contains(&code);
            hold!(
                !reserved || CODES.contains(&code),
                "RPC-14: {code} is not ours to use"
            );
            hold!(
                error["message"]
                    .as_str()
                    .is_some_and(|text| !text.is_empty() && !text.contains('\n')),
                "RPC-13: the message is no line"
            );
        }
        let key = id.to_string();
        let Some(asked) = self.open.get_mut(&key).and_then(VecDeque::pop_front) else {
            let first = !self.used.contains(&key);
            hold!(
                first && error.is_some(),
                "RPC-12: {id} is answered again, or was never asked"
            );
            return Ok(());
        };
        let Some(result) = result else {
            return self.ended(&asked, None);
        };
        hold!(result.is_object(), "RPC-4: the result is no object");
        if let Some(version) = result["protocolVersion"].as_u64() {
            self.newer = version > 1;
        }
        if self.newer {
            return Ok(());
        }
        if let Some(id) = result["sessionId"].as_str() {
            hold!(
                !self.sessions.contains_key(id),
                "SESS-1: {id} is another session"
            );
            self.sessions.insert(id.to_owned(), Session::default());
        }
        self.can.options(result)?;
        self.ended(&asked, Some(result))
    }

    /// A request of the client has come to its end.
    fn ended(&mut self, asked: &Asked, result: Option<&Value>) -> Held {
        if self.newer {
            return Ok(());
        }
        let made = result.and_then(|result| result["sessionId"].as_str());
        let Some(id) = made.or(asked.session.as_deref()) else {
            return Ok(());
        };
        let opening = self.is_open(id, &["session/load", "session/resume"]);
        let prompted = self.is_open(id, &["session/prompt"]);
        let Some(session) = self.sessions.get_mut(id) else {
            return Ok(());
        };
        match (asked.method.as_str(), result) {
            ("session/new" | "session/fork" | "session/load" | "session/resume", Some(_)) => {
                session.active = true;
            }
            ("session/close" | "session/delete", Some(_)) => session.active = opening,
            _ => {}
        }
        let alone = !prompted || result.is_some() && !asked.command;
        match asked.method.as_str() {
            "session/prompt" if alone => {
                session.settled()?;
                let done = result.is_some_and(|result| result["stopReason"] != "cancelled");
                hold!(
                    !done || self.left || session.nothing_lent(),
                    "TERM-2: a terminal was not released"
                );
                let open = self.questions.values().find(|question| {
                    question.session == id && question.method != "terminal/release"
                });
                let Some(open) = open.filter(|_| !self.left) else {
                    return Ok(());
                };
                Err(format!("CANCEL-7: {} waits behind its prompt", open.method))
            }
            "session/load" if !prompted && result.is_some() => session.settled(),
            _ => Ok(()),
        }
    }

    /// Whether a request of this sort about this session is not answered yet.
    fn is_open(&self, session: &str, methods: &[&str]) -> bool {
        self.open.values().flatten().any(|asked| {
            asked.session.as_deref() == Some(session) && methods.contains(&&*asked.method)
        })
    }

    fn update(&mut self, params: &Value) -> Held {
        let id = params["sessionId"].as_str().unwrap_or_default();
        let update = &params["update"];
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        let replays = self.is_open(id, &["session/load"]);
        let opens = replays || self.is_open(id, &["session/resume"]);
        let prompted = self.is_open(id, &["session/prompt"]);
        let session = self.sessions.get_mut(id);
        let session = session.ok_or("SESS-7, UPD-1: the client knows of no such session")?;
        hold!(
            session.active || opens,
            "CLOSE-3: the session is not open any more"
        );
        self.can.update(kind, update)?;
        match kind {
            "user_message_chunk" => hold!(replays, "MSG-3: the person's own words come back"),
            "agent_message_chunk"
            | "agent_thought_chunk"
            | "tool_call"
            | "tool_call_update"
            | "plan"
            | "usage_update"
            | "compaction_update"
            | "compaction_summary_chunk" => hold!(
                prompted || replays,
                "PROMPT-7, MSG-4, RES-1: {kind} outside a prompt"
            ),
            "session_info_update"
            | "available_commands_update"
            | "config_option_update"
            | "current_mode_update"
            | "notice" => {}
            other => return Err(format!("UPD-1: {other} is no update")),
        }
        if update["status"] == "in_progress" && update["toolCallId"].is_string() {
            let call = update["toolCallId"].as_str();
            let asks = self.questions.values().any(|question| {
                question.method == "session/request_permission"
                    && question.session == id
                    && question.call.as_deref() == call
            });
            hold!(
                !asks,
                "TOOL-3: {call:?} runs before its question is answered"
            );
        }
        session.update(kind, update, replays)
    }

    /// The connection is over, and the client has heard all of it.
    pub(crate) fn over(&self) -> Held {
        let mut open = self.open.iter().filter(|(_, asked)| !asked.is_empty());
        if let Some((id, asked)) = open.next() {
            return Err(format!(
                "PROMPT-4, RPC-12: {} {id} was never answered",
                asked[0].method
            ));
        }
        Ok(())
    }
}
