//! Checks rules that hold for every v1 connection, whatever a test is about. The harness shows it each message
//! in both directions; errors name the violated rule. For v2 it checks only the rules of JSON-RPC.

/// Returns the violated rule as an error unless the condition holds.
macro_rules! hold {
    ($held:expr, $($rule:tt)+) => {
        if !$held {
            return Err(format!($($rule)+));
        }
    };
}

mod capabilities;
mod session;

use capabilities::DeclaredCapabilities;
use serde_json::Value;
use session::OracleSession;
use std::collections::{HashMap, HashSet, VecDeque};

/// Violated rule, as text.
pub(crate) type RuleResult = Result<(), String>;

/// Error codes of JSON-RPC and of both protocol versions. All other reserved codes are invalid.
const ALLOWED_CODES: [i64; 9] = [
    -32700, -32600, -32601, -32602, -32603, -32800, -32000, -32002, -32022,
];

/// State of one connection, as far as the rules need it.
#[derive(Default)]
pub(crate) struct Oracle {
    /// Pending client requests, by the JSON text of their ids.
    pending_requests: HashMap<String, VecDeque<PendingRequest>>,
    /// All ids the client has used.
    used_ids: HashSet<String>,
    /// Agent requests that are neither answered nor cancelled.
    agent_requests: HashMap<String, AgentRequest>,
    sessions: HashMap<String, OracleSession>,
    capabilities: DeclaredCapabilities,
    /// True if the negotiated version is above 1.
    is_later_version: bool,
    /// True once the client has closed its output.
    client_closed: bool,
}

/// Request of the client.
struct PendingRequest {
    method: String,
    session: Option<String>,
    /// True for a command, which is answered beside a running prompt.
    is_command: bool,
}

/// Request of the agent.
struct AgentRequest {
    method: String,
    session: String,
    call: Option<String>,
    terminal: Option<String>,
}

impl Oracle {
    /// Observes a message of the client.
    pub(crate) fn client_sent(&mut self, message: &Value) {
        let id = message.get("id").map(Value::to_string);
        let (Some(id), Some(method)) = (id.clone(), message["method"].as_str()) else {
            if let Some(question) = id.and_then(|id| self.agent_requests.remove(&id)) {
                self.client_responded(&question, &message["result"]);
            }
            return;
        };
        let params = &message["params"];
        let session = params["sessionId"].as_str().map(str::to_owned);
        match method {
            "initialize" => {
                self.capabilities = DeclaredCapabilities::parse(&params["clientCapabilities"])
            }
            "session/load" | "session/resume" => {
                if let Some(id) = &session {
                    self.sessions.entry(id.clone()).or_default();
                }
            }
            _ => {}
        }
        let texts = params["prompt"].as_array().into_iter().flatten();
        let mut texts = texts.filter_map(|block| block["text"].as_str());
        let asked = PendingRequest {
            method: method.to_owned(),
            session,
            is_command: texts.any(|text| text.starts_with('/')),
        };
        self.used_ids.insert(id.clone());
        self.pending_requests
            .entry(id)
            .or_default()
            .push_back(asked);
    }

    fn client_responded(&mut self, question: &AgentRequest, result: &Value) {
        if question.method != "terminal/create" {
            return;
        }
        let session = self.sessions.get_mut(&question.session);
        if let (Some(session), Some(id)) = (session, result["terminalId"].as_str()) {
            session.terminal_created(id);
        }
    }

    /// Observes the end of input.
    pub(crate) fn client_closed(&mut self) {
        self.client_closed = true;
    }

    /// Checks a message of the agent.
    pub(crate) fn agent_sent(&mut self, message: &Value) -> RuleResult {
        hold!(message["jsonrpc"] == "2.0", "RPC-1: no version");
        let params = &message["params"];
        match (message["method"].as_str(), message.get("id")) {
            (Some(method), Some(id)) => self.check_request(method, id, params),
            (Some("session/update"), None) if !self.is_later_version => self.check_update(params),
            (Some("$/cancel_request"), None) => {
                let back = self.agent_requests.remove(&params["requestId"].to_string());
                hold!(back.is_some(), "REQC-4: no open request is taken back");
                Ok(())
            }
            (Some(_), None) => Ok(()),
            (None, id) => self.check_response(id.unwrap_or(&Value::Null), message),
        }
    }

