//! Classifies lines of the client by the rules of JSON-RPC and RPC-1 to RPC-8.

use crate::limits::LINE_LIMIT;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;
use std::fmt;

/// Members with a meaning in JSON-RPC.
const KNOWN_MEMBERS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// Line of the client, by what the agent owes for it.
#[derive(Debug)]
pub(super) enum ClientLine {
    /// Nothing is owed: a notification, a blank line, or a malformed response.
    NoResponse,
    /// An error with a null id is owed.
    ErrorWithoutId,
    /// Nothing is owed; the line answers one of the agent's requests.
    Response { id: String },
    /// A response is owed; if `is_fault`, an error.
    Request {
        id: String,
        method: String,
        params: Option<Box<RawValue>>,
        is_fault: bool,
    },
}

/// Members of an object, in order and with duplicates.
pub(super) type JsonMembers = Vec<(String, Box<RawValue>)>;

/// Parses the members of a line that is an object.
pub(super) fn parse_members(line: &str) -> Option<JsonMembers> {
    struct MemberList(JsonMembers);
    struct MemberVisitor;
    impl<'de> Visitor<'de> for MemberVisitor {
        type Value = MemberList;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<MemberList, A::Error> {
            let mut pairs = JsonMembers::new();
            while let Some(pair) = map.next_entry()? {
                pairs.push(pair);
            }
            Ok(MemberList(pairs))
        }
    }
    impl<'de> Deserialize<'de> for MemberList {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            from.deserialize_map(MemberVisitor)
        }
    }
    serde_json::from_str::<MemberList>(line)
        .ok()
        .map(|pairs| pairs.0)
}

/// Classifies a line.
pub(super) fn classify_client_line(line: &[u8]) -> ClientLine {
    if line.len() > LINE_LIMIT {
        return ClientLine::ErrorWithoutId;
    }
    if line.trim_ascii().is_empty() {
        return ClientLine::NoResponse;
    }
    let Some(members) = std::str::from_utf8(line).ok().and_then(parse_members) else {
        return ClientLine::ErrorWithoutId;
    };
    let count = |name: &str| members.iter().filter(|(found, _)| found == name).count();
    if KNOWN_MEMBERS.iter().any(|name| count(name) > 1) {
        return ClientLine::ErrorWithoutId;
    }
    let raw = |name: &str| {
        let found = members.iter().find(|(found, _)| found == name);
        found.map(|(_, raw)| raw.get())
    };
    let id = raw("id").map(|raw| is_id(raw).then(|| raw.to_owned()));
    let Some(method) = raw("method") else {
        return match (raw("result"), raw("error"), id) {
            (None, None, _) => ClientLine::ErrorWithoutId,
            (Some(_), None | Some("null"), Some(Some(id))) => ClientLine::Response { id },
            (None, Some(error), Some(Some(id))) if error != "null" => ClientLine::Response { id },
            _ => ClientLine::NoResponse,
        };
    };
    let Ok(method) = serde_json::from_str::<String>(method) else {
        return ClientLine::ErrorWithoutId;
    };
    if raw("result").is_some() || raw("error").is_some() {
        return ClientLine::ErrorWithoutId;
    }
    let Some(id) = id else {
        return ClientLine::NoResponse;
    };
    let params = raw("params");
    let is_structured = params.is_none_or(|params| params.starts_with(['{', '[', 'n']));
    match id {
        Some(id) if is_structured => ClientLine::Request {
            id,
            method,
            params: params.and_then(|params| RawValue::from_string(params.to_owned()).ok()),
            is_fault: raw("jsonrpc") != Some("\"2.0\""),
        },
        _ => ClientLine::ErrorWithoutId,
    }
}

/// Checks for an int64, a string or null.
fn is_id(raw: &str) -> bool {
    raw == "null" || raw.parse::<i64>().is_ok() || serde_json::from_str::<String>(raw).is_ok()
}
