//! Runs conversations with the offline model in which a closure acts as the tools.

use serde_json::{Value, json};
use std::sync::Arc;
use turnery_engine::{
    Content, LlmMessage, Message, MessageStop, ModelDelta, ModelStop, SessionId, ToolSpec,
};
use turnery_models::{Model, ModelEvent, ModelEventSender, ModelRequest, OfflineModel, Thinking};

const TOOLS: [&str; 7] = [
    "read_file",
    "write_file",
    "edit_file",
    "list_dir",
    "find_files",
    "search",
    "shell",
];

/// Limit of model calls, above that of any prompt.
const MAX_CALLS: usize = 70;

/// Result of a prompt.
pub(crate) struct Transcript {
    /// All prose, in order.
    pub(crate) text: String,
    /// The calls, in order.
    pub(crate) calls: Vec<(String, Value)>,
}

impl Transcript {
    pub(crate) fn names(&self) -> Vec<&str> {
        self.calls.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[track_caller]
    pub(crate) fn assert_says(&self, parts: &[&str]) {
        for part in parts {
            assert!(self.text.contains(part), "no {part:?} in:\n{}", self.text);
        }
    }
}

/// Runs a prompt to its end. The closure returns `Ok` for a result, `Err` for a failure.
pub(crate) fn play(
    prompt: &str,
    tools: impl FnMut(&str, &Value) -> Result<String, String>,
) -> Transcript {
    play_content(vec![Content::text(prompt)], &TOOLS, tools)
}

/// Like [`play`], for any prompt content and with these tools available.
pub(crate) fn play_content(
    prompt: Vec<Content>,
    names: &[&str],
    mut tools: impl FnMut(&str, &Value) -> Result<String, String>,
) -> Transcript {
    let model = OfflineModel::new();
    let specs: Arc<[ToolSpec]> = names
        .iter()
        .map(|name| ToolSpec {
            name: (*name).to_owned(),
            description: String::new(),
            schema: json!({"type": "object"}).into(),
        })
        .collect();
    let mut history = vec![Message::User { content: prompt }];
    let mut played = Transcript {
        text: String::new(),
        calls: Vec::new(),
    };
    for _ in 0..MAX_CALLS {
        let (content, stop) = call(&model, &history, &specs);
        let message = Message::Assistant {
            content,
            stop: MessageStop::Stop,
            model: "offline".into(),
            provider: "offline".into(),
            usage: None,
            error: None,
        };
        if !played.text.is_empty() {
            played.text.push('\n');
        }
        played.text.push_str(&message.text());
        let calls: Vec<_> = message.calls().cloned().collect();
        history.push(message);
        if stop == ModelStop::EndTurn {
            assert!(calls.is_empty());
            return played;
        }
        for call in calls {
            assert!(names.contains(&call.name.as_str()), "{}", call.name);
            let result = tools(&call.name, &call.args);
            played.calls.push((call.name.clone(), (*call.args).clone()));
            history.push(Message::ToolResult {
                call_id: call.call_id,
                tool_name: call.name,
                is_error: result.is_err(),
                content: vec![Content::text(result.unwrap_or_else(|error| error))],
            });
        }
    }
    panic!("{:?} did not end", history.first());
}

fn call(
    model: &OfflineModel,
    history: &[Message],
    specs: &Arc<[ToolSpec]>,
) -> (Vec<Content>, ModelStop) {
    let kept = history.iter().cloned().enumerate().map(|(at, message)| {
        Arc::new(LlmMessage {
            message_id: format!("m{at}").into(),
            turn_id: None,
            message,
        })
    });
    let request = ModelRequest {
        session_id: SessionId::from("s"),
        system: "".into(),
        messages: Arc::new(kept.collect()),
        tools: Arc::clone(specs),
        thinking: Thinking::Default,
        temperature: None,
        answer: turnery_engine::ResponseLimits::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let (out, mut deltas) = ModelEventSender::new(8);
        let listen = async {
            let mut text = String::new();
            while let Some(ModelEvent::Delta(delta)) = deltas.recv().await {
                if let ModelDelta::Text { text: piece, .. } = delta {
                    assert!(!piece.is_empty());
                    text.push_str(&piece);
                }
            }
            text
        };
        let (answer, streamed) = tokio::join!(model.call(request, out), listen);
        let answer = answer.expect("an answer");
        let settled: Vec<&str> = answer.content.iter().filter_map(Content::as_text).collect();
        assert_eq!(settled.concat(), streamed);
        assert_eq!(answer.usage, None);
        (answer.content, answer.stop)
    })
}
