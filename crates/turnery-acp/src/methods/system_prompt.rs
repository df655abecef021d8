//! System prompt (unstable, behind `sessionCapabilities.systemPrompt`): instructions from the client for the
//! model of a session that is created or opened. Unsupported forms are rejected.

use crate::server::rpc_error::RpcError;
use agent_client_protocol_schema::v1::{ContentBlock, SystemPrompt, SystemPromptMode};
use turnery_agent::Instructions;

/// Parses instructions that extend or replace the built-in ones.
pub(super) fn parse_system_prompt(
    prompt: Option<SystemPrompt>,
) -> Result<Option<Instructions>, RpcError> {
    let Some(prompt) = prompt else {
        return Ok(None);
    };
    let texts: Vec<String> = prompt
        .content
        .into_iter()
        .map(parse_text_block)
        .collect::<Result<_, _>>()?;
    if texts.is_empty() {
        return Err(RpcError::invalid_params(
            "systemPrompt: content is empty; add text or omit systemPrompt.",
        ));
    }
    let text = texts.join("\n\n");
    match prompt.mode {
        SystemPromptMode::Append => Ok(Some(Instructions::Append(text))),
        SystemPromptMode::Override => Ok(Some(Instructions::Override(text))),
        _ => Err(RpcError::invalid_params(
            "systemPrompt: mode must be append or override.",
        )),
    }
}

fn parse_text_block(block: ContentBlock) -> Result<String, RpcError> {
    match block {
        ContentBlock::Text(text) => Ok(text.text),
        _ => Err(RpcError::invalid_params(
            "systemPrompt: content may only be text.",
        )),
    }
}
