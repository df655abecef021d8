//! Checks that each request gets exactly one response under its id and nothing else is answered (RPC-2, RPC-23,
//! RPC-5, RPC-12, RPC-16, PROMPT-4, TR-7, V2-3).

use super::recorder::RuleRecorder;
use serde_json::Value;

/// Reason why an agent's output ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputEnding {
    /// The agent ended by itself after its stdin was closed.
    Eof,
    /// The agent was signalled or killed, or the runner closed its end of the output.
    Forced,
    /// The agent ended without a request to do so.
    Unexpected,
}

#[derive(Debug, Default)]
pub(super) struct ResponseRules {
    requests: Vec<ClientRequest>,
    /// Number of client lines that are not messages; each allows one error response without an id.
    malformed_lines: usize,
    /// Number of requests before the latest malformed client line, until a later request is answered. If the
    /// process ends meanwhile, that line is the cause.
    requests_before_malformed: Option<usize>,
    /// True if the client sent a notification.
    has_sent_notification: bool,
    /// Ids of agent requests without a response.
    agent_requests: Vec<Value>,
}

/// Client request.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ClientRequest {
    pub(super) id: Value,
    pub(super) method: String,
    /// Parameters without arrays and objects, which may be long; those of `initialize` in full.
    pub(super) params: Value,
    /// True if the request is malformed, and may get an error without an id or no response.
    is_malformed: bool,
    is_answered: bool,
}

impl ResponseRules {
    pub(super) fn on_sent(&mut self, message: &Value) {
        let (malformed_lines, request_count) = (self.malformed_lines, self.requests.len());
        self.record_sent_line(message);
        if self.malformed_lines > malformed_lines {
            self.requests_before_malformed = Some(request_count);
        }
    }

    fn record_sent_line(&mut self, message: &Value) {
        match message {
            Value::Object(_) => self.record_sent_message(message, false),
            Value::Array(items) => {
                // ACP has no batches, but agents that support them may answer the items.
                self.malformed_lines += 1;
                for item in items.iter().filter(|item| item.is_object()) {
                    self.record_sent_message(item, true);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                self.malformed_lines += 1;
            }
        }
    }

    fn record_sent_message(&mut self, message: &Value, in_batch: bool) {
        let id = message.get("id");
        let has_outcome = message.get("result").is_some() || message.get("error").is_some();
        let is_structured = match message.get("params") {
            None | Some(Value::Null | Value::Object(_) | Value::Array(_)) => true,
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) => false,
        };
        let is_right = message["jsonrpc"] == "2.0" && is_structured && !in_batch;
        match (message["method"].as_str(), id) {
            (Some(method), Some(id)) => {
                let is_odd = !is_right || has_outcome || !is_valid_id(id);
                self.malformed_lines += usize::from(is_odd);
                self.requests.push(ClientRequest {
                    id: id.clone(),
                    method: method.to_owned(),
                    params: match method {
                        "initialize" => message["params"].clone(),
                        _ => scalar_members(&message["params"]),
                    },
                    is_malformed: is_odd,
                    is_answered: false,
                });
            }
            (Some(_), None) if is_right && !has_outcome => self.has_sent_notification = true,
            (Some(_), None) => self.malformed_lines += 1,
            (None, Some(id)) if has_outcome && message.get("method").is_none() => {
                self.agent_requests.retain(|ask| ask != id);
                // Malformed responses may be answered with an error.
                self.malformed_lines += usize::from(!is_right || !is_valid_id(id));
            }
            (None, id) => {
                self.malformed_lines += 1;
                if let Some(id) = id {
                    self.requests.push(ClientRequest {
                        id: id.clone(),
                        method: String::new(),
                        params: Value::Null,
                        is_malformed: true,
                        is_answered: false,
                    });
                }
            }
        }
    }

