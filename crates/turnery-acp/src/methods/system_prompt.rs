//! System prompt (unstable, behind `sessionCapabilities.systemPrompt`): what a client has to say to the model in
//! a session that it makes or opens. What cannot be done refuses the session.

use crate::fault::Fault;
use agent_client_protocol_schema::v1::{ContentBlock, SystemPrompt, SystemPromptMode};
use turnery_agent::Instructions;

/// Texts, behind our own words or in place of them.
pub(super) fn from_wire(prompt: Option<SystemPrompt>) -> Result<Option<Instructions>, Fault> {
    let Some(prompt) = prompt else {
        return Ok(None);
    };
    let texts: Vec<String> = prompt
        .content
        .into_iter()
        .map(text)
        .collect::<Result<_, _>>()?;
    if texts.is_empty() {
        return Err(Fault::params(
            "systemPrompt: content is empty; say something or leave it out.",
        ));
    }
    let text = texts.join("\n\n");
    match prompt.mode {
        SystemPromptMode::Append => Ok(Some(Instructions::Append(text))),
        SystemPromptMode::Override => Ok(Some(Instructions::Override(text))),
        _ => Err(Fault::params(
            "systemPrompt: mode must be append or override.",
        )),
    }
}

fn text(block: ContentBlock) -> Result<String, Fault> {
    match block {
        ContentBlock::Text(text) => Ok(text.text),
        _ => Err(Fault::params("systemPrompt: content may only be text.")),
    }
}
