//! Test support: observes both directions of a connection and reports protocol violations.
//!
//! The witness knows the official types, their JSON Schema and the rules of JSON-RPC, but none of the code
//! under test. Every line of the agent must be valid. Lines of the client are classified to know what the
//! agent owes: one response per request, one error per malformed line, nothing for the rest.

mod client_line;
mod schema;
mod v1;
mod v2;

use client_line::{ClientLine, parse_members};
use schema::TypeCheck;
use serde_json::{Value, value::RawValue};
use std::collections::HashMap;

/// Observer of one connection.
#[derive(Debug, Default)]
pub struct Witness {
    /// Protocol version, from the last response to `initialize`.
    version: u64,
    /// Bytes of a client line that has no newline yet.
    partial_line: Vec<u8>,
    /// Client requests without a response, by the JSON text of their ids.
    open_requests: HashMap<String, OwedResponses>,
    /// Number of error responses with a null id still owed.
    owed_errors: usize,
    /// Agent requests without a response: method by id.
    agent_requests: HashMap<String, String>,
}

/// Client requests with the same id.
#[derive(Debug, Default)]
struct OwedResponses {
    requests: Vec<ClientRequest>,
    /// Number of responses so far.
    responses: usize,
}

/// Request of the client.
#[derive(Clone, Debug)]
struct ClientRequest {
    method: String,
    params: Option<Box<RawValue>>,
    /// True if `jsonrpc` is missing.
    is_malformed: bool,
}