    /// Matches a response with its request, and returns the request unless it was malformed.
    pub(super) fn match_response(
        &mut self,
        message: &Value,
        recorder: &mut RuleRecorder,
    ) -> Option<ClientRequest> {
        let id = &message["id"];
        if self.has_sent_notification {
            recorder.record_observed("RPC-5");
        }
        let requests = self.requests.iter_mut().enumerate();
        let mut open = requests.filter(|(_, request)| !request.is_answered);
        if let Some((index, request)) = open.find(|(_, request)| request.id == *id) {
            request.is_answered = true;
            if !request.is_malformed {
                self.requests_before_malformed = self
                    .requests_before_malformed
                    .filter(|fault| index < *fault);
            }
            recorder.record_observed("RPC-2");
            recorder.record_observed(request.single_response_rule());
            return Some(request.clone()).filter(|request| !request.is_malformed);
        }
        if id.is_null() && message.get("error").is_some() {
            if self.malformed_lines > 0 {
                self.malformed_lines -= 1;
            } else if self.has_sent_notification {
                recorder.record_violation(
                    "RPC-5",
                    "there was only a notification that it could answer",
                );
            } else {
                recorder.record_violation("RPC-2", "no request lacks an id");
            }
            return None;
        }
        if let Some(request) = self.requests.iter().find(|request| request.id == *id) {
            if !request.is_malformed {
                recorder.record_violation(
                    request.single_response_rule(),
                    format!("the request {id} is answered once more"),
                );
            }
            return None;
        }
        let mut open = self
            .requests
            .iter_mut()
            .filter(|request| !request.is_answered);
        if let Some(request) = open.find(|request| is_mangled_id(&request.id, id)) {
            request.is_answered = true;
            if !request.is_malformed {
                let why = format!("the request has the id {}, its answer {id}", request.id);
                recorder.record_violation(changed_id_rule(&request.id, id), why);
            }
            return None;
        }
        recorder.record_violation("RPC-2", format!("no request has the id {id}"));
        None
    }

    /// Checks the id of an agent request and records the request as pending.
    pub(super) fn on_agent_request(&mut self, message: &Value, recorder: &mut RuleRecorder) {
        let id = &message["id"];
        let rule = if recorder.version == 2 {
            recorder.record_check("V2-3", id.is_string() || id.is_i64() || id.is_u64(), || {
                format!("an id is a text or a whole number, and not {id}")
            });
            "V2-3"
        } else {
            "RPC-16"
        };
        recorder.record_check(rule, !self.agent_requests.contains(id), || {
            format!("the id {id} is that of a request that waits for its answer")
        });
        self.agent_requests.push(id.clone());
    }

    pub(super) fn on_output_end(&self, ending: OutputEnding, recorder: &mut RuleRecorder) {
        let owed = self
            .requests
            .iter()
            .filter(|request| !request.is_answered && !request.is_malformed);
        for request in owed {
            let rule = match ending {
                OutputEnding::Forced => return,
                // That line falls under the rules that the connection survives it (RPC-6, RPC-7, RPC-8).
                OutputEnding::Unexpected if self.requests_before_malformed.is_some() => return,
                OutputEnding::Eof => "TR-7",
                OutputEnding::Unexpected => request.single_response_rule(),
            };
            let why = format!("{} {} was never answered", request.method, request.id);
            recorder.record_violation(rule, why);
        }
    }
}

impl ClientRequest {
    /// Returns the rule that requires exactly one response to this request.
    fn single_response_rule(&self) -> &'static str {
        match self.method.as_str() {
            "session/prompt" => "PROMPT-4",
            _ => "RPC-12",
        }
    }
}

/// Returns true if the id is a 64-bit integer, a string or null.
fn is_valid_id(id: &Value) -> bool {
    id.is_string() || id.is_i64() || id.is_null()
}

/// Copies the members that are neither arrays nor objects.
fn scalar_members(params: &Value) -> Value {
    let members = params.as_object().into_iter().flatten();
    let scalar_members = members.filter(|(_, value)| !value.is_array() && !value.is_object());
    scalar_members
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Returns the rule broken by a changed id; lost digits of a number beyond 2^53 have a separate rule.
fn changed_id_rule(id: &Value, answered: &Value) -> &'static str {
    const EXACT: u64 = 1 << 53;
    let is_beyond = id.as_i64().is_some_and(|id| id.unsigned_abs() > EXACT);
    if is_beyond && answered.is_number() {
        "RPC-23"
    } else {
        "RPC-2"
    }
}

/// Returns true if one id derives from the other: 7 and "7", or a number that lost its last digits.
fn is_mangled_id(one: &Value, other: &Value) -> bool {
    let text = |id: &Value| match id {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let numbers = one.as_f64().zip(other.as_f64());
    text(one) == text(other)
        || numbers.is_some_and(|(one, other)| (one - other).abs() <= one.abs() * f64::EPSILON)
}
