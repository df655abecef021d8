//! Checks behaviour that turnery guarantees although the protocol leaves it open. The rules of the protocol
//! itself are checked by the suite's oracle.

/// Returns an error that describes the violation unless the condition holds.
macro_rules! ensure {
    ($held:expr, $($promise:tt)+) => {
        if !$held {
            return Err(format!($($promise)+));
        }
    };
}

mod session_v1;
mod session_v2;

use super::{client_line::ClientLine, readable::is_readable};
use acp_conformance::oracle::client_violation;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use session_v1::SessionV1;
use session_v2::SessionV2;
use std::collections::HashMap;

/// Result of a check; the error describes the broken promise.
pub(super) type PromiseResult = Result<(), String>;

/// Checker of one connection for behaviour that turnery guarantees beyond the protocol.
#[derive(Default)]
pub(super) struct GuaranteeChecker {
    /// Negotiated protocol version, from the last response to `initialize`.
    version: u64,
    /// Number of malformed lines that have not yet been answered by an error with a null id.
    owed_errors: usize,
    /// Client requests without a response.
    pending_requests: Vec<PendingRequest>,
    /// Number of responses so far by request id, while several open requests have the same id.
    response_counts: HashMap<String, usize>,
    /// Agent requests without a response: id, method and parameters.
    agent_requests: Vec<(Value, String, Value)>,
    sessions_v1: HashMap<String, SessionV1>,
    sessions_v2: HashMap<String, SessionV2>,
    is_client_closed: bool,
    /// True if only lines are checked, and not what is said about sessions.
    pub(super) skips_sessions: bool,
    /// True once the client has sent a request whose id is null or is also the id of another open request.
    pub(super) has_ambiguous_id: bool,
}

/// Request of the client.
#[derive(Clone)]
struct PendingRequest {
    id: Value,
    method: String,
    session: String,
    /// True for a slash command, which is answered beside a running prompt.
    is_command: bool,
    /// True if `jsonrpc` is missing or not `"2.0"`, so that the response must be an error.
    is_faulty: bool,
    message: Value,
}

/// Members of a line of the agent: parsing fails on unknown and on repeated ones.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only the presence of the members matters")]
struct AgentLineMembers<'a> {
    #[serde(borrow)]
    jsonrpc: &'a RawValue,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

impl GuaranteeChecker {
    /// Observes a line of the client.
    pub(super) fn client_sent(&mut self, line: &ClientLine) {
        let (message, is_faulty) = match line {
            ClientLine::Ignored => return,
            ClientLine::Malformed => return self.owed_errors += 1,
            ClientLine::Message {
                message,
                has_invalid_version: is_faulty,
            } => (message, *is_faulty),
        };
        let (Some(id), params) = (message.get("id"), &message["params"]) else {
            return;
        };
        let Some(method) = message["method"].as_str() else {
            return self.agent_requests.retain(|(asked, ..)| asked != id);
        };
        let session = text(&params["sessionId"]);
        if method == "session/resume" && params["replayFrom"].is_object() {
            self.sessions_v2
                .insert(session.clone(), SessionV2::replaying());
        }
        let is_used = self.pending_requests.iter().any(|asked| asked.id == *id);
        self.has_ambiguous_id |= is_used || id.is_null();
        let texts = params["prompt"].as_array().into_iter().flatten();
        let mut texts = texts.filter_map(|block| block["text"].as_str());
        self.pending_requests.push(PendingRequest {
            id: id.clone(),
            method: method.to_owned(),
            is_command: texts.any(|text| text.starts_with('/')),
            session,
            is_faulty,
            message: message.clone(),
        });
    }

    /// Observes the end of input.
    pub(super) fn client_closed(&mut self) {
        self.is_client_closed = true;
    }

