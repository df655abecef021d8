//! Offers the prompts of servers as slash commands: `/SERVER:PROMPT ARGUMENTS`.

use super::{connection::ServerConnection, content, errors, request};
use crate::{TraceContext, policy::is_invisible_char};
use rmcp::model::{ClientRequest, GetPromptRequest, GetPromptRequestParams, Prompt, ServerResult};
use serde_json::{Map, Value};
use std::time::Duration;
use tokio::time::timeout;
use turnery_engine::Content;

/// Time limit for a server to return a prompt.
const PROMPT_TIMEOUT: Duration = Duration::from_secs(30);

/// A larger prompt is rejected. Unit: bytes.
const MAX_PROMPT_BYTES: usize = 8 << 20;

/// A prompt of a server, offered as a slash command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpPrompt {
    /// Name of the command, without the slash.
    pub command: String,
    /// Description of the command.
    pub description: String,
    /// Hint for the command's arguments.
    pub argument_hint: Option<String>,
}

impl McpPrompt {
    pub(super) fn new(connection: &ServerConnection, prompt: &Prompt) -> Self {
        let about = prompt.description.as_deref().or(prompt.title.as_deref());
        let about = about.unwrap_or("A prompt of an MCP server");
        let words: Vec<String> = prompt_arguments(prompt)
            .map(|(name, required)| match required {
                true => name.to_owned(),
                false => format!("[{name}]"),
            })
            .collect();
        Self {
            command: command_name(connection, prompt),
            description: super::capabilities::single_line(about),
            argument_hint: (!words.is_empty()).then(|| words.join(" ")),
        }
    }
}

/// Returns the command of a prompt, without whitespace, whatever the server calls the prompt.
pub(super) fn command_name(connection: &ServerConnection, prompt: &Prompt) -> String {
    let word = |c: char| match c.is_whitespace() || is_invisible_char(c) || c == '/' {
        true => '_',
        false => c,
    };
    let name: String = prompt.name.chars().map(word).collect();
    format!("{}:{name}", connection.slug)
}

fn prompt_arguments(prompt: &Prompt) -> impl Iterator<Item = (&str, bool)> {
    let all = prompt.arguments.iter().flatten();
    all.map(|argument| (argument.name.as_str(), argument.required == Some(true)))
}

/// Requests a prompt from the server with the arguments that the user typed.
pub(super) async fn get_prompt(
    connection: &ServerConnection,
    prompt: &Prompt,
    typed: &str,
    trace: &TraceContext,
) -> Result<Vec<Content>, String> {
    let arguments = fill_arguments(prompt, typed).map_err(|missing| {
        let hint = McpPrompt::new(connection, prompt)
            .argument_hint
            .unwrap_or_default();
        format!(
            "{missing} is missing: /{} {hint}",
            command_name(connection, prompt)
        )
    })?;
    let said = |why: String| {
        format!(
            "the MCP server {}: {}",
            connection.name,
            connection.secrets.redact(&why)
        )
    };
    let peer = connection.peer().await.map_err(said)?;
    let mut params = GetPromptRequestParams::new(prompt.name.clone());
    params.arguments = (!arguments.is_empty()).then_some(arguments);
    let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
    let asked = async {
        let handle = request::send_request(&peer, request, trace).await?;
        handle.await_response().await
    };
    let answer = timeout(PROMPT_TIMEOUT, asked)
        .await
        .map_err(|_| said("it did not answer in time".to_owned()))?;
    match answer.map_err(|error| said(errors::describe_request_error(&error).1))? {
        ServerResult::GetPromptResult(prompt) => {
            let blocks = prompt.messages.into_iter().map(|message| message.content);
            let content = content::convert_blocks(blocks.collect());
            let size: usize = content.iter().map(content_size).sum();
            match size {
                0 => Err(said("the prompt is empty".to_owned())),
                _ if size > MAX_PROMPT_BYTES => Err(said(format!(
                    "the prompt has {size} bytes, more than the limit of {MAX_PROMPT_BYTES}"
                ))),
                _ => Ok(content),
            }
        }
        _ => Err(said("its answer is not a prompt".to_owned())),
    }
}

