//! `offline` is a built-in model without network or key. It is rule-based, not an AI: it recognizes a fixed
//! list of commands, calls the same tools as any model, and reports their results.

mod command;
mod command_context;
mod definition;
mod edit;
mod failures;
mod run;
mod search;

use crate::{
    model::{Model, ModelEventSender, ModelInfo, ModelRequest},
    model_name::ModelName,
};
use command_context::{CommandContext, Interrupt};
use futures_util::future::BoxFuture;
use serde_json::json;
use turnery_engine::{Content, Message, ModelDelta, ModelError, ModelStop, Response, ToolCall};

/// Response to every prompt that is not clearly one of the commands.
const HELP_TEXT: &str = r#"I work offline, without a model, and can do nothing but the commands below; to connect a model, run `turnery login` in a terminal or set ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENAI_BASE_URL, and start again.

- where is `Name` defined? / who uses `Name`?
- search for "some text" in src / how many *.md files? / list the TODOs
- outline src / show src/main.rs:10-40
- replace `old` with `new` in src / apply this patch (a unified diff follows)
- run the tests / run `make check` / why does this fail? (its output follows)
- what changed?
"#;

/// The built-in offline model.
#[derive(Clone, Debug)]
pub struct OfflineModel {
    info: ModelInfo,
}

impl Default for OfflineModel {
    fn default() -> Self {
        Self {
            info: ModelInfo {
                display_name: "Offline (rules, no AI)".to_owned(),
                // Accepted like by other models; the response says that images are ignored.
                images: true,
                ..ModelInfo::new(ModelName::new("offline", ""), "offline")
            },
        }
    }
}

impl Model for OfflineModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn call(
        &self,
        request: ModelRequest,
        out: ModelEventSender,
    ) -> BoxFuture<'_, Result<Response, ModelError>> {
        Box::pin(async move {
            let content = respond(&request);
            let (stop, delta) = match &content {
                Content::ToolCall(call) => (
                    ModelStop::ToolUse,
                    ModelDelta::ToolCallArgs {
                        block: 0,
                        name: call.name.clone(),
                        fragment: call.args.to_string(),
                    },
                ),
                other => {
                    let text = other.as_text().unwrap_or_default().to_owned();
                    (ModelStop::EndTurn, ModelDelta::Text { block: 0, text })
                }
            };
            out.send_delta(delta).await;
            Ok(Response {
                stop,
                content: vec![content],
                raw_stop: None,
                usage: None,
                model: "offline".to_owned(),
                provider: "offline".to_owned(),
                tool_results: Vec::new(),
                request: None,
            })
        })
    }
}

/// Returns the next tool call of the prompt's command, or its response.
fn respond(request: &ModelRequest) -> Content {
    let id = format!("offline-{}", request.messages.len());
    let call = |name, args| Content::ToolCall(ToolCall::new(id, name, args));
    let last = request.messages.last().map(|message| &message.message);
    if matches!(last, Some(Message::System { .. })) && request.can_call("submit_error") {
        return call("submit_error", json!({"error": HELP_TEXT}));
    }
    let mut cx = CommandContext::new(request);
    let text = match command::execute(&mut cx) {
        None => HELP_TEXT.to_owned(),
        Some(Ok(text) | Err(Interrupt::Stop(text))) => text,
        Some(Err(Interrupt::Call(name, args))) => return call(name, args),
    };
    let blind = "I cannot see pictures, so I go by the words alone.\n\n";
    let blind = if cx.has_image { blind } else { "" };
    Content::text(format!("{blind}{}", text.trim_end()))
}
