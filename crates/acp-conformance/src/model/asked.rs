//! Asked: what an agent asked of the model, in the same words for every API.

use serde_json::Value;

/// The API a request was made in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Gemini `generateContent`.
    Gemini,
}

/// A request to a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// In which API.
    pub api: Api,
    /// Of which model.
    pub model: String,
    /// The answer is wanted as a stream.
    pub streaming: bool,
    /// The system prompt, all its parts joined by lines.
    pub system: String,
    /// The conversation.
    pub said: Vec<Said>,
    /// The tools on offer.
    pub offered: Vec<Offered>,
    /// The schema that the answer must obey, where one is asked for.
    pub schema: Option<Value>,
}

/// One thing said in the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// By whom.
    pub by: Voice,
    /// What; of a call, the tool's name and arguments.
    pub text: String,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voice {
    /// The user, or the agent in the user's place.
    User,
    /// The model.
    Model,
    /// A tool, with its result.
    Tool,
}

/// A tool that the agent offers.
#[derive(Clone, Debug, PartialEq)]
pub struct Offered {
    /// The name to call it by.
    pub name: String,
    /// The namespace that it stands in, where the API has them.
    pub namespace: Option<String>,
    /// The schema of its arguments; none where it takes free text.
    pub schema: Option<Value>,
}

impl Asked {
    /// All that the user said, in order.
    pub fn user_texts(&self) -> impl Iterator<Item = &str> {
        let users = self.said.iter().filter(|said| said.by == Voice::User);
        users.map(|said| said.text.as_str())
    }

    pub(super) fn say(&mut self, by: Voice, text: String) {
        self.said.push(Said { by, text });
    }
}

/// The text within a content: a string, a part with a `text`, or a list of them.
pub(super) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<String> = parts.iter().map(text_of).collect();
            texts.join("\n")
        }
        Value::Object(part) => part.get("text").map(text_of).unwrap_or_default(),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

/// The items of an array, or none.
pub(super) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A string field, or nothing.
pub(super) fn word<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// A call as one line of the conversation.
pub(super) fn call_line(name: &str, arguments: &Value) -> String {
    match arguments {
        Value::String(text) => format!("{name} {text}"),
        other => format!("{name} {other}"),
    }
}
