//! `offline`: the model that needs no network and no key. A set of rules, not an AI: it recognises
//! what a sentence asks for, calls the same tools as any model, and tells what it saw.

mod about;
mod agents;
mod code;
mod diff;
mod failures;
mod git;
mod help;
mod intent;
mod lookup;
mod outline;
mod output;
mod pasted;
mod patch;
mod project;
mod replace;
mod replay;
mod repository;
mod rules;
mod run;
mod show;
mod target;
mod todo;

use crate::{DeltaSender, Model, ModelInfo, ModelName, ModelRequest};
use futures_util::future::BoxFuture;
use intent::Intent;
use replay::{Halt, Replay};
use turnery_engine::{CallId, Content, ModelDelta, ModelFault, ModelStop, Response, ToolCall};

/// The built-in model.
#[derive(Clone, Debug)]
pub struct Offline {
    info: ModelInfo,
}

impl Offline {
    /// It has nothing to set.
    #[must_use]
    pub fn new() -> Self {
        Self {
            info: ModelInfo {
                name: ModelName {
                    provider: "offline".to_owned(),
                    model: String::new(),
                },
                display_name: "Offline (rules, no AI)".to_owned(),
                context_window: None,
                max_output: u32::MAX,
                // Taken like by the models that it stands in for, and said not to be seen.
                images: true,
                // Offered only where a model is within reach that listens.
                audio: false,
                reasoning: false,
                api: "offline",
                base_url: None,
            },
        }
    }
}

impl Default for Offline {
    fn default() -> Self {
        Self::new()
    }
}

impl Model for Offline {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn call(
        &self,
        request: ModelRequest,
        out: DeltaSender,
    ) -> BoxFuture<'_, Result<Response, ModelFault>> {
        Box::pin(async move {
            let content = answer(&request);
            drop(request);
            stream(&content, &out).await;
            let calls = content
                .iter()
                .any(|item| matches!(item, Content::ToolCall(_)));
            Ok(Response {
                stop: if calls {
                    ModelStop::ToolUse
                } else {
                    ModelStop::EndTurn
                },
                content,
                raw_stop: None,
                usage: None,
                model: "offline".to_owned(),
                provider: "offline".to_owned(),
                tool_results: Vec::new(),
            })
        })
    }
}

fn answer(request: &ModelRequest) -> Vec<Content> {
    let mut replay = Replay::new(request);
    if replay.has_picture() {
        replay.say(help::BLIND);
    }
    let intent = Intent::of(replay.prompt());
    let (calls, closing) = match follow(&intent, &mut replay) {
        Ok(()) => (Vec::new(), String::new()),
        Err(Halt::Ask(calls)) => (calls, String::new()),
        Err(Halt::Stop(text)) => (Vec::new(), text),
    };
    let mut text = replay.into_text();
    text.push_str(&closing);
    let text = text.trim();
    let mut content = Vec::new();
    if !text.is_empty() {
        content.push(Content::text(text));
    }
    let answers = request.messages.len();
    content.extend(calls.into_iter().enumerate().map(|(at, (name, args))| {
        Content::ToolCall(ToolCall {
            call_id: CallId::from(format!("offline-{answers}-{at}")),
            name: name.to_owned(),
            args: args.into(),
        })
    }));
    if content.is_empty() {
        content.push(Content::text("There is nothing to say about that."));
    }
    content
}

fn follow(intent: &Intent, replay: &mut Replay<'_>) -> Result<(), Halt> {
    match intent {
        Intent::Help(topic) => help::help(*topic, replay),
        Intent::Patch(text) => patch::apply(text, replay),
        Intent::Diff { text, ask } => pasted::diff(text, *ask, replay),
        Intent::Output(text) => {
            pasted::output(text, replay);
            Ok(())
        }
        Intent::ErrorCode(code) => run::explain_code(code, replay),
        Intent::Replace { old, new, path } => replace::replace(old, new, path.as_deref(), replay),
        Intent::Run(job) => run::run(job, replay),
        Intent::Todo(path) => todo::list(path.as_deref(), replay),
        Intent::Changes(ask) => git::changes(*ask, replay),
        Intent::Agents => agents::write(replay),
        Intent::Repository => repository::explain(replay),
        Intent::Outline(path) => outline::outline(path, replay),
        Intent::Files(ask) => show::files(ask, replay),
        Intent::Show(place) => show::show(place, replay),
        Intent::Lookup { word, aim } => lookup::lookup(word, *aim, replay),
        Intent::About(stems) if replay.has("search") => about::about(stems, replay),
        Intent::About(_) => help::unknown(&[], replay),
        Intent::Unknown(words) => help::unknown(words, replay),
    }
}

/// Prose goes out in pieces of a few words, so that a client shows it as it shows any model's.
async fn stream(content: &[Content], out: &DeltaSender) {
    for (block, item) in (0..).zip(content) {
        match item {
            Content::Text { text } => {
                for piece in pieces(text) {
                    let text = piece.to_owned();
                    out.send(ModelDelta::Text { block, text }).await;
                }
            }
            Content::ToolCall(call) => {
                let name = call.name.clone();
                let fragment = call.args.to_string();
                out.send(ModelDelta::ToolCallArgs {
                    block,
                    name,
                    fragment,
                })
                .await;
            }
            Content::Image(_)
            | Content::Audio(_)
            | Content::Thinking { .. }
            | Content::Opaque { .. } => {}
        }
    }
}

/// Cuts after white space, about every 60 bytes.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    for (at, letter) in text.char_indices() {
        let end = at + letter.len_utf8();
        if letter.is_whitespace() && end - start >= 60 {
            pieces.push(&text[start..end]);
            start = end;
        }
    }
    if start < text.len() {
        pieces.push(&text[start..]);
    }
    pieces
}
