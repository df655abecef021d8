//! Classifies lines of the client by what turnery owes for them (RPC-1 to RPC-8).

use serde::{Deserialize, Deserializer};
use serde_json::{Value, value::RawValue};
use turnery_acp::LINE_LIMIT;

/// Line of the client.
pub(super) enum ClientLine {
    /// Nothing is owed: a blank line, or garbage shaped like a response.
    Nothing,
    /// An error with a null id is owed.
    Malformed,
    Message {
        message: Value,
        /// True for a request whose response must be an error.
        is_faulty: bool,
    },
}

/// Members with a meaning in JSON-RPC. Repeated members are errors, others are ignored.
#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Reads a member that may be `null`.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// Classifies a line, which has no line end.
pub(super) fn classify(line: &[u8]) -> ClientLine {
    if line.len() > LINE_LIMIT {
        return ClientLine::Malformed;
    }
    if line.trim_ascii().is_empty() {
        return ClientLine::Nothing;
    }
    let text = std::str::from_utf8(line).ok();
    let text = text.filter(|text| text.trim_start().starts_with('{'));
    let members = text.and_then(|text| serde_json::from_str::<Members<'_>>(text).ok());
    let (Some(text), Some(members)) = (text, members) else {
        return ClientLine::Malformed;
    };
    let id = members.id.map(RawValue::get);
    let is_id_valid = id.is_some_and(is_id);
    let result = members.result.map(RawValue::get);
    let error = members.error.map(RawValue::get);
    let Some(method) = members.method else {
        return match (result, error) {
            (None, None) => ClientLine::Malformed,
            (Some(_), None | Some("null")) if is_id_valid => members.message(text),
            (None, Some(error)) if is_id_valid && error != "null" => members.message(text),
            _ => ClientLine::Nothing,
        };
    };
    let has_outcome = result.is_some() || error.is_some();
    let params = members.params.map_or("null", RawValue::get);
    let is_request_valid = is_id_valid && params.starts_with(['{', '[', 'n']);
    if serde_json::from_str::<String>(method.get()).is_err()
        || has_outcome
        || id.is_some() && !is_request_valid
    {
        return ClientLine::Malformed;
    }
    members.message(text)
}

impl Members<'_> {
    fn message(&self, text: &str) -> ClientLine {
        let member =
            |raw: Option<&RawValue>| raw.and_then(|raw| serde_json::from_str(raw.get()).ok());
        // A line may be nested too deeply for a value; its id and its method are not.
        let message = serde_json::from_str(text).unwrap_or_else(|_| {
            let known = [("id", member(self.id)), ("method", member(self.method))];
            let known = known
                .into_iter()
                .filter_map(|(key, value)| Some((key.to_owned(), value?)));
            Value::Object(known.collect())
        });
        let version = self.jsonrpc.map(RawValue::get);
        ClientLine::Message {
            is_faulty: version != Some("\"2.0\""),
            message,
        }
    }
}

/// Returns true for an int64, a string or null.
fn is_id(raw: &str) -> bool {
    raw == "null" || raw.parse::<i64>().is_ok() || serde_json::from_str::<String>(raw).is_ok()
}
