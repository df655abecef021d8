//! `session/prompt`: queues a message for the model, or runs a slash command. The response to a message comes
//! once it is part of the conversation, before any result; the response to a command comes once the command
//! is done or queued. A prompt waits while other work runs, and is rejected only if the queue is full (V2-4,
//! V2-5, V2-7).

use crate::{
    commands::{find_command, mcp_prompt, slash_command::CommandCall},
    methods::prompt_start::{check_media_support, prompt_options, start_error},
    server::{method_call::MethodCall, params::parse_params, rpc_error::RpcError},
    v2::{self, prompt_content, stop_reason},
};
use agent_client_protocol_schema::v2::{PromptRequest, PromptResponse};
use turnery_agent::PromptOptions;

pub(super) async fn handle(call: MethodCall) -> Result<PromptResponse, RpcError> {
    let request: PromptRequest = parse_params(&call.params)?;
    let session = call.connection.session(&request.session_id.0)?;
    let prompt = prompt_content::parse_prompt(request.prompt)?;
    if let Some(found) = find_command::find_command(&prompt) {
        let command_call = CommandCall {
            args: found.args,
            attachments: found.attachments,
            prompt: prompt.content,
            session,
            connection: call.connection,
            scope: call.scope,
        };
        let run = Box::pin(v2::commands::run_command(found.command, command_call));
        return Ok(PromptResponse::new(run.await?));
    }
    let options = PromptOptions {
        discard_if_not_started: true,
        ..prompt_options(request.meta.as_ref(), call.scope.cancel)?
    };
    check_media_support(&session, &prompt.content, options.model.as_ref())?;
    let queued = match mcp_prompt::find_mcp_prompt(&prompt, &session) {
        Some(found) => {
            session.prompt_from_mcp(found.command, found.args, found.attachments, options)
        }
        None => {
            let input = find_command::expand_custom_command(prompt, &session.options());
            session.prompt(input, options)
        }
    };
    let mut ticket = queued.map_err(|error| start_error(&session, error))?;
    match ticket.inserted().await {
        Some(id) => Ok(PromptResponse::new(id.as_str())),
        None => Err(stop_reason::not_inserted_error(ticket.result().await)),
    }
}
