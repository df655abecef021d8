//! Classifies client lines by the response that the agent must send (RPC-1 to RPC-8).

use serde::{Deserialize, Deserializer};
use serde_json::{Value, value::RawValue};
use turnery_acp::LINE_LIMIT;

/// Client line, classified by the response that it requires.
pub(super) enum ClientLine {
    /// Blank line or invalid response, neither of which gets a response.
    Ignored,
    /// Malformed line, which must be answered by an error with a null id.
    Malformed,
    Message {
        message: Value,
        /// True if `jsonrpc` is missing or not `"2.0"`; a request like this must get an error.
        has_invalid_version: bool,
    },
}

/// Members with a meaning in JSON-RPC. Repeated members are errors, others are ignored.
#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow, default, deserialize_with = "deserialize_nullable")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_nullable")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_nullable")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_nullable")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_nullable")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "deserialize_nullable")]
    error: Option<&'a RawValue>,
}

/// Deserializes a member that is present as `Some`, even if its value is `null`.
fn deserialize_nullable<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// Classifies a client line, passed without its line end.
pub(super) fn classify(line: &[u8]) -> ClientLine {
    if line.len() > LINE_LIMIT {
        return ClientLine::Malformed;
    }
    if line.trim_ascii().is_empty() {
        return ClientLine::Ignored;
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
            (Some(_), None | Some("null")) if is_id_valid => members.to_client_line(text),
            (None, Some(error)) if is_id_valid && error != "null" => members.to_client_line(text),
            _ => ClientLine::Ignored,
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
    members.to_client_line(text)
}

impl Members<'_> {
    fn to_client_line(&self, text: &str) -> ClientLine {
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
            has_invalid_version: version != Some("\"2.0\""),
            message,
        }
    }
}

/// Returns true for an int64, a string or null.
fn is_id(raw: &str) -> bool {
    raw == "null" || raw.parse::<i64>().is_ok() || serde_json::from_str::<String>(raw).is_ok()
}
