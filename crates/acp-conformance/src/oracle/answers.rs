//! Answers: one for each request, under its id, and none for anything else (RPC-2, RPC-23, RPC-5, RPC-12, RPC-16,
//! PROMPT-4, TR-7, V2-3).

use super::{Ending, Found};
use serde_json::Value;

#[derive(Debug, Default)]
pub(super) struct Answers {
    asked: Vec<Asked>,
    /// Lines of the client that are no messages: an error without an id may come for each.
    faults: usize,
    /// Number of requests before the latest line that was no message, until a later request is answered: if the
    /// process ends meanwhile, it is that line that ended it.
    fault_at: Option<usize>,
    /// The client has sent a notification.
    told: bool,
    /// Requests of the agent that wait for an answer.
    asks: Vec<Value>,
}

/// A request of the client.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asked {
    pub(super) id: Value,
    pub(super) method: String,
    /// Parameters without lists and objects, which may be long.
    pub(super) params: Value,
    /// It is malformed, so that it may be answered with an error without an id, or not at all.
    is_odd: bool,
    is_answered: bool,
}

impl Answers {
    pub(super) fn sent(&mut self, message: &Value) {
        let (faults, asked) = (self.faults, self.asked.len());
        self.sent_line(message);
        if self.faults > faults {
            self.fault_at = Some(asked);
        }
    }

    fn sent_line(&mut self, message: &Value) {
        match message {
            Value::Object(_) => self.sent_one(message, false),
            Value::Array(items) => {
                // There are no batches, but who knows them may answer what is in them.
                self.faults += 1;
                for item in items.iter().filter(|item| item.is_object()) {
                    self.sent_one(item, true);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                self.faults += 1;
            }
        }
    }

    fn sent_one(&mut self, message: &Value, in_batch: bool) {
        let id = message.get("id");
        let has_outcome = message.get("result").is_some() || message.get("error").is_some();
        let is_structured = match message.get("params") {
            None | Some(Value::Null | Value::Object(_) | Value::Array(_)) => true,
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) => false,
        };
        let is_right = message["jsonrpc"] == "2.0" && is_structured && !in_batch;
        match (message["method"].as_str(), id) {
            (Some(method), Some(id)) => {
                let is_odd = !is_right || has_outcome || !is_id(id);
                self.faults += usize::from(is_odd);
                self.asked.push(Asked {
                    id: id.clone(),
                    method: method.to_owned(),
                    params: scalars(&message["params"]),
                    is_odd,
                    is_answered: false,
                });
            }
            (Some(_), None) if is_right && !has_outcome => self.told = true,
            (Some(_), None) => self.faults += 1,
            (None, Some(id)) if has_outcome && message.get("method").is_none() => {
                self.asks.retain(|ask| ask != id);
                // Garbage that looks like a response may be called malformed.
                self.faults += usize::from(!is_right || !is_id(id));
            }
            (None, id) => {
                self.faults += 1;
                if let Some(id) = id {
                    self.asked.push(Asked {
                        id: id.clone(),
                        method: String::new(),
                        params: Value::Null,
                        is_odd: true,
                        is_answered: false,
                    });
                }
            }
        }
    }

    /// A response has come: what it answers.
    pub(super) fn answer(&mut self, message: &Value, found: &mut Found) -> Option<Asked> {
        let id = &message["id"];
        if self.told {
            found.seen("RPC-5");
        }
        let asked = self.asked.iter_mut().enumerate();
        let mut open = asked.filter(|(_, asked)| !asked.is_answered);
        if let Some((index, asked)) = open.find(|(_, asked)| asked.id == *id) {
            asked.is_answered = true;
            if !asked.is_odd {
                self.fault_at = self.fault_at.filter(|fault| index < *fault);
            }
            found.seen("RPC-2");
            found.seen(asked.once());
            return Some(asked.clone()).filter(|asked| !asked.is_odd);
        }
        if id.is_null() && message.get("error").is_some() {
            if self.faults > 0 {
                self.faults -= 1;
            } else if self.told {
                found.broken(
                    "RPC-5",
                    "there was only a notification that it could answer",
                );
            } else {
                found.broken("RPC-2", "nothing was asked without an id");
            }
            return None;
        }
        if let Some(asked) = self.asked.iter().find(|asked| asked.id == *id) {
            if !asked.is_odd {
                found.broken(
                    asked.once(),
                    format!("the request {id} is answered once more"),
                );
            }
            return None;
        }
        let mut open = self.asked.iter_mut().filter(|asked| !asked.is_answered);
        if let Some(asked) = open.find(|asked| looks_like(&asked.id, id)) {
            asked.is_answered = true;
            if !asked.is_odd {
                let why = format!("the request has the id {}, its answer {id}", asked.id);
                found.broken(rule_of_changed(&asked.id, id), why);
            }
            return None;
        }
        found.broken("RPC-2", format!("no request has the id {id}"));
        None
    }

    /// The agent asks something itself.
    pub(super) fn ask(&mut self, message: &Value, found: &mut Found) {
        let id = &message["id"];
        let rule = if found.version == 2 {
            found.holds("V2-3", id.is_string() || id.is_i64() || id.is_u64(), || {
                format!("an id is a text or a whole number, and not {id}")
            });
            "V2-3"
        } else {
            "RPC-16"
        };
        found.holds(rule, !self.asks.contains(id), || {
            format!("the id {id} is that of a request that waits for its answer")
        });
        self.asks.push(id.clone());
    }

    pub(super) fn ended(&self, ending: Ending, found: &mut Found) {
        let owed = self
            .asked
            .iter()
            .filter(|asked| !asked.is_answered && !asked.is_odd);
        for asked in owed {
            let rule = match ending {
                Ending::Forced => return,
                // The rule of that line is about the connection going on (RPC-6, RPC-7, RPC-8).
                Ending::Unasked if self.fault_at.is_some() => return,
                Ending::Eof => "TR-7",
                Ending::Unasked => asked.once(),
            };
            let why = format!("{} {} was never answered", asked.method, asked.id);
            found.broken(rule, why);
        }
    }
}

impl Asked {
    /// The rule that it is answered just once.
    fn once(&self) -> &'static str {
        match self.method.as_str() {
            "session/prompt" => "PROMPT-4",
            _ => "RPC-12",
        }
    }
}

/// A whole number of 64 bits, a text, or null.
fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64() || id.is_null()
}

/// Copies the members that are neither lists nor objects.
fn scalars(params: &Value) -> Value {
    let members = params.as_object().into_iter().flatten();
    let scalars = members.filter(|(_, value)| !value.is_array() && !value.is_object());
    scalars
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// The rule that an id breaks which came back changed: lost digits of a number beyond 2^53 are a rule of their own.
fn rule_of_changed(asked: &Value, answered: &Value) -> &'static str {
    const EXACT: u64 = 1 << 53;
    let is_beyond = asked.as_i64().is_some_and(|id| id.unsigned_abs() > EXACT);
    if is_beyond && answered.is_number() {
        "RPC-23"
    } else {
        "RPC-2"
    }
}

/// Whether one id was made of the other: 7 and "7", or a number that lost its last digits.
fn looks_like(one: &Value, other: &Value) -> bool {
    let text = |id: &Value| match id {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let numbers = one.as_f64().zip(other.as_f64());
    text(one) == text(other)
        || numbers.is_some_and(|(one, other)| (one - other).abs() <= one.abs() * f64::EPSILON)
}
