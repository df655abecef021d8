//! Classifies a line of input as request, notification, response or malformed, without reading its parameters.

use crate::server::rpc_error::{INVALID_REQUEST, PARSE_ERROR};
use agent_client_protocol_schema::v1::RequestId;
use serde::{Deserialize, Deserializer, de::IgnoredAny};
use serde_json::value::RawValue;

/// Classified line (RPC-1 to RPC-8).
#[derive(Debug)]
pub(crate) enum Envelope<'a> {
    /// Gets exactly one response.
    Request(IncomingRequest<'a>),
    /// Never gets a response (RPC-5).
    Notification {
        method: String,
        params: Option<&'a RawValue>,
    },
    /// Response to one of the agent's requests.
    Response {
        id: RequestId,
        result: Result<&'a RawValue, &'a RawValue>,
    },
    /// Malformed response or notification: dropped without a response (RPC-5, RPC-7).
    Ignored,
    /// Gets an error response. `id` is the text of the id, `null` if unknown.
    Malformed {
        id: &'a str,
        code: i32,
        details: String,
    },
}

/// Incoming request.
#[derive(Debug)]
pub(crate) struct IncomingRequest<'a> {
    /// Id byte for byte as received (RPC-2).
    pub(crate) raw_id: &'a str,
    /// Id for comparison.
    pub(crate) id: RequestId,
    pub(crate) method: String,
    pub(crate) params: Option<&'a RawValue>,
}

/// Parses the JSON text of a request id: int64, string or null (RPC-3).
pub(crate) fn parse_request_id(raw: &str) -> Option<RequestId> {
    match raw.as_bytes().first()? {
        b'n' => Some(RequestId::Null),
        b'"' => serde_json::from_str(raw).ok().map(RequestId::Str),
        _ => raw.parse().ok().map(RequestId::Number),
    }
}

/// All members that any message has. Distinguishes `null` from absent.
#[derive(Deserialize)]
struct MessageMembers<'a> {
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

fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(value).map(Some)
}

fn invalid_request<'a>(id: &'a str, details: &str) -> Envelope<'a> {
    Envelope::Malformed {
        id,
        code: INVALID_REQUEST,
        details: details.to_owned(),
    }
}

/// Classifies a line. The line must not be blank.
pub(crate) fn classify_line(line: &[u8]) -> Envelope<'_> {
    let unreadable = |details| Envelope::Malformed {
        id: "null",
        code: PARSE_ERROR,
        details,
    };
    let text = match std::str::from_utf8(line) {
        Ok(text) => text.trim_ascii(),
        Err(error) => return unreadable(format!("The line is not UTF-8: {error}.")),
    };
    let parsed = if text.starts_with('{') {
        serde_json::from_str::<MessageMembers<'_>>(text)
    } else {
        return match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) if text.starts_with('[') => {
                invalid_request("null", "ACP has no batches: send one message per line.")
            }
            Ok(_) => invalid_request("null", "A message is a JSON object."),
            Err(error) => unreadable(format!("The line is not JSON: {error}.")),
        };
    };
    match parsed {
        Ok(members) => members.classify(),
        Err(error) => match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) => invalid_request("null", &format!("The message is malformed: {error}.")),
            Err(error) => unreadable(format!("The line is not JSON: {error}.")),
        },
    }
}

impl<'a> MessageMembers<'a> {
    /// Classifies the message by its members. A string `method` without `id` is a notification and never gets
    /// a response, whatever else is wrong with it (RPC-5). Other malformed messages get an error (RPC-7),
    /// under their id if only their `jsonrpc` is missing; malformed responses are ignored.
    fn classify(self) -> Envelope<'a> {
        let id = self.id.map(|raw| (raw.get(), parse_request_id(raw.get())));
        let Some(method) = self.method else {
            return self.classify_response(id.and_then(|(_, id)| id));
        };
        let Ok(method) = serde_json::from_str::<String>(method.get()) else {
            return invalid_request("null", "method must be a string.");
        };
        if self.result.is_some() || self.error.is_some() {
            return invalid_request(
                "null",
                "A message has either a method, or a result or an error.",
            );
        }
        let is_structured = matches!(
            self.params.map(|raw| raw.get().as_bytes().first()),
            None | Some(Some(b'{' | b'[' | b'n'))
        );
        let is_versioned = self.jsonrpc.is_some_and(|raw| raw.get() == "\"2.0\"");
        let (raw_id, id) = match id {
            None if is_structured && is_versioned => {
                return Envelope::Notification {
                    method,
                    params: self.params,
                };
            }
            None => return Envelope::Ignored,
            Some((_, None)) => {
                return invalid_request("null", "An id is a 64-bit integer, a string, or null.");
            }
            Some((raw, Some(id))) => (raw, id),
        };
        if !is_structured {
            return invalid_request("null", "params must be an object.");
        }
        if !is_versioned {
            return invalid_request(raw_id, "Every message has the member \"jsonrpc\":\"2.0\".");
        }
        Envelope::Request(IncomingRequest {
            raw_id,
            id,
            method,
            params: self.params,
        })
    }

    /// Classifies a response. An `error` of `null` beside a result counts as absent: some clients write both.
    fn classify_response(self, id: Option<RequestId>) -> Envelope<'a> {
        let error = self.error.filter(|raw| raw.get() != "null");
        match (id, self.result, error) {
            (Some(id), Some(result), None) => Envelope::Response {
                id,
                result: Ok(result),
            },
            (Some(id), None, Some(error)) => Envelope::Response {
                id,
                result: Err(error),
            },
            (_, None, None) if self.error.is_none() => {
                invalid_request("null", "A message has a method, a result, or an error.")
            }
            _ => Envelope::Ignored,
        }
    }
}