    /// Checks a line of the agent that the oracle has accepted, and returns it parsed.
    pub(super) fn agent_sent(&mut self, line: &str) -> Result<Value, String> {
        serde_json::from_str::<AgentLineMembers<'_>>(line).map_err(|error| error.to_string())?;
        let message: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let params = &message["params"];
        match (message["method"].as_str(), message.get("id")) {
            (Some(method), Some(id)) => {
                self.check_agent_request(method, params)?;
                let asked = (id.clone(), method.to_owned(), params.clone());
                self.agent_requests.push(asked);
            }
            (Some("session/update"), None) => self.check_update(params)?,
            (Some("$/cancel_request"), None) => {
                let open = self.agent_requests.len();
                let id = &params["requestId"];
                self.agent_requests.retain(|(asked, ..)| asked != id);
                // A random client's answer may cross this.
                let is_open = self.agent_requests.len() < open || self.skips_sessions;
                ensure!(is_open, "no open request of the agent is {id}");
            }
            (Some(_), None) => {}
            (None, id) => self.check_response(id.unwrap_or(&Value::Null), &message)?,
        }
        Ok(message)
    }

    fn check_agent_request(&mut self, method: &str, params: &Value) -> PromiseResult {
        if self.version == 2 || self.skips_sessions {
            return Ok(());
        }
        match self
            .sessions_v1
            .get(params["sessionId"].as_str().unwrap_or_default())
        {
            Some(session) if method == "session/request_permission" => {
                session.check_permission(params)
            }
            Some(_) => Ok(()),
            None => {
                let is_about_request = params.get("requestId").is_some();
                ensure!(is_about_request, "{method} names no open session");
                Ok(())
            }
        }
    }

    fn check_update(&mut self, params: &Value) -> PromiseResult {
        if self.skips_sessions {
            return Ok(());
        }
        let (id, update) = (text(&params["sessionId"]), &params["update"]);
        if self.version == 2 {
            return self.sessions_v2.entry(id).or_default().check_update(update);
        }
        let is_asked = self.agent_requests.iter().any(|(_, method, asked)| {
            method == "session/request_permission"
                && asked["sessionId"] == params["sessionId"]
                && asked["toolCall"]["toolCallId"] == update["toolCallId"]
        });
        let is_running = update["status"] == "in_progress" && update["toolCallId"].is_string();
        ensure!(
            !(is_running && is_asked),
            "a call runs before its question is answered (TOOL-3)"
        );
        let is_replay = self.has_pending(&id, "session/load");
        let is_prompted = self.has_pending(&id, "session/prompt");
        let session = self.sessions_v1.entry(id).or_default();
        session.check_update(update, is_prompted, is_replay)
    }

    fn check_response(&mut self, id: &Value, message: &Value) -> PromiseResult {
        let error = message.get("error");
        if let Some(error) = error {
            check_error(error)?;
            let is_about_line = matches!(error["code"].as_i64(), Some(-32700 | -32600));
            if id.is_null() && is_about_line && self.owed_errors > 0 {
                self.owed_errors -= 1;
                return Ok(());
            }
        }
        let result = message.get("result");
        if let Some(version) = result.and_then(|result| result["protocolVersion"].as_u64()) {
            self.version = version;
        }
        let asked = self.take_request(id, result.is_some())?;
        if self.skips_sessions {
            return Ok(());
        }
        if self.version == 2 {
            let session = self.sessions_v2.entry(asked.session.clone()).or_default();
            return match (asked.method.as_str(), result) {
                ("session/resume", _) => {
                    session.end_replay();
                    Ok(())
                }
                _ => session_v2::check_options(result.unwrap_or(&Value::Null)),
            };
        }
        self.check_response_v1(&asked, result)
    }

