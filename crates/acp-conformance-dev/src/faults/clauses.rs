//! Parses `clauses.txt`, which lists all faults and describes most of them.

use super::{
    Direction, SideEffect,
    connection_state::{MessageKind, PendingRequest},
    fault::{Fault, FaultKind, LineHandler},
    intercepted_line::InterceptedLine,
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};

/// Condition of a clause. It may count how often it was reached.
type Condition = Arc<dyn Fn(&mut InterceptedLine<'_>) -> bool + Send + Sync>;
/// Action of a clause.
type Action = Box<dyn Fn(&mut InterceptedLine<'_>) + Send + Sync>;

/// Actions that are carried out if all conditions hold.
struct Clause {
    conditions: Vec<Condition>,
    actions: Vec<Action>,
}

/// Parses the faults of `clauses.txt`. `find_code` returns the kind of a fault that is implemented in Rust.
///
/// # Errors
/// If a line cannot be parsed; the error names the line.
pub(super) fn parse_faults(
    text: &'static str,
    find_code: &dyn Fn(&str) -> Option<FaultKind>,
) -> Result<Vec<Fault>, String> {
    let mut faults = Vec::new();
    let mut definitions: BTreeMap<&str, Condition> = BTreeMap::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        let in_line = |error| format!("line {}: {error}", index + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some((name, conditions)) = line
            .strip_prefix("let ")
            .and_then(|it| it.split_once(" = "))
        {
            let mut cursor = Cursor { rest: conditions };
            let conditions = cursor.conditions(&definitions).map_err(in_line)?;
            let all = move |m: &mut InterceptedLine<'_>| conditions.iter().all(|holds| holds(m));
            definitions.insert(name, Arc::new(all));
            continue;
        }
        let (name, first) = line
            .split_once(':')
            .ok_or_else(|| in_line("no name".to_owned()))?;
        let first = first.trim();
        let kind = if first == "code" {
            find_code(name).ok_or_else(|| in_line(format!("there is no code of {name}")))?
        } else {
            let mut clauses = Vec::new();
            if !first.is_empty() {
                clauses.push(parse_clause(first, &definitions).map_err(in_line)?);
            }
            while let Some((_, line)) = lines.next_if(|(_, line)| line.starts_with(' ')) {
                clauses.push(parse_clause(line.trim(), &definitions).map_err(in_line)?);
            }
            FaultKind::Lines(handler(clauses))
        };
        faults.push(Fault { name, kind });
    }
    Ok(faults)
}

/// Returns a handler that carries out the first clause whose conditions hold.
fn handler(clauses: Vec<Clause>) -> LineHandler {
    Box::new(move |m| {
        let mut clauses = clauses.iter();
        if let Some(clause) = clauses.find(|clause| clause.conditions.iter().all(|holds| holds(m)))
        {
            clause.actions.iter().for_each(|act| act(m));
        }
    })
}

fn parse_clause(
    text: &'static str,
    definitions: &BTreeMap<&str, Condition>,
) -> Result<Clause, String> {
    let mut cursor = Cursor { rest: text };
    let conditions = cursor.conditions(definitions)?;
    let mut actions = Vec::new();
    let mut joint = "->";
    while !cursor.rest.is_empty() || actions.is_empty() {
        if cursor.word()? != joint {
            return Err(format!("{joint} is missing before {:?}", cursor.rest));
        }
        actions.push(cursor.action()?);
        joint = "and";
    }
    Ok(Clause {
        conditions,
        actions,
    })
}

/// Unread rest of a line.
struct Cursor {
    rest: &'static str,
}

impl Cursor {
    fn word(&mut self) -> Result<&'static str, String> {
        let end = self.rest.find(' ').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        match word {
            "" => Err("the line ends too early".to_owned()),
            word => Ok(word),
        }
    }

    fn json(&mut self) -> Result<Value, String> {
        let mut values = serde_json::Deserializer::from_str(self.rest).into_iter();
        let value = values.next().ok_or("JSON is missing")?;
        let value = value.map_err(|error| format!("{error}: {:?}", self.rest))?;
        self.rest = self.rest[values.byte_offset()..].trim_start();
        Ok(value)
    }

    fn text(&mut self) -> Result<String, String> {
        let value = self.json()?;
        value
            .as_str()
            .map(str::to_owned)
            .ok_or_else(|| format!("{value} is no string"))
    }

    fn number(&mut self) -> Result<i64, String> {
        let value = self.json()?;
        value
            .as_i64()
            .ok_or_else(|| format!("{value} is no number"))
    }

    /// Parses conditions up to `->` or the end.
    fn conditions(
        &mut self,
        definitions: &BTreeMap<&str, Condition>,
    ) -> Result<Vec<Condition>, String> {
        let mut conditions = vec![self.condition(definitions)?];
        while let Some(rest) = self.rest.strip_prefix("and ") {
            self.rest = rest;
            conditions.push(self.condition(definitions)?);
        }
        Ok(conditions)
    }

    fn condition(&mut self, definitions: &BTreeMap<&str, Condition>) -> Result<Condition, String> {
        use Direction::{ToAgent, ToClient};
        Ok(match self.word()? {
            "not" => {
                let holds = self.condition(definitions)?;
                Arc::new(move |m| !holds(m))
            }
            "client" => self.condition_with_word(|m, methods| {
                m.direction == ToAgent && is_one_of(m.called_method(), methods)
            })?,
            "agent" => self.condition_with_word(|m, methods| {
                m.direction == ToClient && is_one_of(m.called_method(), methods)
            })?,
            "answer" => self.condition_with_word(|m, methods| {
                m.direction == ToClient && is_one_of(m.answered_method(false), methods)
            })?,
            "result" => self.condition_with_word(|m, methods| {
                let is_its = is_one_of(m.answered_method(false), methods);
                m.direction == ToClient && is_its && m.message.get("result").is_some()
            })?,
            "reply" => self.condition_with_word(|m, methods| {
                m.direction == ToAgent && is_one_of(m.answered_method(false), methods)
            })?,
            "made-up" => {
                self.condition_with_word(|m, methods| is_one_of(m.answered_method(true), methods))?
            }
            "update" => self.condition_with_word(|m, kinds| is_one_of(m.update_kind(), kinds))?,
            "pending" => self.condition_with_word(|m, methods| {
                let session = m.session_id();
                let is_its = |open: &PendingRequest| {
                    is_one_of(&open.method, methods) && open.params["sessionId"] == session
                };
                m.connection.pending_requests(ToAgent).any(is_its)
            })?,
            "error" => {
                let code = self.number()?;
                Arc::new(move |m| m.is_agent_error(code))
            }
            "call" => Arc::new(|m| m.kind == MessageKind::Call),
            "response" => Arc::new(|m| matches!(m.kind, MessageKind::Response(_))),
            "null-id" => Arc::new(|m| m.message.get("id") == Some(&Value::Null)),
            "to-agent" => Arc::new(|m| m.direction == ToAgent),
            "to-client" => Arc::new(|m| m.direction == ToClient),
            "v0" => Arc::new(|m| m.connection.protocol_version == 0),
            "v1" => Arc::new(|m| m.connection.protocol_version == 1),
            "v2" => Arc::new(|m| m.connection.protocol_version == 2),
            "open" => Arc::new(|m| m.connection.open_sessions.contains(&m.session_id())),
            "running" => Arc::new(|m| m.connection.running_prompt(&m.session_id()).is_some()),
            "any-running" => Arc::new(|m| m.connection.any_running_prompt().is_some()),
            "first" => Arc::new(|m| m.increment("times") == 1),
            "again" => Arc::new(|m| m.increment("times") > 1),
            "remembers" => {
                self.condition_with_word(|m, key| m.recall(&memory_key(m, key)) == true)?
            }
            "chose" => {
                let kind = self.text()?;
                Arc::new(move |m| m.chosen_kind() == kind)
            }
            "longer" => {
                let length = usize::try_from(self.number()?).map_err(|error| error.to_string())?;
                Arc::new(move |m| m.raw.len() > length)
            }
            "has" => self.condition_with_word(|m, pointer| {
                lookup(m, pointer).is_some_and(|value| !value.is_null())
            })?,
            "absent" => self.condition_with_word(|m, pointer| lookup(m, pointer).is_none())?,
            pointer if pointer.starts_with('/') || pointer.contains(':') => {
                self.comparison(pointer)?
            }
            name => {
                let named = definitions.get(name);
                Arc::clone(named.ok_or_else(|| format!("{name:?} is no condition"))?)
            }
        })
    }

    fn condition_with_word(
        &mut self,
        holds: impl Fn(&mut InterceptedLine<'_>, &str) -> bool + Send + Sync + 'static,
    ) -> Result<Condition, String> {
        let word = self.word()?;
        Ok(Arc::new(move |m| holds(m, word)))
    }

    /// Parses a condition about the value at a pointer.
    fn comparison(&mut self, pointer: &'static str) -> Result<Condition, String> {
        let holds: Box<dyn Fn(&Value) -> bool + Send + Sync> = match self.word()? {
            "=" => {
                let wanted = self.json()?;
                Box::new(move |value| *value == wanted)
            }
            "!=" => {
                let unwanted = self.json()?;
                Box::new(move |value| *value != unwanted)
            }
            "in" => {
                let wanted = self.json()?;
                Box::new(move |value| wanted.as_array().is_some_and(|it| it.contains(value)))
            }
            "starts" => {
                let start = self.text()?;
                Box::new(move |value| value.as_str().is_some_and(|it| it.starts_with(&start)))
            }
            "above" => {
                let bound = self.number()?.unsigned_abs();
                Box::new(move |value| value.as_u64().is_some_and(|it| it > bound))
            }
            "is" => Box::new(match self.word()? {
                "string" => Value::is_string,
                "object" => Value::is_object,
                "array" => Value::is_array,
                "unsigned" => Value::is_u64,
                "float" => Value::is_f64,
                other => return Err(format!("{other:?} is no type")),
            }),
            other => return Err(format!("{other:?} compares nothing")),
        };
        Ok(Arc::new(move |m| {
            holds(lookup(m, pointer).unwrap_or(&Value::Null))
        }))
    }

    fn action(&mut self) -> Result<Action, String> {
        use Direction::{ToAgent, ToClient};
        match self.word()? {
            "set" => {
                let pointer = self.word()?;
                self.action_with_json(move |m, value| m.set(pointer, value))
            }
            "remove" => self.action_with_word(|m, pointer| drop(m.remove(pointer))),
            "move" => {
                let from = self.word()?;
                self.action_with_word(move |m, to| {
                    if let Some(value) = m.remove(from) {
                        m.set(to, value);
                    }
                })
            }
            "push" => {
                let pointer = self.word()?;
                self.action_with_json(move |m, item| {
                    let mut items = match m.get(pointer) {
                        Value::Null => Vec::new(),
                        Value::Array(items) => items.clone(),
                        _ => return,
                    };
                    items.push(item);
                    m.set(pointer, items);
                })
            }
            "drop-items" => {
                let pointer = self.word()?;
                self.action_with_json(move |m, members| {
                    let members = || members.as_object().into_iter().flatten();
                    m.edit_array(pointer, |items| {
                        items.retain(|item| members().any(|(key, value)| item[key] != *value));
                    });
                })
            }
            "append" => {
                let text = self.text()?;
                Ok(Box::new(move |m| {
                    m.replace_bytes([m.raw, text.as_bytes()].concat())
                }))
            }
            "drop" => Ok(Box::new(|m| m.swallow())),
            "hold" => Ok(Box::new(|m| m.hold())),
            "release" => Ok(Box::new(|m| m.release())),
            "release-before" => Ok(Box::new(|m| m.release_before())),
            "respond" => self.action_with_json(|m, result| m.respond(result)),
            "refuse" => {
                let (code, message) = (self.number()?, self.text()?);
                Ok(Box::new(move |m| m.respond_error(code, &message)))
            }
            "result" => self.action_with_json(|m, result| m.turn_into_result(result)),
            "fail" => {
                let (code, message) = (self.number()?, self.text()?);
                Ok(Box::new(move |m| m.turn_into_error(code, &message)))
            }
            "allow" => Ok(Box::new(|m| m.replace_with_allow())),
            "send-client" => self.action_with_json(|m, message| m.send_after(ToClient, message)),
            "send-client-before" => {
                self.action_with_json(|m, message| m.send_before(ToClient, message))
            }
            "send-agent" => self.action_with_json(|m, message| m.send_after(ToAgent, message)),
            "repeat" if self.rest.starts_with('/') => {
                let pointer = self.word()?;
                self.action_with_json(move |m, value| {
                    let mut again = m.message.clone();
                    if let Some(part) = again.pointer_mut(pointer) {
                        *part = value;
                    }
                    m.send_after(ToClient, again);
                })
            }
            "repeat" => Ok(Box::new(|m| m.send_after(ToClient, m.message.clone()))),
            "send-update" => self.action_with_json(|m, update| {
                m.send_after(ToClient, made_up_update(m, &update));
            }),
            "send-update-before" => self.action_with_json(|m, update| {
                m.send_before(ToClient, made_up_update(m, &update));
            }),
            "ask" => {
                let method = self.word()?;
                self.action_with_json(move |m, params| m.inject_request(ToClient, method, params))
            }
            "remember" => self.action_with_word(|m, key| m.remember(&memory_key(m, key), true)),
            "forget" => self.action_with_word(|m, key| m.remember(&memory_key(m, key), false)),
            "die" => Ok(Box::new(|m| m.side_effect = SideEffect::Die)),
            "sleep" => Ok(Box::new(|m| m.side_effect = SideEffect::Sleep)),
            other => Err(format!("{other:?} is no action")),
        }
    }

    fn action_with_word(
        &mut self,
        act: impl Fn(&mut InterceptedLine<'_>, &str) + Send + Sync + 'static,
    ) -> Result<Action, String> {
        let word = self.word()?;
        Ok(Box::new(move |m| act(m, word)))
    }

    /// Returns an action that gets a JSON value with its variables replaced.
    fn action_with_json(
        &mut self,
        act: impl Fn(&mut InterceptedLine<'_>, Value) + Send + Sync + 'static,
    ) -> Result<Action, String> {
        let template = self.json()?;
        Ok(Box::new(move |m| act(m, fill(m, &template))))
    }
}

/// Returns true if one of the patterns, separated by `|`, is the word; `_*` fits all words that begin with `_`.
fn is_one_of(word: &str, patterns: &str) -> bool {
    patterns
        .split('|')
        .any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => word.starts_with(start),
            None => word == pattern,
        })
}

/// Returns the value that a pointer of a clause names.
fn lookup<'m>(m: &'m InterceptedLine<'_>, pointer: &str) -> Option<&'m Value> {
    match pointer.split_once(':') {
        Some(("request", pointer)) => m.request_params().pointer(pointer),
        Some(("client", pointer)) => m.connection.client_capabilities.pointer(pointer),
        Some(("agent", pointer)) => m.connection.agent_capabilities.pointer(pointer),
        _ => m.message.pointer(pointer),
    }
}

/// Returns a key of the fault's memory.
fn memory_key(m: &InterceptedLine<'_>, key: &str) -> String {
    fill(m, &key.into()).to_string()
}

/// Replaces the strings that stand for the session or for a value.
fn fill(m: &InterceptedLine<'_>, template: &Value) -> Value {
    match template {
        Value::String(text) => match text.strip_prefix('$') {
            Some("session") => m.session_id().into(),
            Some(pointer) => lookup(m, pointer).cloned().unwrap_or_default(),
            None => template.clone(),
        },
        Value::Array(items) => items.iter().map(|item| fill(m, item)).collect(),
        Value::Object(members) => {
            let members = members.iter();
            members
                .map(|(key, value)| (key.clone(), fill(m, value)))
                .collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => template.clone(),
    }
}

fn made_up_update(m: &InterceptedLine<'_>, update: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "session/update",
        "params": {"sessionId": m.session_id(), "update": fill(m, update)}})
}
