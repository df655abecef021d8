//! Prompts: what servers offer a person to say, as slash commands `/SERVER:PROMPT ARGUMENTS`.

use super::{call, fault, link::Link, result};
use crate::{TraceContext, policy::is_hidden};
use rmcp::model::{ClientRequest, GetPromptRequest, GetPromptRequestParams, Prompt, ServerResult};
use serde_json::{Map, Value};
use std::time::Duration;
use tokio::time::timeout;
use turnery_engine::Content;

/// How long a server may take to write a prompt.
const PATIENCE: Duration = Duration::from_secs(30);

/// A larger prompt is not taken. Unit: bytes.
const LARGEST: usize = 8 << 20;

/// A prompt, as a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpPrompt {
    /// What is typed behind the slash.
    pub command: String,
    /// What it is for.
    pub about: String,
    /// What may follow it.
    pub hint: Option<String>,
}

impl McpPrompt {
    pub(super) fn new(link: &Link, prompt: &Prompt) -> Self {
        let about = prompt.description.as_deref().or(prompt.title.as_deref());
        let about = about.unwrap_or("A prompt of an MCP server");
        let words: Vec<String> = arguments(prompt)
            .map(|(name, required)| match required {
                true => name.to_owned(),
                false => format!("[{name}]"),
            })
            .collect();
        Self {
            command: command(link, prompt),
            about: super::offer::line(about),
            hint: (!words.is_empty()).then(|| words.join(" ")),
        }
    }
}

/// One word, whatever the server calls it.
pub(super) fn command(link: &Link, prompt: &Prompt) -> String {
    let word = |c: char| match c.is_whitespace() || is_hidden(c) || c == '/' {
        true => '_',
        false => c,
    };
    let name: String = prompt.name.chars().map(word).collect();
    format!("{}:{name}", link.slug)
}

fn arguments(prompt: &Prompt) -> impl Iterator<Item = (&str, bool)> {
    let all = prompt.arguments.iter().flatten();
    all.map(|argument| (argument.name.as_str(), argument.required == Some(true)))
}

/// What the server makes of the prompt with what was typed after it.
pub(super) async fn get(
    link: &Link,
    prompt: &Prompt,
    typed: &str,
    trace: &TraceContext,
) -> Result<Vec<Content>, String> {
    let arguments = fill(prompt, typed).map_err(|missing| {
        let hint = McpPrompt::new(link, prompt).hint.unwrap_or_default();
        format!("{missing} is missing: /{} {hint}", command(link, prompt))
    })?;
    let said = |why: String| format!("the MCP server {}: {}", link.name, link.secrets.hide(&why));
    let peer = link.peer().await.map_err(said)?;
    let mut params = GetPromptRequestParams::new(prompt.name.clone());
    params.arguments = (!arguments.is_empty()).then_some(arguments);
    let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
    let asked = async {
        let handle = call::send(&peer, request, trace).await?;
        handle.await_response().await
    };
    let answer = timeout(PATIENCE, asked)
        .await
        .map_err(|_| said("it did not answer in time".to_owned()))?;
    match answer.map_err(|error| said(fault::of_request(&error).1))? {
        ServerResult::GetPromptResult(prompt) => {
            let blocks = prompt.messages.into_iter().map(|message| message.content);
            let content = result::contents(blocks.collect());
            let size: usize = content.iter().map(size).sum();
            match size {
                0 => Err(said("the prompt is empty".to_owned())),
                _ if size > LARGEST => Err(said(format!(
                    "the prompt has {size} bytes, and more than {LARGEST} are not taken"
                ))),
                _ => Ok(content),
            }
        }
        _ => Err(said("its answer is not a prompt".to_owned())),
    }
}

fn size(content: &Content) -> usize {
    match content {
        Content::Text { text } => text.len(),
        Content::Image(image) => image.base64.len(),
        Content::Audio(audio) => audio.base64.len(),
        Content::Thinking { .. } | Content::ToolCall(_) | Content::Opaque { .. } => 0,
    }
}

/// The arguments, from words: `name=value` where there is an argument of that name, else in order. The
/// last one takes what is left. The error is the first that is missing.
fn fill(prompt: &Prompt, typed: &str) -> Result<Map<String, Value>, String> {
    let names: Vec<(&str, bool)> = arguments(prompt).collect();
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
            // Nothing asks for it.
            (None, None) => break,
        };
        let (value, tail) = match open.len() {
            1 => (unquoted(text), ""),
            _ => word(text),
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

/// The first word, which may stand in quotes, and what follows it.
fn word(text: &str) -> (&str, &str) {
    if let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\''))
        && let Some((inner, tail)) = text[1..].split_once(quote)
        && tail.chars().next().is_none_or(char::is_whitespace)
    {
        return (inner, tail);
    }
    text.split_once(char::is_whitespace).unwrap_or((text, ""))
}

/// All of it, without quotes around the whole.
fn unquoted(text: &str) -> &str {
    match word(text) {
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

    fn filled(arguments: &[(&str, bool)], typed: &str) -> Result<Value, String> {
        fill(&prompt(arguments), typed).map(Value::Object)
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
            assert_eq!(filled(two, typed), Ok(expected), "{typed}");
        }
        let one = &[("code", true)][..];
        assert_eq!(
            filled(one, "all  of \"it\""),
            Ok(json!({"code": "all  of \"it\""}))
        );
        assert_eq!(filled(&[], "whatever"), Ok(json!({})));
    }

    #[test]
    fn what_is_missing_is_named() {
        let two = &[("city", true), ("units", true)][..];
        assert_eq!(filled(two, ""), Err("city".to_owned()));
        assert_eq!(filled(two, "units=x"), Err("city".to_owned()));
        assert_eq!(filled(&[("a", false)], ""), Ok(json!({})));
    }
}
