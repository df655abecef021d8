//! Adapts a model to code mode: it sees tools as functions and calls as code, whatever its provider supports.

use super::{
    code_block::{CODE_TOOL, CodeBlock, CodeBlockStream, Fragment, LANGUAGE, find_code_block},
    functions::code_functions,
    instructions::code_instructions,
};
use futures_util::future::BoxFuture;
use serde_json::json;
use std::{mem, sync::Arc};
use turnery_engine::{
    Content, LlmMessage, Message, MessageStop, ModelDelta, ModelError, ModelStop, Response,
    ToolCall, ToolSpec,
};
use turnery_models::{Model, ModelEvent, ModelEventSender, ModelInfo, ModelRequest, ToolChoice};

/// Events buffered between the adapted model and its adapter.
const EVENT_QUEUE_CAPACITY: usize = 16;

/// Model that acts by code (LASH-5, UP-33).
pub(crate) struct CodeModel(Arc<dyn Model>);

impl CodeModel {
    pub(crate) fn new(model: Arc<dyn Model>) -> Self {
        Self(model)
    }
}

impl Model for CodeModel {
    fn info(&self) -> &ModelInfo {
        self.0.info()
    }

    fn call(
        &self,
        mut request: ModelRequest,
        out: ModelEventSender,
    ) -> BoxFuture<'_, Result<Response, ModelError>> {
        Box::pin(async move {
            adapt_request(&mut request);
            let (sender, mut events) = ModelEventSender::new(EVENT_QUEUE_CAPACITY);
            let call = self.0.call(request, sender);
            let pass_on = async {
                let mut stream = DeltaStream::default();
                while let Some(event) = events.recv().await {
                    match event {
                        ModelEvent::Delta(delta) => {
                            for delta in stream.push(delta) {
                                out.send_delta(delta).await;
                            }
                        }
                        ModelEvent::Retry(retry) => out.send_retry(retry).await,
                        ModelEvent::Silence(silent) => out.send_silence(silent),
                    }
                }
                for delta in stream.finish() {
                    out.send_delta(delta).await;
                }
            };
            let (response, ()) = futures_util::future::join(call, pass_on).await;
            response.map(adapt_response)
        })
    }
}

/// Replaces the tools of a request by functions, and its calls by text. The functions are explained even if the reply
/// must be prose: the system prompt stays the same, so that the provider's cache holds.
fn adapt_request(request: &mut ModelRequest) {
    let tools = mem::take(&mut request.tools);
    request.tool_choice = ToolChoice::Auto;
    if !tools.is_empty() {
        request.system = code_system_prompt(&request.system, &tools).into();
    }
    let has_calls = |message: &Arc<LlmMessage>| {
        matches!(message.message, Message::ToolResult { .. })
            || message.message.calls().next().is_some()
    };
    if !request.messages.iter().any(has_calls) {
        return;
    }
    let adapt = |message: &Arc<LlmMessage>| match has_calls(message) {
        true => Arc::new(LlmMessage {
            message: without_calls(&message.message),
            ..LlmMessage::clone(message)
        }),
        false => Arc::clone(message),
    };
    request.messages = Arc::new(request.messages.iter().map(adapt).collect());
}

/// Returns the system prompt with the tools as functions.
pub(crate) fn code_system_prompt(system: &str, tools: &[ToolSpec]) -> String {
    let tools = tools.iter().filter(|tool| tool.name != CODE_TOOL);
    format!("{system}{}", code_instructions(&code_functions(tools)))
}

/// Returns the message with its calls and results as text.
fn without_calls(message: &Message) -> Message {
    match message {
        Message::System { .. } | Message::User { .. } => message.clone(),
        Message::Assistant {
            content,
            stop,
            model,
            provider,
            usage,
            error,
            request,
        } => {
            let as_text = |item: &Content| match item {
                Content::ToolCall(call) => Content::text(call_text(call)),
                other => other.clone(),
            };
            Message::Assistant {
                content: content.iter().map(as_text).collect(),
                stop: match stop {
                    MessageStop::ToolUse => MessageStop::Stop,
                    other => *other,
                },
                model: model.clone(),
                provider: provider.clone(),
                usage: *usage,
                error: error.clone(),
                request: request.clone(),
            }
        }
        Message::ToolResult {
            tool_name,
            content,
            is_error,
            ..
        } => {
            let heading = match (tool_name.as_str(), is_error) {
                (CODE_TOOL, false) => "Output of the block:".to_owned(),
                (CODE_TOOL, true) => "The block failed:".to_owned(),
                (name, false) => format!("Result of {name}:"),
                (name, true) => format!("{name} failed:"),
            };
            let heading = std::iter::once(Content::text(heading));
            Message::User {
                content: heading.chain(content.iter().cloned()).collect(),
            }
        }
    }
}

