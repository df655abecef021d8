//! Line: what a line of the client is, by the rules of JSON-RPC and RPC-1 to RPC-8.

use crate::LINE_LIMIT;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;
use std::fmt;

/// The members that mean something.
const KNOWN: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// What the agent owes for a line.
#[derive(Debug)]
pub(super) enum Line {
    /// Nothing: a notification, a blank line, or what looks like a reply and is none.
    Silent,
    /// An error without an id.
    Fault,
    /// Nothing; one of its own requests is answered.
    Reply { id: String },
    /// An answer; if it is a fault, an error.
    Request {
        id: String,
        method: String,
        params: Option<Box<RawValue>>,
        is_fault: bool,
    },
}

/// The members of an object, in order, twice what is there twice.
pub(super) type Members = Vec<(String, Box<RawValue>)>;

/// The members of a line that is an object.
pub(super) fn members(line: &str) -> Option<Members> {
    struct Pairs(Members);
    struct Reads;
    impl<'de> Visitor<'de> for Reads {
        type Value = Pairs;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
            let mut pairs = Members::new();
            while let Some(pair) = map.next_entry()? {
                pairs.push(pair);
            }
            Ok(Pairs(pairs))
        }
    }
    impl<'de> Deserialize<'de> for Pairs {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            from.deserialize_map(Reads)
        }
    }
    serde_json::from_str::<Pairs>(line)
        .ok()
        .map(|pairs| pairs.0)
}

/// What a line is.
pub(super) fn judge(line: &[u8]) -> Line {
    if line.len() > LINE_LIMIT {
        return Line::Fault;
    }
    if line.trim_ascii().is_empty() {
        return Line::Silent;
    }
    let Some(members) = std::str::from_utf8(line).ok().and_then(members) else {
        return Line::Fault;
    };
    let count = |name: &str| members.iter().filter(|(found, _)| found == name).count();
    if KNOWN.iter().any(|name| count(name) > 1) {
        return Line::Fault;
    }
    let raw = |name: &str| {
        let found = members.iter().find(|(found, _)| found == name);
        found.map(|(_, raw)| raw.get())
    };
    let id = raw("id").map(|raw| is_id(raw).then(|| raw.to_owned()));
    let Some(method) = raw("method") else {
        return match (raw("result"), raw("error"), id) {
            (None, None, _) => Line::Fault,
            (Some(_), None | Some("null"), Some(Some(id))) => Line::Reply { id },
            (None, Some(error), Some(Some(id))) if error != "null" => Line::Reply { id },
            _ => Line::Silent,
        };
    };
    let Ok(method) = serde_json::from_str::<String>(method) else {
        return Line::Fault;
    };
    if raw("result").is_some() || raw("error").is_some() {
        return Line::Fault;
    }
    let Some(id) = id else {
        return Line::Silent;
    };
    let params = raw("params");
    let is_structured = params.is_none_or(|params| params.starts_with(['{', '[', 'n']));
    match id {
        Some(id) if is_structured => Line::Request {
            id,
            method,
            params: params.and_then(|params| RawValue::from_string(params.to_owned()).ok()),
            is_fault: raw("jsonrpc") != Some("\"2.0\""),
        },
        _ => Line::Fault,
    }
}

/// An int64, a string or null.
fn is_id(raw: &str) -> bool {
    raw == "null" || raw.parse::<i64>().is_ok() || serde_json::from_str::<String>(raw).is_ok()
}
