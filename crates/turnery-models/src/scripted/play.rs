//! Play: one answer's steps become deltas and a settled response.

use super::scenario::{Answer, End, Step, split};
use crate::{DeltaSender, ModelName};
use std::{sync::Arc, time::Duration};
use turnery_engine::{CallId, Content, ModelDelta, ModelFault, ModelStop, Response, ToolCall};

/// Play one answer. `said` is the number of answers in the history: call ids that the scenario does
/// not give are made from it, so they differ within a session.
pub(super) async fn play(
    answer: &Answer,
    said: usize,
    name: &ModelName,
    out: &DeltaSender,
) -> Result<Response, ModelFault> {
    let mut content = Vec::new();
    for step in &answer.steps {
        match step {
            Step::Text(pieces) => {
                for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
                    let block = add_text(&mut content, piece);
                    let text = piece.clone();
                    out.send(ModelDelta::Text { block, text }).await;
                }
            }
            Step::Thinking(pieces) => {
                for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
                    let block = add_thinking(&mut content, piece);
                    let text = piece.clone();
                    out.send(ModelDelta::Thinking { block, text }).await;
                }
            }
            Step::ToolCall(tool, chunks) => {
                let block = number(content.len());
                for fragment in split(&tool.args.to_string(), *chunks) {
                    let name = tool.name.clone();
                    out.send(ModelDelta::ToolCallArgs {
                        block,
                        name,
                        fragment,
                    })
                    .await;
                }
                content.push(Content::ToolCall(ToolCall {
                    call_id: match &tool.id {
                        Some(id) => CallId::from(id.as_str()),
                        None => CallId::from(format!("scripted-{said}-{block}")),
                    },
                    name: tool.name.clone(),
                    args: Arc::new(tool.args.clone()),
                }));
            }
            Step::Delay(milliseconds) => {
                tokio::time::sleep(Duration::from_millis(*milliseconds)).await;
            }
            Step::WaitForCancel => std::future::pending().await,
        }
    }
    let (stop, raw_stop) = settle(answer, &content)?;
    Ok(Response {
        content,
        stop,
        raw_stop: Some(raw_stop.to_owned()),
        usage: answer.usage.map(Into::into),
        model: name.model.clone(),
        provider: name.provider.clone(),
        tool_results: Vec::new(),
    })
}

/// Pieces of text that follow each other are one block, whatever pauses lie between.
fn add_text(content: &mut Vec<Content>, piece: &str) -> u32 {
    if let Some(Content::Text { text }) = content.last_mut() {
        text.push_str(piece);
    } else {
        content.push(Content::text(piece));
    }
    number(content.len() - 1)
}

fn add_thinking(content: &mut Vec<Content>, piece: &str) -> u32 {
    if let Some(Content::Thinking { text, .. }) = content.last_mut() {
        text.push_str(piece);
    } else {
        content.push(Content::Thinking {
            text: piece.to_owned(),
            signature: None,
        });
    }
    number(content.len() - 1)
}

fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn settle(answer: &Answer, content: &[Content]) -> Result<(ModelStop, &'static str), ModelFault> {
    let calls = content
        .iter()
        .any(|item| matches!(item, Content::ToolCall(_)));
    match &answer.end {
        None if calls => Ok((ModelStop::ToolUse, "tool_use")),
        None | Some(End::Stop) => Ok((ModelStop::EndTurn, "stop")),
        Some(End::ToolUse) => Ok((ModelStop::ToolUse, "tool_use")),
        Some(End::Length) => Ok((ModelStop::Length, "length")),
        Some(End::Refusal) => Ok((ModelStop::Refusal, "refusal")),
        Some(End::Error(fault)) => Err(ModelFault {
            kind: fault.kind.into(),
            message: fault
                .message
                .clone()
                .unwrap_or_else(|| "the scenario says that this call fails".to_owned()),
            status: fault.status,
            retry_after: fault.retry_after_ms.map(Duration::from_millis),
        }),
    }
}
