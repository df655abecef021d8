//! Runs conversations with the offline model in which a closure acts as the tools.

use crate::server;
use serde_json::Value;
use std::sync::Arc;
use turnery_engine::{Content, Message, ModelDelta, ModelStop, ToolSpec};
use turnery_models::OfflineModel;

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
    let model = OfflineModel::default();
    let specs: Arc<[ToolSpec]> = names.iter().map(|name| server::tool(name, "")).collect();
    let mut history = vec![Message::User { content: prompt }];
    let mut played = Transcript {
        text: String::new(),
        calls: Vec::new(),
    };
    for _ in 0..MAX_CALLS {
        let (content, stop) = call(&model, &history, &specs);
        let message = server::assistant(content);
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
    let mut request = server::request(history.to_vec());
    request.tools = Arc::clone(specs);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let (answer, deltas) = runtime.block_on(server::call_for_deltas(model, request));
    let answer = answer.expect("an answer");
    let streamed = deltas.iter().map(|delta| match delta {
        ModelDelta::Text { text, .. } => {
            assert!(!text.is_empty());
            text.as_str()
        }
        _ => "",
    });
    assert_eq!(answer.text(), streamed.collect::<String>());
    assert_eq!(answer.usage, None);
    (answer.content, answer.stop)
}