    fn check_request(&mut self, method: &str, id: &Value, params: &Value) -> RuleResult {
        let text = |name: &str| params[name].as_str().map(str::to_owned);
        let question = AgentRequest {
            method: method.to_owned(),
            session: text("sessionId").unwrap_or_default(),
            call: params["toolCall"]["toolCallId"].as_str().map(str::to_owned),
            terminal: text("terminalId"),
        };
        hold!(
            !self.agent_requests.contains_key(&id.to_string()),
            "RPC-16: id {id} is in use"
        );
        if !self.is_later_version {
            self.capabilities.check_request(method, params)?;
            if let Some(session) = self.sessions.get_mut(&question.session) {
                session.check_request(method, params, question.terminal.as_deref())?;
            } else {
                hold!(
                    method == "elicitation/create" && params.get("requestId").is_some(),
                    "UPD-1: {method} names no session"
                );
            }
        }
        self.agent_requests.insert(id.to_string(), question);
        Ok(())
    }

    fn check_response(&mut self, id: &Value, message: &Value) -> RuleResult {
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
                !reserved || ALLOWED_CODES.contains(&code),
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
        let Some(asked) = self
            .pending_requests
            .get_mut(&key)
            .and_then(VecDeque::pop_front)
        else {
            let first = !self.used_ids.contains(&key);
            hold!(
                first && error.is_some(),
                "RPC-12: {id} is answered again, or was never asked"
            );
            return Ok(());
        };
        let Some(result) = result else {
            return self.finish_request(&asked, None);
        };
        hold!(result.is_object(), "RPC-4: the result is no object");
        if let Some(version) = result["protocolVersion"].as_u64() {
            self.is_later_version = version > 1;
        }
        if self.is_later_version {
            return Ok(());
        }
        if let Some(id) = result["sessionId"].as_str() {
            hold!(
                !self.sessions.contains_key(id),
                "SESS-1: {id} is another session"
            );
            self.sessions
                .insert(id.to_owned(), OracleSession::default());
        }
        self.capabilities.check_options(result)?;
        self.finish_request(&asked, Some(result))
    }

    /// Ends a request of the client.
    fn finish_request(&mut self, asked: &PendingRequest, result: Option<&Value>) -> RuleResult {
        if self.is_later_version {
            return Ok(());
        }
        let made = result.and_then(|result| result["sessionId"].as_str());
        let Some(id) = made.or(asked.session.as_deref()) else {
            return Ok(());
        };
        let opening = self.has_pending(id, &["session/load", "session/resume"]);
        let prompted = self.has_pending(id, &["session/prompt"]);
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
        let alone = !prompted || result.is_some() && !asked.is_command;
        match asked.method.as_str() {
            "session/prompt" if alone => {
                session.check_settled()?;
                let done = result.is_some_and(|result| result["stopReason"] != "cancelled");
                hold!(
                    !done || self.client_closed || session.all_terminals_released(),
                    "TERM-2: a terminal was not released"
                );
                let open = self.agent_requests.values().find(|question| {
                    question.session == id && question.method != "terminal/release"
                });
                let Some(open) = open.filter(|_| !self.client_closed) else {
                    return Ok(());
                };
                Err(format!("CANCEL-7: {} waits behind its prompt", open.method))
            }
            "session/load" if !prompted && result.is_some() => session.check_settled(),
            _ => Ok(()),
        }
    }

    /// Returns true if one of these requests about the session is pending.
    fn has_pending(&self, session: &str, methods: &[&str]) -> bool {
        self.pending_requests.values().flatten().any(|asked| {
            asked.session.as_deref() == Some(session) && methods.contains(&&*asked.method)
        })
    }

    fn check_update(&mut self, params: &Value) -> RuleResult {
        let id = params["sessionId"].as_str().unwrap_or_default();
        let update = &params["update"];
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        let replays = self.has_pending(id, &["session/load"]);
        let opens = replays || self.has_pending(id, &["session/resume"]);
        let prompted = self.has_pending(id, &["session/prompt"]);
        let session = self.sessions.get_mut(id);
        let session = session.ok_or("SESS-7, UPD-1: the client knows of no such session")?;
        hold!(
            session.active || opens,
            "CLOSE-3: the session is not open any more"
        );
        self.capabilities.check_update(kind, update)?;
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
            let asks = self.agent_requests.values().any(|question| {
                question.method == "session/request_permission"
                    && question.session == id
                    && question.call.as_deref() == call
            });
            hold!(
                !asks,
                "TOOL-3: {call:?} runs before its question is answered"
            );
        }
        session.check_update(kind, update, replays)
    }

    /// Checks the end of the connection, after the client has read everything.
    pub(crate) fn check_end(&self) -> RuleResult {
        let mut open = self
            .pending_requests
            .iter()
            .filter(|(_, asked)| !asked.is_empty());
        if let Some((id, asked)) = open.next() {
            return Err(format!(
                "PROMPT-4, RPC-12: {} {id} was never answered",
                asked[0].method
            ));
        }
        Ok(())
    }
}
