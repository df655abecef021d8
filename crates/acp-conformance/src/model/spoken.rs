//! Spoken: one answer on its way, told by an API's encoder as bytes on the wire.

use super::{
    asked::{Api, Asked},
    script::{Stop, Usage},
    {anthropic, chat, gemini, responses},
};
use bytes::Bytes;
use serde_json::Value;

/// A call of one of the agent's own tools.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Called {
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    pub(super) arguments: Arguments,
}

/// What a tool is called with.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Arguments {
    Fields(Value),
    Free(String),
}

impl Called {
    /// The arguments as the text that the OpenAI APIs want.
    pub(super) fn arguments_text(&self) -> String {
        match &self.arguments {
            Arguments::Fields(fields) => fields.to_string(),
            Arguments::Free(text) => text.clone(),
        }
    }

    /// The arguments as the object that the others want.
    pub(super) fn arguments_object(&self) -> Value {
        match &self.arguments {
            Arguments::Fields(fields) => fields.clone(),
            Arguments::Free(text) => serde_json::json!({ "input": text }),
        }
    }
}

/// What an answer is made of, when the waiting is left out.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    Text(String),
    Think(String),
    Refusal(String),
    Call(Called),
}

/// How an answer ends, and what it cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    pub(super) stop: Stop,
    pub(super) usage: Usage,
}

/// The head of an answer: what every event of it may repeat.
#[derive(Clone, Debug)]
pub(super) struct Head {
    /// The number of the request, which all ids are made of.
    pub(super) number: usize,
    pub(super) model: String,
}

/// Tells an answer in the events of one API.
pub(super) trait Encode: Send {
    /// The events that begin an answer.
    fn open(&mut self) -> Vec<Bytes>;
    /// The events of one more part.
    fn part(&mut self, part: &Part) -> Vec<Bytes>;
    /// The events that end it.
    fn close(&mut self, ending: Ending) -> Vec<Bytes>;
    /// The event of an error within the stream.
    fn fail(&mut self, status: u16, message: &str) -> Vec<Bytes>;
}

/// The encoder of an API.
pub(super) fn encoder(api: Api, head: Head) -> Box<dyn Encode> {
    match api {
        Api::Anthropic => Box::new(anthropic::Stream::new(head)),
        Api::Chat => Box::new(chat::Stream::new(head)),
        Api::Responses => Box::new(responses::Stream::new(head)),
        Api::Gemini => Box::new(gemini::Stream::new(head)),
    }
}

/// The answer in one piece.
pub(super) fn whole(api: Api, head: &Head, parts: &[Part], ending: Ending) -> Value {
    match api {
        Api::Anthropic => anthropic::whole(head, parts, ending),
        Api::Chat => chat::whole(head, parts, ending),
        Api::Responses => responses::whole(head, parts, ending),
        Api::Gemini => gemini::whole(head, parts, ending),
    }
}

/// What a request in an API asks for; `path` holds the model's name in one of them.
pub(super) fn asked(api: Api, path: &str, body: &Value) -> Asked {
    match api {
        Api::Anthropic => anthropic::asked(body),
        Api::Chat => chat::asked(body),
        Api::Responses => responses::asked(body),
        Api::Gemini => gemini::asked(path, body),
    }
}

/// The body of an HTTP error in an API.
pub(super) fn error_body(api: Api, status: u16, message: &str) -> Value {
    match api {
        Api::Anthropic => anthropic::error(status, message),
        Api::Chat | Api::Responses => chat::error(status, message),
        Api::Gemini => gemini::error(status, message),
    }
}

/// A server-sent event.
pub(super) fn event(name: Option<&str>, data: &Value) -> Bytes {
    let name = name.map_or_else(String::new, |name| format!("event: {name}\n"));
    Bytes::from(format!("{name}data: {data}\n\n"))
}

/// Parts of one kind that follow each other, as one.
pub(super) fn joined(parts: &[Part]) -> Vec<Part> {
    let mut joined: Vec<Part> = Vec::new();
    for part in parts {
        match (joined.last_mut(), part) {
            (Some(Part::Text(all)), Part::Text(text))
            | (Some(Part::Think(all)), Part::Think(text))
            | (Some(Part::Refusal(all)), Part::Refusal(text)) => all.push_str(text),
            (_, Part::Text(_) | Part::Think(_) | Part::Refusal(_) | Part::Call(_)) => {
                joined.push(part.clone());
            }
        }
    }
    joined
}