impl Witness {
    /// Observes bytes written by the client.
    pub fn client_wrote(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.partial_line.extend_from_slice(&rest[..end]);
            let line = std::mem::take(&mut self.partial_line);
            self.classify_client_line(&line);
            rest = &rest[end + 1..];
        }
        self.partial_line.extend_from_slice(rest);
    }

    /// Observes the end of input: an unterminated last line counts as a line.
    pub fn client_closed(&mut self) {
        let line = std::mem::take(&mut self.partial_line);
        self.classify_client_line(&line);
    }

    fn classify_client_line(&mut self, line: &[u8]) {
        match client_line::classify_client_line(line) {
            ClientLine::NoResponse => {}
            ClientLine::ErrorWithoutId => self.owed_errors += 1,
            ClientLine::Response { id } => {
                self.agent_requests.remove(&id);
            }
            ClientLine::Request {
                id,
                method,
                params,
                is_fault,
            } => self
                .open_requests
                .entry(id)
                .or_default()
                .requests
                .push(ClientRequest {
                    method,
                    params,
                    is_malformed: is_fault,
                }),
        }
    }

    /// Checks a line written by the agent and returns it parsed.
    ///
    /// # Errors
    /// Describes the violation.
    pub fn agent_wrote(&mut self, line: &str) -> Result<Value, String> {
        self.check_agent_line(line)
            .map_err(|complaint| format!("{complaint}: {line}"))
    }

    /// Checks that the agent owes nothing when it closes its output.
    ///
    /// # Errors
    /// Lists the responses still owed.
    pub fn agent_closed(&self) -> Result<(), String> {
        let owed: Vec<&String> = self.open_requests.keys().collect();
        if owed.is_empty() && self.owed_errors == 0 {
            return Ok(());
        }
        Err(format!(
            "requests without an answer: {owed:?}, malformed lines without one: {}",
            self.owed_errors
        ))
    }

    fn check_agent_line(&mut self, line: &str) -> Result<Value, String> {
        let members = parse_members(line).ok_or("no JSON object")?;
        let message: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let mut names: Vec<&str> = members.iter().map(|(name, _)| &**name).collect();
        names.sort_unstable();
        if message["jsonrpc"] != "2.0" {
            return Err("no \"jsonrpc\":\"2.0\"".to_owned());
        }
        let raw = |name| members.iter().find(|(found, _)| found == name);
        let id = raw("id").map(|(_, id)| id.get().to_owned());
        match (&*names, id) {
            (["id", "jsonrpc", "method", "params"], Some(id)) => {
                self.check_request(&message, id)?
            }
            (["jsonrpc", "method", "params"], None) => self.check_notification(&message)?,
            (["id", "jsonrpc", "result"], Some(id)) => {
                self.check_result(&message["result"], &id)?
            }
            (["error", "id", "jsonrpc"], Some(id)) => self.check_error(&message["error"], &id)?,
            _ => return Err(format!("a message of no sort: {names:?}")),
        }
        Ok(message)
    }

    fn method_table(&self) -> schema::MethodTable {
        match self.version {
            2 => v2::TABLE,
            _ => v1::TABLE,
        }
    }

    fn check_type(shape: Option<TypeCheck>, value: &Value) -> Result<(), String> {
        match shape {
            Some(shape) => (shape.check)(value),
            None => Err("the client does not know this method".to_owned()),
        }
    }

    /// Checks a request of the agent; its id must not be in use (RPC-16).
    fn check_request(&mut self, message: &Value, id: String) -> Result<(), String> {
        let method = message["method"].as_str().ok_or("method is no string")?;
        Self::check_type(
            (self.method_table().agent_requests)(method),
            &message["params"],
        )?;
        match self.agent_requests.insert(id, method.to_owned()) {
            None => Ok(()),
            Some(before) => Err(format!("the id is that of {before}, which is not answered")),
        }
    }

    fn check_notification(&self, message: &Value) -> Result<(), String> {
        let method = message["method"].as_str().ok_or("method is no string")?;
        Self::check_type(
            (self.method_table().agent_notifications)(method),
            &message["params"],
        )
    }

    /// Returns the requests that a response may belong to. Fails if no request is open under the id (RPC-12).
    /// Requests with the same id cannot be told apart, so all of them are returned.
    fn take_requests(&mut self, id: &str) -> Result<Vec<ClientRequest>, String> {
        let owed = self
            .open_requests
            .get_mut(id)
            .ok_or("no open request has this id")?;
        owed.responses += 1;
        if owed.responses < owed.requests.len() {
            return Ok(owed.requests.clone());
        }
        let owed = self.open_requests.remove(id);
        Ok(owed.map_or_else(Vec::new, |owed| owed.requests))
    }

    fn check_result(&mut self, result: &Value, id: &str) -> Result<(), String> {
        let requests = self.take_requests(id)?;
        let version = result["protocolVersion"].as_u64();
        if let Some(version) = version
            && requests
                .iter()
                .any(|request| request.method == "initialize")
        {
            self.version = version;
        }
        let mut verdict = Ok(());
        for request in &requests {
            verdict = self.check_fits(request, result);
            if verdict.is_ok() {
                break;
            }
        }
        verdict
    }

    /// Checks that the result is valid for the request.
    fn check_fits(&self, request: &ClientRequest, result: &Value) -> Result<(), String> {
        if request.is_malformed {
            return Err("a result for a request without \"jsonrpc\"".to_owned());
        }
        let (params, answer) = match (self.method_table().client_requests)(&request.method) {
            Some(shapes) => shapes,
            None if request.method.starts_with('_') => return Ok(()),
            None => return Err(format!("a result for {}, which is unknown", request.method)),
        };
        let raw_params = request.params.as_ref().map_or("{}", |params| params.get());
        // Parameters of a later version need not be readable (INIT-4).
        let is_later = request.method == "initialize";
        if !is_later
            && !(params.is_readable)(if raw_params == "null" {
                "{}"
            } else {
                raw_params
            })
        {
            return Err(format!("a result for params that are none: {raw_params}"));
        }
        (answer.check)(result)
    }

    fn check_error(&mut self, error: &Value, id: &str) -> Result<(), String> {
        (self.method_table().error.check)(error)?;
        let code = error["code"].as_i64().ok_or("no code")?;
        let is_known = matches!(
            code,
            -32700 | -32603..=-32600 | -32800 | -32000 | -32002 | -32022
        );
        // RPC-14: custom codes must lie outside the reserved ranges.
        let is_reserved = (-32768..=-32000).contains(&code) || (-32899..=-32800).contains(&code);
        if is_reserved && !is_known {
            return Err(format!("the code {code} is reserved for others"));
        }
        if id == "null" && self.owed_errors > 0 && matches!(code, -32700 | -32600) {
            self.owed_errors -= 1;
            return Ok(());
        }
        self.take_requests(id).map(drop)
    }
}
