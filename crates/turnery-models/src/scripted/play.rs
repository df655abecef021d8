//! Plays the steps of one answer as deltas and a settled response.

use super::scenario::{AnswerEnd, AnswerStep, ScriptedAnswer, split_evenly};
use crate::{model::ModelEventSender, model_name::ModelName, response_accumulator::block_number};
use std::time::Duration;
use turnery_engine::{CallId, Content, ModelDelta, ModelError, ModelStop, Response, ToolCall};

/// Plays one answer. `answer_count` is the number of answers in the history, from which missing call ids are made
/// unique within a session.
pub(super) async fn play_answer(
    answer: &ScriptedAnswer,
    answer_count: usize,
    name: &ModelName,
    out: &ModelEventSender,
) -> Result<Response, ModelError> {
    let mut content = Vec::new();
    for step in &answer.steps {
        match step {
            AnswerStep::Text(pieces) | AnswerStep::Thinking(pieces) => {
                let is_thinking = matches!(step, AnswerStep::Thinking(_));
                for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
                    let delta = add_piece(&mut content, piece, is_thinking);
                    out.send_delta(delta).await;
                }
            }
            AnswerStep::ToolCall(tool, chunks) => {
                let block = block_number(content.len());
                for fragment in split_evenly(&tool.args.to_string(), *chunks) {
                    let name = tool.name.clone();
                    out.send_delta(ModelDelta::ToolCallArgs {
                        block,
                        name,
                        fragment,
                    })
                    .await;
                }
                let call_id = match &tool.id {
                    Some(id) => CallId::from(id.as_str()),
                    None => CallId::from(format!("scripted-{answer_count}-{block}")),
                };
                let call = ToolCall::new(call_id, &tool.name, tool.args.clone());
                content.push(Content::ToolCall(call));
            }
            AnswerStep::Delay(milliseconds) => {
                tokio::time::sleep(Duration::from_millis(*milliseconds)).await;
            }
            AnswerStep::WaitForCancel => std::future::pending().await,
        }
    }
    let (stop, raw_stop) = finish(answer, &content)?;
    Ok(Response {
        content,
        stop,
        raw_stop: Some(raw_stop.to_owned()),
        usage: answer.usage.map(Into::into),
        model: name.model.clone(),
        provider: name.provider.clone(),
        tool_results: Vec::new(),
        request: None,
    })
}

/// Appends to the last block if it is of the same kind, so that consecutive pieces form one block regardless of
/// delays in between.
fn add_piece(content: &mut Vec<Content>, piece: &str, is_thinking: bool) -> ModelDelta {
    match (content.last_mut(), is_thinking) {
        (Some(Content::Text { text }), false) | (Some(Content::Thinking { text, .. }), true) => {
            text.push_str(piece);
        }
        (_, false) => content.push(Content::text(piece)),
        (_, true) => content.push(Content::Thinking {
            text: piece.to_owned(),
            signature: None,
        }),
    }
    let (block, text) = (block_number(content.len() - 1), piece.to_owned());
    match is_thinking {
        true => ModelDelta::Thinking { block, text },
        false => ModelDelta::Text { block, text },
    }
}

fn finish(
    answer: &ScriptedAnswer,
    content: &[Content],
) -> Result<(ModelStop, &'static str), ModelError> {
    let calls = content
        .iter()
        .any(|item| matches!(item, Content::ToolCall(_)));
    match &answer.end {
        None if calls => Ok((ModelStop::ToolUse, "tool_use")),
        None | Some(AnswerEnd::Stop) => Ok((ModelStop::EndTurn, "stop")),
        Some(AnswerEnd::ToolUse) => Ok((ModelStop::ToolUse, "tool_use")),
        Some(AnswerEnd::Length) => Ok((ModelStop::Length, "length")),
        Some(AnswerEnd::Refusal) => Ok((ModelStop::Refusal, "refusal")),
        Some(AnswerEnd::Error(error)) => Err(ModelError {
            kind: error.kind,
            message: error
                .message
                .clone()
                .unwrap_or_else(|| "the scenario says that this call fails".to_owned()),
            status: error.status,
            retry_after: error.retry_after_ms.map(Duration::from_millis),
            // No credit, and no such model.
            is_about_model: matches!(error.status, Some(402 | 404)),
        }),
    }
}