fn content_size(content: &Content) -> usize {
    match content {
        Content::Text { text } => text.len(),
        Content::Image(image) => image.base64.len(),
        Content::Audio(audio) => audio.base64.len(),
        Content::Document(document) => document.base64.len(),
        Content::Thinking { .. } | Content::ToolCall(_) | Content::Opaque { .. } => 0,
    }
}

/// Parses arguments: `name=value` if there is an argument of that name, else in order. The last argument
/// takes the remaining text. Returns the first missing argument as the error.
fn fill_arguments(prompt: &Prompt, typed: &str) -> Result<Map<String, Value>, String> {
    let names: Vec<(&str, bool)> = prompt_arguments(prompt).collect();
    let mut filled: Map<String, Value> = Map::new();
    let mut rest = typed.trim();
    while !rest.is_empty() {
        let open: Vec<&str> = names
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| !filled.contains_key(*name))
            .collect();
        let named = rest.split_once('=').filter(|(name, _)| open.contains(name));
        let (name, text) = match (named, open.first()) {
            (Some((name, text)), _) => (name, text),
            (None, Some(name)) => (*name, rest),
            // There is no argument left for the text.
            (None, None) => break,
        };
        let (value, tail) = match open.len() {
            1 => (strip_quotes(text), ""),
            _ => split_first_word(text),
        };
        filled.insert(name.to_owned(), value.into());
        rest = tail.trim_start();
    }
    let missing = names
        .iter()
        .find(|(name, required)| *required && !filled.contains_key(*name));
    match missing {
        Some((name, _)) => Err((*name).to_owned()),
        None => Ok(filled),
    }
}

/// Returns the first word, which may be quoted, and the text after it.
fn split_first_word(text: &str) -> (&str, &str) {
    if let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\''))
        && let Some((inner, tail)) = text[1..].split_once(quote)
        && tail.chars().next().is_none_or(char::is_whitespace)
    {
        return (inner, tail);
    }
    text.split_once(char::is_whitespace).unwrap_or((text, ""))
}

/// Removes quotes around the whole text.
fn strip_quotes(text: &str) -> &str {
    match split_first_word(text) {
        (inner, "") => inner,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::PromptArgument;
    use serde_json::json;

    fn prompt(arguments: &[(&str, bool)]) -> Prompt {
        let arguments = arguments
            .iter()
            .map(|(name, required)| PromptArgument::new(*name).with_required(*required));
        Prompt::new("p", None::<&str>, Some(arguments.collect()))
    }

    fn fill_test_prompt(arguments: &[(&str, bool)], typed: &str) -> Result<Value, String> {
        fill_arguments(&prompt(arguments), typed).map(Value::Object)
    }

    #[test]
    fn words_become_arguments() {
        let two = &[("city", true), ("units", false)][..];
        for (typed, expected) in [
            ("Paris", json!({"city": "Paris"})),
            ("Paris metric", json!({"city": "Paris", "units": "metric"})),
            (
                "\"New York\" metric",
                json!({"city": "New York", "units": "metric"}),
            ),
            (
                "units=metric Paris",
                json!({"units": "metric", "city": "Paris"}),
            ),
            ("city='New York'", json!({"city": "New York"})),
            (
                "Paris very metric",
                json!({"city": "Paris", "units": "very metric"}),
            ),
            ("a=b c", json!({"city": "a=b", "units": "c"})),
        ] {
            assert_eq!(fill_test_prompt(two, typed), Ok(expected), "{typed}");
        }
        let one = &[("code", true)][..];
        assert_eq!(
            fill_test_prompt(one, "all  of \"it\""),
            Ok(json!({"code": "all  of \"it\""}))
        );
        assert_eq!(fill_test_prompt(&[], "whatever"), Ok(json!({})));
    }

    #[test]
    fn missing_argument_is_named() {
        let two = &[("city", true), ("units", true)][..];
        assert_eq!(fill_test_prompt(two, ""), Err("city".to_owned()));
        assert_eq!(fill_test_prompt(two, "units=x"), Err("city".to_owned()));
        assert_eq!(fill_test_prompt(&[("a", false)], ""), Ok(json!({})));
    }
}