    /// Removes the request that a response answers. Requests with the same id cannot be told apart, so all of them
    /// stay until the last one is answered, and a result must be acceptable for one of them.
    fn take_request(&mut self, id: &Value, has_result: bool) -> Result<PendingRequest, String> {
        let candidates = self.pending_requests.iter().filter(|asked| asked.id == *id);
        let count = candidates.clone().count();
        let mut checked = candidates.map(|asked| self.check_acceptable(asked));
        let first = checked.next().ok_or("no request has this id")?;
        if has_result && first.is_err() && !checked.any(|checked| checked.is_ok()) {
            first?;
        }
        drop(checked);
        let is_id = |asked: &PendingRequest| asked.id == *id;
        let index = self.pending_requests.iter().position(is_id);
        let index = index.ok_or("no request has this id")?;
        let answered = self.response_counts.entry(id.to_string()).or_default();
        *answered += 1;
        if *answered < count {
            return Ok(self.pending_requests[index].clone());
        }
        self.response_counts.remove(&id.to_string());
        let asked = self.pending_requests.swap_remove(index);
        self.pending_requests.retain(|asked| asked.id != *id);
        Ok(asked)
    }

    /// Checks that a request may get a result.
    fn check_acceptable(&self, asked: &PendingRequest) -> PromiseResult {
        ensure!(
            !asked.is_faulty,
            "a result for a request without \"jsonrpc\":\"2.0\""
        );
        let params = &asked.message["params"];
        let is_readable = is_readable(self.version, &asked.method, params);
        ensure!(
            is_readable,
            "a result for parameters that are wrong: {params}"
        );
        // The official types are more lenient than their schema, which the client of version 2 keeps to.
        let is_of_v2 = asked.method != "initialize" || params["protocolVersion"] == 2;
        if self.version == 2 && is_of_v2 && !self.skips_sessions {
            let fault = client_violation(2, &asked.message, None);
            ensure!(
                fault.is_none(),
                "a result for parameters that are wrong: {fault:?}"
            );
        }
        Ok(())
    }

    /// Checks a response of version 1: its options, and after the last prompt of a session that no call,
    /// compaction or request to the client is open.
    fn check_response_v1(
        &mut self,
        asked: &PendingRequest,
        result: Option<&Value>,
    ) -> PromiseResult {
        if let Some(result) = result {
            session_v1::check_options(result)?;
            if let Some(made) = result["sessionId"].as_str() {
                self.sessions_v1.entry(made.to_owned()).or_default();
            }
        }
        let is_prompted = self.has_pending(&asked.session, "session/prompt");
        // Another prompt, which is refused or a command, says nothing about the running one.
        let is_last = !is_prompted || result.is_some() && !asked.is_command;
        if asked.method != "session/prompt" || !is_last {
            return Ok(());
        }
        if let Some(session) = self.sessions_v1.get(&asked.session) {
            session.check_settled()?;
        }
        let mut open = self.agent_requests.iter().filter(|(_, method, params)| {
            params["sessionId"] == *asked.session && method != "terminal/release"
        });
        let open = open.next().filter(|_| !self.is_client_closed);
        ensure!(
            open.is_none(),
            "a request waits behind its prompt (CANCEL-7): {open:?}"
        );
        Ok(())
    }

    fn has_pending(&self, session: &str, method: &str) -> bool {
        let mut pending = self.pending_requests.iter();
        pending.any(|asked| asked.session == session && asked.method == method)
    }

    /// Checks the end of the agent's output.
    pub(super) fn agent_closed(&self) -> PromiseResult {
        ensure!(
            self.owed_errors == 0,
            "{} malformed lines got no error",
            self.owed_errors
        );
        let owed = self.pending_requests.first();
        ensure!(
            owed.is_none(),
            "no response to {}",
            owed.map_or(&Value::Null, |asked| &asked.id)
        );
        Ok(())
    }
}

/// Checks that an error has a message of one line, and details.
fn check_error(error: &Value) -> PromiseResult {
    let message = text(&error["message"]);
    ensure!(
        !message.is_empty() && !message.contains('\n'),
        "the message of an error is one line"
    );
    ensure!(
        !text(&error["data"]["details"]).is_empty(),
        "an error has details"
    );
    Ok(())
}
