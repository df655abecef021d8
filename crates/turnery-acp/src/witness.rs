//! Witness: hears both directions of a connection and says what breaks the protocol. For tests.
//!
//! It knows the official types, the JSON Schema that is made of them, and the rules of JSON-RPC; nothing of
//! the code that it judges. Of the agent every line must be right. Of the client it knows what each line
//! is, and so what the agent owes for it: one answer to each request, one error to each line that is none,
//! and silence to all others.

mod line;
mod schema;
mod v1;
mod v2;

use line::{Line, members};
use schema::Shape;
use serde_json::{Value, value::RawValue};
use std::collections::HashMap;

/// Hears one connection, from its first line to its last.
#[derive(Debug, Default)]
pub struct Witness {
    /// The version that is spoken, by the last answer to `initialize`.
    version: u64,
    /// What the client has written of a line that has no end yet.
    begun: Vec<u8>,
    /// Requests of the client that wait for their answer, by the text of their ids.
    asked: HashMap<String, Owed>,
    /// Errors without an id that are due.
    faults: usize,
    /// Requests of the agent that wait for the client's answer.
    asks: HashMap<String, String>,
}

/// Requests of the client under one id.
#[derive(Debug, Default)]
struct Owed {
    requests: Vec<Asked>,
    /// How many answers have come.
    answers: usize,
}

/// A request of the client.
#[derive(Clone, Debug)]
struct Asked {
    method: String,
    params: Option<Box<RawValue>>,
    /// It lacks its `jsonrpc`.
    is_fault: bool,
}

impl Witness {
    /// The client has written these bytes.
    pub fn sent(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.begun.extend_from_slice(&rest[..end]);
            let line = std::mem::take(&mut self.begun);
            self.line(&line);
            rest = &rest[end + 1..];
        }
        self.begun.extend_from_slice(rest);
    }

    /// The client has closed its end: what it wrote last is a line too.
    pub fn closed(&mut self) {
        let line = std::mem::take(&mut self.begun);
        self.line(&line);
    }

    fn line(&mut self, line: &[u8]) {
        match line::judge(line) {
            Line::Silent => {}
            Line::Fault => self.faults += 1,
            Line::Reply { id } => {
                self.asks.remove(&id);
            }
            Line::Request {
                id,
                method,
                params,
                is_fault,
            } => self.asked.entry(id).or_default().requests.push(Asked {
                method,
                params,
                is_fault,
            }),
        }
    }

    /// The agent has written this line. Gives it back read.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn heard(&mut self, line: &str) -> Result<Value, String> {
        self.judge(line)
            .map_err(|complaint| format!("{complaint}: {line}"))
    }

    /// The agent has closed its end.
    ///
    /// # Errors
    /// Names what it still owed.
    pub fn ended(&self) -> Result<(), String> {
        let owed: Vec<&String> = self.asked.keys().collect();
        if owed.is_empty() && self.faults == 0 {
            return Ok(());
        }
        Err(format!(
            "requests without an answer: {owed:?}, malformed lines without one: {}",
            self.faults
        ))
    }

    fn judge(&mut self, line: &str) -> Result<Value, String> {
        let members = members(line).ok_or("no JSON object")?;
        let message: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let mut names: Vec<&str> = members.iter().map(|(name, _)| &**name).collect();
        names.sort_unstable();
        if message["jsonrpc"] != "2.0" {
            return Err("no \"jsonrpc\":\"2.0\"".to_owned());
        }
        let raw = |name| members.iter().find(|(found, _)| found == name);
        let id = raw("id").map(|(_, id)| id.get().to_owned());
        match (&*names, id) {
            (["id", "jsonrpc", "method", "params"], Some(id)) => self.ask(&message, id)?,
            (["jsonrpc", "method", "params"], None) => self.tell(&message)?,
            (["id", "jsonrpc", "result"], Some(id)) => self.result(&message["result"], &id)?,
            (["error", "id", "jsonrpc"], Some(id)) => self.error(&message["error"], &id)?,
            _ => return Err(format!("a message of no sort: {names:?}")),
        }
        Ok(message)
    }

    fn table(&self) -> schema::Table {
        match self.version {
            2 => v2::TABLE,
            _ => v1::TABLE,
        }
    }

    fn check(shape: Option<Shape>, value: &Value) -> Result<(), String> {
        match shape {
            Some(shape) => (shape.check)(value),
            None => Err("the client does not know this method".to_owned()),
        }
    }

    /// Its request: the id is none that is in use (RPC-16).
    fn ask(&mut self, message: &Value, id: String) -> Result<(), String> {
        let method = message["method"].as_str().ok_or("method is no string")?;
        Self::check((self.table().asks)(method), &message["params"])?;
        match self.asks.insert(id, method.to_owned()) {
            None => Ok(()),
            Some(before) => Err(format!("the id is that of {before}, which is not answered")),
        }
    }

    fn tell(&self, message: &Value) -> Result<(), String> {
        let method = message["method"].as_str().ok_or("method is no string")?;
        Self::check((self.table().tells)(method), &message["params"])
    }

    /// An answer has come: it was asked for, and not given yet (RPC-12). Of several requests under one id
    /// nobody can tell which one it answers, so all are given.
    fn answered(&mut self, id: &str) -> Result<Vec<Asked>, String> {
        let owed = self.asked.get_mut(id).ok_or("nobody asked")?;
        owed.answers += 1;
        if owed.answers < owed.requests.len() {
            return Ok(owed.requests.clone());
        }
        let owed = self.asked.remove(id);
        Ok(owed.map_or_else(Vec::new, |owed| owed.requests))
    }

    fn result(&mut self, result: &Value, id: &str) -> Result<(), String> {
        let requests = self.answered(id)?;
        let version = result["protocolVersion"].as_u64();
        if let Some(version) = version
            && requests.iter().any(|asked| asked.method == "initialize")
        {
            self.version = version;
        }
        let mut verdict = Ok(());
        for asked in &requests {
            verdict = self.fits(asked, result);
            if verdict.is_ok() {
                break;
            }
        }
        verdict
    }

    /// Whether this is a result of that request.
    fn fits(&self, asked: &Asked, result: &Value) -> Result<(), String> {
        if asked.is_fault {
            return Err("a result for a request without \"jsonrpc\"".to_owned());
        }
        let (params, answer) = match (self.table().answers)(&asked.method) {
            Some(shapes) => shapes,
            None if asked.method.starts_with('_') => return Ok(()),
            None => return Err(format!("a result for {}, which is unknown", asked.method)),
        };
        let said = asked.params.as_ref().map_or("{}", |params| params.get());
        // What a later version says need not be readable (INIT-4).
        let is_later = asked.method == "initialize";
        if !is_later && !(params.reads)(if said == "null" { "{}" } else { said }) {
            return Err(format!("a result for params that are none: {said}"));
        }
        (answer.check)(result)
    }

    fn error(&mut self, error: &Value, id: &str) -> Result<(), String> {
        (self.table().error.check)(error)?;
        let code = error["code"].as_i64().ok_or("no code")?;
        let is_known = matches!(
            code,
            -32700 | -32603..=-32600 | -32800 | -32000 | -32002 | -32022
        );
        // RPC-14: codes of our own would lie outside the reserved ranges.
        let is_reserved = (-32768..=-32000).contains(&code) || (-32899..=-32800).contains(&code);
        if is_reserved && !is_known {
            return Err(format!("the code {code} is reserved for others"));
        }
        if id == "null" && self.faults > 0 && matches!(code, -32700 | -32600) {
            self.faults -= 1;
            return Ok(());
        }
        self.answered(id).map(drop)
    }
}
