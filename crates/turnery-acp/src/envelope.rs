//! Envelope: what a line of input is, before anybody looks at its parameters.

use crate::fault::{INVALID_REQUEST, PARSE};
use agent_client_protocol_schema::v1;
use serde::{Deserialize, Deserializer, de::IgnoredAny};
use serde_json::value::RawValue;

/// A line, classified (RPC-1 to RPC-8).
#[derive(Debug)]
pub(crate) enum Envelope<'a> {
    /// Wants exactly one answer.
    Request(Request<'a>),
    /// Wants none, ever (RPC-5).
    Notification {
        method: String,
        params: Option<&'a RawValue>,
    },
    /// Answers one of our requests.
    Response {
        id: RequestId,
        reply: Result<&'a RawValue, &'a RawValue>,
    },
    /// Garbage in the shape of a response or of a notification: dropped without a word (RPC-5, RPC-7).
    Dropped,
    /// To be answered with an error. `id` is the text of the id, `null` when it cannot be known.
    Malformed {
        id: &'a str,
        code: i32,
        details: String,
    },
}

/// A request.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    /// The id byte for byte as it came (RPC-2).
    pub(crate) raw_id: &'a str,
    /// The id for comparing.
    pub(crate) id: RequestId,
    pub(crate) method: String,
    pub(crate) params: Option<&'a RawValue>,
}

/// A request id: int64, string or null (RPC-3).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RequestId {
    Null,
    Number(i64),
    Text(String),
}

impl RequestId {
    /// The id that this JSON text stands for.
    pub(crate) fn of(raw: &str) -> Option<Self> {
        match raw.as_bytes().first()? {
            b'n' => Some(Self::Null),
            b'"' => serde_json::from_str(raw).ok().map(Self::Text),
            _ => raw.parse().ok().map(Self::Number),
        }
    }
}

impl From<&RequestId> for v1::RequestId {
    fn from(id: &RequestId) -> Self {
        match id {
            RequestId::Null => Self::Null,
            RequestId::Number(number) => Self::Number(*number),
            RequestId::Text(text) => Self::Str(text.clone()),
        }
    }
}

/// All members that any message has. `null` is told from absent.
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

fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(value).map(Some)
}

fn invalid<'a>(id: &'a str, details: &str) -> Envelope<'a> {
    Envelope::Malformed {
        id,
        code: INVALID_REQUEST,
        details: details.to_owned(),
    }
}

/// Classify a line. It is not blank.
pub(crate) fn classify(line: &[u8]) -> Envelope<'_> {
    let unreadable = |details| Envelope::Malformed {
        id: "null",
        code: PARSE,
        details,
    };
    let text = match std::str::from_utf8(line) {
        Ok(text) => text.trim_ascii(),
        Err(error) => return unreadable(format!("The line is not UTF-8: {error}.")),
    };
    let parsed = if text.starts_with('{') {
        serde_json::from_str::<Members<'_>>(text)
    } else {
        return match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) if text.starts_with('[') => {
                invalid("null", "ACP has no batches: send one message a line.")
            }
            Ok(_) => invalid("null", "A message is a JSON object."),
            Err(error) => unreadable(format!("The line is not JSON: {error}.")),
        };
    };
    match parsed {
        Ok(members) => members.classify(),
        Err(error) => match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) => invalid("null", &format!("The message is malformed: {error}.")),
            Err(error) => unreadable(format!("The line is not JSON: {error}.")),
        },
    }
}

impl<'a> Members<'a> {
    /// A `method` that is a string and no `id`: that is a notification, and whatever else is wrong with
    /// it, it gets no answer. So says JSON-RPC (RPC-5), and an error without an id would be of no use to
    /// anybody. What has an `id` too, or is none of the sorts of messages, gets its error (RPC-7); under
    /// its id, if all that it lacks is its `jsonrpc`.
    fn classify(self) -> Envelope<'a> {
        let id = self.id.map(|raw| (raw.get(), RequestId::of(raw.get())));
        let Some(method) = self.method else {
            return self.response(id.and_then(|(_, id)| id));
        };
        let Ok(method) = serde_json::from_str::<String>(method.get()) else {
            return invalid("null", "method must be a string.");
        };
        if self.result.is_some() || self.error.is_some() {
            return invalid(
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
            None => return Envelope::Dropped,
            Some((_, None)) => {
                return invalid("null", "An id is a 64-bit integer, a string, or null.");
            }
            Some((raw, Some(id))) => (raw, id),
        };
        if !is_structured {
            return invalid("null", "params must be an object.");
        }
        if !is_versioned {
            return invalid(raw_id, "Every message has the member \"jsonrpc\":\"2.0\".");
        }
        Envelope::Request(Request {
            raw_id,
            id,
            method,
            params: self.params,
        })
    }

    /// An `error` of `null` beside a result counts as absent: some clients write both.
    fn response(self, id: Option<RequestId>) -> Envelope<'a> {
        let error = self.error.filter(|raw| raw.get() != "null");
        match (id, self.result, error) {
            (Some(id), Some(result), None) => Envelope::Response {
                id,
                reply: Ok(result),
            },
            (Some(id), None, Some(error)) => Envelope::Response {
                id,
                reply: Err(error),
            },
            (_, None, None) if self.error.is_none() => {
                invalid("null", "A message has a method, a result, or an error.")
            }
            _ => Envelope::Dropped,
        }
    }
}