/// Returns the text by which the model made a call.
fn call_text(call: &ToolCall) -> String {
    let code = call.args["code"]
        .as_str()
        .filter(|_| call.name == CODE_TOOL);
    match code {
        Some(code) => fenced_code(code),
        None => format!("Called {} with {}.", call.name, call.args),
    }
}

/// Returns the code as a block of Markdown.
pub(super) fn fenced_code(code: &str) -> String {
    fenced_text(LANGUAGE, code)
}

/// Returns the text as a block of Markdown, which shows it as it is.
pub(super) fn fenced_text(language: &str, text: &str) -> String {
    let fence = "`".repeat(fence_length(text));
    let end = match text.is_empty() || text.ends_with('\n') {
        true => "",
        false => "\n",
    };
    format!("{fence}{language}\n{text}{end}{fence}")
}

/// Returns the length of a fence that no line of the text closes.
fn fence_length(text: &str) -> usize {
    let fences = text
        .lines()
        .map(|line| line.len() - line.trim_start_matches('`').len());
    fences.max().unwrap_or(0).max(2) + 1
}

/// Makes the first block of code the response's call, and drops the text after it.
fn adapt_response(mut response: Response) -> Response {
    let mut content = Vec::with_capacity(response.content.len());
    for item in mem::take(&mut response.content) {
        let Content::Text { text } = &item else {
            content.push(item);
            continue;
        };
        let (start, args) = match find_code_block(text) {
            CodeBlock::None => {
                content.push(item);
                continue;
            }
            CodeBlock::Closed { start, code } => {
                // What the limit cut off is text after the block, which is ignored.
                if response.stop == ModelStop::Length {
                    response.stop = ModelStop::EndTurn;
                }
                (start, json!({ "code": code }))
            }
            CodeBlock::Unclosed { start, code } => {
                (start, json!({ "code": code, "unclosed": true }))
            }
        };
        let before = text.get(..start).unwrap_or_default().trim_end();
        if !before.is_empty() {
            content.push(Content::text(before));
        }
        content.push(Content::ToolCall(ToolCall::new(CODE_TOOL, CODE_TOOL, args)));
        if response.stop == ModelStop::EndTurn {
            response.stop = ModelStop::ToolUse;
        }
        break;
    }
    response.content = content;
    response
}

/// Turns text deltas with code into deltas of a call.
#[derive(Default)]
struct DeltaStream {
    /// Text block that is being streamed.
    block: Option<u32>,
    text: CodeBlockStream,
    has_code: bool,
}

impl DeltaStream {
    fn push(&mut self, delta: ModelDelta) -> Vec<ModelDelta> {
        match delta {
            // What follows the code is ignored.
            ModelDelta::Text { block, .. } if self.has_code && self.block != Some(block) => {
                Vec::new()
            }
            ModelDelta::Text { block, text } => {
                let mut deltas = Vec::new();
                if let Some(before) = self.block.replace(block).filter(|it| *it != block) {
                    let held = mem::take(&mut self.text).finish();
                    deltas.extend(self.adapt(held, before));
                }
                let fragments = self.text.push(&text);
                deltas.extend(self.adapt(fragments, block));
                deltas
            }
            _ if self.has_code => Vec::new(),
            other => vec![other],
        }
    }

    fn finish(&mut self) -> Vec<ModelDelta> {
        let fragments = self.text.finish();
        let block = self.block.unwrap_or_default();
        self.adapt(fragments, block)
    }

    /// The code is the block after the text before it.
    fn adapt(&mut self, fragments: Vec<Fragment>, block: u32) -> Vec<ModelDelta> {
        let adapt = |fragment| match fragment {
            Fragment::Prose(text) => ModelDelta::Text { block, text },
            Fragment::Code(fragment) => {
                self.has_code = true;
                ModelDelta::ToolCallArgs {
                    block: block.saturating_add(1),
                    name: CODE_TOOL.to_owned(),
                    fragment,
                }
            }
        };
        fragments.into_iter().map(adapt).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnery_models::Thinking;

    /// The request of a last reply, which forbids calls, explains the same functions: the cache stays valid.
    // proves: C-4
    #[test]
    fn last_reply_keeps_the_instructions() {
        let look = ToolSpec::new("look", "Looks.", json!({"type": "object"}));
        let adapted = [ToolChoice::Auto, ToolChoice::None].map(|tool_choice| {
            let mut request = ModelRequest {
                tools: Arc::new([look.clone()]),
                tool_choice,
                ..ModelRequest::single_question(
                    "s".into(),
                    "Be good.",
                    "m",
                    "Look.".to_owned(),
                    Thinking::Default,
                )
            };
            adapt_request(&mut request);
            assert!(request.tools.is_empty());
            (request.system, request.tool_choice)
        });
        assert!(adapted[0].0.contains("def look("), "{}", adapted[0].0);
        assert_eq!(adapted[0], adapted[1]);
    }
}
