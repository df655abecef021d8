//! `session/prompt`: runs a prompt to its end. Queues it at the first poll, so that a cancel on the next line
//! finds it (CANCEL-9).

use crate::{
    commands::{find_command, mcp_prompt, slash_command::CommandCall},
    methods::prompt_start::{check_media_support, prompt_options, start_error},
    server::{method_call::MethodCall, params::parse_params, rpc_error::RpcError},
    v1::{commands::run_command, prompt_content, prompt_response},
    view::stop_reason,
};
use agent_client_protocol_schema::v1::{PromptRequest, PromptResponse};

pub(super) async fn handle(call: MethodCall) -> Result<PromptResponse, RpcError> {
    let request: PromptRequest = parse_params(&call.params)?;
    let session = call.connection.session(&request.session_id.0)?;
    let prompt = prompt_content::parse_prompt(request.prompt)?;
    let options = prompt_options(request.meta.as_ref(), call.scope.cancel.clone())?;
    if let Some(found) = find_command::find_command(&prompt) {
        let command_call = CommandCall {
            args: found.args,
            attachments: found.attachments,
            prompt: prompt.content,
            session,
            connection: call.connection,
            scope: call.scope,
        };
        return Box::pin(run_command(found.command, command_call)).await;
    }
    if let Some(found) = mcp_prompt::find_mcp_prompt(&prompt, &session) {
        let ticket = session.prompt_from_mcp(found.command, found.args, found.attachments, options);
        let ticket = ticket.map_err(|error| start_error(&session, error))?;
        return Box::pin(mcp_prompt::run_mcp_prompt(
            ticket,
            prompt.content,
            &session,
            &call.connection,
        ))
        .await;
    }
    check_media_support(&session, &prompt.content, options.model.as_ref())?;
    let input = find_command::expand_custom_command(prompt, &session.options());
    let known = call.connection.client_features().prompt_usage;
    let ticket = session
        .prompt(input, options)
        .map_err(|error| start_error(&session, error))?;
    match ticket.result().await {
        Ok(result) => prompt_response::to_prompt_response(&result, known),
        Err(fault) => Err(stop_reason::prompt_error(&fault)),
    }
}
